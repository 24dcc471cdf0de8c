//! What a settle call may answer, what the buyer then sees, and what the same payment brings when it comes again.

use std::sync::Arc;
use std::time::Duration;

use jim::x402::{OutgoingPayment, Version};
use serde_json::json;
use tokio::sync::Notify;

use crate::support::buyer::{Ask, Buyer, Reply, reason_of};
use crate::support::facilitator::{Answer, StubFacilitator, TX};
use crate::support::refusal::{assert_pending, assert_refusal};
use crate::support::research::{Manner, Scribe};
use crate::support::rows::{Rows, assert_invariants, column};
use crate::support::service::Service;

const OTHER: &str = "0x00000000000000000000000000000000000000aa";

/// Every settle answer after which nobody knows whether money moved.
fn unknown_answers() -> Vec<(&'static str, Answer)> {
    let json = |value| Answer::Json(200, value);
    vec![
        ("success without a transaction", json(json!({"success": true, "transaction": "", "network": "eip155:84532"}))),
        ("success with no transaction at all", json(json!({"success": true}))),
        ("success for another payer", json(json!({"success": true, "transaction": TX, "payer": OTHER}))),
        ("success on another network", json(json!({"success": true, "transaction": TX, "network": "eip155:8453"}))),
        (
            "success with a reason",
            json(json!({"success": true, "transaction": TX, "errorReason": "insufficient_funds"})),
        ),
        ("success with status 500", Answer::Json(500, json!({"success": true, "transaction": TX}))),
        (
            "failure with a transaction",
            json(json!({"success": false, "errorReason": "insufficient_funds", "transaction": TX})),
        ),
        ("settlement_pending", json(json!({"success": false, "errorReason": "settlement_pending"}))),
        ("invalid_transaction_state", json(json!({"success": false, "errorReason": "invalid_transaction_state"}))),
        (
            "a failed transaction",
            json(json!({"success": false, "errorReason": "invalid_exact_evm_transaction_failed"})),
        ),
        ("a reason nobody knows", json(json!({"success": false, "errorReason": "the moon"}))),
        ("no reason", json(json!({"success": false}))),
        (
            "a known reason with status 500",
            Answer::Json(500, json!({"success": false, "errorReason": "insufficient_funds"})),
        ),
        (
            "a known reason with status 429",
            Answer::Json(429, json!({"success": false, "errorReason": "insufficient_funds"})),
        ),
        ("status 500", Answer::Json(500, json!({"error": "x"}))),
        ("garbage", Answer::Text(200, "{\"success\":tr")),
        ("a page", Answer::Text(200, "<html>hello</html>")),
        ("a cut connection", Answer::Drop),
        ("a redirect", Answer::Redirect),
    ]
}

/// A settle call that ended as unknown, with an answer kept and nothing booked.
pub(super) const UNKNOWN: Rows = Rows { settle_results: 1, settlements: 0, ledger: 0, served: 1, ..Rows::SOLD };

#[tokio::test]
async fn an_unknown_outcome_is_never_a_challenge_and_the_same_payment_brings_the_answer() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    for (i, (name, answer)) in unknown_answers().into_iter().enumerate() {
        eprintln!("{name}");
        let (before, settles) = (service.rows().await, stub.settles());
        let buyer = Buyer::new(&service, u8::try_from(i + 1).expect("few"));
        stub.on_settle([answer]);
        let (payment, reply) = buyer.buy(&Ask::memo()).await;
        assert_pending(&reply);
        assert_eq!(stub.settles(), settles + 1, "{name}");
        assert_eq!(difference(service.rows().await, before), UNKNOWN, "{name}");
        assert_eq!(last_state(&service).await, "unknown unknown", "{name}");
        let again = buyer.send(&Ask::memo(), Some(&payment)).await;
        assert_eq!((again.status, stub.settles()), (200, settles + 2), "{name}: {}", again.text());
        assert_eq!(last_state(&service).await, "settled settled", "{name}");
        let third = buyer.send(&Ask::memo(), Some(&payment)).await;
        assert_eq!((third.status, &third.body, stub.settles()), (200, &again.body, settles + 2), "{name}");
    }
    let pool = &service.world.database.pool;
    let drafts = i64::from(service.world.scribe.drafts());
    assert_eq!(drafts, service.rows().await.payments, "no work was done twice");
    assert_invariants(pool).await;
}

pub(super) fn difference(after: Rows, before: Rows) -> Rows {
    Rows {
        payments: after.payments - before.payments,
        claims: after.claims - before.claims,
        orders: after.orders - before.orders,
        answers: after.answers - before.answers,
        settle_attempts: after.settle_attempts - before.settle_attempts,
        settle_results: after.settle_results - before.settle_results,
        settlements: after.settlements - before.settlements,
        runs: after.runs - before.runs,
        ledger: after.ledger - before.ledger,
        served: after.served - before.served,
    }
}

/// State of the newest payment, and the class of its newest settle answer: of a charge its settlement tells.
pub(super) async fn last_state(service: &Service) -> String {
    let text = "select concat_ws(' ', payment_state(p.payment_id), (select coalesce(r.class, 'settled') from settle_attempts a left join settle_results r using (payment_id, attempt) where a.payment_id = p.payment_id order by a.attempt desc limit 1)) from payments p order by created_at desc limit 1";
    column(&service.world.database.pool, text).await.remove(0)
}

pub(super) async fn sold_unproven(service: &Service) -> Vec<String> {
    column(&service.world.database.pool, "select concat_ws(' ', proven, coalesce(transaction, '-')) from settlements")
        .await
}

#[tokio::test]
async fn a_transaction_that_was_named_is_shown_while_the_outcome_is_open() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    stub.on_settle([Answer::Json(
        200,
        json!({"success": false, "errorReason": "settlement_pending", "transaction": TX}),
    )]);
    let (_, reply) = Buyer::new(&service, 1).buy(&Ask::memo()).await;
    assert_eq!(assert_pending(&reply)["payment"]["tx"], TX);
    let order = column(&service.world.database.pool, "select order_id from orders").await.remove(0);
    let shown = service.get(&format!("/api/orders/{order}")).await.json();
    assert_eq!(
        (&shown["state"], &shown["charged"], &shown["payment"]["tx"]),
        (&"unknown".into(), &"unknown".into(), &TX.into())
    );
}

#[tokio::test]
async fn a_lost_answer_and_then_a_used_nonce_mean_paid() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    for (key, reason) in
        [(1, "invalid_exact_evm_nonce_already_used"), (2, "FiatTokenV2: authorization is used or canceled")]
    {
        stub.on_settle([Answer::Drop, Answer::Json(200, json!({"success": false, "errorReason": reason}))]);
        let buyer = Buyer::new(&service, key);
        let (payment, first) = buyer.buy(&Ask::memo()).await;
        assert_pending(&first);
        let second = buyer.send(&Ask::memo(), Some(&payment)).await;
        assert_eq!(second.status, 200, "{}", second.text());
        let stored: Vec<u8> = sqlx::query_scalar("select body from answers where payment_id = (select payment_id from payments order by created_at desc limit 1)")
            .fetch_one(&service.world.database.pool)
            .await
            .expect("an answer");
        assert_eq!(second.body, stored);
    }
    assert_eq!(sold_unproven(&service).await, ["f -", "f -"]);
    assert_eq!((stub.settles(), service.world.scribe.drafts()), (4, 2));
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn a_nonce_that_is_used_at_the_first_call_is_open_and_not_a_denial() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    let used = Answer::Json(200, json!({"success": false, "errorReason": "nonce_already_used"}));
    stub.on_settle([used.clone(), used]);
    let buyer = Buyer::new(&service, 1);
    let (payment, first) = buyer.buy(&Ask::memo()).await;
    assert_pending(&first);
    assert_eq!(last_state(&service).await, "unknown nonce_used");
    // after our own committed intent it means paid, though nobody can prove it without a chain
    assert_eq!(buyer.send(&Ask::memo(), Some(&payment)).await.status, 200);
    assert_eq!(sold_unproven(&service).await, ["f -"]);
    assert_eq!(stub.settles(), 2);
}

#[tokio::test]
async fn the_simulated_chain_charges_once_when_its_answer_is_lost() {
    let service = Service::start().await;
    let simulated = Arc::clone(service.app.simulated.as_ref().expect("simulated"));
    simulated.cut_next_settle();
    let buyer = Buyer::new(&service, 1);
    let (payment, first) = buyer.buy(&Ask::memo()).await;
    assert_pending(&first);
    let second = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!((second.status, service.settle_calls()), (200, 2));
    assert_eq!(simulated.load_balance(&service.app.pay_to).await, Ok(jim::evm::U256::from(50_000)));
    assert_eq!(sold_unproven(&service).await, ["f -"]);
}

#[tokio::test]
async fn a_denial_of_the_first_settle_call_is_a_402_each_time_and_final() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    stub.on_settle([Answer::Json(
        200,
        json!({"success": false, "errorReason": "insufficient_funds", "transaction": ""}),
    )]);
    let buyer = Buyer::new(&service, 1);
    let (payment, first) = buyer.buy(&Ask::memo()).await;
    assert_eq!(reason_of(&first), "insufficient_funds");
    let second = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!((reason_of(&second).as_str(), &second.body), ("insufficient_funds", &first.body));
    assert_eq!(stub.settles(), 1);
    assert_eq!(service.rows().await, Rows { served: 2, ..UNKNOWN });
    assert_eq!(last_state(&service).await, "denied denied");
    let summary = &service.operate("/api/ledger/margin").await["summary"];
    assert_eq!((&summary["revenue_micros"], &summary["refused"]), (&0.into(), &json!({"settlement_denied": 1})));
    // a new payment for the same request is free to come
    assert_eq!(buyer.buy(&Ask::memo()).await.1.status, 200);
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn a_denial_after_an_unknown_outcome_stays_unknown() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    stub.on_settle([Answer::Drop, Answer::Json(200, json!({"success": false, "errorReason": "insufficient_funds"}))]);
    let buyer = Buyer::new(&service, 1);
    let (payment, first) = buyer.buy(&Ask::memo()).await;
    assert_pending(&first);
    assert_pending(&buyer.send(&Ask::memo(), Some(&payment)).await);
    assert_eq!(last_state(&service).await, "unknown unknown", "our own first call may have emptied the wallet");
    assert_eq!(stub.settles(), 2);
}

#[tokio::test]
async fn a_call_that_was_never_sent_is_overloaded_and_then_sold() {
    let mut stub = StubFacilitator::start().await;
    let gate = Arc::new(Notify::new());
    let scribe = Scribe::new(Manner::Held(Arc::clone(&gate)));
    let service = Service::start_with(|settings, parts| {
        settings.payments.facilitator_urls = vec![stub.url()];
        parts.synthesizer = Some(Arc::clone(&scribe) as _);
    });
    let service = service.await;
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V2).await;
    let sending = spawn_send(&buyer, &payment);
    while scribe.drafts() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    stub.close().await;
    gate.notify_one();
    let reply = sending.await.expect("no panic");
    let body = assert_refusal(&service, &reply, 503, "overloaded").await;
    assert_eq!(body["retry"]["same_payment"], true);
    assert_eq!(last_state(&service).await, "ready not_sent");
    assert_eq!(service.rows().await, UNKNOWN);
    let still = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_refusal(&service, &still, 503, "overloaded").await;
    stub.reopen().await;
    let sold = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!(sold.status, 200, "{}", sold.text());
    assert_eq!((stub.settles(), scribe.drafts()), (1, 1));
    assert_eq!(service.rows().await, Rows { settle_attempts: 3, settle_results: 2, served: 2, ..Rows::SOLD });
    assert_invariants(&service.world.database.pool).await;
}

fn spawn_send(buyer: &Buyer, payment: &OutgoingPayment) -> tokio::task::JoinHandle<Reply> {
    let (buyer, payment) = (buyer.clone(), payment.clone());
    tokio::spawn(async move { buyer.send(&Ask::memo(), Some(&payment)).await })
}

//! Refusals of work that was begun: each is complete and signed, stored once, booked as a loss, and never settled.

use std::sync::Arc;
use std::time::Duration;

use jim::x402::Version;
use serde_json::json;

use crate::support::buyer::{Ask, Buyer};
use crate::support::facilitator::{Answer, StubFacilitator};
use crate::support::refusal::assert_refusal;
use crate::support::research::{LIE, LIE_COST, Manner, Scribe, Shelves, Stock};
use crate::support::rows::{Rows, assert_invariants, column};
use crate::support::service::Service;

/// Buys once, sees the refusal, sends the same payment again and sees the same bytes; nothing is settled.
async fn assert_final(service: &Service, status: u16, code: &str) -> serde_json::Value {
    let buyer = Buyer::new(service, 1);
    let (payment, reply) = buyer.buy(&Ask::memo()).await;
    let body = assert_refusal(service, &reply, status, code).await;
    assert_eq!(service.rows().await, Rows::REFUSED);
    assert_eq!(body["payment"]["state"], "none");
    let key = format!(
        "eip155:84532/eip3009/0x036cbd53842c5426634e7929541ec2318f3dcf7e/{}/{:#x}",
        buyer.address(),
        payment.authorization.nonce()
    );
    assert_eq!(body["receipt"]["payload"]["payment_key"], key);
    let again = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!((again.status, &again.body), (status, &reply.body), "a refusal is replayed as it was");
    assert_eq!(again.header("retry-after"), reply.header("retry-after"), "and so is its Retry-After");
    assert_eq!(service.rows().await, Rows { served: 2, ..Rows::REFUSED });
    assert_eq!(service.settle_calls(), 0);
    let pool = &service.world.database.pool;
    let stored = "select concat_ws(' ', p.state, a.kind, a.status, a.refusal_code, r.refusal_code) from payment_states p join answers a using (payment_id) join runs r using (payment_id)";
    assert_eq!(column(pool, stored).await, [format!("refused refusal {status} {code} {code}")]);
    assert_order(service, &body).await;
    assert_invariants(pool).await;
    body
}

/// The order behind a refusal exists and says so.
async fn assert_order(service: &Service, body: &serde_json::Value) {
    let order = body["instance"].as_str().expect("an order");
    assert_eq!(body["receipt"]["payload"]["order_id"].as_str(), order.strip_prefix("/api/orders/"));
    let shown = service.get(order).await.json();
    assert_eq!((&shown["state"], &shown["charged"]), (&"refused".into(), &false.into()));
}

#[tokio::test]
async fn a_memo_that_the_gate_rejects_is_a_booked_loss_and_not_shown() {
    let scribe = Scribe::new(Manner::Lying);
    let service = Service::start_with(|_, parts| parts.synthesizer = Some(Arc::clone(&scribe) as _)).await;
    let body = assert_final(&service, 502, "research_rejected").await;
    assert_eq!(scribe.drafts(), 2, "one draft, and one more with feedback");
    assert_eq!(body["attempts"], 2);
    let sourcing = &body["sourcing"];
    assert_eq!((&sourcing["passed"], sourcing["figures_covered"].as_u64()), (&false.into(), Some(0)));
    assert_eq!(sourcing["violations"][0]["reason"], "value mismatch");
    assert!(!body.to_string().contains(LIE), "no word of the memo leaves");
    let run = "select concat_ws(' ', gate_verdict, attempts, inference_cost_micros, revenue_micros) from margins";
    assert_eq!(column(&service.world.database.pool, run).await, [format!("rejected 2 {} 0", 2 * LIE_COST)]);
    let ledger = service.operate("/api/ledger/margin").await;
    let summary = &ledger["summary"];
    assert_eq!((summary["revenue_micros"].as_i64(), summary["margin_micros"].as_i64()), (Some(0), Some(-2 * LIE_COST)));
    assert_eq!(summary["refused"], json!({"research_rejected": 1}));
}

#[tokio::test]
async fn max_attempts_bounds_the_drafts() {
    let scribe = Scribe::new(Manner::Lying);
    let service = Service::start_with(|settings, parts| {
        settings.max_attempts = 1;
        parts.synthesizer = Some(Arc::clone(&scribe) as _);
    });
    let body = assert_final(&service.await, 502, "research_rejected").await;
    assert_eq!((scribe.drafts(), &body["attempts"]), (1, &1.into()));
}

#[tokio::test]
async fn a_synthesizer_that_errs_is_our_fault_and_its_text_stays_here() {
    let service = Service::start_with(|_, parts| parts.synthesizer = Some(Scribe::new(Manner::Erring))).await;
    let body = assert_final(&service, 502, "execution_failed").await;
    assert!(!body.to_string().contains("secret-host"));
}

#[tokio::test]
async fn a_handler_that_panics_refuses_the_payment() {
    let service = Service::start_with(|_, parts| parts.synthesizer = Some(Scribe::new(Manner::Panicking))).await;
    let body = assert_final(&service, 502, "execution_failed").await;
    assert!(!body.to_string().contains("with a bug"));
    // and the service lives on
    assert_eq!(service.get("/health").await.status, 200);
}

#[tokio::test]
async fn a_source_that_is_down_is_data_unavailable() {
    let service = Service::start_with(|_, parts| parts.source = Some(Arc::new(Shelves(Stock::Down)))).await;
    let body = assert_final(&service, 503, "data_unavailable").await;
    assert!(!body.to_string().contains("secret-host"));
}

#[tokio::test]
async fn a_ticker_that_only_a_fetch_can_tell_is_refused_after_verify() {
    let service = Service::start_with(|_, parts| parts.source = Some(Arc::new(Shelves(Stock::NotLoaded)))).await;
    assert_final(&service, 422, "insufficient_subject").await;
    assert_eq!(service.world.scribe.drafts(), 0);
}

#[tokio::test]
async fn a_memo_without_a_figure_is_not_sold() {
    let service = Service::start_with(|_, parts| parts.synthesizer = Some(Scribe::new(Manner::Silent))).await;
    assert_final(&service, 422, "insufficient_subject").await;
}

#[tokio::test]
async fn a_verify_that_vouches_for_another_payer_is_our_failure() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    stub.on_verify([Answer::Json(
        200,
        json!({"isValid": true, "payer": "0x00000000000000000000000000000000000000aa"}),
    )]);
    let buyer = Buyer::new(&service, 1);
    let (payment, reply) = buyer.buy(&Ask::memo()).await;
    assert_refusal(&service, &reply, 502, "execution_failed").await;
    assert_eq!(service.rows().await, Rows { orders: 0, ..Rows::REFUSED });
    let again = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!((again.status, again.body), (502, reply.body));
    assert_eq!((stub.settles(), service.world.scribe.drafts()), (0, 0));
}

#[tokio::test]
async fn a_refused_payment_can_be_replaced_by_a_new_one_at_once() {
    let service = Service::start_with(|_, parts| parts.source = Some(Arc::new(Shelves(Stock::Down)))).await;
    let buyer = Buyer::new(&service, 1);
    let (_, first) = buyer.buy(&Ask::memo()).await;
    let (_, second) = buyer.buy(&Ask::memo()).await;
    assert_eq!((first.status, second.status), (503, 503));
    assert_refusal(&service, &second, 503, "data_unavailable").await;
    assert_eq!(service.rows().await.payments, 2);
    assert_eq!(service.settle_calls(), 0);
}

#[tokio::test]
async fn work_that_outlives_the_authorization_is_refused_before_it_can_be_charged() {
    let clock = Arc::new(super::replay::MovedClock::default());
    let scribe = Scribe::new(Manner::Slow(Duration::from_millis(300)));
    let service = Service::start_with(|_, parts| {
        parts.clock = Some(Arc::clone(&clock) as _);
        parts.synthesizer = Some(scribe as _);
    });
    let service = service.await;
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V2).await;
    let sending = tokio::spawn({
        let (buyer, payment) = (buyer.clone(), payment.clone());
        async move { buyer.send(&Ask::memo(), Some(&payment)).await }
    });
    tokio::time::sleep(Duration::from_millis(150)).await;
    clock.advance(170);
    let reply = sending.await.expect("no panic");
    assert_refusal(&service, &reply, 502, "execution_failed").await;
    assert_eq!(service.rows().await, Rows::REFUSED);
    assert_eq!(service.settle_calls(), 0);
}

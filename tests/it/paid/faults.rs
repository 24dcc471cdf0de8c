//! Facilitators that fail in the middle, in form or in time, through the whole service: the buyer is told that the outcome is
//! open, the rows say the same, and the same payment brings the answer by exactly one more settle call. What they may say is in
//! `outcomes.rs`.

use std::time::{Duration, Instant};

use jim::facilitator::Budgets;
use jim::x402::Version;
use serde_json::{Value, json};

use super::outcomes::{UNKNOWN, difference, last_state, sold_unproven};
use crate::support::buyer::{Ask, Buyer};
use crate::support::facilitator::{Answer, StubFacilitator, TX};
use crate::support::refusal::{assert_pending, assert_refusal};
use crate::support::rows::{Rows, assert_invariants};
use crate::support::service::Service;
use crate::support::wire::{WireFacilitator, response};

/// Short, so that a test of a deadline does not take the forty seconds that it has in service.
const SHORT: Budgets = Budgets { verify: Duration::from_millis(700), settle: Duration::from_millis(700) };

/// A settlement that says both.
const BOTH_WAYS: &str = concat!(
    r#"{"success":false,"errorReason":"insufficient_funds","success":true,"#,
    r#""transaction":"0x00000000000000000000000000000000000000000000000000000000000000aa","network":"eip155:84532"}"#
);

const DENIED_AT_LAST: &str = r#"{"success":true,"success":false,"errorReason":"insufficient_funds"}"#;

async fn start(stub: &StubFacilitator) -> Service {
    Service::start_with(|settings, parts| {
        settings.payments.facilitator_urls = vec![stub.url()];
        parts.budgets = Some(SHORT);
    })
    .await
}

/// Broken in form or in time.
fn faults() -> Vec<(&'static str, Answer)> {
    vec![
        ("no answer", Answer::Late(Duration::from_secs(600))),
        ("a good answer after the deadline", Answer::Late(Duration::from_millis(1_200))),
        ("a byte at a time", Answer::Endless(1, Duration::from_millis(20))),
        ("a body without end", Answer::Endless(16 * 1024, Duration::ZERO)),
        ("a page with status 502", Answer::Text(502, "<html><h1>502 Bad Gateway</h1></html>")),
        ("a page with status 200", Answer::Text(200, "<html>welcome</html>")),
        ("nothing with status 200", Answer::Text(200, "")),
        ("JSON that breaks off", Answer::Text(200, r#"{"success":true,"transaction":"0x00"#)),
        ("success twice, true at last", Answer::Text(200, BOTH_WAYS)),
        ("success twice, false at last", Answer::Text(200, DENIED_AT_LAST)),
        ("a list", Answer::Json(200, json!([{"success": false, "errorReason": "insufficient_funds"}]))),
    ]
}

#[tokio::test]
async fn a_settle_answer_that_is_broken_or_late_leaves_the_outcome_open() {
    let stub = StubFacilitator::start().await;
    let service = start(&stub).await;
    for (i, (name, fault)) in faults().into_iter().enumerate() {
        let (before, settles) = (service.rows().await, stub.settles());
        let buyer = Buyer::new(&service, u8::try_from(i + 1).expect("few"));
        stub.on_settle([fault]);
        let payment = buyer.sign(Version::V2).await;
        let begun = Instant::now();
        let reply = buyer.send(&Ask::memo(), Some(&payment)).await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{name}: {:?}", begun.elapsed());
        assert!(assert_pending(&reply)["payment"].get("tx").is_none(), "{name}");
        assert_eq!(stub.settles(), settles + 1, "{name}");
        assert_eq!(difference(service.rows().await, before), UNKNOWN, "{name}");
        assert_eq!(last_state(&service).await, "unknown unknown", "{name}");
        let again = buyer.send(&Ask::memo(), Some(&payment)).await;
        assert_eq!((again.status, stub.settles()), (200, settles + 2), "{name}: {}", again.text());
        assert_eq!(last_state(&service).await, "settled settled", "{name}");
        let sold = Rows { settle_attempts: 2, settle_results: 1, served: 1, ..Rows::SOLD };
        assert_eq!(difference(service.rows().await, before), sold, "{name}");
    }
    let drafts = i64::from(service.world.scribe.drafts());
    assert_eq!(drafts, service.rows().await.payments, "no work was done twice");
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn a_verify_answer_that_is_broken_or_late_costs_nothing() {
    let stub = StubFacilitator::start().await;
    let service = start(&stub).await;
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V2).await;
    let twice = Answer::Text(200, r#"{"isValid":false,"invalidReason":"invalid_signature","isValid":true}"#);
    let faults: Vec<_> = faults().into_iter().chain([("a verdict twice", twice)]).collect();
    for (i, (name, fault)) in (1..).zip(faults) {
        stub.on_verify([fault]);
        let begun = Instant::now();
        let reply = buyer.send(&Ask::memo(), Some(&payment)).await;
        assert!(begun.elapsed() < Duration::from_secs(5), "{name}: {:?}", begun.elapsed());
        let body = assert_refusal(&service, &reply, 503, "overloaded").await;
        assert_eq!(body["retry"]["same_payment"], true, "{name}");
        assert_eq!(service.rows().await, Rows { payments: 1, claims: i, ..Rows::default() }, "{name}");
    }
    assert_eq!((stub.settles(), service.world.scribe.drafts()), (0, 0));
    assert_eq!(buyer.send(&Ask::memo(), Some(&payment)).await.status, 200);
    assert_eq!(stub.settles(), 1);
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn a_pending_transaction_is_named_and_asked_for_once_a_visit() {
    let stub = StubFacilitator::start().await;
    let service = start(&stub).await;
    let pending = json!({"success": false, "errorReason": "settlement_pending", "transaction": TX});
    stub.on_settle([Answer::Json(200, pending.clone()), Answer::Json(202, pending)]);
    let buyer = Buyer::new(&service, 1);
    let (payment, first) = buyer.buy(&Ask::memo()).await;
    assert_eq!(assert_pending(&first)["payment"]["tx"], TX);
    assert_eq!((service.rows().await, last_state(&service).await.as_str()), (UNKNOWN, "unknown unknown"));
    let second = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!((&assert_pending(&second)["payment"]["tx"], stub.settles()), (&TX.into(), 2));
    assert_eq!(service.rows().await, Rows { settle_attempts: 2, settle_results: 2, served: 2, ..UNKNOWN });
    let third = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!((third.status, stub.settles()), (200, 3), "{}", third.text());
    let sold = Rows { settle_attempts: 3, settle_results: 2, served: 2, ..Rows::SOLD };
    assert_eq!((service.rows().await, service.world.scribe.drafts()), (sold, 1));
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn two_visits_at_once_for_an_open_outcome_ask_once() {
    let stub = StubFacilitator::start().await;
    let service = start(&stub).await;
    stub.on_settle([Answer::Drop, Answer::Late(Duration::from_millis(300))]);
    let buyer = Buyer::new(&service, 1);
    let (payment, first) = buyer.buy(&Ask::memo()).await;
    assert_pending(&first);
    let ask = Ask::memo();
    let (one, two) = tokio::join!(buyer.send(&ask, Some(&payment)), buyer.send(&ask, Some(&payment)));
    assert_eq!(stub.settles(), 2, "one call for both");
    for reply in [&one, &two] {
        match reply.status {
            200 => {}
            _ => drop(assert_pending(reply)),
        }
    }
    assert!(one.status == 200 || two.status == 200);
    let third = buyer.send(&ask, Some(&payment)).await;
    assert_eq!((third.status, stub.settles()), (200, 2));
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn a_failure_after_the_money_moved_is_found_out_by_the_used_nonce() {
    let stub = StubFacilitator::start().await;
    let service = start(&stub).await;
    stub.on_settle([
        Answer::Text(500, "Internal Server Error"),
        Answer::Json(400, json!({"success": false, "errorReason": "invalid_exact_evm_nonce_already_used"})),
    ]);
    let buyer = Buyer::new(&service, 1);
    let (payment, first) = buyer.buy(&Ask::memo()).await;
    assert_pending(&first);
    let second = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!((second.status, stub.settles()), (200, 2), "{}", second.text());
    assert_eq!(sold_unproven(&service).await, ["f -"]);
    let sold = Rows { settle_attempts: 2, settle_results: 2, served: 1, ..Rows::SOLD };
    assert_eq!(service.rows().await, sold);
    assert_invariants(&service.world.database.pool).await;
}

/// The answer to one call may not be taken for the answer to the next one on the same connection.
#[tokio::test]
async fn a_second_answer_to_one_call_is_read_by_nobody() {
    let wire = WireFacilitator::start().await;
    let url = wire.url();
    let service = Service::start_with(|settings, _| settings.payments.facilitator_urls = vec![url]).await;
    let pending = response(&json!({"success": false, "errorReason": "settlement_pending"}));
    let good = response(&json!({"success": true, "transaction": TX, "network": "eip155:84532"}));
    let denied = response(&json!({"success": false, "errorReason": "insufficient_funds"}));
    // a success that belongs to nothing, then a denial that belongs to nothing
    wire.on_settle([pending.clone(), good.clone()].concat());
    wire.on_settle([pending, denied].concat());
    wire.on_settle(good);
    let buyer = Buyer::new(&service, 1);
    let (payment, first) = buyer.buy(&Ask::memo()).await;
    assert_pending(&first);
    let second = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_pending(&second);
    assert_eq!(last_state(&service).await, "unknown unknown");
    let third = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!(third.status, 200, "{}", third.text());
    let receipt: Value =
        service.get(&format!("/api/orders/{}", third.header("x-order-id").expect("an id"))).await.json();
    assert_eq!(receipt["payment"]["tx"], TX);
    let settles = wire.connections("/settle");
    assert_eq!(settles.len(), 3);
    assert!(
        settles[0] != settles[1] && settles[1] != settles[2],
        "a connection with unread bytes is dropped: {settles:?}"
    );
    let kept = wire.connections("/verify");
    assert_eq!(kept, settles[..1], "connections are kept otherwise, or this test shows nothing");
    assert_invariants(&service.world.database.pool).await;
}

//! Payments that are turned away before any work: used twice, already being worked on, unwelcome, too many, or too early.

use std::sync::Arc;
use std::time::Duration;

use jim::evm::parse_address;
use jim::x402::Version;
use serde_json::json;
use tokio::sync::Notify;

use crate::support::buyer::{Ask, Buyer, now_s, reason_of, unpack};
use crate::support::facilitator::{Answer, StubFacilitator};
use crate::support::refusal::assert_refusal;
use crate::support::research::{Manner, Scribe};
use crate::support::rows::{Rows, assert_invariants, column};
use crate::support::service::Service;

/// A service whose work waits for a signal.
async fn start_held() -> (Service, Arc<Notify>) {
    let gate = Arc::new(Notify::new());
    let scribe = Scribe::new(Manner::Held(Arc::clone(&gate)));
    (Service::start_with(|_, parts| parts.synthesizer = Some(scribe as _)).await, gate)
}

#[tokio::test]
async fn a_payment_for_another_request_is_reused() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let (payment, _) = buyer.buy(&Ask::memo()).await;
    for ask in [
        Ask::get("/research/fundamentals?ticker=BETA"),
        Ask::get("/research/fundamentals?ticker=ACME&mode=human"),
        Ask::post(r#"{"ticker":"ACME"}"#),
    ] {
        let reply = buyer.send(&ask, Some(&payment)).await;
        let body = assert_refusal(&service, &reply, 409, "payment_reused").await;
        assert_eq!(body["payment"]["state"], "settled");
    }
    assert_eq!(service.rows().await, Rows { served: 3, ..Rows::SOLD });
    assert_eq!((service.settle_calls(), service.world.scribe.drafts()), (1, 1));
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn another_signature_over_a_used_nonce_is_reused() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let terms = buyer.terms(Version::V2).await;
    let first = buyer.sign_for(&terms, now_s());
    assert_eq!(buyer.send(&Ask::memo(), Some(&first)).await.status, 200);
    // the same nonce, with another window
    let second = jim::x402::pay(
        &terms,
        &jim::evm::SecretKey::from_bytes([1; 32]).expect("a test key"),
        first.authorization.nonce(),
        now_s() + 5,
    );
    let reply = buyer.send(&Ask::memo(), Some(&second)).await;
    assert_refusal(&service, &reply, 409, "payment_reused").await;
    assert_eq!(service.settle_calls(), 1);
    // another payer may use the same nonce: nonces belong to their authorizer
    let other = jim::x402::pay(
        &terms,
        &jim::evm::SecretKey::from_bytes([2; 32]).expect("a test key"),
        first.authorization.nonce(),
        now_s(),
    );
    assert_eq!(Buyer::new(&service, 2).send(&Ask::memo(), Some(&other)).await.status, 200);
    assert_eq!(service.settle_calls(), 2);
}

#[tokio::test]
async fn a_copy_that_comes_while_work_runs_is_in_progress() {
    let (service, gate) = start_held().await;
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V2).await;
    let first = spawn_send(&buyer, &payment);
    wait_for_claim(&service).await;
    let copy = buyer.send(&Ask::memo(), Some(&payment)).await;
    let body = assert_refusal(&service, &copy, 409, "payment_in_progress").await;
    assert_eq!(body["payment"]["state"], "none");
    // a second authorization of the same purchase is held off: it is not even recorded
    let second = buyer.sign(Version::V2).await;
    let reply = buyer.send(&Ask::memo(), Some(&second)).await;
    assert_refusal(&service, &reply, 409, "payment_in_progress").await;
    let shut = Rows { payments: 1, claims: 1, served: 1, ..Rows::default() };
    assert_eq!(service.rows().await, shut);
    gate.notify_one();
    let first = first.await.expect("no panic");
    assert_eq!(first.status, 200, "{}", first.text());
    let again = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!((again.status, again.body), (200, first.body));
    assert_eq!(service.rows().await, Rows { served: 2, ..Rows::SOLD });
    assert_eq!(service.settle_calls(), 1);
}

fn spawn_send(
    buyer: &Buyer,
    payment: &jim::x402::OutgoingPayment,
) -> tokio::task::JoinHandle<crate::support::buyer::Reply> {
    let (buyer, payment) = (buyer.clone(), payment.clone());
    tokio::spawn(async move { buyer.send(&Ask::memo(), Some(&payment)).await })
}

async fn wait_for_claim(service: &Service) {
    for _ in 0..1_000 {
        if service.rows().await.claims > 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("nothing was claimed");
}

#[tokio::test]
async fn an_address_that_asks_too_often_waits() {
    let service = Service::start_with(|settings, _| settings.rate_per_minute = 3).await;
    let buyer = Buyer::new(&service, 1);
    for _ in 0..3 {
        assert_eq!(buyer.send(&Ask::memo(), None).await.status, 402);
    }
    let reply = buyer.send(&Ask::memo(), None).await;
    assert_refusal(&service, &reply, 429, "rate_limited").await;
    assert_eq!(service.rows().await, Rows::default());
    assert_eq!(service.get("/llms.txt").await.status, 200, "the documents are not limited");
}

#[tokio::test]
async fn a_payer_that_pays_too_often_waits_wherever_it_asks_from() {
    let service = Service::start_with(|settings, _| settings.rate_per_minute = 3).await;
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V2).await;
    for n in 2..5 {
        assert_eq!(buyer.at(n).send(&Ask::memo(), Some(&payment)).await.status, 200);
    }
    let before = service.rows().await;
    let reply = buyer.at(5).send(&Ask::memo(), Some(&payment)).await;
    let body = assert_refusal(&service, &reply, 429, "rate_limited").await;
    assert!(body["detail"].as_str().is_some_and(|text| text.contains("payer")), "{body}");
    assert_eq!((service.rows().await, service.settle_calls()), (before, 1));
    let other = Buyer::new(&service, 2);
    let payment = other.at(6).sign(Version::V2).await;
    assert_eq!(other.at(7).send(&Ask::memo(), Some(&payment)).await.status, 200, "others are not touched");
}

#[tokio::test]
async fn a_listed_payer_is_declined_and_leaves_nothing() {
    let denied = parse_address("0x1a642f0e3c3af545e7acbd38b07251b3990914f1").expect("an address");
    let service = Service::start_with(|settings, _| {
        settings.denied_payers = [denied].into();
    });
    let service = service.await;
    let buyer = Buyer::new(&service, 1);
    assert_eq!(parse_address(&buyer.address()), Ok(denied), "the address of the first test key");
    let (_, reply) = buyer.buy(&Ask::memo()).await;
    assert_refusal(&service, &reply, 403, "payer_declined").await;
    assert_eq!(service.rows().await, Rows::default());
    assert_eq!(service.app.simulated.as_ref().expect("simulated").calls().verify, 0);
    assert_eq!(Buyer::new(&service, 2).buy(&Ask::memo()).await.1.status, 200);
}

#[tokio::test]
async fn more_work_than_allowed_is_shed_and_the_payment_is_good_later() {
    let gate = Arc::new(Notify::new());
    let scribe = Scribe::new(Manner::Held(Arc::clone(&gate)));
    let service = Service::start_with(|settings, parts| {
        settings.max_in_flight = 1;
        parts.synthesizer = Some(scribe as _);
    });
    let service = service.await;
    let (one, two) = (Buyer::new(&service, 1), Buyer::new(&service, 2));
    let first = spawn_send(&one, &one.sign(Version::V2).await);
    wait_for_claim(&service).await;
    let payment = two.sign(Version::V2).await;
    let shed = two.send(&Ask::memo(), Some(&payment)).await;
    let body = assert_refusal(&service, &shed, 503, "overloaded").await;
    assert_eq!(body["retry"]["same_payment"], true);
    assert_eq!(service.rows().await.payments, 1);
    gate.notify_one();
    assert_eq!(first.await.expect("no panic").status, 200);
    gate.notify_one();
    assert_eq!(two.send(&Ask::memo(), Some(&payment)).await.status, 200);
    assert_eq!(service.settle_calls(), 2);
}

#[tokio::test]
async fn a_facilitator_that_does_not_list_our_kind_keeps_the_route_shut() {
    let stub = StubFacilitator::start().await;
    stub.list_kinds(json!([{"x402Version": 2, "scheme": "exact", "network": "eip155:8453"}]));
    let service = Service::start_shut(|settings, _| settings.payments.facilitator_urls = vec![stub.url()]).await;
    let buyer = Buyer::new(&service, 1);
    let (payment, reply) = buyer.buy(&Ask::memo()).await;
    assert_refusal(&service, &reply, 503, "overloaded").await;
    let ready = service.get("/ready").await;
    assert_eq!((ready.status, ready.json()["checks"]["facilitator_supports_our_kind"].as_bool()), (503, Some(false)));
    assert_eq!(service.rows().await, Rows::default());
    assert!(stub.calls("verify").is_empty());
    stub.list_kinds(json!([{"x402Version": 2, "scheme": "exact", "network": "eip155:84532"}]));
    assert!(service.app.wait_until_supported(Duration::from_secs(10)).await);
    assert_eq!(service.get("/ready").await.status, 200);
    assert_eq!(buyer.send(&Ask::memo(), Some(&payment)).await.status, 200);
}

#[tokio::test]
async fn a_verify_without_a_verdict_gives_the_claim_back() {
    let mut stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    let faults = [
        Answer::Json(500, json!({"error": "down"})),
        Answer::Json(429, json!({"isValid": false, "invalidReason": "slow down"})),
        Answer::Text(200, "garbage"),
        Answer::Text(502, "<html>bad gateway</html>"),
        Answer::Json(200, json!({"isValid": "yes"})),
        Answer::Json(200, json!({"isValid": false, "invalidReason": "unexpected_verify_error"})),
        Answer::Drop,
        Answer::Redirect,
    ];
    let count = i64::try_from(faults.len()).expect("few");
    stub.on_verify(faults);
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V2).await;
    for i in 1..=count {
        let reply = buyer.send(&Ask::memo(), Some(&payment)).await;
        assert_refusal(&service, &reply, 503, "overloaded").await;
        assert_eq!(service.rows().await, Rows { payments: 1, claims: i, ..Rows::default() });
    }
    stub.close().await;
    let reply = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_refusal(&service, &reply, 503, "overloaded").await;
    assert_eq!((stub.settles(), service.world.scribe.drafts()), (0, 0));
    stub.reopen().await;
    let reply = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let expected = Rows { claims: count + 2, ..Rows::SOLD };
    assert_eq!((service.rows().await, stub.settles()), (expected, 1));
}

#[tokio::test]
async fn a_failed_verify_is_final_and_says_why_each_time() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    stub.on_verify([
        Answer::Json(200, json!({"isValid": false, "invalidReason": "insufficient_funds"})),
        Answer::Json(400, json!({"isValid": false, "invalidReason": "Error at /srv/secret/app.js:12 (10.0.0.7)"})),
    ]);
    for (key, reason) in [(1, "insufficient_funds"), (2, "verification_failed")] {
        let buyer = Buyer::new(&service, key);
        let (payment, reply) = buyer.buy(&Ask::memo()).await;
        assert_eq!(reason_of(&reply), reason);
        let again = buyer.send(&Ask::memo(), Some(&payment)).await;
        assert_eq!((reason_of(&again).as_str(), &again.body), (reason, &reply.body));
    }
    assert_eq!(stub.calls("verify").len(), 2, "what failed once is not asked again");
    assert_eq!((stub.settles(), service.world.scribe.drafts()), (0, 0));
    let rows = service.rows().await;
    assert_eq!(rows, Rows { payments: 2, claims: 2, answers: 2, served: 4, ..Rows::default() });
    let kinds = column(&service.world.database.pool, "select kind from answers").await;
    assert_eq!(kinds, ["verify_failed", "verify_failed"]);
}

#[tokio::test]
async fn verify_and_settle_are_asked_with_our_terms() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V2).await;
    let mut document = unpack(&payment);
    // spelled in the buyer's own way: lower case, and a member of its own
    let pay_to = document["accepted"]["payTo"].as_str().expect("text").to_lowercase();
    document["accepted"]["payTo"] = json!(pay_to);
    document["note"] = json!("mine");
    let ask = Ask::memo().header("payment-signature", &crate::support::buyer::pack(document.to_string()));
    let reply = buyer.send(&ask, None).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let terms = buyer.terms(Version::V2).await.requirements;
    assert_ne!(terms["payTo"], json!(pay_to), "ours is in mixed case");
    for call in ["verify", "settle"] {
        let bodies = stub.calls(call);
        assert_eq!(bodies.len(), 1, "{call}");
        assert_eq!(bodies[0]["paymentRequirements"], terms, "{call}");
        assert_eq!(bodies[0]["paymentPayload"]["accepted"], terms, "{call}");
        assert_eq!(bodies[0]["paymentPayload"]["payload"], unpack(&payment)["payload"], "{call}");
        assert_eq!(bodies[0]["x402Version"], 2);
    }
}

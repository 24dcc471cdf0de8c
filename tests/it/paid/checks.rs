//! The published order of checks, pair by pair: a request that two neighbours would refuse is answered by the earlier one.

use http::Method;
use jim::evm::{Address, checksummed, parse_address};
use jim::refusal::document::ORDER_OF_CHECKS;
use jim::x402::Version;
use serde_json::json;

use crate::support::buyer::{Ask, Buyer, now_s, reason_of};
use crate::support::facilitator::{Answer, StubFacilitator};
use crate::support::refusal::{assert_free, assert_refusal};
use crate::support::rows::Rows;
use crate::support::service::Service;

const CHAIN: &str = "x-jim-call-chain";

/// Longer than any body that is read.
fn oversized() -> String {
    format!(r#"{{"ticker":"{}"}}"#, "A".repeat(17 * 1024))
}

/// A service that one address may ask once, and that was asked once.
async fn start_used_up() -> (Service, Buyer) {
    let service = Service::start_with(|settings, _| settings.rate_per_minute = 1).await;
    let buyer = Buyer::new(&service, 1);
    assert_eq!(buyer.send(&Ask::memo(), None).await.status, 402);
    (service, buyer)
}

/// A chain that already holds us.
fn looping(service: &Service) -> String {
    format!("0x00000000000000000000000000000000000000aa, {}", checksummed(&service.app.pay_to))
}

#[tokio::test]
async fn the_published_order_is_the_one_that_is_tested_here() {
    let service = Service::start().await;
    let manifest = service.get("/api/meta/refusal-contract").await.json();
    assert_eq!(manifest["order_of_checks"], json!(ORDER_OF_CHECKS));
    let first_words: Vec<_> =
        ORDER_OF_CHECKS.iter().map(|check| check.split([' ', ',']).next().expect("a word")).collect();
    let expected =
        ["method", "body", "rate", "call", "input", "payment", "terms", "payer", "overload", "claim", "verify"];
    assert_eq!(first_words, expected);
}

#[tokio::test]
async fn method_before_body() {
    let service = Service::start().await;
    let ask = Ask { method: Method::PUT, ..Ask::post(&oversized()) };
    assert_free(&Buyer::new(&service, 1).send(&ask, None).await, 405);
    assert_free(&Buyer::new(&service, 1).send(&Ask::post(&oversized()), None).await, 413);
}

#[tokio::test]
async fn body_before_rate_by_address() {
    let (service, buyer) = start_used_up().await;
    assert_free(&buyer.send(&Ask::post(&oversized()), None).await, 413);
    assert_free(&buyer.send(&Ask::post("{"), None).await, 400);
    let reply = buyer.send(&Ask::post("{}"), None).await;
    assert_refusal(&service, &reply, 429, "rate_limited").await;
}

#[tokio::test]
async fn rate_by_address_before_call_chain() {
    let (service, buyer) = start_used_up().await;
    let reply = buyer.send(&Ask::memo().header(CHAIN, &looping(&service)), None).await;
    assert_refusal(&service, &reply, 429, "rate_limited").await;
}

#[tokio::test]
async fn call_chain_before_input() {
    let service = Service::start().await;
    let ask = Ask::get("/research/fundamentals?ticker=***").header(CHAIN, &looping(&service));
    let reply = Buyer::new(&service, 1).send(&ask, None).await;
    assert_refusal(&service, &reply, 409, "call_chain_loop").await;
}

#[tokio::test]
async fn input_and_policy_before_the_payment_header() {
    let service = Service::start_with(|settings, _| settings.denied_subjects = ["ACME".to_owned()].into()).await;
    let buyer = Buyer::new(&service, 1);
    for (path, status, code) in [
        ("/research/fundamentals?ticker=***", 422, "insufficient_subject"),
        ("/research/fundamentals?ticker=ACME", 409, "policy_refusal"),
        ("/research/fundamentals?ticker=NOBODY", 422, "insufficient_subject"),
        ("/research/fundamentals?ticker=BETA", 400, "payment_malformed"),
    ] {
        let reply = buyer.send(&Ask::get(path).header("x-payment", "nonsense"), None).await;
        assert_refusal(&service, &reply, status, code).await;
    }
    assert_eq!(service.rows().await, Rows::default());
}

#[tokio::test]
async fn payment_header_before_terms() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let mut terms = buyer.terms(Version::V2).await;
    terms.amount.0 -= 1;
    let short = buyer.sign_for(&terms, now_s());
    let reply = buyer.send(&Ask::memo().paid(&short).paid(&short), None).await;
    assert_refusal(&service, &reply, 400, "payment_malformed").await;
    assert!(reason_of(&buyer.send(&Ask::memo(), Some(&short)).await).contains("value"));
}

#[tokio::test]
async fn terms_before_the_payer_list() {
    let denied = parse_address("0x1a642f0e3c3af545e7acbd38b07251b3990914f1").expect("an address");
    let service = Service::start_with(|settings, _| settings.denied_payers = [denied].into()).await;
    let buyer = Buyer::new(&service, 1);
    let mut terms = buyer.terms(Version::V2).await;
    terms.pay_to = Address::repeat_byte(9);
    let reply = buyer.send(&Ask::memo(), Some(&buyer.sign_for(&terms, now_s()))).await;
    assert!(reason_of(&reply).contains("recipient"));
}

#[tokio::test]
async fn the_payer_list_before_overload() {
    let stub = StubFacilitator::start().await;
    stub.list_kinds(json!([]));
    let denied = parse_address("0x1a642f0e3c3af545e7acbd38b07251b3990914f1").expect("an address");
    let service = Service::start_shut(|settings, _| {
        settings.denied_payers = [denied].into();
        settings.payments.facilitator_urls = vec![stub.url()];
    });
    let service = service.await;
    let reply = Buyer::new(&service, 1).buy(&Ask::memo()).await.1;
    assert_refusal(&service, &reply, 403, "payer_declined").await;
    let reply = Buyer::new(&service, 2).buy(&Ask::memo()).await.1;
    assert_refusal(&service, &reply, 503, "overloaded").await;
}

#[tokio::test]
async fn overload_before_the_claim() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    let (payment, first) = Buyer::new(&service, 1).buy(&Ask::memo()).await;
    assert_eq!(first.status, 200);
    let world = service.stop().await;
    stub.list_kinds(json!([]));
    let service = world.open().await;
    let reply = Buyer::new(&service, 1).send(&Ask::get("/research/fundamentals?ticker=BETA"), Some(&payment)).await;
    assert_refusal(&service, &reply, 503, "overloaded").await;
    assert_eq!(service.rows().await, Rows::SOLD);
}

#[tokio::test]
async fn the_claim_before_verify() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    let buyer = Buyer::new(&service, 1);
    let (payment, _) = buyer.buy(&Ask::memo()).await;
    stub.on_verify([Answer::Json(200, json!({"isValid": false, "invalidReason": "insufficient_funds"}))]);
    let reply = buyer.send(&Ask::get("/research/fundamentals?ticker=BETA"), Some(&payment)).await;
    assert_refusal(&service, &reply, 409, "payment_reused").await;
    assert_eq!(stub.calls("verify").len(), 1);
    assert_eq!(reason_of(&buyer.buy(&Ask::get("/research/fundamentals?ticker=BETA")).await.1), "insufficient_funds");
}

#[tokio::test]
async fn every_call_chain_ruling_has_its_code_and_costs_nothing() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let hop = |n: u8| format!("0x{}", format!("{n:02x}").repeat(20));
    let us = jim::evm::lower(&service.app.pay_to);
    let deep = [1, 2, 3, 4].map(hop).join(",");
    for (chain, code) in [
        (looping(&service), "call_chain_loop"),
        (format!("eip155:84532:{us}"), "call_chain_loop"),
        (deep, "call_chain_depth"),
        ("nonsense".to_owned(), "call_chain_invalid"),
        (format!("{},,{}", hop(1), hop(2)), "call_chain_invalid"),
    ] {
        let payment = buyer.sign(Version::V2).await;
        let reply = buyer.send(&Ask::memo().header(CHAIN, &chain), Some(&payment)).await;
        let body = assert_refusal(&service, &reply, 409, code).await;
        assert_eq!(body["call_chain"]["max_depth"], 4, "{chain}");
    }
    assert_eq!(service.rows().await, Rows::default());
    assert_eq!(service.settle_calls(), 0);
    // two lines are one list, and a chain that is good is booked with its depth
    let ask = Ask::memo().header(CHAIN, &hop(1)).header(CHAIN, &hop(2));
    assert_eq!(buyer.buy(&ask).await.1.status, 200);
    let depth = crate::support::rows::column(&service.world.database.pool, "select call_chain_depth::text from runs");
    assert_eq!(depth.await, ["2"]);
}

#[tokio::test]
async fn invalid_input_is_refused_whether_or_not_somebody_pays() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V2).await;
    for ask in [
        Ask::get("/research/fundamentals?ticker=***"),
        Ask::get("/research/fundamentals?ticker=ACME&ticker=ACME"),
        Ask::get("/research/fundamentals?ticker=ACME&mode=poet"),
        Ask::get("/research/fundamentals?ticker=ACME&format=pdf"),
        Ask::get("/research/fundamentals?ticker=ACME&tikcer=B"),
        Ask::post(r#"{"ticker":"%%"}"#),
        Ask { path: "/research/fundamentals?ticker=ACME".into(), ..Ask::post(r#"{"ticker":"ACME"}"#) },
    ] {
        for paid in [None, Some(&payment)] {
            let reply = buyer.send(&ask, paid).await;
            assert_refusal(&service, &reply, 422, "insufficient_subject").await;
        }
    }
    let absent = buyer.send(&Ask::get("/research/fundamentals"), Some(&payment)).await;
    assert_refusal(&service, &absent, 422, "insufficient_subject").await;
    assert_eq!((service.rows().await, service.settle_calls()), (Rows::default(), 0));
}

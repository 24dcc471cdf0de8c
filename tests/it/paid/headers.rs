//! Payment headers that are no payment, and payments that do not hold: refused before anything is written.

use jim::x402::Version;
use serde_json::{Value, json};

use crate::support::buyer::{Ask, Buyer, next_nonce, now_s, pack, reason_of, unpack};
use crate::support::refusal::assert_refusal;
use crate::support::rows::Rows;
use crate::support::service::Service;

const HEADER: [(Version, &str); 2] = [(Version::V1, "x-payment"), (Version::V2, "payment-signature")];

/// Asserts that a header is malformed and that nothing is known of it afterwards.
async fn assert_malformed(service: &Service, ask: Ask, why: &str) {
    let reply = Buyer::new(service, 1).send(&ask, None).await;
    let body = assert_refusal(service, &reply, 400, "payment_malformed").await;
    let detail = body["detail"].as_str().expect("a detail");
    assert!(detail.contains(why), "{detail:?} does not say {why:?}");
    assert_eq!(service.rows().await, Rows::default());
    assert_eq!(service.settle_calls(), 0);
}

#[tokio::test]
async fn every_malformed_header_is_named_in_both_versions() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    for (version, name) in HEADER {
        let good = unpack(&buyer.sign(version).await);
        let with = |text: String| Ask::memo().header(name, &text);
        assert_malformed(&service, with("not base64!".into()), "base64").await;
        assert_malformed(&service, with(pack(good.to_string()).trim_end_matches('=').to_owned() + "*"), "base64").await;
        assert_malformed(&service, with(pack("{")), "decoded header").await;
        assert_malformed(&service, with(pack("[]")), "not an object").await;
        let twice = good.to_string().replacen("{", r#"{"x402Version":2,"#, 1);
        assert_malformed(&service, with(pack(twice)), "decoded header").await;
        assert_malformed(&service, with("A".repeat(8 * 1024 + 4)), "longer").await;
        let deep = format!("{}1{}", "[".repeat(40), "]".repeat(40));
        let deep = good.to_string().replacen('{', &format!("{{\"extra\":{deep},"), 1);
        assert_malformed(&service, with(pack(deep)), "decoded header").await;
    }
}

#[tokio::test]
async fn every_member_must_have_its_one_form() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    for (version, name) in HEADER {
        let good = unpack(&buyer.sign(version).await);
        let broken = |pointer: &str, value: Value| {
            let mut document = good.clone();
            *document.pointer_mut(pointer).expect("a member") = value;
            Ask::memo().header(name, &pack(document.to_string()))
        };
        let other = if version == Version::V1 { 2 } else { 1 };
        assert_malformed(&service, broken("/x402Version", json!(other)), "x402Version").await;
        assert_malformed(&service, broken("/x402Version", json!(version.number().to_string())), "x402Version").await;
        for (pointer, value, why) in [
            ("/payload/authorization/value", json!("0xc350"), "authorization.value"),
            ("/payload/authorization/value", json!(50_000), "authorization.value"),
            ("/payload/authorization/validBefore", json!("+1"), "validBefore"),
            ("/payload/authorization/nonce", json!("0x12"), "nonce"),
            ("/payload/authorization/from", json!("alice"), "from"),
            ("/payload/authorization", Value::Null, "authorization"),
            ("/payload/signature", json!("0x1"), "signature"),
        ] {
            assert_malformed(&service, broken(pointer, value), why).await;
        }
        let mut two_kinds = good.clone();
        two_kinds["payload"]["permit2Authorization"] = json!({});
        assert_malformed(&service, Ask::memo().header(name, &pack(two_kinds.to_string())), "EIP-3009").await;
    }
}

#[tokio::test]
async fn two_payment_headers_are_no_payment() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let (v1, v2) = (buyer.sign(Version::V1).await, buyer.sign(Version::V2).await);
    assert_malformed(&service, Ask::memo().paid(&v1).paid(&v2), "More than one").await;
    assert_malformed(&service, Ask::memo().paid(&v1).paid(&v1), "More than one").await;
    assert_malformed(&service, Ask::memo().paid(&v2).paid(&v2), "More than one").await;
    // a payment of one version in the header of the other
    assert_malformed(&service, Ask::memo().header("payment-signature", &v1.header_value), "x402Version").await;
    assert_malformed(&service, Ask::memo().header("x-payment", &v2.header_value), "x402Version").await;
}

#[tokio::test]
async fn a_payment_that_differs_from_our_terms_is_asked_for_again_and_writes_nothing() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    for version in [Version::V1, Version::V2] {
        let terms = buyer.terms(version).await;
        let less = {
            let mut t = terms.clone();
            t.amount.0 -= 1;
            t
        };
        let more = {
            let mut t = terms.clone();
            t.amount.0 += 1;
            t
        };
        let to_self = {
            let mut t = terms.clone();
            t.pay_to = jim::evm::Address::repeat_byte(1);
            t
        };
        let renamed = {
            let mut t = terms.clone();
            t.token_name = "USD Coin".into();
            t
        };
        for (changed, why) in [(less, "value"), (more, "value"), (to_self, "recipient"), (renamed, "signature")] {
            let payment = buyer.sign_for(&changed, now_s());
            let reply = buyer.send(&Ask::memo(), Some(&payment)).await;
            assert!(reason_of(&reply).contains(why), "{}", reason_of(&reply));
        }
        for (moment, why) in [(now_s() - 3_600, "valid_before"), (now_s() + 3_600 * 2, "valid_after")] {
            let reply = buyer.send(&Ask::memo(), Some(&buyer.sign_for(&terms, moment))).await;
            assert!(reason_of(&reply).contains(why), "{}", reason_of(&reply));
        }
    }
    assert_eq!(service.rows().await, Rows::default());
    assert_eq!(service.app.simulated.as_ref().expect("simulated").calls().verify, 0);
}

#[tokio::test]
async fn a_version_2_buyer_may_not_change_the_terms_that_it_accepts() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let good = unpack(&buyer.sign(Version::V2).await);
    for (pointer, value) in [
        ("/accepted/amount", json!("1")),
        ("/accepted/network", json!("eip155:8453")),
        ("/accepted/asset", json!("0x00000000000000000000000000000000000000aa")),
        ("/accepted/payTo", json!("0x00000000000000000000000000000000000000aa")),
        ("/accepted/maxTimeoutSeconds", json!(1)),
        ("/accepted/scheme", json!("upto")),
        ("/accepted/extra/name", json!("USD Coin")),
        ("/resource/url", json!("http://jim.example/research/other")),
    ] {
        let mut document = good.clone();
        *document.pointer_mut(pointer).unwrap_or_else(|| panic!("{pointer}")) = value;
        document["payload"]["authorization"]["nonce"] = json!(format!("{:#x}", next_nonce()));
        let reply = buyer.send(&Ask::memo().header("payment-signature", &pack(document.to_string())), None).await;
        assert!(reason_of(&reply).contains("accepted_requirements_mismatch"), "{pointer}: {}", reason_of(&reply));
    }
    assert_eq!(service.rows().await, Rows::default());
}

#[tokio::test]
async fn without_a_payment_there_are_terms_and_no_rows() {
    let service = Service::start().await;
    for ask in [Ask::memo(), Ask::get("/research/fundamentals"), Ask::post("{}"), Ask::post(r#"{"ticker":"ACME"}"#)] {
        let reply = service_ask(&service, &ask).await;
        assert_eq!((reply.status, reply.header("cache-control")), (402, Some("no-store")), "{}", reply.text());
        assert_eq!(reason_of(&reply), "Payment required");
    }
    let unsold = service_ask(&service, &Ask::get("/research/fundamentals?ticker=NOBODY")).await;
    assert_refusal(&service, &unsold, 422, "insufficient_subject").await;
    assert_eq!(service.rows().await, Rows::default());
}

async fn service_ask(service: &Service, ask: &Ask) -> crate::support::buyer::Reply {
    Buyer::new(service, 1).send(ask, None).await
}

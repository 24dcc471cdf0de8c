use super::*;
use crate::x402::{Version, fixture};
use proptest::prelude::*;
use serde_json::json;

fn asked() -> Asked {
    Asked {
        network: Some(Network::new(84_532)),
        payer: Some(fixture::buyer().address()),
        amount: Some("50000".to_owned()),
    }
}

fn answer(status: u16, body: &Value) -> Answer {
    Answer { status, body: body.to_string().into_bytes() }
}

fn settle(status: u16, body: Value) -> Settlement {
    read_settle(&answer(status, &body), &asked())
}

fn hash() -> String {
    format!("0x{}", "ab".repeat(32))
}

fn success() -> Value {
    json!({"success": true, "transaction": hash(), "network": "eip155:84532",
        "payer": "0x70997970C51812dc3A010C7d01b50e0d17dc79C8"})
}

fn with(key: &str, value: Value) -> Value {
    let mut body = success();
    body[key] = value;
    body
}

#[test]
fn what_is_asked_is_read_from_our_own_request() {
    for version in [Version::V1, Version::V2] {
        let payment = crate::x402::decode(version, &fixture::payment(version, 1).header_value).expect("a payment");
        let call = crate::x402::facilitator_request(&payment, &fixture::offer()).expect("a call");
        let request = FacilitatorRequest::from(call);
        let read = Asked::of(&request);
        assert_eq!((read.network, read.payer), (asked().network, asked().payer));
    }
}

#[test]
fn success_is_believed_only_when_nothing_contradicts_it() {
    for body in [
        success(),
        with("network", json!("base-sepolia")),
        with("network", json!(null)),
        with("payer", json!("0x70997970c51812dc3a010c7d01b50e0d17dc79c8")),
        with("errorReason", json!(null)),
        with("errorReason", json!("")),
    ] {
        let got = settle(200, body.clone());
        assert!(matches!(got, Settlement::Settled { ref transaction, .. } if *transaction == hash()), "{body} {got:?}");
    }
    for (status, body) in [
        (200, with("transaction", json!(""))),
        (200, with("transaction", json!(null))),
        (200, with("transaction", json!("0xabc"))),
        (200, with("transaction", json!(7))),
        (200, with("network", json!("eip155:8453"))),
        (200, with("network", json!("base"))),
        (200, with("network", json!(84532))),
        (200, with("payer", json!("0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC"))),
        (200, with("payer", json!("jim"))),
        (200, with("errorReason", json!("settlement_pending"))),
        (200, with("success", json!("true"))),
        (200, with("success", json!(null))),
        (302, success()),
        (429, success()),
        (500, success()),
    ] {
        assert!(matches!(settle(status, body.clone()), Settlement::Unknown { .. }), "{status} {body}");
    }
}

#[test]
fn a_no_is_believed_only_before_a_broadcast() {
    let no = |reason: &str, tx: Value| json!({"success": false, "errorReason": reason, "transaction": tx});
    let expired = "invalid_exact_evm_payload_authorization_valid_before";
    for reason in [expired, "insufficient_funds", "invalid_exact_evm_insufficient_balance", "recipient_mismatch"] {
        for tx in [json!(""), json!(null)] {
            for status in [200, 400, 402, 412] {
                assert_eq!(settle(status, no(reason, tx.clone())), Settlement::Denied { reason: reason.to_owned() });
            }
            for status in [429, 500, 502, 503] {
                let got = settle(status, no(reason, tx.clone()));
                assert!(matches!(got, Settlement::Unknown { transaction: None, .. }), "{status} {got:?}");
            }
        }
        let got = settle(200, no(reason, json!(hash())));
        assert!(matches!(got, Settlement::Unknown { transaction: Some(_), .. }), "{reason} with a transaction");
        assert!(matches!(settle(200, no(reason, json!([1]))), Settlement::Unknown { transaction: Some(_), .. }));
    }
    let mut other_name = no(expired, json!(""));
    other_name["txHash"] = json!(hash());
    assert!(matches!(settle(200, other_name), Settlement::Unknown { transaction: Some(_), .. }));
    for reason in [
        "settlement_pending",
        "invalid_transaction_state",
        "invalid_exact_evm_transaction_failed",
        "unexpected_settle_error",
        "transaction_simulation",
        "INSUFFICIENT_FUNDS",
        "whatever",
        "",
    ] {
        assert!(matches!(settle(200, no(reason, json!(""))), Settlement::Unknown { .. }), "{reason}");
    }
}

#[test]
fn a_used_nonce_is_its_own_answer() {
    for reason in ["invalid_exact_evm_nonce_already_used", "FiatTokenV2: authorization is used or canceled"] {
        for (tx, want) in [(json!(""), None), (json!(hash()), Some(hash()))] {
            let body = json!({"success": false, "errorReason": reason, "transaction": tx});
            assert_eq!(settle(200, body), Settlement::NonceUsed { reason: reason.to_owned(), transaction: want });
        }
    }
}

#[test]
fn what_cannot_be_read_is_unknown() {
    let twice = format!("{},\"success\":false}}", success().to_string().trim_end_matches('}'));
    for (status, body) in [(200, ""), (200, "<html>"), (200, "[]"), (200, "{}"), (200, twice.as_str()), (404, "{}")] {
        let answer = Answer { status, body: body.as_bytes().to_vec() };
        assert!(matches!(read_settle(&answer, &asked()), Settlement::Unknown { .. }), "{body}");
        assert!(read_verify(&answer).is_err() && read_supported(&answer).is_err(), "{body}");
    }
}

#[test]
fn foreign_text_is_cut_and_cleaned() {
    let body = json!({"success": false, "errorReason": format!("a\n\u{1b}[31m\u{202e}{}", "x".repeat(10_000))});
    let Settlement::Unknown { reason, .. } = settle(200, body) else { panic!("unknown") };
    assert!(reason.len() < 200 && reason.bytes().all(|b| (b' '..=b'~').contains(&b)), "{reason}");
}

#[test]
fn a_verdict_needs_an_answer_about_the_payment() {
    let verify = |status, body: Value| read_verify(&answer(status, &body));
    let no = |reason: &str| json!({"isValid": false, "invalidReason": reason});
    assert_eq!(
        verify(200, json!({"isValid": true, "payer": "0xab"})),
        Ok(Verdict::Valid { payer: Some("0xab".into()) })
    );
    assert_eq!(verify(200, json!({"isValid": true})), Ok(Verdict::Valid { payer: None }));
    for status in [200, 400, 412, 500] {
        assert_eq!(
            verify(status, no("insufficient_funds")),
            Ok(Verdict::Invalid { reason: "insufficient_funds".into() })
        );
    }
    assert_eq!(verify(200, no("some_new_code")), Ok(Verdict::Invalid { reason: "some_new_code".into() }));
    for (text, shown) in [
        ("Cannot convert ten to a BigInt at /srv/app.js:7", "verification_failed"),
        ("reverted: authorization is used or canceled", "invalid_exact_evm_nonce_already_used"),
    ] {
        assert_eq!(verify(400, no(text)), Ok(Verdict::Invalid { reason: shown.into() }), "no text of others is shown");
    }
    for (status, body) in [
        (500, json!({"isValid": true})),
        (302, json!({"isValid": true})),
        (500, no("some_new_code")),
        (429, no("some_new_code")),
        (200, no("unexpected_verify_error")),
        (500, no("unexpected_error")),
        (200, no("")),
        (200, json!({"isValid": "true"})),
        (200, json!({"error": "x"})),
    ] {
        assert!(verify(status, body.clone()).is_err(), "{status} {body}");
    }
}

#[test]
fn kinds_are_read_and_other_entries_passed_over() {
    let body = json!({"kinds": [{"x402Version": 2, "scheme": "exact", "network": "eip155:84532", "extra": {}}, 7, {}]});
    let kind = Kind { x402_version: 2, scheme: "exact".into(), network: "eip155:84532".into() };
    assert_eq!(read_supported(&answer(200, &body)), Ok(vec![kind]));
    assert!(read_supported(&answer(500, &body)).is_err());
}

proptest! {
    #[test]
    fn no_bytes_at_all_make_a_settlement_or_a_denial_by_chance(status in 100u16..600, body in prop::collection::vec(any::<u8>(), 0..80)) {
        let answer = Answer { status, body };
        let unknown = matches!(read_settle(&answer, &asked()), Settlement::Unknown { .. });
        prop_assert!(unknown);
    }

    #[test]
    fn a_server_error_never_settles_and_never_denies(status in 500u16..600, success in any::<bool>(), pick in 0usize..4) {
        let reason = ["", "insufficient_funds", "settlement_pending", "invalid_network"][pick];
        let got = settle(status, json!({"success": success, "errorReason": reason, "transaction": hash()}));
        let unknown = matches!(got, Settlement::Unknown { .. });
        prop_assert!(unknown);
    }
}

#[test]
fn an_amount_is_that_which_was_asked_for_or_the_outcome_is_unknown() {
    let body =
        |amount: Value| json!({"success": true, "transaction": hash(), "network": "eip155:84532", "amount": amount});
    assert!(matches!(settle(200, body(json!("50000"))), Settlement::Settled { .. }));
    assert!(matches!(settle(200, body(Value::Null)), Settlement::Settled { .. }));
    for amount in [json!("49999"), json!("50001"), json!("0"), json!(""), json!(50_000)] {
        assert!(matches!(settle(200, body(amount.clone())), Settlement::Unknown { .. }), "{amount}");
    }
    let nothing = json!({"success": true, "transaction": "", "network": "eip155:84532", "amount": "0"});
    assert!(matches!(settle(200, nothing), Settlement::Unknown { .. }));
}

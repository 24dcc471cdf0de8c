use super::*;
use crate::evm::{self, Network, SecretKey, TransferAuthorization};
use crate::money::Atomic;
use crate::x402::fixture::{NOW_S, buyer, document, header, offer, payment};
use crate::x402::{Malformed, decode};
use proptest::prelude::*;

mod recorded;

/// What was signed by [`payment`], under EIP-3009.
fn signed() -> TransferAuthorization {
    match read(Version::V2).authorization {
        Authorization::Eip3009(auth) => auth,
        Authorization::Permit2(_) => panic!("no permit"),
    }
}

const BOTH: [Version; 2] = [Version::V1, Version::V2];

fn read(version: Version) -> Payment {
    decode(version, &payment(version, 1).header_value).expect("a payment")
}

fn with(pointer: &str, value: Value) -> Result<Payment, Malformed> {
    let mut changed = document(Version::V2);
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    changed.pointer_mut(parent).expect("a parent").as_object_mut().expect("an object").insert(key.to_owned(), value);
    decode(Version::V2, &header(&changed))
}

#[test]
fn any_single_changed_field_of_accepted_is_a_mismatch() {
    let cases = [
        ("scheme", json!("upto"), Mismatch::Scheme),
        ("scheme", json!("Exact"), Mismatch::Scheme),
        ("network", json!("eip155:8453"), Mismatch::Network),
        ("network", json!("base-sepolia"), Mismatch::Network),
        ("amount", json!("50001"), Mismatch::Amount),
        ("amount", json!("49999"), Mismatch::Amount),
        ("asset", json!("0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"), Mismatch::Asset),
        ("asset", json!("USD"), Mismatch::Asset),
        ("payTo", json!("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"), Mismatch::PayTo),
        ("maxTimeoutSeconds", json!(241), Mismatch::MaxTimeoutSeconds),
        ("extra", json!({"name": "USD Coin", "version": "2"}), Mismatch::Extra),
        ("extra", json!({"name": "USDC", "version": "1"}), Mismatch::Extra),
        ("extra", json!({"name": "USDC"}), Mismatch::Extra),
        ("extra", json!({"name": "USDC", "version": "2", "more": 1}), Mismatch::Extra),
        ("extra", json!(null), Mismatch::Extra),
        ("outputSchema", json!({}), Mismatch::UnknownMember),
    ];
    for (key, value, want) in cases {
        let payment = with(&format!("/accepted/{key}"), value.clone()).expect("well-formed");
        assert_eq!(match_offer(&payment, &offer()), Err(want), "{key} {value}");
    }
    assert_eq!(Mismatch::Amount.to_string(), "accepted_requirements_mismatch: amount");
    let lower = with("/accepted/asset", json!(evm::lower(&offer().asset))).expect("well-formed");
    assert_eq!(match_offer(&lower, &offer()), Ok(()), "addresses are compared by their bytes");
}

#[test]
fn any_single_changed_term_of_ours_is_a_mismatch_in_both_versions() {
    let same = offer();
    let other = Address::repeat_byte(1);
    for version in BOTH {
        let payment = read(version);
        assert_eq!(match_offer(&payment, &same), Ok(()));
        for changed in [
            Offer { network: Network::new(8_453), ..offer() },
            Offer { network: Network::new(31_337), ..offer() },
            Offer { amount: Atomic(49_999), ..offer() },
            Offer { amount: Atomic(50_001), ..offer() },
            Offer { pay_to: other, ..offer() },
        ] {
            assert!(match_offer(&payment, &changed).is_err(), "{version:?} {changed:?}");
        }
        for changed in [
            Offer { asset: other, ..offer() },
            Offer { token_name: "USD Coin".to_owned(), ..offer() },
            Offer { token_version: "1".to_owned(), ..offer() },
            Offer { network: Network::new(8_453), ..offer() },
        ] {
            assert!(matches!(verify_signature(&payment, &changed), SignatureCheck::Bad(_)), "{version:?} {changed:?}");
        }
    }
}

#[test]
fn the_signed_value_and_payee_must_be_ours() {
    for value in ["49999", "50001", "0"] {
        let payment = with("/payload/authorization/value", json!(value)).expect("well-formed");
        assert_eq!(match_offer(&payment, &offer()), Err(Mismatch::Value));
    }
    let payment = with("/payload/authorization/to", json!(format!("0x{}", "11".repeat(20)))).expect("well-formed");
    assert_eq!(match_offer(&payment, &offer()), Err(Mismatch::To));
    let payment = with("/resource/url", json!("http://127.0.0.1:4021/research/macro")).expect("well-formed");
    assert_eq!(match_offer(&payment, &offer()), Err(Mismatch::Resource));
}

#[test]
fn a_changed_authorization_has_a_bad_signature() {
    for (key, value) in [
        ("from", json!(format!("0x{}", "11".repeat(20)))),
        ("to", json!(format!("0x{}", "11".repeat(20)))),
        ("value", json!("50001")),
        ("validAfter", json!("0")),
        ("validBefore", json!("1790000301")),
        ("nonce", json!(format!("0x{}", "02".repeat(32)))),
    ] {
        let payment = with(&format!("/payload/authorization/{key}"), value).expect("well-formed");
        assert!(matches!(verify_signature(&payment, &offer()), SignatureCheck::Bad(_)), "{key}");
    }
    for bytes in [0, 64, 66, 300] {
        let payment = with("/payload/signature", json!(format!("0x{}", "ab".repeat(bytes)))).expect("well-formed");
        assert_eq!(verify_signature(&payment, &offer()), SignatureCheck::NotSixtyFiveBytes);
    }
    let zero = with("/payload/signature", json!(format!("0x{}", "00".repeat(65)))).expect("well-formed");
    assert_eq!(verify_signature(&zero, &offer()), SignatureCheck::Bad(SignatureError::OutOfRange));
}

#[test]
fn windows_end_exactly_where_they_say() {
    let window = |valid_after: U256, valid_before: U256| {
        let auth = TransferAuthorization { valid_after, valid_before, ..signed() };
        check_window(&Authorization::Eip3009(auth), NOW_S, 115)
    };
    let at = |offset: i64| U256::from(NOW_S.checked_add_signed(offset).expect("a time"));
    assert_eq!(window(U256::ZERO, at(115)), Ok(()));
    assert_eq!(window(U256::ZERO, at(114)), Err(WindowError::TooShort { needed_s: 115 }));
    assert_eq!(window(U256::ZERO, at(-1)), Err(WindowError::TooShort { needed_s: 115 }));
    assert_eq!(window(at(-600), at(3_600)), Ok(()), "what Go clients sign");
    assert_eq!(window(U256::ZERO, at(3_630)), Ok(()));
    assert_eq!(window(U256::ZERO, at(3_631)), Err(WindowError::TooLong));
    assert_eq!(window(at(30), at(200)), Ok(()));
    assert_eq!(window(at(31), at(200)), Err(WindowError::NotYetValid));
    assert_eq!(window(U256::MAX, U256::MAX), Err(WindowError::NotYetValid));
    assert_eq!(window(U256::ZERO, U256::MAX), Err(WindowError::TooLong));
    let auth = Authorization::Eip3009(TransferAuthorization { valid_before: U256::MAX, ..signed() });
    assert_eq!(check_window(&auth, u64::MAX, u64::MAX), Err(WindowError::TooLong), "no overflow");
}

#[test]
fn the_facilitator_is_asked_about_our_terms_in_one_spelling() {
    let call = facilitator_request(&read(Version::V2), &offer()).expect("a call");
    assert_eq!((call.x402_version, &call.payment_requirements), (2, &offer().requirements_v2()));
    // a buyer's own `accepted` never gets through, whatever was matched before
    let foreign = with("/accepted/extra", json!({"name": "x", "version": "y"})).expect("well-formed");
    let call = facilitator_request(&foreign, &offer()).expect("a call");
    assert_eq!(call.payment_payload["accepted"], offer().requirements_v2());
    let odd = with("/payload/authorization/from", json!("0x70997970c51812DC3a010c7D01B50E0D17dc79c8"));
    let call = facilitator_request(&odd.expect("well-formed"), &offer()).expect("a call");
    let from = &call.payment_payload["payload"]["authorization"]["from"];
    assert_eq!(*from, json!(evm::checksummed(&buyer().address())), "the checksum is made right");
    let call = facilitator_request(&read(Version::V1), &offer()).expect("a call");
    assert_eq!((call.x402_version, &call.payment_payload["network"]), (1, &json!("base-sepolia")));
    assert_eq!(call.payment_requirements["maxAmountRequired"], "50000");
    let unnamed = Offer { network: Network::new(31_337), ..offer() };
    assert_eq!(facilitator_request(&read(Version::V1), &unnamed), None);
}

proptest! {
    #[test]
    fn one_changed_character_makes_no_other_payment(at in any::<prop::sample::Index>(), new in "[ -~]") {
        let plain = document(Version::V2).to_string();
        let at = at.index(plain.len());
        let changed = format!("{}{new}{}", &plain[..at], &plain[at + 1..]);
        let Ok(value) = serde_json::from_str::<Value>(&changed) else { return Ok(()) };
        let Ok(payment) = decode(Version::V2, &header(&value)) else { return Ok(()) };
        let fits = match_offer(&payment, &offer()).is_ok();
        if fits && verify_signature(&payment, &offer()) == SignatureCheck::Eoa {
            prop_assert_eq!(payment.payload_sha256(), read(Version::V2).payload_sha256());
        }
        // of `accepted` only the case of addresses is free
        let accepted = |value: &Value| value["accepted"].to_string().to_lowercase();
        if fits {
            prop_assert_eq!(accepted(&value), accepted(&document(Version::V2)));
        }
    }

    #[test]
    fn only_the_payers_own_key_passes(secret in any::<[u8; 32]>()) {
        let Ok(key) = SecretKey::from_bytes(secret) else { return Ok(()) };
        prop_assume!(key.address() != buyer().address());
        let mut payment = read(Version::V2);
        let digest = payment.authorization.digest(&offer().domain());
        payment.signature = key.sign(&digest).to_bytes().to_vec();
        let want = SignatureCheck::Bad(SignatureError::OtherSigner(key.address()));
        prop_assert_eq!(verify_signature(&payment, &offer()), want);
        payment.authorization = Authorization::Eip3009(TransferAuthorization { from: key.address(), ..signed() });
        payment.signature = key.sign(&payment.authorization.digest(&offer().domain())).to_bytes().to_vec();
        prop_assert_eq!(verify_signature(&payment, &offer()), SignatureCheck::Eoa);
    }

    #[test]
    fn a_window_that_passes_covers_the_needed_time(
        after in any::<u64>(), before in any::<u64>(), now in any::<u64>(), needed in 0u64..10_000,
    ) {
        let auth = Authorization::Eip3009(TransferAuthorization {
            valid_after: U256::from(after), valid_before: U256::from(before), ..signed()
        });
        let (after, before, now, needed) = (i128::from(after), i128::from(before), i128::from(now), i128::from(needed));
        let fits = after <= now + 30 && before >= now + needed && before > after && before <= now + 3_630;
        let got = check_window(&auth, u64::try_from(now).expect("u64"), u64::try_from(needed).expect("u64"));
        prop_assert_eq!(got.is_ok(), fits);
    }
}

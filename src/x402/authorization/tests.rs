use super::*;
use crate::evm::PERMIT2;
use crate::x402::fixture::{FACILITATOR, NOW_S, header, permit_document, permit_offer, permit_payment};
use crate::x402::{
    Mismatch, Offer, Payment, SignatureCheck, Version, WindowError, check_window, decode, facilitator_request,
    match_offer, verify_signature,
};
use proptest::prelude::*;

/// Entries of the offer: exact by Permit2, and upto.
const ENTRIES: [usize; 2] = [1, 2];

fn read(entry: usize) -> Payment {
    decode(Version::V2, &permit_payment(entry, 1).header_value).expect("a payment")
}

fn with(entry: usize, pointer: &str, value: Value) -> Result<Payment, Malformed> {
    let mut changed = permit_document(entry);
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    changed.pointer_mut(parent).expect("a parent").as_object_mut().expect("an object").insert(key.to_owned(), value);
    decode(Version::V2, &header(&changed))
}

fn permit(entry: usize) -> PermitTransfer {
    match read(entry).authorization {
        Authorization::Permit2(permit) => *permit,
        Authorization::Eip3009(_) => panic!("not a permit"),
    }
}

#[test]
fn what_is_offered_can_be_signed_and_is_taken() {
    for entry in ENTRIES {
        let payment = read(entry);
        assert_eq!(payment.authorization, permit_payment(entry, 1).authorization);
        assert_eq!(match_offer(&payment, &permit_offer()), Ok(()));
        assert_eq!(verify_signature(&payment, &permit_offer()), SignatureCheck::Eoa);
        assert_eq!(check_window(&payment.authorization, NOW_S, 60), Ok(()));
        let asked = facilitator_request(&payment, &permit_offer()).expect("a call");
        assert_eq!(
            asked.payment_requirements,
            permit_offer().requirements_by(payment.method(&permit_offer()).expect("offered"))
        );
        let again = Payment::from_value(Version::V2, asked.payment_payload).expect("readable");
        assert_eq!(again.payload_sha256(), payment.payload_sha256());
    }
    assert_eq!((permit(1).spender, permit(1).facilitator), (EXACT_PROXY, None));
    assert_eq!((permit(2).spender, permit(2).facilitator), (UPTO_PROXY, Some(FACILITATOR)));
    assert_ne!(permit(1).spender, PERMIT2);
}

#[test]
fn a_payment_by_a_rail_that_is_off_is_no_payment_for_the_offer() {
    let off = Offer { permit2: Default::default(), ..permit_offer() };
    assert_eq!(match_offer(&read(1), &off), Err(Mismatch::Extra));
    assert_eq!(match_offer(&read(2), &off), Err(Mismatch::Scheme));
    // the payload of one under the entry of the other
    let mut crossed = permit_document(1);
    crossed["payload"] = permit_document(2)["payload"].clone();
    let crossed = decode(Version::V2, &header(&crossed)).expect("well-formed");
    assert_eq!(match_offer(&crossed, &permit_offer()), Err(Mismatch::Spender));
}

#[test]
fn every_member_that_was_signed_is_compared() {
    let other = json!("0x70997970C51812dc3A010C7d01b50e0d17dc79C8");
    let at = |member: &str| format!("/payload/permit2Authorization/{member}");
    for entry in ENTRIES {
        for (member, value, want) in [
            ("spender", other.clone(), Mismatch::Spender),
            ("spender", json!(checksummed(&PERMIT2)), Mismatch::Spender),
            ("permitted/token", other.clone(), Mismatch::Token),
            ("permitted/amount", json!("49999"), Mismatch::PermitAmount),
            ("witness/to", other.clone(), Mismatch::PermitTo),
            ("witness/facilitator", other.clone(), Mismatch::Facilitator),
        ] {
            let payment = with(entry, &at(member), value).expect("well-formed");
            assert_eq!(match_offer(&payment, &permit_offer()), Err(want), "{entry} {member}");
        }
        for (member, value) in
            [("nonce", json!("8")), ("deadline", json!("1790000200")), ("from", json!(checksummed(&FACILITATOR)))]
        {
            let payment = with(entry, &at(member), value).expect("well-formed");
            let checked = verify_signature(&payment, &permit_offer());
            assert!(matches!(checked, SignatureCheck::Bad(_)), "{entry} {member}");
        }
    }
    let more = |entry| with(entry, &at("permitted/amount"), json!("50001")).expect("well-formed");
    assert_eq!(match_offer(&more(1), &permit_offer()), Err(Mismatch::PermitAmount), "exact means equal");
    assert_eq!(match_offer(&more(2), &permit_offer()), Ok(()), "a higher cap is a cap");
}

#[test]
fn a_permit_is_read_strictly() {
    let at = |member: &str| format!("/payload/permit2Authorization/{member}");
    for entry in ENTRIES {
        for (member, value) in [
            ("nonce", json!(7)),
            ("nonce", json!("0x07")),
            ("nonce", json!("07")),
            ("deadline", json!(1_790_000_200)),
            ("permitted/amount", json!(50_000)),
            ("permitted/more", json!("1")),
            ("witness/extra", json!("0x")),
            ("witness/validAfter", json!("-1")),
            ("more", json!(1)),
        ] {
            assert!(matches!(with(entry, &at(member), value), Err(Malformed::Member(_))), "{entry} {member}");
        }
        let both = with(entry, "/payload/authorization", json!({}));
        assert_eq!(both, Err(Malformed::Unsupported), "two kinds at once");
    }
    let old = json!({"x402Version": 1, "scheme": "exact", "network": "base-sepolia", "payload": permit_document(1)["payload"]});
    assert_eq!(decode(Version::V1, &header(&old)), Err(Malformed::Unsupported));
}

#[test]
fn the_window_of_a_permit_ends_with_its_deadline() {
    let auth = read(1).authorization;
    let late = NOW_S + 10_000;
    let error = check_window(&auth, late, 60).expect_err("over");
    assert_eq!(error, WindowError::TooShort { needed_s: 60 });
    assert_eq!(error.said_of(&auth), "permit2_deadline_expired: at least 60 more seconds are needed");
}

#[test]
fn a_nonce_is_one_of_its_owner_whatever_the_token() {
    let (network, key) = (Network::new(84_532), read(1).auth_key(&Network::new(84_532), &Address::ZERO));
    assert_eq!(key, read(1).auth_key(&network, &Address::repeat_byte(9)));
    let owner = lower(&permit(1).from);
    assert_eq!(key, format!("eip155:84532/permit2/{owner}/0x{}", "01".repeat(32)));
}

proptest! {
    #[test]
    fn whatever_was_signed_is_read_back(
        addresses in any::<[[u8; 20]; 5]>(), numbers in any::<[[u8; 32]; 4]>(), upto in any::<bool>(),
        signature in proptest::collection::vec(any::<u8>(), 0..100),
    ) {
        let [from, token, spender, to, facilitator] = addresses.map(Address::from);
        let [amount, nonce, deadline, valid_after] = numbers.map(U256::from_be_bytes);
        let facilitator = upto.then_some(facilitator);
        let sent = Authorization::Permit2(Box::new(PermitTransfer {
            from, token, amount, spender, nonce, deadline, to, facilitator, valid_after,
        }));
        let mut document = permit_document(1);
        document["payload"] = sent.payload(&signature);
        let read = decode(Version::V2, &header(&document)).expect("well-formed");
        prop_assert_eq!(&read.authorization, &sent);
        prop_assert_eq!(read.authorization.nonce(), B256::from(nonce));
        prop_assert_eq!(read.signature, signature);
    }
}

use super::*;
use crate::evm::{checksummed, lower};
use crate::x402::fixture::{NOW_S, broadcast_document, offer};
use crate::x402::{Candidate, ChallengeTemplate, OfferSecret, Presented, Version, codec};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

const PRODUCT: &str = "research:fundamentals";

fn issued() -> IssuedOffer {
    let secret = OfferSecret::from_bytes([7; 32]);
    let nonce = secret.issue(PRODUCT, &offer(), NOW_S, [1; 8]).expect("an offer");
    let candidate = Candidate { product: PRODUCT, offer: &offer() };
    secret.check(&nonce, candidate, [], NOW_S).expect("ours")
}

fn read(document: Value) -> BroadcastPayment {
    match Presented::from_value(Version::V2, document).expect("well-formed") {
        Presented::Broadcast(payment) => payment,
        Presented::Exact(payment) => panic!("{payment:?}"),
    }
}

/// As a buyer makes it who repeats the second entry of our 402.
fn document() -> Value {
    let template = ChallengeTemplate::new(&offer(), "e", &Map::new()).expect("small enough");
    let terms = codec::decode_base64(&template.header(&issued().nonce)).expect("base64");
    let terms: Value = serde_json::from_slice(&terms).expect("JSON");
    let mut document = broadcast_document();
    document["accepted"] = terms["accepts"][1].clone();
    document["resource"] = terms["resource"].clone();
    document
}

fn with(pointer: &str, value: Value) -> BroadcastPayment {
    let mut changed = document();
    let (parent, key) = pointer.rsplit_once('/').expect("a pointer");
    changed.pointer_mut(parent).expect("a parent").as_object_mut().expect("an object").insert(key.to_owned(), value);
    read(changed)
}

fn landed() -> Landed {
    Landed { asset: offer().asset, to: offer().pay_to, value: U256::from(50_000), nonce: issued().nonce }
}

#[test]
fn what_we_offer_is_taken_when_it_is_repeated() {
    assert_eq!(match_broadcast(&read(document()), &offer(), &issued()), Ok(()));
    for (pointer, value) in [
        ("/accepted/asset", json!(lower(&offer().asset))),
        ("/accepted/extra/nonce", json!(format!("0x{:X}", issued().nonce))),
        ("/accepted/extra/nonce", json!(null)),
        ("/resource", json!(null)),
    ] {
        assert_eq!(match_broadcast(&with(pointer, value.clone()), &offer(), &issued()), Ok(()), "{pointer} {value}");
    }
}

#[test]
fn any_single_changed_field_of_accepted_is_a_mismatch() {
    for (pointer, value, want) in [
        ("/accepted/scheme", json!("eip3009-client-broadcast"), Mismatch::Scheme),
        ("/accepted/network", json!("eip155:8453"), Mismatch::Network),
        ("/accepted/amount", json!("49999"), Mismatch::Amount),
        ("/accepted/asset", json!(checksummed(&offer().pay_to)), Mismatch::Asset),
        ("/accepted/payTo", json!(checksummed(&offer().asset)), Mismatch::PayTo),
        ("/accepted/maxTimeoutSeconds", json!(offer().max_timeout_s), Mismatch::MaxTimeoutSeconds),
        ("/accepted/extra/nonce", json!(format!("0x{}", "01".repeat(32))), Mismatch::Extra),
        ("/accepted/extra/paymentFlow", json!("authorization"), Mismatch::Extra),
        ("/accepted/extra/paymentFlow", json!(null), Mismatch::Extra),
        ("/accepted/extra/name", json!("USD Coin"), Mismatch::Extra),
        ("/accepted/extra/more", json!(1), Mismatch::Extra),
        ("/accepted/outputSchema", json!({}), Mismatch::UnknownMember),
        ("/resource/url", json!("http://127.0.0.1:4021/research/other"), Mismatch::Resource),
    ] {
        let payment = with(pointer, value.clone());
        assert_eq!(match_broadcast(&payment, &offer(), &issued()), Err(want), "{pointer} {value}");
    }
}

#[test]
fn the_price_of_the_offer_counts_and_not_that_of_now() {
    let dearer = Offer { amount: Atomic(60_000), ..offer() };
    assert_eq!(match_broadcast(&read(document()), &dearer, &issued()), Ok(()));
    assert_eq!(match_landing(&landed(), None, &issued(), &dearer), Ok(Overpaid(U256::ZERO)));
    let now = with("/accepted/amount", json!("60000"));
    assert_eq!(match_broadcast(&now, &dearer, &issued()), Err(Mismatch::Amount));
}

#[test]
fn a_transfer_is_compared_in_every_field() {
    let (good, other) = (landed(), B256::repeat_byte(1));
    let ruled = |landed: Landed, stated: Option<&B256>| match_landing(&landed, stated, &issued(), &offer());
    assert_eq!(ruled(good, Some(&good.nonce)), Ok(Overpaid(U256::ZERO)));
    assert_eq!(ruled(Landed { asset: offer().pay_to, ..good }, None), Err(LandingMismatch::WrongToken));
    assert_eq!(ruled(Landed { to: offer().asset, ..good }, None), Err(LandingMismatch::WrongPayee));
    assert_eq!(ruled(Landed { nonce: other, ..good }, Some(&other)), Err(LandingMismatch::OtherNonce));
    assert_eq!(ruled(good, Some(&other)), Err(LandingMismatch::NotAsAccepted));
}

proptest! {
    #[test]
    fn more_than_the_price_is_owed_back_to_the_unit(value in prop_oneof![0u64..100_001, any::<u64>()], high in any::<bool>()) {
        let value = U256::from(value) << if high { 192 } else { 0 };
        let price = U256::from(50_000);
        let ruled = match_landing(&Landed { value, ..landed() }, None, &issued(), &offer());
        if value >= price {
            prop_assert_eq!(ruled, Ok(Overpaid(value - price)));
        } else {
            prop_assert_eq!(ruled, Err(LandingMismatch::TooLittle { paid: value, price: Atomic(50_000) }));
        }
    }
}

use super::*;
use crate::evm::{Address, Network};
use crate::money::UsdMicros;
use crate::x402::fixture::{NOW_S, offer};
use alloy_primitives::hex;
use proptest::prelude::*;

const PRODUCT: &str = "research:fundamentals";

fn secret() -> OfferSecret {
    OfferSecret::from_bytes([7; 32])
}

fn candidate<'a>(product: &'a str, offer: &'a Offer) -> Candidate<'a> {
    Candidate { product, offer }
}

fn check(nonce: &B256, product: &str, offer: &Offer, now_s: u64) -> Result<IssuedOffer, NonceError> {
    secret().check(nonce, candidate(product, offer), [], now_s)
}

/// RFC 4231: cases 1, 2, 3 and 5 (keys up to 32 bytes, as ours is; 5 is truncated).
#[test]
fn the_code_is_hmac_sha_256() {
    let code = |key: &[u8], text: &[u8]| {
        let mut padded = [0; 32];
        padded[..key.len()].copy_from_slice(key);
        let mut mac = OfferSecret::from_bytes(padded).keyed;
        mac.update(text);
        hex::encode(mac.finalize().into_bytes())
    };
    assert_eq!(code(&[0x0b; 20], b"Hi There"), "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
    assert_eq!(
        code(b"Jefe", b"what do ya want for nothing?"),
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    );
    assert_eq!(code(&[0xaa; 20], &[0xdd; 50]), "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
    assert!(code(&[0x0c; 20], b"Test With Truncation").starts_with("a3b6167473100ee06e0c796c2955552b"));
}

#[test]
fn the_layout_is_the_documented_one() {
    let made = secret().issue(PRODUCT, &offer(), NOW_S, *b"randomly").expect("an offer");
    assert_eq!(made[..4], u32::try_from(NOW_S - 1_577_836_800).expect("32 bits").to_be_bytes());
    assert_eq!(made[4..8], [0, 0x00, 0xc3, 0x50], "50000");
    assert_eq!(&made[8..16], b"randomly");
    let mut text = b"jim/offer-nonce/1".to_vec();
    text.extend_from_slice(&made[..16]);
    text.extend_from_slice(&84_532u64.to_be_bytes());
    text.extend_from_slice(offer().asset.as_slice());
    text.extend_from_slice(offer().pay_to.as_slice());
    text.extend_from_slice(PRODUCT.as_bytes());
    let mut mac = secret().keyed;
    mac.update(&text);
    assert_eq!(made[16..], mac.finalize().into_bytes()[..16]);
}

#[test]
fn an_offer_keeps_its_own_price() {
    let made = secret().issue(PRODUCT, &offer(), NOW_S, [1; 8]).expect("an offer");
    let dearer = Offer { amount: Atomic(60_000), max_timeout_s: 9, description: "other".to_owned(), ..offer() };
    let found = check(&made, PRODUCT, &dearer, NOW_S + 5).expect("still good");
    assert_eq!((found.amount, found.issued_at_s, found.nonce), (offer().amount, NOW_S, made));
}

#[test]
fn life_and_grace_have_exact_ends() {
    let made = secret().issue(PRODUCT, &offer(), NOW_S, [1; 8]).expect("an offer");
    let found = check(&made, PRODUCT, &offer(), NOW_S + 600).expect("the last second");
    assert_eq!(check(&made, PRODUCT, &offer(), NOW_S + 601), Err(NonceError::Expired(found.clone())));
    assert_eq!(check(&made, PRODUCT, &offer(), NOW_S - 20), Ok(found.clone()), "a clock that is behind");
    assert!(!found.is_over(NOW_S + 720) && found.is_over(NOW_S + 721));
    assert_eq!(secret().recognise(&made, [candidate(PRODUCT, &offer())]), Some(found), "found whatever its age");
}

#[test]
fn another_product_is_named_when_we_sell_it() {
    let terms = offer();
    let made = secret().issue("research:dear", &terms, NOW_S, [1; 8]).expect("an offer");
    let shelf = [candidate(PRODUCT, &terms), candidate("research:dear", &terms)];
    let wrong = secret().check(&made, shelf[0], shelf, NOW_S + 9_999).expect_err("another route");
    assert!(matches!(&wrong, NonceError::OtherProduct(found) if found.product == "research:dear"), "{wrong}");
    assert_eq!(check(&made, PRODUCT, &terms, NOW_S), Err(NonceError::NotOurs), "not sold any more");
}

#[test]
fn what_is_not_in_the_nonce_is_in_its_code() {
    let made = secret().issue(PRODUCT, &offer(), NOW_S, [1; 8]).expect("an offer");
    let other = Address::repeat_byte(9);
    for changed in [
        Offer { network: Network::new(8_453), ..offer() },
        Offer { asset: other, ..offer() },
        Offer { pay_to: other, ..offer() },
    ] {
        assert_eq!(check(&made, PRODUCT, &changed, NOW_S), Err(NonceError::NotOurs), "{changed:?}");
    }
    let stranger = OfferSecret::from_bytes([8; 32]);
    assert_eq!(stranger.recognise(&made, [candidate(PRODUCT, &offer())]), None);
    assert_eq!(format!("{:?}", secret()), "OfferSecret { .. }");
}

#[test]
fn what_cannot_be_carried_is_not_offered() {
    let issue = |amount, now_s| secret().issue(PRODUCT, &Offer { amount: Atomic(amount), ..offer() }, now_s, [0; 8]);
    assert_eq!(issue(16_777_217, NOW_S), Err(IssueError::Amount(Atomic(16_777_217))));
    assert!(issue(16_777_215, NOW_S).is_ok() && issue(16_777_220, NOW_S).is_ok());
    assert_eq!(issue(1, EPOCH_S - 1), Err(IssueError::Time));
    assert_eq!(issue(1, EPOCH_S + (1 << 32)), Err(IssueError::Time));
    assert!(issue(1, EPOCH_S).is_ok() && issue(1, EPOCH_S + (1 << 32) - 1).is_ok());
}

proptest! {
    #[test]
    fn what_is_issued_is_recognised(
        amount in 0u128..1 << 24, zeros in 0u32..20, age in 0u64..=600, random in any::<[u8; 8]>(), key in any::<[u8; 32]>(),
        product in "[a-z:]{1,40}", chain in 1u64.., from in EPOCH_S..EPOCH_S + (1 << 32) - 1,
    ) {
        let offer = Offer { amount: Atomic(amount * 10u128.pow(zeros)), network: Network::new(chain), ..offer() };
        let secret = OfferSecret::from_bytes(key);
        let nonce = secret.issue(&product, &offer, from, random).expect("an offer");
        let found = secret.check(&nonce, candidate(&product, &offer), [], from + age).expect("ours");
        prop_assert_eq!(found, IssuedOffer { nonce, product, amount: offer.amount, issued_at_s: from });
    }

    #[test]
    fn any_flipped_bit_makes_it_foreign(bit in 0usize..256, random in any::<[u8; 8]>()) {
        let mut nonce = secret().issue(PRODUCT, &offer(), NOW_S, random).expect("an offer");
        nonce[bit / 8] ^= 1 << (bit % 8);
        prop_assert_eq!(check(&nonce, PRODUCT, &offer(), NOW_S), Err(NonceError::NotOurs));
    }

    #[test]
    fn no_random_word_is_ours(word in any::<[u8; 32]>()) {
        prop_assert_eq!(check(&B256::from(word), PRODUCT, &offer(), NOW_S), Err(NonceError::NotOurs));
    }

    #[test]
    fn an_amount_is_carried_exactly_or_not_at_all(amount in any::<u128>(), shift in 0u32..128) {
        let amount = Atomic(amount >> shift);
        if let Some(packed) = pack(amount) {
            prop_assert_eq!(unpack(packed), Some(amount));
        }
    }

    /// Every price up to a dollar, in a token with any decimals that are configurable.
    #[test]
    fn every_price_that_can_be_listed_can_be_carried(micros in 1i64..=1_000_000, decimals in 0u8..=36) {
        if let Ok(amount) = Atomic::from_usd_micros(UsdMicros(micros), decimals) {
            prop_assert!(pack(amount).is_some(), "{amount}");
        }
    }
}

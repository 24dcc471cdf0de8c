use super::*;
use crate::evm::SecretKey;
use crate::x402::fixture::{self, NOW_S};
use crate::x402::{Challenge, Offer, PeerOffer, decode, facilitator_request, pay, read_body, read_required};
use serde_json::{Map, json};
use sqlx::postgres::PgPoolOptions;

fn request_by(key: &SecretKey, version: Version, nonce: u8, change: impl Fn(&mut PeerOffer)) -> FacilitatorRequest {
    let offer = fixture::offer();
    let challenge = Challenge::render(&offer, "e", &Map::new()).expect("small enough");
    let read = match version {
        Version::V1 => read_body(&challenge.body),
        Version::V2 => read_required(&challenge.header),
    };
    let mut terms = read.expect("readable").offers.remove(0);
    change(&mut terms);
    let payment = decode(version, &pay(&terms, key, B256::repeat_byte(nonce), NOW_S).header_value).expect("a payment");
    let call = facilitator_request(&payment, &offer).expect("a call");
    FacilitatorRequest::from(call)
}

fn request(version: Version, nonce: u8) -> FacilitatorRequest {
    request_by(&fixture::buyer(), version, nonce, |_| {})
}

fn judged(request: &FacilitatorRequest) -> Result<Transfer, &'static str> {
    judge(request, &fixture::offer().domain(), NOW_S)
}

#[test]
fn a_good_payment_of_either_version_is_one_and_the_same_transfer() {
    let transfer = judged(&request(Version::V2, 1)).expect("a transfer");
    assert_eq!(judged(&request(Version::V1, 1)).as_ref(), Ok(&transfer));
    assert_eq!((transfer.value.as_str(), transfer.nonce), ("50000", [1; 32]));
    assert_ne!(judged(&request(Version::V2, 2)).expect("a transfer").tx_hash, transfer.tx_hash);
}

#[test]
fn what_a_chain_would_refuse_is_refused_by_its_name() {
    for version in [Version::V1, Version::V2] {
        let changed = |change: &dyn Fn(&mut PeerOffer)| judged(&request_by(&fixture::buyer(), version, 1, change));
        assert_eq!(changed(&|terms| terms.amount.0 += 1), Err(OTHER_VALUE));
        assert_eq!(changed(&|terms| terms.pay_to = Address::ZERO), Err(OTHER_PAYEE));
        assert_eq!(changed(&|terms| terms.token_name = "USD Coin".to_owned()), Err(BAD_SIGNATURE));
        assert_eq!(changed(&|terms| terms.asset = Address::ZERO), Err(BAD_SIGNATURE));
        assert!(changed(&|terms| terms.max_timeout_s = 6).is_ok());
        assert_eq!(changed(&|terms| terms.max_timeout_s = 5), Err(EXPIRED));
        let good = request(version, 1);
        let domain = fixture::offer().domain();
        assert_eq!(judge(&good, &domain, NOW_S - 601), Err(TOO_EARLY));
        assert_eq!(judge(&good, &TokenDomain { chain_id: 8_453, ..domain.clone() }, NOW_S), Err(OTHER_NETWORK));
        assert_eq!(judge(&good, &TokenDomain { contract: Address::ZERO, ..domain }, NOW_S), Err(OTHER_ASSET));
        let mut stolen = good.clone();
        stolen.payment_payload["payload"]["authorization"]["from"] = json!(fixture::offer().pay_to);
        assert_eq!(judged(&stolen), Err(BAD_SIGNATURE));
        assert_eq!(judged(&FacilitatorRequest { payment_payload: json!({}), ..good.clone() }), Err(BAD_PAYLOAD));
        assert_eq!(judged(&FacilitatorRequest { payment_requirements: json!({}), ..good }), Err(BAD_REQUIREMENTS));
    }
}

#[test]
fn every_reason_is_one_that_can_only_come_before_a_broadcast() {
    use crate::facilitator::reason::{is_nonce_used, is_pre_broadcast};
    for reason in [OTHER_NETWORK, OTHER_SCHEME, OTHER_PAYEE, OTHER_VALUE, EXPIRED, TOO_EARLY, BAD_SIGNATURE, NO_MONEY] {
        assert!(is_pre_broadcast(reason), "{reason}");
    }
    assert!(is_nonce_used(NONCE_USED));
}

#[tokio::test]
async fn the_kinds_are_those_of_the_network() {
    let pool = PgPoolOptions::new().connect_lazy("postgres://nowhere.invalid/none").expect("lazy");
    let kinds = |chain_id| {
        let offer = Offer { network: Network::new(chain_id), ..fixture::offer() };
        let facilitator = Simulated::new(pool.clone(), offer.domain(), Arc::new(crate::clock::SystemClock));
        async move { facilitator.fetch_supported().await.expect("kinds").len() }
    };
    assert_eq!((kinds(84_532).await, kinds(31_337).await), (3, 2), "exact in both versions, upto in the second");
}

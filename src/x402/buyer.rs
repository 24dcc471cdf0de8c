//! The buyer's half: reading a seller's terms and signing a payment for one of them.
//!
//! Whether to buy at all (price, payee, budget) is decided elsewhere, before `pay` is called. Nothing is echoed to a seller
//! but its own offer: no extension is answered.

use serde_json::{Map, Value, json};

use super::{Authorization, Method, PERMIT2_METHOD, SCHEME, UPTO, Version, codec};
use crate::evm::{
    self, Address, B256, Network, PermitTransfer, SecretKey, TokenDomain, TransferAuthorization, U256, parse_address,
};
use crate::limits::{
    BUY_WINDOW_S_MAX, FOREIGN_TEXT_CHARS_MAX, PEER_CHALLENGE_BYTES_MAX, PEER_CHALLENGE_DEPTH_MAX, PEER_OFFERS_MAX,
};
use crate::money::Atomic;

/// Seconds that a payment is valid before it was made: sellers and chains have clocks that run behind.
const BACKDATE_S: u64 = 600;

/// A seller's terms, read from either half of a 402.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerChallenge {
    /// What could be paid: `exact` by EIP-3009 or Permit2, and `upto`, on an EVM chain.
    pub offers: Vec<PeerOffer>,
    /// Offers of other kinds, not read any further.
    pub unusable: usize,
    /// The seller's reason, cut and cleaned. Not to be trusted, and never to be shown as ours.
    pub error: Option<String>,
    /// The seller's extensions; empty when there are none.
    pub extensions: Map<String, Value>,
}

/// One payable offer of a seller.
#[derive(Clone, Debug, PartialEq)]
pub struct PeerOffer {
    /// The version in which it was made and is paid.
    pub version: Version,
    /// How the money moves.
    pub method: Method,
    /// Chain of the token.
    pub network: Network,
    /// The token. Its decimals are ours to know, never the seller's to say.
    pub asset: Address,
    /// Price in atomic units; of `upto` the most that may be charged.
    pub amount: Atomic,
    /// Who is paid.
    pub pay_to: Address,
    /// Seconds within which the seller settles.
    pub max_timeout_s: u64,
    /// Name in the token's EIP-712 domain, as the seller says.
    pub token_name: String,
    /// Version in the token's EIP-712 domain, as the seller says.
    pub token_version: String,
    /// The offer as it was received; version 2 repeats it in the payment.
    pub requirements: Value,
    /// Version 2's `resource`, repeated in the payment.
    pub resource: Option<Value>,
}

/// A 402 whose terms cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the terms of the 402 cannot be read")]
pub struct UnreadableChallenge;

/// A signed payment, to be sent once and sent again unchanged.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutgoingPayment {
    /// Decides the name of the header.
    pub version: Version,
    /// The header's value. It is money: keep it out of logs.
    pub header_value: String,
    /// What was signed.
    pub authorization: Authorization,
}

/// Reads the value of `PAYMENT-REQUIRED` (version 2).
pub fn read_required(header: &str) -> Result<PeerChallenge, UnreadableChallenge> {
    if header.len() > PEER_CHALLENGE_BYTES_MAX {
        return Err(UnreadableChallenge);
    }
    read(Version::V2, &codec::decode_base64(header).ok_or(UnreadableChallenge)?)
}

/// Reads the body of a 402 (version 1).
pub fn read_body(body: &[u8]) -> Result<PeerChallenge, UnreadableChallenge> {
    if body.len() > PEER_CHALLENGE_BYTES_MAX {
        return Err(UnreadableChallenge);
    }
    read(Version::V1, body)
}

/// Signs a payment for an offer, valid until the seller's timeout has passed but never longer than our own bound.
/// `nonce` must be random and must be stored before the payment is sent.
pub fn pay(offer: &PeerOffer, key: &SecretKey, nonce: B256, now_s: u64) -> OutgoingPayment {
    let authorization = authorization(offer, key.address(), nonce, now_s);
    let domain = TokenDomain {
        name: offer.token_name.clone(),
        version: offer.token_version.clone(),
        chain_id: offer.network.chain_id(),
        contract: offer.asset,
    };
    let signature = key.sign(&authorization.digest(&domain));
    let payload = authorization.payload(&signature.to_bytes());
    let mut payment = json!({ "x402Version": offer.version.number(), "payload": payload });
    match offer.version {
        Version::V1 => {
            payment["scheme"] = json!(SCHEME);
            payment["network"] = offer.requirements["network"].clone();
        }
        Version::V2 => {
            payment["accepted"] = offer.requirements.clone();
            if let Some(resource) = &offer.resource {
                payment["resource"] = resource.clone();
            }
        }
    }
    OutgoingPayment { version: offer.version, header_value: codec::encode(&payment), authorization }
}

fn authorization(offer: &PeerOffer, from: Address, nonce: B256, now_s: u64) -> Authorization {
    let valid_after = U256::from(now_s.saturating_sub(BACKDATE_S));
    let valid_before = U256::from(now_s.saturating_add(offer.max_timeout_s.min(BUY_WINDOW_S_MAX)));
    let (to, amount) = (offer.pay_to, U256::from(offer.amount.0));
    let facilitator = match offer.method {
        Method::Eip3009 => {
            return Authorization::Eip3009(TransferAuthorization {
                from,
                to,
                value: amount,
                valid_after,
                valid_before,
                nonce,
            });
        }
        Method::Permit2 => None,
        Method::Upto(facilitator) => Some(facilitator),
    };
    Authorization::Permit2(Box::new(PermitTransfer {
        from,
        token: offer.asset,
        amount,
        spender: offer.method.proxy(),
        nonce: nonce.into(),
        deadline: valid_before,
        to,
        facilitator,
        valid_after,
    }))
}

/// Reads one `PaymentRequirements` object; `None` when it is of a kind that we do not pay by, or not on an EVM chain.
pub fn read_terms(version: Version, requirements: &Value) -> Option<PeerOffer> {
    read_offer(version, requirements, None)
}

fn read(version: Version, bytes: &[u8]) -> Result<PeerChallenge, UnreadableChallenge> {
    let members = codec::decode_object(bytes, PEER_CHALLENGE_DEPTH_MAX).map_err(|_| UnreadableChallenge)?;
    if members.get("x402Version").and_then(Value::as_u64) != Some(version.number()) {
        return Err(UnreadableChallenge);
    }
    let accepts = members.get("accepts").and_then(Value::as_array).ok_or(UnreadableChallenge)?;
    if accepts.len() > PEER_OFFERS_MAX {
        return Err(UnreadableChallenge);
    }
    let resource = members.get("resource").filter(|resource| resource.is_object());
    let offers: Vec<_> = accepts.iter().filter_map(|offer| read_offer(version, offer, resource)).collect();
    let extensions = members.get("extensions").and_then(Value::as_object).cloned().unwrap_or_default();
    let error = members.get("error").and_then(Value::as_str);
    Ok(PeerChallenge {
        unusable: accepts.len() - offers.len(),
        offers,
        error: error.map(|text| codec::printable(text, FOREIGN_TEXT_CHARS_MAX)),
        extensions,
    })
}

fn read_offer(version: Version, offer: &Value, resource: Option<&Value>) -> Option<PeerOffer> {
    let text = |key: &str| offer.get(key).and_then(Value::as_str);
    let extra = |key: &str| offer.get("extra").and_then(|extra| extra.get(key)).and_then(Value::as_str);
    let method = match (version, text("scheme")?, extra("assetTransferMethod")) {
        (_, SCHEME, None | Some("eip3009")) => Method::Eip3009,
        (Version::V2, SCHEME, Some(PERMIT2_METHOD)) => Method::Permit2,
        (Version::V2, UPTO, None | Some(PERMIT2_METHOD)) => {
            Method::Upto(parse_address(extra("facilitatorAddress")?).ok()?)
        }
        _ => return None,
    };
    let (network, amount) = match version {
        Version::V1 => (Network::from_v1_name(text("network")?)?, text("maxAmountRequired")?),
        Version::V2 => (text("network")?.parse().ok()?, text("amount")?),
    };
    // a permit is not signed in the token's domain
    let domain = |key: &str| match method {
        Method::Eip3009 => extra(key),
        Method::Permit2 | Method::Upto(_) => Some(extra(key).unwrap_or_default()),
    };
    Some(PeerOffer {
        version,
        method,
        network,
        asset: parse_address(text("asset")?).ok()?,
        amount: Atomic(u128::try_from(evm::parse_uint(amount).ok()?).ok()?),
        pay_to: parse_address(text("payTo")?).ok()?,
        max_timeout_s: offer.get("maxTimeoutSeconds").and_then(Value::as_u64)?,
        token_name: domain("name")?.to_owned(),
        token_version: domain("version")?.to_owned(),
        requirements: offer.clone(),
        resource: resource.cloned(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x402::{Challenge, SignatureCheck, check_window, decode, fixture, match_offer, verify_signature};

    #[test]
    fn what_we_offer_we_can_buy_in_both_versions() {
        let offer = fixture::offer();
        let challenge = Challenge::render(&offer, "payment required", &Map::new()).expect("small enough");
        for read in [read_required(&challenge.header), read_body(&challenge.body)] {
            let read = read.expect("readable");
            let paid = pay(&read.offers[0], &fixture::buyer(), B256::repeat_byte(9), 1_000_000);
            let payment = decode(paid.version, &paid.header_value).expect("a payment");
            assert_eq!(match_offer(&payment, &offer), Ok(()));
            assert_eq!(verify_signature(&payment, &offer), SignatureCheck::Eoa);
            assert_eq!(check_window(&payment.authorization, 1_000_000, 120), Ok(()));
        }
    }

    #[test]
    fn other_kinds_of_offers_are_counted_and_not_read() {
        let ours = fixture::offer().requirements_v2();
        let with = |key: &str, value: Value| {
            let mut offer = ours.clone();
            offer[key] = value;
            offer
        };
        let accepts = json!([
            ours,
            with("scheme", json!("upto")),
            with("network", json!("solana:5eykt4UsFv8P8NJdTREpY1vzqKqZKvdp")),
            with("extra", json!({"name": "USDC", "version": "2", "assetTransferMethod": "erc7710"})),
            with("amount", json!(50_000)),
            with("asset", json!("USD")),
            with("amount", json!("340282366920938463463374607431768211456")),
            7,
        ]);
        let header = codec::encode(&json!({"x402Version": 2, "accepts": accepts, "error": "a\nb\u{202e}"}));
        let read = read_required(&header).expect("readable");
        assert_eq!((read.offers.len(), read.unusable), (1, 7));
        assert_eq!(read.error.as_deref(), Some("ab"));
    }

    #[test]
    fn a_sellers_year_long_timeout_does_not_bind_us() {
        let challenge = Challenge::render(&fixture::offer(), "e", &Map::new()).expect("small enough");
        let mut offer = read_required(&challenge.header).expect("readable").offers.remove(0);
        offer.max_timeout_s = u64::MAX;
        let paid = pay(&offer, &fixture::buyer(), B256::ZERO, 1_000_000);
        assert_eq!(paid.authorization.valid_before(), U256::from(1_000_000 + BUY_WINDOW_S_MAX));
    }

    #[test]
    fn unreadable_terms_are_an_error() {
        for bad in [json!({}), json!({"x402Version": 1, "accepts": []}), json!({"x402Version": 2}), json!([])] {
            assert_eq!(read_required(&codec::encode(&bad)), Err(UnreadableChallenge), "{bad}");
        }
        assert!(read_body(b"{}").is_err() && read_body(b"").is_err() && read_required("???").is_err());
    }
}

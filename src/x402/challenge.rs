//! The 402: one answer that buyers of both versions can read.
//!
//! Version 2 buyers look at the header only, version 1 buyers at the body only. Nothing in it depends on the request but
//! the error text, so it is rendered once a route and anew only to say why a payment was not taken.

use serde_json::{Map, Value, json};

use super::{Offer, codec};
use crate::limits::CHALLENGE_HEADER_BYTES_MAX;

/// The header value and the body of a 402.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Challenge {
    /// Value of `PAYMENT-REQUIRED`: base64 of the version 2 `PaymentRequired`.
    pub header: String,
    /// The body: the version 1 object as JSON text.
    pub body: Vec<u8>,
}

/// The header would be longer than clients and proxies take.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a PAYMENT-REQUIRED header of {bytes} bytes; at most {CHALLENGE_HEADER_BYTES_MAX} are sent")]
pub struct TooLarge {
    /// Bytes of the header value.
    pub bytes: usize,
}

impl Challenge {
    /// Renders the terms, with the reason why there is no answer and with the extensions of version 2 (empty: none).
    ///
    /// On a chain without a version 1 name the body's `accepts` is empty: version 1 buyers have no way to pay there.
    pub fn render(offer: &Offer, error: &str, extensions: &Map<String, Value>) -> Result<Self, TooLarge> {
        let mut required = json!({
            "x402Version": 2,
            "error": error,
            "resource": offer.resource(),
            "accepts": offer.methods().map(|method| offer.requirements_by(method)).collect::<Vec<_>>(),
        });
        if !extensions.is_empty() {
            required["extensions"] = Value::Object(extensions.clone());
        }
        let header = codec::encode(&required);
        if header.len() > CHALLENGE_HEADER_BYTES_MAX {
            return Err(TooLarge { bytes: header.len() });
        }
        Ok(Self { header, body: body_v1(offer, error) })
    }
}

/// The version 1 object as JSON text.
pub(super) fn body_v1(offer: &Offer, error: &str) -> Vec<u8> {
    let accepts: Vec<_> = offer.requirements_v1().into_iter().collect();
    json!({ "x402Version": 1, "error": error, "accepts": accepts }).to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::x402::{fixture, read_body, read_required};

    #[test]
    fn one_402_serves_both_versions() {
        let offer = fixture::offer();
        let extensions = Map::from_iter([("refusal-contract".to_owned(), json!({"info": {"contract_id": "ab"}}))]);
        let challenge = Challenge::render(&offer, "payment required", &extensions).expect("small enough");
        let v2 = read_required(&challenge.header).expect("version 2");
        assert_eq!(v2.offers[0].requirements, offer.requirements_v2());
        assert_eq!(v2.extensions, extensions);
        assert_eq!(v2.error.as_deref(), Some("payment required"));
        let v1 = read_body(&challenge.body).expect("version 1");
        assert_eq!(v1.offers[0].requirements, offer.requirements_v1().expect("a named chain"));
    }

    #[test]
    fn a_header_that_clients_would_not_take_is_an_error() {
        let extensions = Map::from_iter([("big".to_owned(), json!("x".repeat(CHALLENGE_HEADER_BYTES_MAX)))]);
        assert!(matches!(Challenge::render(&fixture::offer(), "e", &extensions), Err(TooLarge { .. })));
    }
}

//! One product with its terms, rendered once: the 402 costs no more than copying it.

use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Map, Value, json};

use crate::catalog::Product;
use crate::evm::{Address, Network};
use crate::limits;
use crate::x402::{Challenge, Offer};

/// What is said in a 402 that is no reaction to a payment.
const FIRST_ERROR: &str = "Payment required";

/// Longest description in a 402: indexes cut what is longer.
const DESCRIPTION_CHARS_MAX: usize = 450;

/// Where and in what we are paid.
#[derive(Clone, Debug)]
pub struct Till {
    /// Chain.
    pub network: Network,
    /// Token.
    pub asset: Address,
    /// Its decimals.
    pub asset_decimals: u8,
    /// Name in its EIP-712 domain.
    pub asset_name: String,
    /// Version in its EIP-712 domain.
    pub asset_version: String,
    /// Who is paid.
    pub pay_to: Address,
}

/// A product with its terms.
#[derive(Clone, Debug)]
pub struct Shelf {
    /// The product.
    pub product: Product,
    /// Our terms.
    pub offer: Offer,
    /// Decimals of the token.
    pub asset_decimals: u8,
    extensions: Map<String, Value>,
    header: HeaderValue,
    body: Bytes,
}

/// The terms do not fit a header.
#[derive(Debug, thiserror::Error)]
#[error("the terms of {product} do not fit a header: {source}")]
pub struct TooLarge {
    product: String,
    source: crate::x402::TooLarge,
}

impl Shelf {
    /// Renders the terms of a product. `contract` is the extension that names the refusal contract in force.
    pub fn new(product: Product, till: &Till, public_url: &str, contract: Value) -> Result<Self, TooLarge> {
        let input: Map<String, Value> =
            product.kind.input_schema()["properties"].as_object().cloned().unwrap_or_default();
        let offer = Offer {
            network: till.network,
            asset: till.asset,
            amount: product.price_atomic,
            pay_to: till.pay_to,
            max_timeout_s: limits::OFFER_TIMEOUT_S,
            token_name: till.asset_name.clone(),
            token_version: till.asset_version.clone(),
            resource_url: format!("{public_url}{}", product.path),
            description: product.description.chars().take(DESCRIPTION_CHARS_MAX).collect(),
            mime_type: "application/json".into(),
            service_name: Some("jim".into()),
            tags: product.tags.clone(),
            output_schema: Some(json!({"input": {"type": "http", "method": "GET", "queryParams": input}})),
        };
        let extensions = Map::from_iter([("refusal-contract".to_owned(), contract)]);
        let error = |source| TooLarge { product: product.id.clone(), source };
        let challenge = Challenge::render(&offer, FIRST_ERROR, &extensions).map_err(error)?;
        let (header, body) = parts(challenge);
        Ok(Self { product, offer, asset_decimals: till.asset_decimals, extensions, header, body })
    }

    /// Header and body of the 402 for a request without a payment.
    pub fn challenge(&self) -> (HeaderValue, Bytes) {
        (self.header.clone(), self.body.clone())
    }

    /// Header and body of the 402 that says why a payment was not taken. An error text that would not fit is left out.
    pub fn challenge_because(&self, error: &str) -> (HeaderValue, Bytes) {
        Challenge::render(&self.offer, error, &self.extensions).map_or_else(|_| self.challenge(), parts)
    }
}

fn parts(challenge: Challenge) -> (HeaderValue, Bytes) {
    // base64 is always a header value; the fallback keeps this free of a panic
    let header = HeaderValue::try_from(challenge.header).unwrap_or_else(|_| HeaderValue::from_static(""));
    (header, Bytes::from(challenge.body))
}

//! One product with its terms, rendered once: the 402 costs no more than copying it, and a nonce where the client-broadcast rail
//! is switched on.

use std::sync::Arc;

use bytes::Bytes;
use http::HeaderValue;
use serde_json::{Map, Value, json};

use crate::catalog::Product;
use crate::evm::{Address, Network};
use crate::limits;
use crate::x402::{self, Candidate, Challenge, ChallengeTemplate, IssueError, Offer, OfferSecret, Permit2Rails};

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
    /// The secret behind offers of the client-broadcast rail; None: the rail is switched off.
    pub offer_secret: Option<Arc<OfferSecret>>,
    /// What may be paid by Permit2.
    pub permit2: Permit2Rails,
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
    broadcast: Option<Broadcast>,
}

/// The second rail of a shelf.
#[derive(Clone, Debug)]
struct Broadcast {
    secret: Arc<OfferSecret>,
    template: ChallengeTemplate,
}

/// The terms of a product cannot be shown.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// They do not fit a header.
    #[error("the terms of {product} do not fit a header: {source}")]
    TooLarge {
        /// The product.
        product: String,
        /// How long they are.
        source: x402::TooLarge,
    },
    /// They cannot be offered by client-broadcast.
    #[error("{product} cannot be offered by client-broadcast: {source}")]
    Unissuable {
        /// The product.
        product: String,
        /// Why.
        source: IssueError,
    },
}

impl Shelf {
    /// Renders the terms of a product. `contract` is the extension that names the refusal contract in force, `now_s` the time at
    /// which a first offer is tried.
    pub fn new(product: Product, till: &Till, public_url: &str, contract: Value, now_s: u64) -> Result<Self, Error> {
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
            permit2: till.permit2,
        };
        let extensions = Map::from_iter([("refusal-contract".to_owned(), contract)]);
        let too_large = |source| Error::TooLarge { product: product.id.clone(), source };
        let challenge = Challenge::render(&offer, FIRST_ERROR, &extensions).map_err(too_large)?;
        let broadcast = match &till.offer_secret {
            None => None,
            Some(secret) => {
                let tried = secret.issue(&product.id, &offer, now_s, [0; 8]);
                tried.map_err(|source| Error::Unissuable { product: product.id.clone(), source })?;
                let template = ChallengeTemplate::new(&offer, FIRST_ERROR, &extensions).map_err(too_large)?;
                Some(Broadcast { secret: Arc::clone(secret), template })
            }
        };
        let (header, body) = parts(challenge.header, challenge.body);
        Ok(Self { product, offer, asset_decimals: till.asset_decimals, extensions, header, body, broadcast })
    }

    /// Product and terms, as the nonce of an offer is checked against them.
    pub fn candidate(&self) -> Candidate<'_> {
        Candidate { product: &self.product.id, offer: &self.offer }
    }

    /// Header and body of the 402 for a request without a payment.
    pub fn challenge(&self, now_s: u64) -> (HeaderValue, Bytes) {
        let both = self.broadcast.as_ref().and_then(|rail| self.offer_both(rail, &rail.template, now_s));
        (both.unwrap_or_else(|| self.header.clone()), self.body.clone())
    }

    /// Header and body of the 402 that says why a payment was not taken. An error text that would not fit is left out.
    pub fn challenge_because(&self, error: &str, now_s: u64) -> (HeaderValue, Bytes) {
        let Ok(ordinary) = Challenge::render(&self.offer, error, &self.extensions) else {
            return self.challenge(now_s);
        };
        let both = self.broadcast.as_ref().and_then(|rail| {
            let template = ChallengeTemplate::new(&self.offer, error, &self.extensions).ok()?;
            self.offer_both(rail, &template, now_s)
        });
        let (header, body) = parts(ordinary.header, ordinary.body);
        (both.unwrap_or(header), body)
    }

    /// The terms with a new nonce. None when the machine has no randomness or no usable time: then the ordinary rail is offered
    /// alone.
    fn offer_both(&self, rail: &Broadcast, template: &ChallengeTemplate, now_s: u64) -> Option<HeaderValue> {
        let mut random = [0; 8];
        getrandom::fill(&mut random).ok()?;
        let nonce = rail.secret.issue(&self.product.id, &self.offer, now_s, random).ok()?;
        HeaderValue::try_from(template.header(&nonce)).ok()
    }
}

fn parts(header: String, body: Vec<u8>) -> (HeaderValue, Bytes) {
    // base64 is always a header value; the fallback keeps this free of a panic
    (HeaderValue::try_from(header).unwrap_or_else(|_| HeaderValue::from_static("")), Bytes::from(body))
}

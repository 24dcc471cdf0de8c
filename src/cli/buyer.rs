//! An x402 buyer: asks, looks at the terms, signs one payment, and sends that one until the outcome is known.

mod settle;

use std::time::Duration;

use http::Method;
use reqwest::Client;
use reqwest::header::{CONTENT_TYPE, HeaderMap};

use crate::clock::{Clock, SystemClock};
use crate::evm::{B256, SecretKey, checksummed};
use crate::limits;
use crate::machine::Rail;
use crate::money::{Atomic, UsdMicros};
use crate::x402::{self, OutgoingPayment, PeerOffer, REQUIRED_HEADER, Version};

pub(super) use settle::{Course, Ending};

/// Tokens that are worth a dollar a piece, with decimals that we know and no seller can tell us: chain, address, decimals.
const DOLLAR_TOKENS: [(u64, &str, u8); 4] = [
    (8_453, "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913", 6),
    (84_532, "0x036CbD53842c5426634e7929541eC2318f3dCF7e", 6),
    (1, "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48", 6),
    (43_114, "0xB97EF9Ef8734C71904D8002F8b6Bc66Dd9c48a6E", 6),
];

/// What is asked for.
#[derive(Clone, Debug)]
pub(super) struct Ask {
    pub(super) method: Method,
    pub(super) url: String,
    pub(super) body: Option<String>,
    pub(super) headers: HeaderMap,
}

/// A response, whole.
#[derive(Clone, Debug)]
pub(super) struct Reply {
    pub(super) status: u16,
    pub(super) headers: HeaderMap,
    pub(super) body: Vec<u8>,
}

/// Why nothing was bought. Nothing was paid in any of these cases.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// The seller cannot be reached.
    #[error("{url} cannot be reached: {cause}")]
    Unreachable {
        /// The URL.
        url: String,
        /// Why.
        cause: String,
    },
    /// The answer is longer than is read.
    #[error("the answer is longer than {} bytes", limits::BUY_BODY_BYTES_MAX)]
    TooLong,
    /// The 402 has no terms that can be paid.
    #[error("the terms cannot be paid: {0}")]
    Terms(String),
    /// The price is above the limit.
    #[error("the price is {price} USD, above the limit of {limit} USD; raise --max-price to pay it")]
    TooDear {
        /// The price.
        price: UsdMicros,
        /// The limit.
        limit: UsdMicros,
    },
}

/// Buys with one key.
pub(super) struct Buyer {
    client: Client,
    key: SecretKey,
}

impl Buyer {
    pub(super) fn new(key: SecretKey) -> Result<Self, reqwest::Error> {
        // a payment header must never follow a redirect to another origin
        let client =
            Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(limits::BUY_REQUEST_WAIT).build()?;
        Ok(Self { client, key })
    }

    pub(super) fn address(&self) -> String {
        checksummed(&self.key.address())
    }

    /// Sends a request, with a payment when there is one.
    pub(super) async fn send(&self, ask: &Ask, payment: Option<&OutgoingPayment>) -> Result<Reply, Error> {
        let unreachable = |e: reqwest::Error| Error::Unreachable { url: ask.url.clone(), cause: root_cause(&e) };
        let mut request = self.client.request(ask.method.clone(), &ask.url).headers(ask.headers.clone());
        if let Some(body) = &ask.body {
            request = request.header(CONTENT_TYPE, "application/json").body(body.clone());
        }
        if let Some(payment) = payment {
            request = request.header(payment.version.payment_header(), &payment.header_value);
        }
        let mut response = request.send().await.map_err(unreachable)?;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(unreachable)? {
            body.extend_from_slice(&chunk);
            if body.len() > limits::BUY_BODY_BYTES_MAX {
                return Err(Error::TooLong);
            }
        }
        Ok(Reply { status, headers, body })
    }

    /// Signs a payment for the terms of a 402, if its price is within the limit.
    pub(super) fn sign(
        &self,
        challenge: &Reply,
        limit: UsdMicros,
        rail: Option<Rail>,
    ) -> Result<OutgoingPayment, Error> {
        let (offer, price) = choose(challenge, rail)?;
        if price > limit {
            return Err(Error::TooDear { price, limit });
        }
        let mut nonce = [0u8; 32];
        getrandom::fill(&mut nonce).map_err(|e| Error::Terms(format!("no random nonce: {e}")))?;
        Ok(x402::pay(&offer, &self.key, B256::from(nonce), SystemClock.unix_s()))
    }
}

impl Reply {
    /// The body as JSON.
    pub(super) fn json(&self) -> Option<serde_json::Value> {
        serde_json::from_slice(&self.body).ok()
    }

    /// A header as text.
    pub(super) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name)?.to_str().ok()
    }

    fn retry_after(&self) -> Duration {
        let seconds = self.header("retry-after").and_then(|v| v.parse().ok());
        seconds.map_or(limits::BUY_RETRY_PAUSE, |s| Duration::from_secs(s).min(limits::BUY_RETRY_PAUSE_MAX))
    }
}

/// The rail of an entry that is paid by a signature alone.
fn rail_of(offer: &PeerOffer) -> Rail {
    match offer.method {
        x402::Method::Eip3009 => Rail::Exact,
        x402::Method::Permit2 => Rail::ExactPermit2,
        x402::Method::Upto(_) => Rail::Upto,
    }
}

/// The cheapest offer in a token that we know, on the wanted rail or on any, with its price in dollars. Of equal prices the one that
/// needs no approval, and what is charged exactly, come first.
pub(super) fn choose(challenge: &Reply, wanted: Option<Rail>) -> Result<(PeerOffer, UsdMicros), Error> {
    let terms = |what: &str| Error::Terms(what.to_owned());
    let read = match challenge.header(REQUIRED_HEADER) {
        Some(header) => x402::read_required(header),
        None => x402::read_body(&challenge.body),
    };
    let read = read.map_err(|e| terms(&e.to_string()))?;
    let on_rail = read.offers.into_iter().filter(|offer| wanted.is_none_or(|rail| rail == rail_of(offer)));
    let priced = on_rail.filter_map(|offer| dollars(&offer).map(|price| (offer, price)));
    let rank = |offer: &PeerOffer| Rail::SETTLED_BY_US.iter().position(|rail| *rail == rail_of(offer));
    let chosen = priced.min_by_key(|(offer, price)| (*price, rank(offer)));
    chosen.ok_or_else(|| terms("no offer on such a rail in a token that this buyer knows"))
}

fn dollars(offer: &PeerOffer) -> Option<UsdMicros> {
    let known = |(chain, asset, _): &&(u64, &str, u8)| {
        *chain == offer.network.chain_id() && *asset == checksummed(&offer.asset)
    };
    let (_, _, decimals) = DOLLAR_TOKENS.iter().find(known)?;
    Atomic(offer.amount.0).to_usd_micros(*decimals).ok()
}

/// The innermost cause: the outer ones say only that a request failed.
fn root_cause(error: &reqwest::Error) -> String {
    let mut cause: &dyn std::error::Error = error;
    while let Some(inner) = cause.source() {
        cause = inner;
    }
    cause.to_string()
}

/// The receipt header of the version that was paid in.
pub(super) fn receipt_header(version: Version, reply: &Reply) -> Option<&str> {
    reply.header(version.receipt_header())
}

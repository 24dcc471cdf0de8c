//! A payment header of version 2 that may be of either rail.
//!
//! The accepted offer says which rail it is, and the payload must then be of that kind alone. Version 1 has no such rail.

use std::fmt;

use serde_json::{Map, Value, json};

use super::METHOD;
use crate::canonical::{canonical_json, sha256};
use crate::evm::{B256, parse_word};
use crate::x402::payment::{self, Accepted, Malformed, Payment};
use crate::x402::{Version, codec};

/// What a payment header holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Presented {
    /// A signed authorization that we settle.
    Exact(Payment),
    /// The hash of a transfer that the buyer has broadcast.
    Broadcast(BroadcastPayment),
}

/// A well-formed payment by a transfer that is said to be on chain already.
#[derive(Clone, PartialEq)]
pub struct BroadcastPayment {
    /// The accepted offer.
    pub accepted: Accepted,
    /// Hash of the transaction. Not the identity of the payment: one transaction may hold several transfers.
    pub tx: B256,
    /// `accepted.extra.nonce`, when the buyer repeats it.
    pub nonce: Option<B256>,
    /// `resource.url`, when the buyer repeats it.
    pub resource_url: Option<String>,
    document: Map<String, Value>,
}

/// Reads the value of the payment header of `version`, of either rail.
pub fn decode_presented(version: Version, text: &str) -> Result<Presented, Malformed> {
    from_document(version, payment::read_document(text)?)
}

impl Presented {
    /// Reads a payment that did not come in a header but as a JSON object (MCP). The caller has bounded and parsed it.
    pub fn from_value(version: Version, value: Value) -> Result<Self, Malformed> {
        match value {
            Value::Object(members) => from_document(version, codec::without_nulls(members)),
            _ => Err(Malformed::NotObject),
        }
    }
}

impl BroadcastPayment {
    /// SHA-256 over the canonical JSON of the hash: equal for every spelling of one payment.
    pub fn payload_sha256(&self) -> [u8; 32] {
        sha256(canonical_json(&json!({ "txHash": format!("{:#x}", self.tx) })).as_bytes())
    }

    /// The buyer's extensions; none when there are none.
    pub fn extensions(&self) -> Option<&Map<String, Value>> {
        self.document.get("extensions").and_then(Value::as_object)
    }
}

impl fmt::Debug for BroadcastPayment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BroadcastPayment")
            .field("network", &self.accepted.network)
            .field("tx", &self.tx)
            .field("nonce", &self.nonce)
            .finish_non_exhaustive()
    }
}

fn from_document(version: Version, document: Map<String, Value>) -> Result<Presented, Malformed> {
    let method = document.get("accepted").and_then(|a| a.get("extra")).and_then(|e| e.get("assetTransferMethod"));
    if version == Version::V2 && method.and_then(Value::as_str) == Some(METHOD) {
        return read_broadcast(document).map(Presented::Broadcast);
    }
    payment::from_document(version, document).map(Presented::Exact)
}

fn read_broadcast(document: Map<String, Value>) -> Result<BroadcastPayment, Malformed> {
    payment::check_frame(Version::V2, &document)?;
    let accepted = payment::read_accepted(&document)?;
    let nonce = match accepted.extra.get("nonce") {
        None => None,
        Some(nonce) => Some(word(nonce, "accepted.extra.nonce")?),
    };
    let tx = read_tx(&document)?;
    let resource_url = payment::read_resource_url(Version::V2, &document)?;
    Ok(BroadcastPayment { accepted, tx, nonce, resource_url, document })
}

/// The hash stands in the payload, or at the top without a payload, as some clients send it. Never both.
fn read_tx(document: &Map<String, Value>) -> Result<B256, Malformed> {
    match (document.get("payload"), document.get("txHash")) {
        (Some(_), Some(_)) => Err(Malformed::BroadcastPayload),
        (None, Some(hash)) => word(hash, "txHash"),
        (payload, None) => {
            let members = payment::object(payload, "payload")?;
            // a signature beside the hash would be a second payment
            if members.keys().any(|key| key != "txHash") {
                return Err(Malformed::BroadcastPayload);
            }
            word(members.get("txHash").unwrap_or(&Value::Null), "payload.txHash")
        }
    }
}

fn word(value: &Value, name: &'static str) -> Result<B256, Malformed> {
    value.as_str().and_then(|text| parse_word(text).ok()).ok_or(Malformed::Member(name))
}

#[cfg(test)]
mod tests;

//! A payment as a buyer sends it, read from its header strictly.
//!
//! What passes here is well-formed; whether it fits an offer is `terms`. Numbers are decimal strings only, since a JSON
//! number above 2^53 is read differently by different programs and hex is not in the specification.

use std::fmt;

use alloy_primitives::hex;
use serde_json::{Map, Value};

use super::authorization::{read_eip3009, read_permit2};
use super::{Authorization, Presented, Version, codec, decode_presented};
use crate::canonical::{canonical_json, sha256};
use crate::evm::{Address, B256, Network, Signature, lower, parse_uint};
use crate::limits::{PAYMENT_HEADER_BYTES_MAX, PAYMENT_HEADER_DEPTH_MAX};
use crate::strict_json;

/// Why a header is not a payment. Answered with 400; the text may be shown to the buyer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    /// Longer than any honest header.
    #[error("the header is longer than {PAYMENT_HEADER_BYTES_MAX} bytes")]
    TooLong,
    /// Not base64 in its one accepted spelling.
    #[error("not base64 (standard alphabet, padded, one line)")]
    Base64,
    /// Not JSON that has one meaning.
    #[error("the decoded header: {0}")]
    Json(strict_json::Error),
    /// JSON, but no object.
    #[error("the decoded header is not an object")]
    NotObject,
    /// `x402Version` is not the JSON number that belongs to the header.
    #[error("x402Version is not the number that belongs to this header")]
    Version,
    /// A member is absent or has another form.
    #[error("{0} is missing or malformed")]
    Member(&'static str),
    /// A payload of another kind, or of two kinds at once.
    #[error(
        "only an EIP-3009 payload (signature and authorization) or, in version 2, a Permit2 one (permit2Authorization) is taken"
    )]
    Unsupported,
    /// A hash of a broadcast transfer that does not stand alone.
    #[error("a client-broadcast payment has one txHash, in its payload or at the top, and nothing beside it")]
    BroadcastPayload,
}

/// The offer that a version 2 buyer says it accepts.
#[derive(Clone, Debug, PartialEq)]
pub struct Accepted {
    /// `scheme`.
    pub scheme: String,
    /// `network`.
    pub network: String,
    /// `amount`, a decimal string.
    pub amount: String,
    /// `asset`, as sent.
    pub asset: String,
    /// `payTo`, as sent.
    pub pay_to: String,
    /// `maxTimeoutSeconds`.
    pub max_timeout_s: u64,
    /// `extra`, without members that are null.
    pub extra: Map<String, Value>,
    /// Members that the specification does not know.
    pub unknown: Map<String, Value>,
}

/// A well-formed payment. Its `Debug` shows no signature.
#[derive(Clone, PartialEq)]
pub struct Payment {
    /// The version of the header it came in.
    pub version: Version,
    /// The accepted offer; version 2 only.
    pub accepted: Option<Accepted>,
    /// The scheme: of the accepted offer, or at the top in version 1.
    pub scheme: String,
    /// The network as sent: CAIP-2 in version 2, a name in version 1.
    pub network: String,
    /// `resource.url`, when a version 2 buyer repeats it.
    pub resource_url: Option<String>,
    /// What the payer signed.
    pub authorization: Authorization,
    /// The signature as sent, of any length: contract wallets have other forms than 65 bytes.
    pub signature: Vec<u8>,
    // the members of the decoded header that are not null
    pub(super) document: Map<String, Value>,
}

/// Reads the value of the payment header of `version`, of the rail that we settle.
pub fn decode(version: Version, text: &str) -> Result<Payment, Malformed> {
    decode_presented(version, text).and_then(settled_by_us)
}

fn settled_by_us(presented: Presented) -> Result<Payment, Malformed> {
    match presented {
        Presented::Exact(payment) => Ok(payment),
        Presented::Broadcast(_) => Err(Malformed::Unsupported),
    }
}

/// The members of a header that are not null.
pub(super) fn read_document(text: &str) -> Result<Map<String, Value>, Malformed> {
    if text.len() > PAYMENT_HEADER_BYTES_MAX {
        return Err(Malformed::TooLong);
    }
    let bytes = codec::decode_base64(text).ok_or(Malformed::Base64)?;
    codec::decode_object(&bytes, PAYMENT_HEADER_DEPTH_MAX)
        .map_err(|fault| fault.map_or(Malformed::NotObject, Malformed::Json))
}

/// Identity of an EIP-3009 payment of either rail, in lower case: `<caip2>/eip3009/<asset>/<from>/<nonce>`.
pub fn auth_key(network: &Network, asset: &Address, from: &Address, nonce: &B256) -> String {
    format!("{network}/eip3009/{}/{}/{nonce:#x}", lower(asset), lower(from))
}

impl Payment {
    /// Reads a payment that did not come in a header but as a JSON object (MCP). The caller has bounded and parsed it.
    pub fn from_value(version: Version, value: Value) -> Result<Self, Malformed> {
        Presented::from_value(version, value).and_then(settled_by_us)
    }

    /// Identity of the payment ([`Authorization::key`]). Network and asset are ours, since a payment is matched to an offer before its
    /// identity matters.
    pub fn auth_key(&self, network: &Network, asset: &Address) -> String {
        self.authorization.key(network, asset)
    }

    /// SHA-256 over the canonical JSON of what was signed and of the signature: equal for every spelling of one payment.
    pub fn payload_sha256(&self) -> [u8; 32] {
        let value = self.authorization.identity(&self.normal_signature());
        sha256(canonical_json(&value).as_bytes())
    }

    /// The buyer's extensions; empty when there are none.
    pub fn extensions(&self) -> Option<&Map<String, Value>> {
        self.document.get("extensions").and_then(Value::as_object)
    }

    /// `payload` in one spelling: checksummed addresses, decimal strings, `v` as 27 or 28.
    pub(super) fn normal_payload(&self) -> Value {
        self.authorization.payload(&self.normal_signature())
    }

    fn normal_signature(&self) -> Vec<u8> {
        Signature::from_bytes(&self.signature).map_or_else(|_| self.signature.clone(), |s| s.to_bytes().to_vec())
    }
}

impl fmt::Debug for Payment {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Payment")
            .field("version", &self.version)
            .field("scheme", &self.scheme)
            .field("network", &self.network)
            .field("authorization", &self.authorization)
            .field("signature_bytes", &self.signature.len())
            .finish_non_exhaustive()
    }
}

/// What every payment of a version has, whatever it pays by.
pub(super) fn check_frame(version: Version, document: &Map<String, Value>) -> Result<(), Malformed> {
    if document.get("x402Version").and_then(Value::as_u64) != Some(version.number()) {
        return Err(Malformed::Version);
    }
    match document.get("extensions") {
        Some(extensions) if !extensions.is_object() => Err(Malformed::Member("extensions")),
        _ => Ok(()),
    }
}

pub(super) fn from_document(version: Version, document: Map<String, Value>) -> Result<Payment, Malformed> {
    check_frame(version, &document)?;
    let accepted = match version {
        Version::V1 => None,
        Version::V2 => Some(read_accepted(&document)?),
    };
    let (scheme, network) = match &accepted {
        Some(accepted) => (accepted.scheme.clone(), accepted.network.clone()),
        None => (text(&document, "scheme", "scheme")?, text(&document, "network", "network")?),
    };
    let (authorization, signature) = read_payload(version, document.get("payload"))?;
    let resource_url = read_resource_url(version, &document)?;
    Ok(Payment { version, accepted, scheme, network, resource_url, authorization, signature, document })
}

pub(super) fn read_accepted(document: &Map<String, Value>) -> Result<Accepted, Malformed> {
    let mut members = object(document.get("accepted"), "accepted")?;
    let amount = text(&members, "amount", "accepted.amount")?;
    parse_uint(&amount).map_err(|_| Malformed::Member("accepted.amount"))?;
    let timeout = members.get("maxTimeoutSeconds").and_then(Value::as_u64);
    let extra = members.get("extra").map_or_else(|| Ok(Map::new()), |extra| object(Some(extra), "accepted.extra"))?;
    let accepted = Accepted {
        scheme: text(&members, "scheme", "accepted.scheme")?,
        network: text(&members, "network", "accepted.network")?,
        amount,
        asset: text(&members, "asset", "accepted.asset")?,
        pay_to: text(&members, "payTo", "accepted.payTo")?,
        max_timeout_s: timeout.ok_or(Malformed::Member("accepted.maxTimeoutSeconds"))?,
        extra,
        unknown: Map::new(),
    };
    for known in ["scheme", "network", "amount", "asset", "payTo", "maxTimeoutSeconds", "extra"] {
        members.remove(known);
    }
    Ok(Accepted { unknown: members, ..accepted })
}

fn read_payload(version: Version, payload: Option<&Value>) -> Result<(Authorization, Vec<u8>), Malformed> {
    let members = object(payload, "payload")?;
    // a second kind beside the one that is read could be what a facilitator looks at
    let kinds: Vec<&str> = members.keys().map(String::as_str).filter(|key| *key != "signature").collect();
    let authorization = match (kinds.as_slice(), version) {
        // what is missing is named as it always was
        (["authorization"] | [], _) => Authorization::Eip3009(read_eip3009(members.get("authorization"))?),
        (["permit2Authorization"], Version::V2) => {
            Authorization::Permit2(Box::new(read_permit2(members.get("permit2Authorization"))?))
        }
        _ => return Err(Malformed::Unsupported),
    };
    let signature = text(&members, "signature", "payload.signature")?;
    let signature = read_hex(&signature).ok_or(Malformed::Member("payload.signature"))?;
    Ok((authorization, signature))
}

pub(super) fn read_resource_url(version: Version, document: &Map<String, Value>) -> Result<Option<String>, Malformed> {
    match (version, document.get("resource")) {
        (Version::V1, _) | (Version::V2, None) => Ok(None),
        (Version::V2, resource) => text(&object(resource, "resource")?, "url", "resource.url").map(Some),
    }
}

fn read_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.strip_prefix("0x").filter(|digits| digits.bytes().all(|b| b.is_ascii_hexdigit()))?;
    hex::decode(digits).ok()
}

pub(super) fn object(value: Option<&Value>, name: &'static str) -> Result<Map<String, Value>, Malformed> {
    let members = value.and_then(Value::as_object).ok_or(Malformed::Member(name))?;
    Ok(codec::without_nulls(members.clone()))
}

pub(super) fn text(members: &Map<String, Value>, key: &str, name: &'static str) -> Result<String, Malformed> {
    members.get(key).and_then(Value::as_str).map(str::to_owned).ok_or(Malformed::Member(name))
}

#[cfg(test)]
mod tests;

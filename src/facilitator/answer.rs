//! What a facilitator's answer means: pure functions over status and body.
//!
//! A wrong "no" costs a buyer: money that moved is denied and asked for again. So a settle is denied only by an answer
//! that leaves no other reading, and everything else is unknown.

use serde_json::{Map, Value};

use super::reason;
use crate::evm::{Address, Network, parse_address, parse_word};
use crate::limits::{FACILITATOR_JSON_DEPTH_MAX, FACILITATOR_KINDS_MAX, FOREIGN_TEXT_CHARS_MAX};
use crate::paywall::port::{FacilitatorRequest, Kind, Settlement, Unreachable, Verdict};
use crate::strict_json;

/// An answer as it arrived.
#[derive(Debug)]
pub(super) struct Answer {
    /// HTTP status.
    pub(super) status: u16,
    /// The body, whole.
    pub(super) body: Vec<u8>,
}

/// What our own request says about the payment: the answer may not say otherwise.
#[derive(Debug)]
pub(super) struct Asked {
    network: Option<Network>,
    payer: Option<Address>,
    /// What is to be moved, in atomic units.
    amount: Option<String>,
}

impl Asked {
    pub(super) fn of(request: &FacilitatorRequest) -> Self {
        let from = |kind| request.payment_payload.pointer(kind).and_then(Value::as_str);
        let payer = from("/payload/authorization/from").or_else(|| from("/payload/permit2Authorization/from"));
        let terms = &request.payment_requirements;
        let amount = terms.get("amount").or_else(|| terms.get("maxAmountRequired")).and_then(Value::as_str);
        Self {
            network: request.payment_requirements.get("network").and_then(Value::as_str).and_then(network),
            payer: payer.and_then(|text| parse_address(text).ok()),
            amount: amount.map(str::to_owned),
        }
    }
}

/// Reads the answer of `/verify`.
pub(super) fn read_verify(answer: &Answer) -> Result<Verdict, Unreachable> {
    let members = object(answer).map_err(Unreachable)?;
    let reason = text(&members, "invalidReason").unwrap_or_default();
    let invalid = |reason| Verdict::Invalid { reason: reason::code(reason).to_owned() };
    match members.get("isValid") {
        Some(Value::Bool(true)) if is_success(answer.status) => Ok(Verdict::Valid { payer: text(&members, "payer") }),
        // x402-rs says no with 400, 412 and 500; a code of its own failure is no verdict on the payment
        Some(Value::Bool(false)) if reason::is_verdict(&reason) => Ok(invalid(&reason)),
        Some(Value::Bool(false))
            if answer.status < 500
                && answer.status != 429
                && !reason.is_empty()
                && !reason::is_own_failure(&reason) =>
        {
            Ok(invalid(&reason))
        }
        _ => Err(Unreachable(format!("no verdict, HTTP {} {reason}", answer.status))),
    }
}

/// Reads the answer of `/settle`.
pub(super) fn read_settle(answer: &Answer, asked: &Asked) -> Settlement {
    let members = match object(answer) {
        Ok(members) => members,
        Err(reason) => return Settlement::Unknown { reason, transaction: None },
    };
    let reason = text(&members, "errorReason").unwrap_or_default();
    let transaction = transaction(&members);
    let unknown = |reason: String| Settlement::Unknown { reason, transaction: transaction.clone() };
    match members.get("success") {
        Some(Value::Bool(true)) => match contradiction(answer, &members, &reason, asked) {
            Some(why) => unknown(why),
            None => {
                Settlement::Settled { transaction: transaction.unwrap_or_default(), payer: text(&members, "payer") }
            }
        },
        Some(Value::Bool(false)) if reason::is_nonce_used(&reason) => Settlement::NonceUsed { reason, transaction },
        Some(Value::Bool(false)) if transaction.is_some() => unknown(reason),
        Some(Value::Bool(false))
            if reason::is_pre_broadcast(&reason) && answer.status < 500 && answer.status != 429 =>
        {
            Settlement::Denied { reason }
        }
        _ => unknown(format!("HTTP {} {reason}", answer.status)),
    }
}

/// Reads the answer of `/supported`. Entries that are no kinds are passed over.
pub(super) fn read_supported(answer: &Answer) -> Result<Vec<Kind>, Unreachable> {
    let members = object(answer).map_err(Unreachable)?;
    let kinds = members.get("kinds").and_then(Value::as_array).filter(|_| is_success(answer.status));
    let kinds = kinds.ok_or_else(|| Unreachable(format!("no kinds, HTTP {}", answer.status)))?;
    let kind = |entry: &Value| {
        Some(Kind {
            x402_version: entry.get("x402Version")?.as_u64()?,
            scheme: entry.get("scheme")?.as_str()?.to_owned(),
            network: entry.get("network")?.as_str()?.to_owned(),
        })
    };
    Ok(kinds.iter().take(FACILITATOR_KINDS_MAX).filter_map(kind).collect())
}

/// Printable ASCII, cut: fit for a log and for a row.
pub(super) fn clean(text: &str) -> String {
    text.chars().filter(|c| (' '..='~').contains(c)).take(FOREIGN_TEXT_CHARS_MAX).collect()
}

/// Why a `success:true` is not believed.
fn contradiction(answer: &Answer, members: &Map<String, Value>, reason: &str, asked: &Asked) -> Option<String> {
    if !is_success(answer.status) {
        return Some(format!("success with HTTP {}", answer.status));
    }
    if !reason.is_empty() {
        return Some(format!("success with a reason: {reason}"));
    }
    if members.get("transaction").and_then(Value::as_str).is_none_or(|tx| parse_word(tx).is_err()) {
        return Some("success without a transaction hash".to_owned());
    }
    let given = |key: &str| members.get(key).filter(|value| !value.is_null()).map(|value| value.as_str().unwrap_or(""));
    if given("network").is_some_and(|name| asked.network.is_none() || network(name) != asked.network) {
        return Some("success on another network".to_owned());
    }
    if given("payer").is_some_and(|payer| asked.payer.is_none() || parse_address(payer).ok() != asked.payer) {
        return Some("success for another payer".to_owned());
    }
    if given("amount").is_some_and(|amount| asked.amount.as_deref() != Some(amount)) {
        return Some("success with another amount".to_owned());
    }
    None
}

fn object(answer: &Answer) -> Result<Map<String, Value>, String> {
    if (300..400).contains(&answer.status) {
        return Err(format!("redirected, HTTP {}", answer.status));
    }
    match strict_json::parse(&answer.body, FACILITATOR_JSON_DEPTH_MAX) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(format!("no object, HTTP {}", answer.status)),
        Err(error) => Err(format!("{error}, HTTP {}", answer.status)),
    }
}

/// A transaction under any name that is in use; a value that is no text counts as one.
fn transaction(members: &Map<String, Value>) -> Option<String> {
    let named = ["transaction", "txHash", "transactionHash"].iter().filter_map(|key| members.get(*key));
    named
        .filter(|value| !value.is_null() && value.as_str() != Some(""))
        .map(|value| clean(&value.as_str().map_or_else(|| value.to_string(), str::to_owned)))
        .next()
}

fn text(members: &Map<String, Value>, key: &str) -> Option<String> {
    members.get(key).and_then(Value::as_str).map(clean)
}

/// A network under either of its names.
fn network(name: &str) -> Option<Network> {
    name.parse().ok().or_else(|| Network::from_v1_name(name))
}

fn is_success(status: u16) -> bool {
    (200..300).contains(&status)
}

#[cfg(test)]
mod tests;

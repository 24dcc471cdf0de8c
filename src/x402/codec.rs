//! Base64 and JSON of payment headers: one spelling in, one spelling out.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

use crate::strict_json;

/// The standard alphabet with padding, on one line.
pub(super) fn encode(value: &Value) -> String {
    STANDARD.encode(value.to_string())
}

/// The bytes behind base64 text. Only the standard alphabet with padding and zero trailing bits is read: white space,
/// the URL-safe alphabet and missing padding are refused.
pub(super) fn decode_base64(text: &str) -> Option<Vec<u8>> {
    STANDARD.decode(text).ok()
}

/// A JSON object read strictly, without the members that are `null`: some clients write `null` for what is absent.
pub(super) fn decode_object(bytes: &[u8], depth_max: usize) -> Result<Map<String, Value>, Option<strict_json::Error>> {
    match strict_json::parse(bytes, depth_max).map_err(Some)? {
        Value::Object(members) => Ok(without_nulls(members)),
        _ => Err(None),
    }
}

/// The members of an object that are not `null`. One level only: what is nested may mean its nulls.
pub(super) fn without_nulls(members: Map<String, Value>) -> Map<String, Value> {
    members.into_iter().filter(|(_, value)| !value.is_null()).collect()
}

/// Foreign text made fit for a log or an error: printable ASCII, cut.
pub(super) fn printable(text: &str, len_max: usize) -> String {
    text.chars().filter(|c| (' '..='~').contains(c)).take(len_max).collect()
}

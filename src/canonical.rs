//! Canonical JSON (RFC 8785 over the values that JSON text can carry) and SHA-256 addresses of it.
//!
//! Keys stand in UTF-16 order and every number is written as JavaScript writes a double, so that any
//! JCS library computes the same bytes. What comes from strangers is read by [`Tape`], as JavaScript reads it; what we
//! produce is a [`Value`] or a type of our own, which can hold neither a lone surrogate nor an infinity.

mod tape;
mod text;

use serde_json::Value;
use sha2::{Digest, Sha256};

pub use tape::{NotJson, Scratch, Tape, View};
pub use text::Text;

/// The canonical text of a JSON value.
pub fn canonical_json(value: &Value) -> String {
    let mut out = Vec::new();
    write_value(value, &mut out);
    String::from_utf8(out).expect("text made of UTF-8 strings and ASCII is UTF-8")
}

/// Lower-case hex of the SHA-256 of `bytes`.
pub fn sha256_hex(bytes: &[u8]) -> String {
    hex(&sha256(bytes))
}

/// The SHA-256 of `bytes`.
pub fn sha256(bytes: &[u8]) -> [u8; 32] {
    Sha256::digest(bytes).into()
}

/// The address of a JSON value: hex SHA-256 of its canonical text.
pub fn address(value: &Value) -> String {
    sha256_hex(canonical_json(value).as_bytes())
}

/// Lower-case hex of bytes.
pub fn hex(bytes: &[u8]) -> String {
    // by table: a formatter costs a microsecond for a digest, and every request has one
    const DIGITS: &[u8; 16] = b"0123456789abcdef";
    let mut digits = Vec::with_capacity(bytes.len() * 2);
    for byte in bytes {
        digits.extend([DIGITS[usize::from(byte >> 4)], DIGITS[usize::from(byte & 15)]]);
    }
    String::from_utf8(digits).expect("hex digits are ASCII")
}

/// Bytes at the start of a string that stand for themselves: no quote, no backslash, no control character. Eight at a time.
pub(crate) fn plain_len(bytes: &[u8]) -> usize {
    const ONES: u64 = u64::from_ne_bytes([1; 8]);
    const TOPS: u64 = u64::from_ne_bytes([0x80; 8]);
    let below = |word: u64, bound: u64| word.wrapping_sub(ONES * bound) & !word & TOPS;
    let mut at = 0;
    while let Some(eight) = bytes.get(at..at + 8).and_then(|eight| <[u8; 8]>::try_from(eight).ok()) {
        let word = u64::from_le_bytes(eight);
        let special =
            below(word, 0x20) | below(word ^ (ONES * u64::from(b'"')), 1) | below(word ^ (ONES * u64::from(b'\\')), 1);
        if special != 0 {
            // a borrow can only mark bytes above one that is special itself
            return at + special.trailing_zeros() as usize / 8;
        }
        at += 8;
    }
    let rest = &bytes[at.min(bytes.len())..];
    at + rest.iter().position(|byte| *byte < 0x20 || matches!(byte, b'"' | b'\\')).unwrap_or(rest.len())
}

fn write_value(value: &Value, out: &mut Vec<u8>) {
    match value {
        Value::Null => out.extend_from_slice(b"null"),
        Value::Bool(b) => out.extend_from_slice(if *b { b"true" } else { b"false" }),
        Value::Number(n) => write_number(n.as_f64().unwrap_or(f64::NAN), out),
        Value::String(s) => write_string(s.as_bytes(), out),
        Value::Array(items) => {
            out.push(b'[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_value(item, out);
            }
            out.push(b']');
        }
        Value::Object(map) => {
            let mut entries: Vec<_> = map.iter().collect();
            entries.sort_by(|a, b| a.0.encode_utf16().cmp(b.0.encode_utf16()));
            out.push(b'{');
            for (i, (key, item)) in entries.into_iter().enumerate() {
                if i > 0 {
                    out.push(b',');
                }
                write_string(key.as_bytes(), out);
                out.push(b':');
                write_value(item, out);
            }
            out.push(b'}');
        }
    }
}

fn write_number(number: f64, out: &mut Vec<u8>) {
    if number.is_finite() {
        out.extend_from_slice(ryu_js::Buffer::new().format_finite(number).as_bytes());
    } else {
        out.extend_from_slice(b"null");
    }
}

/// Writes a string with its quotes. The text is UTF-8 in which lone surrogates may stand as three bytes each; those are escaped.
fn write_string(text: &[u8], out: &mut Vec<u8>) {
    const HEX: &[u8; 16] = b"0123456789abcdef";
    out.push(b'"');
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        let short = match byte {
            b'"' | b'\\' => byte,
            0x8 => b'b',
            0x9 => b't',
            0xa => b'n',
            0xc => b'f',
            0xd => b'r',
            0..0x20 => {
                out.extend_from_slice(b"\\u00");
                out.extend([HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]]);
                at += 1;
                continue;
            }
            0xed if text.get(at + 1).is_some_and(|second| *second >= 0xa0) => {
                let (second, third) = (text[at + 1], text.get(at + 2).copied().unwrap_or(0x80));
                let digits = [second >> 2 & 15, (second & 3) << 2 | third >> 4 & 3, third & 15];
                out.extend_from_slice(b"\\ud");
                out.extend(digits.map(|digit| HEX[usize::from(digit)]));
                at += 3;
                continue;
            }
            other => {
                out.push(other);
                at += 1;
                continue;
            }
        };
        out.extend([b'\\', short]);
        at += 1;
    }
    out.push(b'"');
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    #[test]
    fn numbers_are_written_as_javascript_writes_them() {
        for (text, want) in [
            ("-0", "0"),
            ("1e20", "100000000000000000000"),
            ("1e21", "1e+21"),
            ("1e-7", "1e-7"),
            ("5.0", "5"),
            ("9007199254740993", "9007199254740992"),
            ("18446744073709551615", "18446744073709552000"),
        ] {
            let value: Value = serde_json::from_str(text).expect("a number");
            assert_eq!(canonical_json(&value), want, "{text}");
        }
    }

    #[test]
    fn keys_stand_in_utf16_order() {
        let value = json!({"\u{e000}": 1, "\u{10000}": 2, "a": 3, "\u{7}": "\u{7f}\u{2028}"});
        assert_eq!(canonical_json(&value), "{\"\\u0007\":\"\u{7f}\u{2028}\",\"a\":3,\"\u{10000}\":2,\"\u{e000}\":1}");
    }

    #[test]
    fn plain_bytes_are_counted_up_to_the_first_that_is_not() {
        for special in 0..=255u8 {
            for at in 0..20 {
                let mut bytes = vec![b'a'; 20];
                bytes[at] = special;
                bytes[19] = b'"';
                let is_plain = special >= 0x20 && special != b'"' && special != b'\\';
                assert_eq!(plain_len(&bytes), if is_plain { 19 } else { at }, "{special} at {at}");
            }
        }
        assert_eq!(plain_len("é\u{1f600}\u{7f}".as_bytes()), 7);
        assert_eq!(plain_len(b""), 0);
    }

    /// Any JSON that has one meaning.
    pub(crate) fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<f64>().prop_filter("finite", |f| f.is_finite()).prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<String>().prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 32, 6, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                prop::collection::btree_map(any::<String>(), inner, 0..6)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn an_independent_implementation_writes_the_same_bytes(value in any_json()) {
            prop_assert_eq!(canonical_json(&value).into_bytes(), serde_json_canonicalizer::to_vec(&value).expect("canonical"));
        }
    }
}

//! JSON text read strictly: one value, no member twice, bounded nesting.
//!
//! Two readers of one text must never see two values. Most parsers keep the last of two equal keys and some the first,
//! so a text with a duplicate is refused (RFC 8259 section 4 calls its meaning unpredictable).

use std::cell::Cell;
use std::fmt;

use serde::de::{self, DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

/// Why a text was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// Not one JSON value in UTF-8, or something stands after it.
    #[error("not JSON")]
    NotJson,
    /// A member stands twice in one object.
    #[error("a member stands twice in one object")]
    DuplicateKey,
    /// Nested deeper than allowed.
    #[error("nested too deep")]
    TooDeep,
}

/// Reads one JSON value from UTF-8 text. `depth_max` counts objects and arrays within each other; a bare scalar has 0.
pub fn parse(bytes: &[u8], depth_max: usize) -> Result<Value, Error> {
    let fault = Cell::new(Error::NotJson);
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Strict { left: depth_max, fault: &fault }.deserialize(&mut reader).map_err(|_| fault.get())?;
    reader.end().map_err(|_| Error::NotJson)?;
    Ok(value)
}

#[derive(Clone, Copy)]
struct Strict<'a> {
    left: usize,
    // serde's errors are text; the kind is kept here
    fault: &'a Cell<Error>,
}

impl Strict<'_> {
    fn fail<E: de::Error>(self, fault: Error) -> E {
        self.fault.set(fault);
        E::custom(fault)
    }

    fn inner<E: de::Error>(self) -> Result<Self, E> {
        let left = self.left.checked_sub(1).ok_or_else(|| self.fail(Error::TooDeep))?;
        Ok(Self { left, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Strict<'_> {
    type Value = Value;

    fn deserialize<D: de::Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Strict<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, v: bool) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_u64<E>(self, v: u64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_i64<E>(self, v: i64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_f64<E>(self, v: f64) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_str<E>(self, v: &str) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_string<E>(self, v: String) -> Result<Value, E> {
        Ok(v.into())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut items = Vec::new();
        while let Some(item) = seq.next_element_seed(inner)? {
            items.push(item);
        }
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let inner = self.inner()?;
        let mut members = Map::new();
        while let Some(key) = map.next_key::<String>()? {
            if members.contains_key(&key) {
                return Err(self.fail(Error::DuplicateKey));
            }
            let value = map.next_value_seed(inner)?;
            members.insert(key, value);
        }
        Ok(Value::Object(members))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_duplicate_is_refused_at_every_depth() {
        for depth in 0..12 {
            let wrap = |inner: &str| format!("{}{inner}{}", r#"{"a":["#.repeat(depth), "]}".repeat(depth));
            assert!(parse(wrap(r#"{"k":1,"l":1}"#).as_bytes(), 40).is_ok());
            for twice in [r#"{"k":1,"k":1}"#, r#"{"k":1,"\u006b":2}"#, r#"{"k":null,"l":0,"k":null}"#] {
                assert_eq!(parse(wrap(twice).as_bytes(), 40), Err(Error::DuplicateKey), "{depth} {twice}");
            }
        }
    }

    #[test]
    fn depth_is_bounded_exactly() {
        assert!(parse(b"[[[]]]", 3).is_ok());
        assert_eq!(parse(b"[[[]]]", 2), Err(Error::TooDeep));
        assert_eq!(parse(br#"{"a":{}}"#, 1), Err(Error::TooDeep));
        assert!(parse(b"1", 0).is_ok());
        assert!(parse("[".repeat(100_000).as_bytes(), 16).is_err());
    }

    #[test]
    fn only_one_value_in_utf8_is_json() {
        for bad in ["", " ", "{} {}", "{},", "{'a':1}", "{\"a\":01}", "NaN", "1e400", "\u{feff}{}", "\"\\ud800\""] {
            assert_eq!(parse(bad.as_bytes(), 8), Err(Error::NotJson), "{bad:?}");
        }
        assert_eq!(parse(b"\"\xff\"", 8), Err(Error::NotJson));
    }

    proptest! {
        #[test]
        fn what_is_accepted_is_what_the_plain_parser_reads(bytes in prop::collection::vec(any::<u8>(), 0..64)) {
            if let Ok(value) = parse(&bytes, 16) {
                prop_assert_eq!(value, serde_json::from_slice::<Value>(&bytes).expect("plain JSON"));
            }
        }
    }
}

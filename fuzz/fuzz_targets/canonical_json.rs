//! Whatever JSON text comes in: its canonical text reads back as itself, and another implementation writes the same.

#![no_main]

use jim::canonical::{address, canonical_json, sha256_hex};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

fuzz_target!(|text: &[u8]| {
    let Ok(value) = serde_json::from_slice::<Value>(text) else { return };
    let canonical = canonical_json(&value);
    let again: Value = serde_json::from_str(&canonical).expect("canonical text is JSON");
    assert_eq!(canonical_json(&again), canonical, "a fixed point");
    assert_eq!(address(&value), sha256_hex(canonical.as_bytes()));
    let other = serde_json_canonicalizer::to_vec(&value).expect("a value has a canonical text");
    assert_eq!(canonical.as_bytes(), other, "the same bytes as an independent implementation");
});

//! The evidence protocol against vectors of its reference implementation, and against bundles that somebody changed.

mod addressing;
mod bundles;
mod chains;
mod command;
mod jcs;
mod orders;
mod tamper;

use std::path::Path;

use ed25519_dalek::SigningKey;
use jim::proof::key::{Keys, Sign, key_id};
use serde_json::Value;

/// One file of vectors.
fn vectors(name: &str) -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/conformance/app").join(name);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    // plain numbers are enough: texts that need more stand in strings
    serde_json::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The cases of a list in a file of vectors.
fn cases(file: &Value, list: &str) -> Vec<Value> {
    let cases = file[list].as_array().unwrap_or_else(|| panic!("a list {list}")).clone();
    assert!(!cases.is_empty(), "{list}");
    cases
}

fn text<'a>(case: &'a Value, member: &str) -> &'a str {
    case[member].as_str().unwrap_or_else(|| panic!("{member} in {case}"))
}

/// The public key of a name in the vectors.
fn public(name: &str) -> Keys {
    let constants = vectors("constants.json");
    let mut keys = Keys::default();
    let key = &constants["keys"][name];
    assert_eq!(keys.add_pem(text(key, "public_pem_spki")), Ok(text(key, "keyId")));
    keys
}

/// A test key that signs.
struct TestKey {
    key: SigningKey,
    id: String,
}

impl TestKey {
    fn new(seed: u8) -> Self {
        let key = SigningKey::from_bytes(&[seed; 32]);
        Self { id: key_id(&key.verifying_key()), key }
    }

    fn held(&self) -> Keys {
        let mut keys = Keys::default();
        keys.add(self.key.verifying_key());
        keys
    }
}

impl Sign for TestKey {
    fn key_id(&self) -> &str {
        &self.id
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        ed25519_dalek::Signer::sign(&self.key, message).to_bytes()
    }
}

//! Keys of checkpoints, section 4: Ed25519, named by a short digest of their PEM text.
//!
//! A key id has 64 bits. It is a name and no identity: whoever verifies holds the whole public key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePublicKey, EncodePublicKey};
use ed25519_dalek::{Signature, VerifyingKey};

use crate::canonical;

/// Signs checkpoints. The key stays with its host.
pub trait Sign {
    /// The id of the key, as [`key_id`] makes it.
    fn key_id(&self) -> &str;

    /// The Ed25519 signature of a message.
    fn sign(&self, message: &[u8]) -> [u8; 64];
}

/// The text is no Ed25519 public key in SPKI PEM.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no Ed25519 public key in SPKI PEM form")]
pub struct NotAKey;

/// The public keys that a verifier holds.
#[derive(Clone, Debug, Default)]
pub struct Keys {
    held: Vec<(String, VerifyingKey)>,
}

/// The id of a public key: the first 16 hex digits of the SHA-256 of its SPKI PEM text, line feeds included.
pub fn key_id(key: &VerifyingKey) -> String {
    let pem = key.to_public_key_pem(LineEnding::LF).expect("a public key has a PEM form");
    let mut id = canonical::sha256_hex(pem.as_bytes());
    id.truncate(16);
    id
}

/// A signature as it stands in a checkpoint: standard base64 with padding.
pub fn encode_signature(signature: &[u8; 64]) -> String {
    STANDARD.encode(signature)
}

impl Keys {
    /// Holds one more key, in SPKI PEM; returns its id.
    pub fn add_pem(&mut self, pem: &str) -> Result<&str, NotAKey> {
        let key = VerifyingKey::from_public_key_pem(pem.trim()).map_err(|_| NotAKey)?;
        Ok(self.add(key))
    }

    /// Holds one more key; returns its id.
    pub fn add(&mut self, key: VerifyingKey) -> &str {
        self.held.push((key_id(&key), key));
        &self.held[self.held.len() - 1].0
    }

    /// Whether no key is held.
    pub fn is_empty(&self) -> bool {
        self.held.is_empty()
    }

    /// Whether a key of this id is held.
    pub fn holds(&self, id: &str) -> bool {
        self.held.iter().any(|(held, _)| held == id)
    }

    /// Whether the signature is the named key's over the message; `None` when no such key is held. Base64 is read strictly: one
    /// spelling of a signature, 88 characters.
    pub fn check(&self, id: &str, message: &[u8], signature: &str) -> Option<bool> {
        if !self.holds(id) {
            return None;
        }
        let bytes = STANDARD.decode(signature).ok().and_then(|bytes| Signature::from_slice(&bytes).ok());
        let mut named = self.held.iter().filter(|(held, _)| held == id);
        // two keys of one id: either may have signed
        Some(bytes.is_some_and(|signature| named.any(|(_, key)| key.verify_strict(message, &signature).is_ok())))
    }
}

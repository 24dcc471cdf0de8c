//! The host-held Ed25519 key of the workspace: signs the refusal contract, refusal receipts and checkpoints of evidence.
//!
//! The key lives in the keys folder, outside the database, readable by its owner alone.

use std::fs;
use std::io::Write;
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::pkcs8::spki::der::pem::LineEnding;
use ed25519_dalek::pkcs8::{DecodePrivateKey, EncodePrivateKey, EncodePublicKey};
use ed25519_dalek::{Signer as _, SigningKey};
use serde_json::{Value, json};

use crate::canonical;
use crate::evm::parse_word;
use crate::proof;

/// Signs canonical JSON.
pub struct Signer {
    path: PathBuf,
    key: SigningKey,
    key_id: String,
    proof_key_id: String,
    public_key: String,
}

/// The key cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The file or its folder cannot be read or made.
    #[error("key file {path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Others may read it.
    #[error("key file {path} can be read by others (mode {mode:o}); run: chmod 600 {path}")]
    Exposed {
        /// The file.
        path: PathBuf,
        /// Its mode bits.
        mode: u32,
    },
    /// It is no Ed25519 key in PKCS#8 PEM.
    #[error("key file {0} holds no Ed25519 private key in PKCS#8 PEM form")]
    NotAKey(PathBuf),
    /// It is not 64 hex digits.
    #[error("key file {0} does not hold 64 hex digits")]
    NotHex(PathBuf),
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Signer").field("key_id", &self.key_id).finish_non_exhaustive()
    }
}

impl Signer {
    /// Loads `workspace.pem` from the folder, or makes folder and key on first use.
    pub fn load_or_create(folder: &Path) -> Result<Self, Error> {
        let path = folder.join("workspace.pem");
        match read_secret(&path) {
            Ok(text) => Self::from_pem(&path, &text).ok_or(Error::NotAKey(path)),
            Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
                let mut seed = [0u8; 32];
                getrandom::fill(&mut seed)
                    .map_err(|e| Error::Io { path: path.clone(), source: std::io::Error::other(e.to_string()) })?;
                let key = SigningKey::from_bytes(&seed);
                let pem = key.to_pkcs8_pem(LineEnding::LF).map_err(|_| Error::NotAKey(path.clone()))?;
                write_secret(&path, pem.as_bytes())?;
                // what counts is what is on disk: two processes may have raced for the file
                Self::from_pem(&path, &read_secret(&path)?).ok_or(Error::NotAKey(path))
            }
            Err(error) => Err(error),
        }
    }

    fn from_pem(path: &Path, text: &str) -> Option<Self> {
        let key = SigningKey::from_pkcs8_pem(text).ok()?;
        let public_key = key.verifying_key().to_public_key_pem(LineEnding::LF).ok()?;
        let key_id = canonical::sha256_hex(key.verifying_key().as_bytes())[..16].to_owned();
        let proof_key_id = proof::key::key_id(&key.verifying_key());
        Some(Self { path: path.to_owned(), key, key_id, proof_key_id, public_key })
    }

    /// True while the file still holds this key and nobody else may read it: a key that was swapped or exposed under a
    /// running service must not pass unseen.
    pub fn is_intact(&self) -> bool {
        let stored = read_secret(&self.path).ok().and_then(|text| Self::from_pem(&self.path, &text));
        stored.is_some_and(|stored| stored.public_key == self.public_key)
    }

    /// First 16 hex digits of the SHA-256 of the raw public key: a name, not an identity.
    pub fn key_id(&self) -> &str {
        &self.key_id
    }

    /// The public key as SPKI PEM.
    pub fn public_key(&self) -> &str {
        &self.public_key
    }

    /// Base64 of the signature over the canonical JSON of a value.
    pub fn sign(&self, payload: &Value) -> String {
        STANDARD.encode(self.key.sign(canonical::canonical_json(payload).as_bytes()).to_bytes())
    }

    /// A signed statement: `{payload, key_id, signature}`.
    pub fn receipt(&self, payload: Value) -> Value {
        let signature = self.sign(&payload);
        json!({"payload": payload, "key_id": self.key_id, "signature": signature})
    }
}

#[expect(clippy::misnamed_getters, reason = "the protocol names keys by their PEM text: another name of the same key")]
impl proof::key::Sign for Signer {
    fn key_id(&self) -> &str {
        &self.proof_key_id
    }

    fn sign(&self, message: &[u8]) -> [u8; 64] {
        self.key.sign(message).to_bytes()
    }
}

/// Reads a file that nobody else may read.
pub fn read_secret(path: &Path) -> Result<String, Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let mode = fs::metadata(path).map_err(io)?.permissions().mode() & 0o777;
    if mode & 0o077 != 0 {
        return Err(Error::Exposed { path: path.to_owned(), mode });
    }
    fs::read_to_string(path).map_err(io)
}

/// 32 secret bytes as 64 hex digits in a file of the keys folder; made on first use.
pub fn load_or_create_bytes(path: &Path) -> Result<[u8; 32], Error> {
    let text = match read_secret(path) {
        Err(Error::Io { source, .. }) if source.kind() == std::io::ErrorKind::NotFound => {
            let mut bytes = [0u8; 32];
            getrandom::fill(&mut bytes)
                .map_err(|e| Error::Io { path: path.to_owned(), source: std::io::Error::other(e.to_string()) })?;
            write_secret(path, canonical::hex(&bytes).as_bytes())?;
            // what counts is what is on disk: two processes may have raced for the file
            read_secret(path)?
        }
        read => read?,
    };
    parse_word(&format!("0x{}", text.trim())).map(Into::into).map_err(|_| Error::NotHex(path.to_owned()))
}

/// Writes a file with mode 0600 in a folder with mode 0700, whole or not at all. An existing file stays.
pub fn write_secret(path: &Path, content: &[u8]) -> Result<(), Error> {
    let io = |source| Error::Io { path: path.to_owned(), source };
    let folder = path.parent().unwrap_or(Path::new("."));
    if !folder.exists() {
        fs::create_dir_all(folder).map_err(io)?;
        fs::set_permissions(folder, fs::Permissions::from_mode(0o700)).map_err(io)?;
    }
    let draft = path.with_extension(format!("new-{}", std::process::id()));
    let mut file =
        fs::OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft).map_err(io)?;
    file.write_all(content).and_then(|()| file.sync_all()).map_err(io)?;
    // a hard link fails when the name exists: the first writer wins
    let linked = fs::hard_link(&draft, path);
    fs::remove_file(&draft).map_err(io)?;
    match linked {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        other => other.map_err(io),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ed25519_dalek::pkcs8::DecodePublicKey;
    use ed25519_dalek::{Signature, Verifier, VerifyingKey};

    #[test]
    fn a_key_is_made_once_kept_private_and_signs_what_a_stranger_can_check() {
        let folder = tempfile::tempdir().expect("a folder");
        let keys = folder.path().join("keys");
        let first = Signer::load_or_create(&keys).expect("a key");
        let again = Signer::load_or_create(&keys).expect("the same key");
        assert_eq!(first.public_key(), again.public_key());
        assert!(first.is_intact());
        let mode = fs::metadata(keys.join("workspace.pem")).expect("the file").permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        let receipt = first.receipt(json!({"b": 1, "a": "x"}));
        let key = VerifyingKey::from_public_key_pem(again.public_key()).expect("a public key");
        let bytes = STANDARD.decode(receipt["signature"].as_str().expect("text")).expect("base64");
        let signature = Signature::from_slice(&bytes).expect("64 bytes");
        key.verify(br#"{"a":"x","b":1}"#, &signature).expect("a good signature");
        assert!(key.verify(br#"{"a":"x","b":2}"#, &signature).is_err());
    }

    #[test]
    fn checkpoints_are_signed_under_the_name_that_a_verifier_derives() {
        let folder = tempfile::tempdir().expect("a folder");
        let signer = Signer::load_or_create(folder.path()).expect("a key");
        let mut keys = proof::key::Keys::default();
        let id = keys.add_pem(signer.public_key()).expect("a public key").to_owned();
        assert_eq!(proof::key::Sign::key_id(&signer), id);
        let signature = proof::key::encode_signature(&proof::key::Sign::sign(&signer, b"head"));
        assert_eq!(keys.check(&id, b"head", &signature), Some(true));
        assert_eq!(keys.check(&id, b"tail", &signature), Some(false));
    }

    #[test]
    fn a_key_that_others_may_read_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Signer::load_or_create(folder.path()).expect("a key");
        let path = folder.path().join("workspace.pem");
        fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("mode");
        assert!(matches!(Signer::load_or_create(folder.path()), Err(Error::Exposed { mode: 0o640, .. })));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600)).expect("mode");
        fs::write(&path, "no key").expect("written");
        assert!(matches!(Signer::load_or_create(folder.path()), Err(Error::NotAKey(_))));
        assert!(!first.is_intact());
    }

    #[test]
    fn secret_bytes_are_made_once_and_kept_private() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("keys/offer.key");
        let first = load_or_create_bytes(&path).expect("a secret");
        assert_eq!(load_or_create_bytes(&path).expect("the same secret"), first);
        assert_eq!(fs::read_to_string(&path).expect("the file"), canonical::hex(&first));
        assert_eq!(fs::metadata(&path).expect("the file").permissions().mode() & 0o777, 0o600);
        let another = load_or_create_bytes(&folder.path().join("other.key")).expect("a secret");
        assert_ne!(another, first);
        fs::write(&path, format!("{}\n", "0".repeat(63))).expect("written");
        assert!(matches!(load_or_create_bytes(&path), Err(Error::NotHex(_))));
        fs::set_permissions(&path, fs::Permissions::from_mode(0o604)).expect("mode");
        assert!(matches!(load_or_create_bytes(&path), Err(Error::Exposed { mode: 0o604, .. })));
    }
}

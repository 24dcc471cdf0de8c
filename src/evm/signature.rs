//! Signatures of externally owned accounts: 65 bytes over secp256k1, read strictly and recovered to an address.
//!
//! Of the two signatures that are valid for one message only the low-s one is accepted (EIP-2), so that a payment cannot
//! be spelled anew by a stranger. What it must not do: judge contract wallets; those have no key to recover.

use std::fmt;
use std::sync::LazyLock;

use alloy_primitives::keccak256;
use secp256k1::ecdsa::{RecoverableSignature, RecoveryId};
use secp256k1::{Message, PublicKey, Secp256k1, SignOnly, VerifyOnly};

use super::{Address, B256, decode_hex};

/// Half of the order of the curve: the greatest `s` of a canonical signature.
const HALF_ORDER: [u8; 32] = [
    0x7f, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x5d, 0x57, 0x6e,
    0x73, 0x57, 0xa4, 0x50, 0x1d, 0xdf, 0xe9, 0x2f, 0x46, 0x68, 0x1b, 0x20, 0xa0,
];

// one context a process and use: making one costs more than a signature
static VERIFY: LazyLock<Secp256k1<VerifyOnly>> = LazyLock::new(Secp256k1::verification_only);
static SIGN: LazyLock<Secp256k1<SignOnly>> = LazyLock::new(Secp256k1::signing_only);

/// Why bytes are not a signature, or not that of the payer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignatureError {
    /// Not 65 bytes long.
    #[error("a signature of {0} bytes, not 65")]
    Length(usize),
    /// The last byte is none of 0, 1, 27 and 28.
    #[error("recovery byte {0} is none of 0, 1, 27, 28")]
    RecoveryByte(u8),
    /// `r` or `s` is zero or not below the order of the curve.
    #[error("r or s out of range")]
    OutOfRange,
    /// `s` is in the upper half: the twin of a canonical signature.
    #[error("s is in the upper half of the order")]
    HighS,
    /// No public key belongs to it.
    #[error("no key can be recovered")]
    Unrecoverable,
    /// It was made by another key than that of the payer.
    #[error("signed by {0}, not by the payer")]
    OtherSigner(Address),
}

/// Bytes that are no secret key.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a secret key: 32 bytes (64 hex digits) between 1 and the order of the curve are needed")]
pub struct KeyError;

/// A canonical signature: `r`, low `s`, and a recovery byte of 27 or 28.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Signature([u8; 65]);

/// The secret key of a payer or payee. Its `Debug` shows the address only.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey(secp256k1::SecretKey);

impl Signature {
    /// Reads 65 bytes: `r`, `s`, `v`. The recovery byte may be 0 or 1 and is then written as 27 or 28.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, SignatureError> {
        let mut raw: [u8; 65] = bytes.try_into().map_err(|_| SignatureError::Length(bytes.len()))?;
        raw[64] = match raw[64] {
            v @ (0 | 1) => v + 27,
            v @ (27 | 28) => v,
            v => return Err(SignatureError::RecoveryByte(v)),
        };
        if raw[..32] == [0; 32] || raw[32..64] == [0; 32] {
            return Err(SignatureError::OutOfRange);
        }
        let signature = Self(raw);
        signature.recoverable()?;
        if raw[32..64] > HALF_ORDER[..] {
            return Err(SignatureError::HighS);
        }
        Ok(signature)
    }

    /// `r`, `s`, and 27 or 28.
    pub fn to_bytes(self) -> [u8; 65] {
        self.0
    }

    /// The address whose key signed `digest`.
    pub fn recover(&self, digest: &B256) -> Result<Address, SignatureError> {
        let message = Message::from_digest(digest.0);
        let key = VERIFY.recover_ecdsa(message, &self.recoverable()?).map_err(|_| SignatureError::Unrecoverable)?;
        Ok(address_of(&key))
    }

    /// Checks that `signer` signed `digest`.
    pub fn verify(&self, digest: &B256, signer: &Address) -> Result<(), SignatureError> {
        let recovered = self.recover(digest)?;
        if recovered == *signer { Ok(()) } else { Err(SignatureError::OtherSigner(recovered)) }
    }

    fn recoverable(&self) -> Result<RecoverableSignature, SignatureError> {
        let v = self.0[64];
        let id = RecoveryId::try_from(i32::from(v) - 27).map_err(|_| SignatureError::RecoveryByte(v))?;
        RecoverableSignature::from_compact(&self.0[..64], id).map_err(|_| SignatureError::OutOfRange)
    }
}

impl fmt::Debug for Signature {
    /// Not the bytes: signatures stay out of logs.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Signature(65 bytes)")
    }
}

impl SecretKey {
    /// The key that 32 bytes are. Random bytes make a key but for a chance of 2^-128.
    pub fn from_bytes(bytes: [u8; 32]) -> Result<Self, KeyError> {
        secp256k1::SecretKey::from_byte_array(bytes).map(Self).map_err(|_| KeyError)
    }

    /// Reads 64 hex digits, with or without `0x`.
    pub fn from_hex(text: &str) -> Result<Self, KeyError> {
        let digits = text.strip_prefix("0x").unwrap_or(text);
        decode_hex::<32>(digits).ok_or(KeyError).and_then(Self::from_bytes)
    }

    /// The address that belongs to the key.
    pub fn address(&self) -> Address {
        address_of(&PublicKey::from_secret_key(&SIGN, &self.0))
    }

    /// Signs a digest (RFC 6979: the same digest gives the same, canonical, signature).
    pub fn sign(&self, digest: &B256) -> Signature {
        let (id, compact) = SIGN.sign_ecdsa_recoverable(Message::from_digest(digest.0), &self.0).serialize_compact();
        let mut raw = [0; 65];
        raw[..64].copy_from_slice(&compact);
        // the library's signatures are low-s, and an id above 1 needs an r that no hash is known to give
        raw[64] = if matches!(id, RecoveryId::One | RecoveryId::Three) { 28 } else { 27 };
        Signature(raw)
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SecretKey of {}", self.address())
    }
}

fn address_of(key: &PublicKey) -> Address {
    // the leading byte of the uncompressed form is a tag
    Address::from_slice(&keccak256(&key.serialize_uncompressed()[1..])[12..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::evm::parse_address;
    use proptest::prelude::*;

    /// Public test key of a development chain. It holds nothing.
    const TEST_KEY: &str = "0x59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d";
    const ORDER: [u8; 32] = [
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe, 0xba, 0xae,
        0xdc, 0xe6, 0xaf, 0x48, 0xa0, 0x3b, 0xbf, 0xd2, 0x5e, 0x8c, 0xd0, 0x36, 0x41, 0x41,
    ];

    fn key() -> SecretKey {
        SecretKey::from_hex(TEST_KEY).expect("a test key")
    }

    /// The other signature that the curve accepts for the same message.
    fn twin(signature: Signature) -> [u8; 65] {
        let mut raw = signature.to_bytes();
        let mut borrow = 0i16;
        for i in (0..32).rev() {
            let mut d = i16::from(ORDER[i]) - i16::from(raw[32 + i]) - borrow;
            borrow = i16::from(d < 0);
            if d < 0 {
                d += 256;
            }
            raw[32 + i] = u8::try_from(d).expect("a byte");
        }
        raw[64] = 55 - raw[64];
        raw
    }

    #[test]
    fn a_known_key_has_its_known_address() {
        assert_eq!(Ok(key().address()), parse_address("0x70997970C51812dc3A010C7d01b50e0d17dc79C8"));
    }

    #[test]
    fn debug_never_shows_a_secret() {
        let shown = format!("{:?} {:?}", key(), key().sign(&B256::repeat_byte(7)));
        assert_eq!(shown, "SecretKey of 0x70997970C51812dc3A010C7d01b50e0d17dc79C8 Signature(65 bytes)");
    }

    #[test]
    fn bad_forms_are_named() {
        let good = key().sign(&B256::repeat_byte(7)).to_bytes();
        let with = |at: usize, byte: u8| {
            let mut raw = good;
            raw[at] = byte;
            Signature::from_bytes(&raw)
        };
        assert_eq!(with(64, 29), Err(SignatureError::RecoveryByte(29)));
        assert_eq!(with(64, 2), Err(SignatureError::RecoveryByte(2)));
        assert_eq!(Signature::from_bytes(&good[..64]), Err(SignatureError::Length(64)));
        assert_eq!(Signature::from_bytes(&[0; 65]), Err(SignatureError::OutOfRange));
        let mut over = good;
        over[..32].copy_from_slice(&ORDER);
        assert_eq!(Signature::from_bytes(&over), Err(SignatureError::OutOfRange));
        assert!(SecretKey::from_bytes([0; 32]).is_err() && SecretKey::from_bytes(ORDER).is_err());
    }

    proptest! {
        #[test]
        fn a_signature_recovers_its_signer_and_its_twin_is_refused(digest in any::<[u8; 32]>(), secret in any::<[u8; 32]>()) {
            let Ok(key) = SecretKey::from_bytes(secret) else { return Ok(()) };
            let digest = B256::from(digest);
            let signature = key.sign(&digest);
            prop_assert_eq!(signature.recover(&digest), Ok(key.address()));
            let mut zero_based = signature.to_bytes();
            zero_based[64] -= 27;
            prop_assert_eq!(Signature::from_bytes(&zero_based), Ok(signature));
            let twin = twin(signature);
            // the curve itself accepts the twin, so that it is our rule that refuses it
            prop_assert_eq!(Signature(twin).recover(&digest), Ok(key.address()));
            prop_assert_eq!(Signature::from_bytes(&twin), Err(SignatureError::HighS));
            let other = SecretKey::from_hex(TEST_KEY).expect("a test key").address();
            prop_assert_eq!(signature.verify(&digest, &other), Err(SignatureError::OtherSigner(key.address())));
        }

        #[test]
        fn arbitrary_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), digest in any::<[u8; 32]>()) {
            if let Ok(signature) = Signature::from_bytes(&bytes) {
                let _ = signature.recover(&B256::from(digest));
            }
        }
    }
}

//! Digests, and the roots of sets of them, section 3.

use std::fmt;

use sha2::{Digest as _, Sha256};

use crate::canonical;

/// A SHA-256 digest. It is written as 64 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Digest(pub [u8; 32]);

impl Digest {
    /// The `prev` of the first line of a chain: the digest of the text `dsh-proof/chain/genesis`.
    pub const GENESIS: Self = Self([
        0x30, 0x29, 0xdb, 0x7d, 0x4c, 0x79, 0xdd, 0x4b, 0xb2, 0x10, 0x68, 0x25, 0x8d, 0xb1, 0x7e, 0x6a, 0xab, 0xfc,
        0xb5, 0x1e, 0xb8, 0x32, 0xf2, 0xcf, 0x78, 0x69, 0xdb, 0x48, 0xe2, 0x53, 0x9d, 0x7f,
    ]);

    /// The digest of bytes.
    pub fn of(bytes: &[u8]) -> Self {
        Self(canonical::sha256(bytes))
    }

    /// Whether a text is this digest in lower-case hex.
    pub fn is(&self, hex: &str) -> bool {
        const DIGITS: &[u8; 16] = b"0123456789abcdef";
        hex.len() == 64
            && hex.as_bytes().chunks_exact(2).zip(&self.0).all(|(pair, byte)| {
                pair[0] == DIGITS[usize::from(byte >> 4)] && pair[1] == DIGITS[usize::from(byte & 15)]
            })
    }

    /// Reads 64 lower-case hex digits.
    pub fn parse(hex: &str) -> Option<Self> {
        if hex.len() != 64 {
            return None;
        }
        let mut digest = [0; 32];
        for (byte, pair) in digest.iter_mut().zip(hex.as_bytes().chunks_exact(2)) {
            *byte = nibble(pair[0])? << 4 | nibble(pair[1])?;
        }
        Some(Self(digest))
    }
}

fn nibble(digit: u8) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    }
}

impl fmt::Display for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&canonical::hex(&self.0))
    }
}

impl fmt::Debug for Digest {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The root of a set of addresses: the digest of the addresses, sorted and joined by line feeds. Duplicates count.
pub fn merkle_root<'a>(addresses: impl IntoIterator<Item = &'a str>) -> String {
    let mut addresses: Vec<&str> = addresses.into_iter().collect();
    addresses.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    canonical::sha256_hex(addresses.join("\n").as_bytes())
}

/// The digest of a set of dirty paths: each as its length in UTF-16 units, a colon, the path; sorted, without separator.
pub fn dirt_digest<'a>(dirty: impl IntoIterator<Item = &'a str>) -> String {
    let mut dirty: Vec<&str> = dirty.into_iter().collect();
    dirty.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    let mut hasher = Sha256::new();
    for path in dirty {
        hasher.update(format!("{}:{path}", path.encode_utf16().count()));
    }
    canonical::hex(&hasher.finalize())
}

//! One digest of all that a memo over a snapshot depends on.

use sha2::{Digest, Sha256};

use super::snapshot::Snapshot;

/// SHA-256 over subject, coverage, limits and every fact with its value, unit, period, accession and formula.
///
/// It moves when anything moves that a memo could state. The time of retrieval is not in it: the same figures fetched again
/// are the same memo.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint([u8; 32]);

impl Fingerprint {
    pub(super) fn of(snapshot: &Snapshot) -> Self {
        let frame = (snapshot.subject(), snapshot.coverage(), snapshot.limits());
        let frame = serde_json::to_vec(&frame).expect("text and lists of it");
        let mut digest = Sha256::new();
        digest.update(u64::try_from(frame.len()).unwrap_or(u64::MAX).to_be_bytes());
        digest.update(frame);
        digest.update(snapshot.facts_json().get());
        Self(digest.finalize().into())
    }
}

impl std::fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&crate::canonical::hex(&self.0))
    }
}

#[cfg(test)]
mod tests;

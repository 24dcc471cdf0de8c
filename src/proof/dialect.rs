//! Protocol versions and their fingerprints, section 8: who speaks the same dialect.

use std::sync::LazyLock;

use serde_json::{Value, json};

use super::vocabulary::{ChainMode, ClaimKind, Grade, Status, Verdict};
use crate::canonical;

/// The dialect that we write.
pub const CURRENT: &str = "APP/1.4";

/// Ancestors, which changed nothing but their name: their bundles read as ours do.
pub const ANCESTORS: [&str; 4] = ["APP/1.0", "APP/1.1", "APP/1.2", "APP/1.3"];

/// Media type of a bundle.
pub const BUNDLE_MEDIA_TYPE: &str = "application/vnd.app.proof-bundle+json";

/// Media type of a proof.
pub const PROOF_MEDIA_TYPE: &str = "application/vnd.app.proof+json";

/// How a manifest's pair of version and fingerprint reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Ours.
    Current,
    /// An ancestor's.
    Legacy,
    /// Neither: it must not be interpreted.
    Unknown {
        /// The fingerprint that the version would have here; ours when the version is none of the known.
        expected: String,
    },
}

/// The fingerprint of a version: the address of the word lists and the three rules.
pub fn fingerprint(version: &str) -> String {
    canonical::address(&material(version))
}

/// The fingerprint that our manifests carry.
pub fn current_fingerprint() -> &'static str {
    static CURRENT_FINGERPRINT: LazyLock<String> = LazyLock::new(|| fingerprint(CURRENT));
    &CURRENT_FINGERPRINT
}

/// Judges the pair that a manifest states. A version and a fingerprint that belong to different dialects are no dialect.
pub fn adjudicate(protocol: Option<&str>, stated: Option<&str>) -> Dialect {
    let known = protocol.filter(|version| *version == CURRENT || ANCESTORS.contains(version));
    let expected = fingerprint(known.unwrap_or(CURRENT));
    match known {
        Some(version) if stated == Some(&expected) => {
            if version == CURRENT {
                Dialect::Current
            } else {
                Dialect::Legacy
            }
        }
        _ => Dialect::Unknown { expected },
    }
}

fn material(version: &str) -> Value {
    let words = |words: &mut dyn Iterator<Item = &'static str>| Value::from_iter(words);
    json!({
        "name": "agent-proof-protocol",
        "version": version,
        "verdict": words(&mut Verdict::ALL.iter().map(|w| w.as_str())),
        "grade": words(&mut Grade::ALL.iter().map(|w| w.as_str())),
        "chainModes": words(&mut ChainMode::ALL.iter().map(|w| w.as_str())),
        "claimKinds": words(&mut ClaimKind::ALL.iter().map(|w| w.as_str())),
        "checkStatuses": words(&mut Status::ALL.iter().map(|w| w.as_str())),
        "addressing": "sha256(canonicalJson(v))",
        "chain": "prev=sha256(prevLine)",
        "signature": "ed25519(canonicalJson(checkpointPayload))",
    })
}

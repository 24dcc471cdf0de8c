//! Proof bundles, section 5: a manifest, and the files that it lists, in one JSON object.
//!
//! [`verify`] trusts nothing from the producer and holds neither log nor bundle in memory. [`pack`] makes a bundle only of a
//! chain that it has read. What nobody could check (no key, no anchor) is said, and never counted as an accusation.

mod check;
mod log;
mod manifest;
mod pack;
mod problem;
mod stream;
mod transparency;

use std::io::{self, Read};

use serde::Serialize;

pub use pack::{Parts, Unpackable, pack};
pub use problem::{Place, Problem};

use super::key::Keys;

/// The log.
pub const EVIDENCE: &str = "evidence.jsonl";

/// The baseline document.
pub const BASELINE: &str = "baseline.json";

/// The anchor.
pub const ANCHOR: &str = "anchor.json";

/// Everything that a bundle may hold, in the order of a manifest.
pub const LAYOUT: [&str; 3] = [EVIDENCE, BASELINE, ANCHOR];

/// What a verification says of the signatures of checkpoints.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum CheckpointSignature {
    /// A held key was named, and every checkpoint under it verified.
    Verified,
    /// At least one did not.
    Invalid,
    /// No held key is named: nobody was accused, nothing was proven.
    Unverified,
}

/// How the chain of a bundle is linked and signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Mode {
    /// Version 1 lines only.
    Legacy,
    /// Linked, without signatures.
    Unsigned,
    /// Signed, and the signatures were adjudicated.
    Signed,
    /// Signed, and nobody could tell by whom.
    SignedUnverified,
}

/// What a manifest's record of publication is worth on its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Transparency {
    /// Well-formed. Whether it is true is for the log to show.
    Recorded,
    /// Not well-formed.
    Malformed,
}

/// What the anchor says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AnchorSeen {
    /// The key that it names.
    pub key_id: String,
    /// Its count.
    pub count: u64,
    /// Its head.
    pub head: String,
    /// Whether the last checkpoint of the chain has this head.
    pub head_matches_chain: bool,
}

/// The result of a verification. There is no overall `ok` in the protocol; [`Verification::is_clean`] is ours.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verification {
    /// Whether the dialect is ours or an ancestor's.
    pub protocol_ok: bool,
    /// Whether the manifest lists exactly the files that are there.
    pub manifest_ok: bool,
    /// Files that are absent, or have another digest or size.
    pub digest_mismatches: Vec<String>,
    /// Lines that do not name the line before them.
    pub chain_breaks: Vec<u64>,
    /// Lines that are no envelope.
    pub corrupt_lines: Vec<u64>,
    /// Checkpoints whose count is not what was counted, and envelopes of unknown kinds.
    pub malformed_checkpoints: Vec<u64>,
    /// Records after the last checkpoint that is not malformed.
    pub tail_records: u64,
    /// Checkpoints whose head is not the line before them.
    #[serde(skip_serializing_if = "is_zero")]
    pub head_liars: u64,
    /// How the chain is linked and signed.
    pub chain_mode: Mode,
    /// The anchor, when there is one that reads.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub anchor: Option<AnchorSeen>,
    /// The id that the baseline states.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub baseline_id: Option<String>,
    /// Whether that id is the address of its content; false without a baseline.
    pub baseline_self_addressed: bool,
    /// The record of publication, when there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub transparency: Option<Transparency>,
    /// Set when the bundle is in the dialect of an ancestor.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub legacy_protocol: bool,
    /// The signatures, when there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint_signature: Option<CheckpointSignature>,
    /// The workspace that the manifest names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_key: Option<String>,
    /// Evidence and marker lines.
    pub records: u64,
    /// What is wrong, in the order of the checks.
    pub problems: Vec<Problem>,
}

fn is_zero(number: &u64) -> bool {
    *number == 0
}

impl Verification {
    /// Whether nothing is wrong and every record stands under a checkpoint. Signatures count as far as they could be checked.
    pub fn is_clean(&self) -> bool {
        self.problems.is_empty()
            && self.protocol_ok
            && self.manifest_ok
            && self.chain_breaks.is_empty()
            && self.tail_records == 0
            && self.head_liars == 0
    }

    /// Whether it is clean and a held key signed all of it.
    pub fn is_proven(&self) -> bool {
        self.is_clean() && self.checkpoint_signature == Some(CheckpointSignature::Verified)
    }
}

/// Verifies a bundle from its bytes alone. Memory does not depend on the length of the log.
///
/// # Errors
///
/// Only when the source cannot be read. Whatever the bytes are, the verdict on them is in the result.
pub fn verify(source: impl Read, keys: &Keys) -> io::Result<Verification> {
    check::verify(source, keys)
}

//! What can be wrong with a bundle: a closed list, each with its place.

use std::fmt;

use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

/// Where in the log.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Place {
    /// Line among those that are not blank, from 0.
    pub line: u64,
    /// First byte of the line in the file.
    pub byte: u64,
    /// Id that the record on it states.
    pub record: Option<String>,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    /// Not a JSON object in UTF-8, or larger than a verifier accepts.
    Unreadable {
        /// Byte of the bundle.
        byte: u64,
    },
    /// A dialect that is not known.
    ProtocolUnsupported {
        /// The version that the manifest states.
        protocol: Option<String>,
        /// The fingerprint that it states.
        stated: Option<String>,
        /// The fingerprint that the version has here, or ours.
        expected: String,
    },
    /// The manifest lists no files.
    ManifestFilesMissing,
    /// An entry lacks path, digest or size.
    ManifestEntryMalformed {
        /// Its place in the list.
        entry: u64,
    },
    /// An entry names a file that a bundle cannot hold.
    ManifestPathOutsideLayout {
        /// Its place in the list.
        entry: u64,
        /// The path.
        path: String,
    },
    /// A file is listed twice.
    ManifestDuplicate {
        /// The file.
        path: String,
    },
    /// A listed file is not there.
    ManifestFileAbsent {
        /// The file.
        path: String,
    },
    /// A file has another digest.
    DigestMismatch {
        /// The file.
        path: String,
        /// The digest that the manifest states.
        stated: String,
        /// The digest that it has.
        computed: String,
    },
    /// A file has another size.
    SizeMismatch {
        /// The file.
        path: String,
        /// Bytes that it has.
        computed: u64,
    },
    /// A file is there that the manifest does not list.
    UnlistedFile {
        /// The file.
        path: String,
    },
    /// There is no log.
    EvidenceLogMissing,
    /// The log has no lines.
    LogEmpty,
    /// The log has lines and no records.
    LogNoRecords,
    /// A line does not name the line before it.
    ChainBreak(Place),
    /// A line is no envelope.
    CorruptLine(Place),
    /// A checkpoint does not count what was counted, or an envelope is of an unknown kind.
    MalformedCheckpoint(Place),
    /// A record is not named by its content.
    RecordNotSelfAddressed(Place),
    /// Records after the last checkpoint.
    UncoveredTail {
        /// How many.
        records: u64,
    },
    /// Records that no checkpoint covers which is signed, holds, and verifies where the key is held.
    TailNotVouched {
        /// How many.
        records: u64,
    },
    /// A checkpoint names another head than the line before it.
    HeadLiar(Place),
    /// A signature is not that of the key that it names.
    CheckpointSignatureInvalid(Place),
    /// A genuine signature stands over another chain.
    CheckpointReplayed(Place),
    /// A checkpoint names another workspace than the ones before it.
    CheckpointWorkspaceMismatch(Place),
    /// The manifest names another workspace than the checkpoints.
    ManifestWorkspaceMismatch {
        /// The manifest's.
        manifest: Option<String>,
        /// The checkpoints'.
        chain: String,
    },
    /// The manifest of a jim bundle has another time than its last checkpoint.
    ManifestCreatedAt {
        /// The manifest's.
        stated: Option<String>,
        /// The checkpoint's.
        expected: String,
    },
    /// The anchor does not read.
    AnchorUnparseable,
    /// There is an anchor and no checkpoint.
    AnchorWithoutCheckpoint,
    /// The anchor's head is not the last checkpoint's.
    AnchorHeadMismatch,
    /// The anchor's signature is not that of the key that it names.
    AnchorSignatureInvalid,
    /// The anchor names another key than the checkpoint.
    AnchorKeyIdMismatch,
    /// The anchor counts otherwise than the checkpoint.
    AnchorCountMismatch,
    /// The anchor names another workspace than the manifest.
    AnchorWorkspaceMismatch,
    /// The baseline is no JSON object.
    BaselineUnparseable,
    /// The baseline has no id.
    BaselineNoId,
    /// What the baseline's id is made of is not there.
    BaselineMaterialMalformed,
    /// The baseline is not named by its content.
    BaselineNotSelfAddressed,
    /// A record in the baseline is not named by its content.
    BaselineCheckNotSelfAddressed {
        /// Its place among the checks.
        check: u64,
        /// The id that it states.
        record: Option<String>,
    },
    /// The baseline's root is not that of its records.
    BaselineRootMismatch,
    /// The baseline is not the one whose digest is on the chain.
    BaselineDigestMismatch {
        /// The digest on the chain, when there is one.
        recorded: Option<String>,
        /// The digest of the file.
        computed: String,
    },
    /// The record of publication is not well-formed.
    TransparencyMalformed {
        /// The rule that it breaks.
        rule: &'static str,
    },
    /// A record of publication, and no signed checkpoint that could have been published.
    TransparencyWithoutSignedCheckpoint,
}

impl Problem {
    /// A short stable name.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Unreadable { .. } => "bundle-unreadable",
            Self::ProtocolUnsupported { .. } => "protocol-unsupported",
            Self::ManifestFilesMissing => "manifest-files-missing",
            Self::ManifestEntryMalformed { .. } => "manifest-entry-malformed",
            Self::ManifestPathOutsideLayout { .. } => "manifest-path-outside-layout",
            Self::ManifestDuplicate { .. } => "manifest-duplicate",
            Self::ManifestFileAbsent { .. } => "manifest-file-absent",
            Self::DigestMismatch { .. } => "digest-mismatch",
            Self::SizeMismatch { .. } => "size-mismatch",
            Self::UnlistedFile { .. } => "unlisted-file",
            Self::EvidenceLogMissing => "evidence-log-missing",
            Self::LogEmpty => "log-empty",
            Self::LogNoRecords => "log-no-records",
            Self::ChainBreak(_) => "chain-break",
            Self::CorruptLine(_) => "corrupt-line",
            Self::MalformedCheckpoint(_) => "malformed-checkpoint",
            Self::RecordNotSelfAddressed(_) => "record-not-self-addressed",
            Self::UncoveredTail { .. } => "uncovered-tail",
            Self::TailNotVouched { .. } => "tail-not-vouched",
            Self::HeadLiar(_) => "head-liar",
            Self::CheckpointSignatureInvalid(_) => "checkpoint-signature-invalid",
            Self::CheckpointReplayed(_) => "checkpoint-replayed",
            Self::CheckpointWorkspaceMismatch(_) => "checkpoint-workspace-mismatch",
            Self::ManifestWorkspaceMismatch { .. } => "manifest-workspace-mismatch",
            Self::ManifestCreatedAt { .. } => "manifest-created-at",
            Self::AnchorUnparseable => "anchor-unparseable",
            Self::AnchorWithoutCheckpoint => "anchor-without-checkpoint",
            Self::AnchorHeadMismatch => "anchor-head-mismatch",
            Self::AnchorSignatureInvalid => "anchor-signature-invalid",
            Self::AnchorKeyIdMismatch => "anchor-keyid-mismatch",
            Self::AnchorCountMismatch => "anchor-count-mismatch",
            Self::AnchorWorkspaceMismatch => "anchor-workspace-mismatch",
            Self::BaselineUnparseable => "baseline-unparseable",
            Self::BaselineNoId => "baseline-no-id",
            Self::BaselineMaterialMalformed => "baseline-material-malformed",
            Self::BaselineNotSelfAddressed => "baseline-not-self-addressed",
            Self::BaselineCheckNotSelfAddressed { .. } => "baseline-check-not-self-addressed",
            Self::BaselineRootMismatch => "baseline-root-mismatch",
            Self::BaselineDigestMismatch { .. } => "baseline-digest-mismatch",
            Self::TransparencyMalformed { .. } => "transparency-malformed",
            Self::TransparencyWithoutSignedCheckpoint => "transparency-without-signed-checkpoint",
        }
    }

    /// Where in the log it is, when it is there.
    pub fn place(&self) -> Option<&Place> {
        match self {
            Self::ChainBreak(place)
            | Self::CorruptLine(place)
            | Self::MalformedCheckpoint(place)
            | Self::RecordNotSelfAddressed(place)
            | Self::HeadLiar(place)
            | Self::CheckpointSignatureInvalid(place)
            | Self::CheckpointReplayed(place)
            | Self::CheckpointWorkspaceMismatch(place) => Some(place),
            _ => None,
        }
    }

    /// The file that it is about, when the manifest names it.
    pub fn path(&self) -> Option<&str> {
        match self {
            Self::ManifestPathOutsideLayout { path, .. }
            | Self::ManifestDuplicate { path }
            | Self::ManifestFileAbsent { path }
            | Self::DigestMismatch { path, .. }
            | Self::SizeMismatch { path, .. }
            | Self::UnlistedFile { path } => Some(path),
            _ => None,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let none = "none";
        match self {
            Self::Unreadable { byte } => write!(f, "not a bundle that can be read, from byte {byte} on"),
            Self::ProtocolUnsupported { protocol, stated, expected } => {
                let (protocol, stated) = (protocol.as_deref().unwrap_or(none), stated.as_deref().unwrap_or(none));
                write!(f, "the dialect is not known: {protocol} with fingerprint {stated}, here it has {expected}")
            }
            Self::ManifestFilesMissing => f.write_str("the manifest lists no files"),
            Self::ManifestEntryMalformed { entry } => write!(f, "entry {entry} lacks path, sha256 or bytes"),
            Self::ManifestPathOutsideLayout { entry, path } => {
                write!(f, "entry {entry} names {path:?}, which a bundle cannot hold")
            }
            Self::ManifestDuplicate { path } => write!(f, "{path} is listed twice"),
            Self::ManifestFileAbsent { path } => write!(f, "{path} is listed and not there"),
            Self::DigestMismatch { path, stated, computed } => {
                write!(f, "{path} has the digest {computed}, the manifest says {stated}")
            }
            Self::SizeMismatch { path, computed } => {
                write!(f, "{path} has {computed} bytes, the manifest says otherwise")
            }
            Self::UnlistedFile { path } => write!(f, "{path} is there and not listed"),
            Self::EvidenceLogMissing => f.write_str("there is no evidence.jsonl"),
            Self::LogEmpty => f.write_str("the log has no lines"),
            Self::LogNoRecords => f.write_str("the log has no records"),
            Self::UncoveredTail { records } => write!(f, "{records} records stand after the last checkpoint"),
            Self::TailNotVouched { records } => {
                write!(f, "{records} records stand under no checkpoint that the signing key vouches for")
            }
            Self::ManifestWorkspaceMismatch { manifest, chain } => {
                let manifest = manifest.as_deref().unwrap_or(none);
                write!(f, "the manifest names the workspace {manifest}, the checkpoints {chain}")
            }
            Self::ManifestCreatedAt { stated, expected } => {
                let stated = stated.as_deref().unwrap_or(none);
                write!(f, "the manifest has the time {stated}, its last checkpoint {expected}")
            }
            Self::BaselineCheckNotSelfAddressed { check, record } => {
                let record = record.as_deref().unwrap_or(none);
                write!(f, "check {check} of the baseline is not named by its content, id {record}")
            }
            Self::BaselineDigestMismatch { recorded, computed } => {
                let recorded = recorded.as_deref().unwrap_or(none);
                write!(f, "the baseline has the digest {computed}, the chain recorded {recorded}")
            }
            Self::TransparencyMalformed { rule } => write!(f, "the record of publication breaks the rule {rule}"),
            placed => write_placed(placed, f),
        }
    }
}

fn write_placed(problem: &Problem, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(match problem.code() {
        "chain-break" => "the line does not name the line before it",
        "corrupt-line" => "the line is no envelope",
        "malformed-checkpoint" => "the checkpoint does not count what was counted, or its kind is not known",
        "record-not-self-addressed" => "the record is not named by its content",
        "head-liar" => "the checkpoint names another head than the line before it",
        "checkpoint-signature-invalid" => "the signature is not that of the key that it names",
        "checkpoint-replayed" => "the signature is genuine and belongs to another chain",
        "checkpoint-workspace-mismatch" => "the checkpoint names another workspace than the ones before it",
        "anchor-unparseable" => "the anchor does not read",
        "anchor-without-checkpoint" => "there is an anchor and no checkpoint",
        "anchor-head-mismatch" => "the anchor names another head than the last checkpoint",
        "anchor-signature-invalid" => "the anchor's signature is not that of the key that it names",
        "anchor-keyid-mismatch" => "the anchor names another key than the checkpoint",
        "anchor-count-mismatch" => "the anchor counts otherwise than the checkpoint",
        "anchor-workspace-mismatch" => "the anchor names another workspace than the manifest",
        "baseline-unparseable" => "the baseline is no JSON object",
        "baseline-no-id" => "the baseline has no id",
        "baseline-material-malformed" => "what the baseline's id is made of is not there",
        "baseline-not-self-addressed" => "the baseline is not named by its content",
        "baseline-root-mismatch" => "the baseline's root is not that of its records",
        "transparency-without-signed-checkpoint" => "a record of publication, and no signed checkpoint",
        other => other,
    })?;
    match problem.place() {
        Some(Place { line, byte, record: Some(id) }) => write!(f, " (line {line}, byte {byte}, record {id})"),
        Some(Place { line, byte, record: None }) => write!(f, " (line {line}, byte {byte})"),
        None => Ok(()),
    }
}

impl Serialize for Problem {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("code", self.code())?;
        if let Some(place) = self.place() {
            map.serialize_entry("line", &place.line)?;
            map.serialize_entry("byte", &place.byte)?;
            if let Some(record) = &place.record {
                map.serialize_entry("record", record)?;
            }
        }
        if let Some(path) = self.path() {
            map.serialize_entry("path", path)?;
        }
        map.serialize_entry("message", &self.to_string())?;
        map.end()
    }
}

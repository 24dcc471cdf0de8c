//! Writing a chain, section 4: a builder that can only append, and never signs over what it has not read.
//!
//! It holds the head, a count and the bytes of the segment in hand, so that a line costs the same at any length of the chain.
//! A chain that was stored is taken up again through [`Chain::reopen`], which reads it all, or from the [`Tail`] of the segment
//! before, which only this module makes.

use serde::Serialize;
use serde_json::{Map, Value};

use super::address::Digest;
use super::anchor::Anchor;
use super::evidence::{Evidence, is_self_addressed};
use super::key::{Sign, encode_signature};
use super::walk::{Entry, State, Step, Walk, is_protected};
use crate::canonical;

/// Bytes that a segment is expected to have: the first of an order has about 20,000.
const SEGMENT_BYTES: usize = 32 * 1024;

/// A chain that is being written.
#[derive(Debug)]
pub struct Chain {
    workspace_key: String,
    head: Digest,
    records: u64,
    lines: u64,
    sealed: Option<Anchor>,
    bytes: Vec<u8>,
}

/// The end of a stored chain: where the next segment begins.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Tail {
    workspace_key: String,
    head: Digest,
    records: u64,
    lines: u64,
}

/// Lines that belong together, in the bytes that were hashed. Its last line is a signed checkpoint.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// Whole lines, each with its line feed.
    pub bytes: Vec<u8>,
    /// Its last checkpoint, as an anchor keeps it and the transparency log publishes it.
    pub checkpoint: Anchor,
    /// Where the next segment begins.
    pub tail: Tail,
}

/// A stored chain that must not be signed again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Broken {
    /// A line is no envelope of a known kind.
    #[error("line {line} of the chain is no envelope of a known kind")]
    Corrupt {
        /// Counted from 0.
        line: u64,
    },
    /// A line does not name the line before it, or a record is not named by its content.
    #[error("line {line} of the chain was changed")]
    Changed {
        /// Counted from 0.
        line: u64,
    },
    /// A checkpoint does not say what was counted, has no signature, or is of another workspace.
    #[error("the checkpoint on line {line} of the chain does not hold")]
    Checkpoint {
        /// Counted from 0.
        line: u64,
    },
    /// Records at the end stand under no checkpoint.
    #[error("{records} records at the end of the chain stand under no checkpoint")]
    Uncovered {
        /// How many.
        records: u64,
    },
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct CheckpointPayload<'a> {
    count: u64,
    head: String,
    workspace_key: &'a str,
    at: &'a str,
}

#[derive(Serialize)]
struct MarkerPayload<'a> {
    label: &'a str,
    #[serde(flatten)]
    data: &'a Map<String, Value>,
    #[serde(rename = "headRef", skip_serializing_if = "Option::is_none")]
    head_ref: Option<String>,
}

impl Chain {
    /// A chain without lines.
    pub fn begin(workspace_key: &str) -> Self {
        Self::resume(Tail { workspace_key: workspace_key.to_owned(), head: Digest::GENESIS, records: 0, lines: 0 })
    }

    /// Goes on where a segment ended.
    pub fn resume(tail: Tail) -> Self {
        let Tail { workspace_key, head, records, lines } = tail;
        Self { workspace_key, head, records, lines, sealed: None, bytes: Vec::with_capacity(SEGMENT_BYTES) }
    }

    /// Goes on after stored segments, each of whole lines. Everything in them is checked but signatures, which need keys: a broken
    /// chain is not extended.
    pub fn reopen<'a>(workspace_key: &str, stored: impl IntoIterator<Item = &'a [u8]>) -> Result<Self, Broken> {
        let mut walk = Walk::default();
        let mut scratch = canonical::Scratch::default();
        for line in stored.into_iter().flat_map(|segment| segment.split(|byte| *byte == b'\n')) {
            if let Some(step) = walk.step(line) {
                check(&step, workspace_key, &mut scratch)?;
            }
        }
        let State { head, records, tail_records, .. } = walk.state();
        if tail_records > 0 {
            return Err(Broken::Uncovered { records: tail_records });
        }
        Ok(Self::resume(Tail { workspace_key: workspace_key.to_owned(), head, records, lines: walk.lines() }))
    }

    /// Where the next segment begins, when nothing was appended since.
    pub(super) fn into_tail(self) -> Tail {
        let Self { workspace_key, head, records, lines, .. } = self;
        Tail { workspace_key, head, records, lines }
    }

    /// Evidence and marker lines so far.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Appends a record.
    pub fn evidence(&mut self, at: &str, record: &Evidence) {
        self.line("evidence", at, record.json(), "");
        self.records += 1;
    }

    /// Appends a marker. A protected label names the line before it; a member `label` or `headRef` in the data is left out.
    pub fn marker(&mut self, at: &str, label: &str, data: &Map<String, Value>) {
        let data: Map<String, Value> = data
            .iter()
            .filter(|(name, _)| *name != "label" && *name != "headRef")
            .map(|(name, value)| (name.clone(), value.clone()))
            .collect();
        let head_ref = is_protected(label).then(|| self.head.to_string());
        let payload = MarkerPayload { label, data: &data, head_ref };
        self.line("marker", at, &serde_json::to_string(&payload).expect("JSON values serialize"), "");
        self.records += 1;
    }

    /// Signs what was appended so far.
    pub fn checkpoint(&mut self, at: &str, key: &dyn Sign) {
        let head = self.head.to_string();
        let workspace_key = self.workspace_key.clone();
        let payload = CheckpointPayload { count: self.records, head: head.clone(), workspace_key: &workspace_key, at };
        let text = serde_json::to_string(&payload).expect("text and numbers serialize");
        let mut tape = canonical::Tape::default();
        let view = tape.read(&text).expect("what was written is JSON");
        let signed = super::walk::signed_bytes(view, &mut canonical::Scratch::default());
        let sig = encode_signature(&key.sign(&signed));
        let key_id = serde_json::to_string(key.key_id()).expect("text serializes");
        self.line("checkpoint", at, &text, &format!(",\"sig\":\"{sig}\",\"keyId\":{key_id}"));
        self.sealed = Some(Anchor {
            v: 1,
            key_id: key.key_id().to_owned(),
            count: self.records,
            head,
            sig,
            at: at.to_owned(),
            workspace_key: Some(workspace_key),
        });
    }

    /// Signs what was appended and hands out the bytes.
    pub fn seal(mut self, at: &str, key: &dyn Sign) -> Segment {
        self.checkpoint(at, key);
        let Self { workspace_key, head, records, lines, sealed, bytes } = self;
        let checkpoint = sealed.expect("a checkpoint was just made");
        Segment { bytes, checkpoint, tail: Tail { workspace_key, head, records, lines } }
    }

    /// Writes an envelope around a payload of JSON text. `signed` stands after it.
    fn line(&mut self, kind: &'static str, at: &str, payload: &str, signed: &str) {
        let at = serde_json::to_string(at).expect("text serializes");
        let start = self.bytes.len();
        let prev = self.head;
        let parts =
            ["{\"v\":2,\"kind\":\"", kind, "\",\"at\":", &at, ",\"prev\":\"", &prev.to_string(), "\",\"payload\":"];
        for part in parts.into_iter().chain([payload, signed, "}"]) {
            self.bytes.extend_from_slice(part.as_bytes());
        }
        self.head = Digest::of(&self.bytes[start..]);
        self.bytes.push(b'\n');
        self.lines += 1;
    }
}

/// Whether a stored line is one that this module would have written.
fn check(step: &Step<'_>, workspace_key: &str, scratch: &mut canonical::Scratch) -> Result<(), Broken> {
    let line = step.line;
    if !step.linked {
        return Err(Broken::Changed { line });
    }
    let holds = match &step.entry {
        Entry::Corrupt | Entry::UnknownKind | Entry::Ignored => return Err(Broken::Corrupt { line }),
        Entry::Evidence(record) => record.is_some_and(|record| is_self_addressed(record, scratch)),
        Entry::Marker(marker) => !marker.is_suspect(step.before),
        Entry::Checkpoint(checkpoint) => {
            let is_ours = checkpoint.workspace_key().is_some_and(|key| key.is(workspace_key));
            let is_sound = checkpoint.is_well_formed && checkpoint.head_holds && checkpoint.signed_by().is_some();
            return if is_ours && is_sound { Ok(()) } else { Err(Broken::Checkpoint { line }) };
        }
    };
    if holds { Ok(()) } else { Err(Broken::Changed { line }) }
}

impl Tail {
    /// Digest of the last line.
    pub fn head(&self) -> Digest {
        self.head
    }

    /// Evidence and marker lines of the chain.
    pub fn records(&self) -> u64 {
        self.records
    }

    /// Lines of the chain.
    pub fn lines(&self) -> u64 {
        self.lines
    }
}

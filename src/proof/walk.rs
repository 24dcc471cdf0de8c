//! Reading a chain line by line, section 4. It believes nothing: links, counts and heads are recomputed.
//!
//! A [`Walk`] holds one line and a handful of counters, whatever the length of the log. Signatures are for those who hold keys.

use crate::canonical::{Scratch, Tape, Text, View};

use super::address::Digest;
use super::vocabulary::ChainMode;

/// A walk over a log.
#[derive(Debug, Default)]
pub struct Walk {
    tape: Tape,
    lines: u64,
    state: State,
}

/// Where a walk stands.
#[derive(Clone, Copy, Debug)]
pub struct State {
    /// Digest of the last line; genesis before the first.
    pub head: Digest,
    /// Evidence and marker lines.
    pub records: u64,
    /// Records after the last checkpoint that is not malformed.
    pub tail_records: u64,
    linked: bool,
    unlinked: bool,
    signed: bool,
}

impl Default for State {
    fn default() -> Self {
        Self { head: Digest::GENESIS, records: 0, tail_records: 0, linked: false, unlinked: false, signed: false }
    }
}

/// One line that is not blank.
#[derive(Debug)]
pub struct Step<'a> {
    /// Its number among the lines that are not blank, from 0.
    pub line: u64,
    /// Digest of the line before it.
    pub before: Digest,
    /// Its own digest.
    pub digest: Digest,
    /// False when its `prev` is not the digest of the line before it.
    pub linked: bool,
    /// What it says.
    pub entry: Entry<'a>,
}

/// What a line says.
#[derive(Debug)]
pub enum Entry<'a> {
    /// No JSON, no envelope, or a checkpoint without count or head.
    Corrupt,
    /// A record of a run; nothing when the envelope has no payload.
    Evidence(Option<View<'a>>),
    /// A marker.
    Marker(Marker<'a>),
    /// A checkpoint.
    Checkpoint(Checkpoint<'a>),
    /// A well-formed envelope of a kind that is not known.
    UnknownKind,
    /// A version 1 envelope that counts as nothing.
    Ignored,
}

/// A marker line.
#[derive(Clone, Copy, Debug)]
pub struct Marker<'a> {
    /// Its payload; nothing when the envelope has none.
    pub payload: Option<View<'a>>,
    /// Whether the line has version 1: such markers name no head.
    pub is_legacy: bool,
}

/// A checkpoint line.
#[derive(Clone, Copy, Debug)]
pub struct Checkpoint<'a> {
    /// `{count, head, workspaceKey, at}`.
    pub payload: View<'a>,
    /// Records that the walk counted before it.
    pub records: u64,
    /// Whether its count is a safe whole number and the one that was counted.
    pub is_well_formed: bool,
    /// Whether its head is the digest of the line before it.
    pub head_holds: bool,
    /// The signature, which may be empty.
    pub signature: Option<Text<'a>>,
    /// The key that it names.
    pub key_id: Option<Text<'a>>,
    /// Why its writer did not sign.
    pub sig_error: Option<Text<'a>>,
}

impl Walk {
    /// A walk that goes on where another one stood, `lines` lines into the log.
    pub fn resume(state: State, lines: u64) -> Self {
        Self { tape: Tape::default(), lines, state }
    }

    /// Where the walk stands.
    pub fn state(&self) -> State {
        self.state
    }

    /// Lines that are not blank.
    pub fn lines(&self) -> u64 {
        self.lines
    }

    /// How the lines so far are linked and signed.
    pub fn mode(&self) -> ChainMode {
        match self.state {
            State { linked: true, signed: true, .. } => ChainMode::Signed,
            State { linked: false, unlinked: true, .. } => ChainMode::Legacy,
            State { .. } => ChainMode::Unsigned,
        }
    }

    /// Reads the next line, given without its line feed; nothing comes of a blank one.
    pub fn step<'a>(&'a mut self, line: &'a [u8]) -> Option<Step<'a>> {
        let line = trim_returns(line);
        let text = std::str::from_utf8(line);
        if text.is_ok_and(is_blank) {
            return None;
        }
        let before = std::mem::replace(&mut self.state.head, Digest::of(line));
        let number = self.lines;
        self.lines += 1;
        let (linked, entry) = match text.ok().and_then(|text| self.tape.read(text).ok()) {
            Some(envelope) => self.state.enter(envelope, before),
            None => (true, Entry::Corrupt),
        };
        Some(Step { line: number, before, digest: self.state.head, linked, entry })
    }
}

impl State {
    fn enter<'a>(&mut self, envelope: View<'a>, before: Digest) -> (bool, Entry<'a>) {
        let version = envelope.get("v").and_then(View::number);
        let kind = envelope.get_text("kind");
        let payload = envelope.get("payload");
        if version == Some(1.0) {
            self.unlinked = true;
            return (true, self.legacy(kind, payload));
        }
        let prev = envelope.get_text("prev").filter(|_| version == Some(2.0));
        let (Some(prev), Some(kind)) = (prev, kind) else { return (true, Entry::Corrupt) };
        self.linked = true;
        let linked = before.is(&prev.to_str());
        let entry = match &*kind.to_str() {
            "evidence" => {
                self.count();
                Entry::Evidence(payload)
            }
            "marker" => {
                self.count();
                Entry::Marker(Marker { payload, is_legacy: false })
            }
            "checkpoint" => self.checkpoint(envelope, payload, before).map_or(Entry::Corrupt, Entry::Checkpoint),
            _ => Entry::UnknownKind,
        };
        (linked, entry)
    }

    fn legacy<'a>(&mut self, kind: Option<Text<'a>>, payload: Option<View<'a>>) -> Entry<'a> {
        match kind {
            Some(kind) if kind.is("evidence") => {
                self.count();
                Entry::Evidence(payload)
            }
            Some(kind) if kind.is("marker") => {
                self.count();
                Entry::Marker(Marker { payload, is_legacy: true })
            }
            _ => Entry::Ignored,
        }
    }

    fn count(&mut self) {
        self.records += 1;
        self.tail_records += 1;
    }

    fn checkpoint<'a>(
        &mut self,
        envelope: View<'a>,
        payload: Option<View<'a>>,
        before: Digest,
    ) -> Option<Checkpoint<'a>> {
        let payload = payload?;
        let count = payload.get("count")?;
        count.number()?;
        let head = payload.get_text("head")?;
        let is_well_formed = count.count() == Some(self.records);
        if is_well_formed {
            self.tail_records = 0;
        }
        let signature = envelope.get_text("sig");
        self.signed |= signature.is_some();
        Some(Checkpoint {
            payload,
            records: self.records,
            is_well_formed,
            head_holds: before.is(&head.to_str()),
            signature,
            key_id: envelope.get_text("keyId"),
            sig_error: envelope.get_text("sigError"),
        })
    }
}

impl<'a> Checkpoint<'a> {
    /// The bytes that are signed: the canonical text of `{at, count, head, workspaceKey}`. A missing workspace is read as
    /// `null`, a missing time as empty text.
    pub fn signed_bytes(&self, scratch: &mut Scratch) -> Vec<u8> {
        signed_bytes(self.payload, scratch)
    }

    /// The workspace that it names.
    pub fn workspace_key(&self) -> Option<Text<'a>> {
        self.payload.get_text("workspaceKey")
    }

    /// Its time, as it says.
    pub fn at(&self) -> Option<Text<'a>> {
        self.payload.get_text("at")
    }

    /// Signature and key, when both are there and the signature is not empty.
    pub fn signed_by(&self) -> Option<(Text<'a>, Text<'a>)> {
        Some((self.signature.filter(|signature| !signature.is("")), self.key_id)).and_then(|(s, k)| Some((s?, k?)))
    }
}

/// [`Checkpoint::signed_bytes`] for anything that has the four members.
pub(crate) fn signed_bytes(payload: View<'_>, scratch: &mut Scratch) -> Vec<u8> {
    let mut out = Vec::with_capacity(224);
    for (name, missing) in [("at", "\"\""), ("count", "null"), ("head", "null"), ("workspaceKey", "null")] {
        out.push(if out.is_empty() { b'{' } else { b',' });
        out.extend_from_slice(format!("\"{name}\":").as_bytes());
        match payload.get(name) {
            Some(value) => out.extend_from_slice(value.canonical(scratch)),
            None => out.extend_from_slice(missing.as_bytes()),
        }
    }
    out.push(b'}');
    out
}

impl<'a> Marker<'a> {
    /// Its label.
    pub fn label(&self) -> Option<Text<'a>> {
        self.payload?.get_text("label")
    }

    /// True when the label is a protected one and the head that it names is not the line before it: no decision may rest on it.
    pub fn is_suspect(&self, before: Digest) -> bool {
        let Some(label) = self.label().filter(|_| !self.is_legacy) else { return false };
        let head = self.payload.and_then(|payload| payload.get_text("headRef"));
        is_protected(&label.to_str()) && !head.is_some_and(|head| before.is(&head.to_str()))
    }
}

/// Whether a marker of this label must name the line before it.
pub fn is_protected(label: &str) -> bool {
    ["attest/", "baseline/", "delegation/", "order/"].iter().any(|family| label.starts_with(family))
        || matches!(
            label,
            "proof/verified"
                | "agent-team/delegated"
                | "economics/quote"
                | "claim/jury"
                | "synthetic/requested"
                | "synthetic/run"
        )
}

/// A line without the carriage returns at its end.
fn trim_returns(mut line: &[u8]) -> &[u8] {
    while let [rest @ .., b'\r'] = line {
        line = rest;
    }
    line
}

/// Whether JavaScript's `trim` leaves nothing.
fn is_blank(text: &str) -> bool {
    text.chars().all(|c| (c.is_whitespace() && c != '\u{85}') || c == '\u{feff}')
}

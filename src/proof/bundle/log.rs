//! The log of a bundle, judged as it streams by.

use sha2::{Digest as _, Sha256};

use super::problem::{Place, Problem};
use super::{CheckpointSignature, Mode};
use crate::canonical::{Scratch, View};
use crate::limits;
use crate::proof::address::Digest;
use crate::proof::evidence;
use crate::proof::key::Keys;
use crate::proof::vocabulary::ChainMode;
use crate::proof::walk::{Checkpoint, Entry, Step, Walk};

/// What was found in a log.
#[derive(Default)]
pub(super) struct Findings {
    pub(super) breaks: Vec<Place>,
    pub(super) corrupt: Vec<Place>,
    pub(super) malformed: Vec<Place>,
    pub(super) unaddressed: Vec<Place>,
    pub(super) liars: Vec<Place>,
    pub(super) bad_signatures: Vec<Place>,
    pub(super) replayed: Vec<Place>,
    pub(super) strangers: Vec<Place>,
    pub(super) liar_count: u64,
    /// Checkpoints under a key that is held.
    pub(super) adjudicated: u64,
    /// The workspace that the first checkpoint with one names.
    pub(super) workspace: Option<String>,
    pub(super) last: Option<Last>,
    /// Digest on the last trusted `baseline/saved`, and on the last of any kind.
    pub(super) baseline: Option<String>,
    suspect_baseline: Option<String>,
    /// Key of the latest checkpoint with a signature.
    pub(super) signed_key: Option<String>,
    /// Records before the last checkpoint that a held key signed, and the last that anybody signed.
    vouched: u64,
    signed: u64,
    has_signature: bool,
}

/// The last checkpoint.
pub(super) struct Last {
    pub(super) count: Option<u64>,
    pub(super) head: String,
    pub(super) at: Option<String>,
    pub(super) key_id: Option<String>,
    pub(super) workspace: Option<String>,
}

/// A log that streams by.
pub(super) struct Log<'k> {
    keys: &'k Keys,
    walk: Walk,
    scratch: Scratch,
    carry: Vec<u8>,
    line_start: u64,
    hasher: Sha256,
    bytes: u64,
    pub(super) found: Findings,
}

impl<'k> Log<'k> {
    pub(super) fn new(keys: &'k Keys) -> Self {
        Self {
            keys,
            walk: Walk::default(),
            scratch: Scratch::default(),
            carry: Vec::new(),
            line_start: 0,
            hasher: Sha256::new(),
            bytes: 0,
            found: Findings::default(),
        }
    }

    /// Takes the next bytes; false when a line is longer than a line may be.
    pub(super) fn push(&mut self, bytes: &[u8]) -> bool {
        self.hasher.update(bytes);
        self.bytes += bytes.len() as u64;
        let mut rest = bytes;
        while let Some(end) = memchr::memchr(b'\n', rest) {
            if self.carry.is_empty() {
                self.line(&rest[..end]);
            } else {
                self.carry.extend_from_slice(&rest[..end]);
                let line = std::mem::take(&mut self.carry);
                self.line(&line);
                self.carry = line;
                self.carry.clear();
            }
            rest = &rest[end + 1..];
            self.line_start = self.bytes - rest.len() as u64;
        }
        self.carry.extend_from_slice(rest);
        self.carry.len() <= limits::PROOF_LINE_BYTES_MAX
    }

    /// Ends the file: digest and size.
    pub(super) fn end(&mut self) -> (Digest, u64) {
        let line = std::mem::take(&mut self.carry);
        if !line.is_empty() {
            self.line(&line);
        }
        (Digest(self.hasher.clone().finalize().into()), self.bytes)
    }

    pub(super) fn lines(&self) -> u64 {
        self.walk.lines()
    }

    pub(super) fn records(&self) -> u64 {
        self.walk.state().records
    }

    pub(super) fn tail_records(&self) -> u64 {
        self.walk.state().tail_records
    }

    /// Records that no checkpoint covers which is signed and holds; a signature of a held key has to verify. A chain that never
    /// had a signature has none to miss.
    pub(super) fn unvouched(&self) -> u64 {
        let covered = match (self.found.adjudicated > 0, self.found.has_signature) {
            (true, _) => self.found.vouched,
            (false, true) => self.found.signed,
            (false, false) => self.records() - self.tail_records(),
        };
        self.records() - covered
    }

    pub(super) fn mode(&self) -> Mode {
        match self.walk.mode() {
            ChainMode::Legacy => Mode::Legacy,
            ChainMode::Unsigned => Mode::Unsigned,
            ChainMode::Signed if self.found.adjudicated == 0 => Mode::SignedUnverified,
            ChainMode::Signed => Mode::Signed,
        }
    }

    pub(super) fn signature(&self) -> Option<CheckpointSignature> {
        let is_bad = !self.found.bad_signatures.is_empty() || !self.found.replayed.is_empty();
        match self.mode() {
            Mode::Legacy | Mode::Unsigned => None,
            Mode::SignedUnverified => Some(CheckpointSignature::Unverified),
            Mode::Signed if is_bad => Some(CheckpointSignature::Invalid),
            Mode::Signed => Some(CheckpointSignature::Verified),
        }
    }

    /// The digest of the baseline that the chain recorded last.
    pub(super) fn baseline_digest(&self) -> Option<&String> {
        self.found.baseline.as_ref().or(self.found.suspect_baseline.as_ref())
    }

    fn line(&mut self, line: &[u8]) {
        let Some(Step { line, before, linked, entry, .. }) = self.walk.step(line) else { return };
        let at = |record: Option<String>| Place { line, byte: self.line_start, record };
        let found = &mut self.found;
        if !linked {
            note(&mut found.breaks, at(None));
        }
        match entry {
            Entry::Corrupt => note(&mut found.corrupt, at(None)),
            Entry::UnknownKind => note(&mut found.malformed, at(None)),
            Entry::Ignored => {}
            Entry::Evidence(record) => {
                if !record.is_some_and(|record| evidence::is_self_addressed(record, &mut self.scratch)) {
                    note(&mut found.unaddressed, at(record.and_then(stated_id)));
                }
            }
            Entry::Marker(marker) => {
                if marker.label().is_some_and(|label| label.is("baseline/saved")) {
                    let digest = marker.payload.and_then(|payload| payload.get_text("digest"));
                    let digest = digest.map(|digest| digest.to_str().into_owned());
                    if marker.is_legacy || marker.is_suspect(before) {
                        found.suspect_baseline = digest;
                    } else {
                        found.baseline = digest;
                    }
                }
            }
            Entry::Checkpoint(checkpoint) => found.checkpoint(&checkpoint, at(None), self.keys, &mut self.scratch),
        }
    }
}

impl Findings {
    fn checkpoint(&mut self, checkpoint: &Checkpoint<'_>, place: Place, keys: &Keys, scratch: &mut Scratch) {
        if !checkpoint.is_well_formed {
            note(&mut self.malformed, place.clone());
        }
        if !checkpoint.head_holds {
            self.liar_count += 1;
            note(&mut self.liars, place.clone());
        }
        let owned = |text: crate::canonical::Text<'_>| text.to_str().into_owned();
        let workspace = checkpoint.workspace_key().map(owned);
        if let Some(workspace) = &workspace
            && self.workspace.get_or_insert_with(|| workspace.clone()) != workspace
        {
            note(&mut self.strangers, place.clone());
        }
        let is_sound = checkpoint.is_well_formed && checkpoint.head_holds;
        self.has_signature |= checkpoint.signature.is_some();
        if checkpoint.signature.is_some() {
            self.signed_key = checkpoint.key_id.map(owned);
        }
        if let Some((signature, key)) = checkpoint.signed_by() {
            if is_sound {
                self.signed = checkpoint.records;
            }
            let message = checkpoint.signed_bytes(scratch);
            match keys.check(&key.to_str(), &message, &signature.to_str()) {
                None => {}
                Some(false) => {
                    self.adjudicated += 1;
                    note(&mut self.bad_signatures, place);
                }
                Some(true) => {
                    self.adjudicated += 1;
                    if is_sound {
                        self.vouched = checkpoint.records;
                    }
                    if !checkpoint.head_holds {
                        note(&mut self.replayed, place);
                    }
                }
            }
        }
        self.last = Some(Last {
            count: checkpoint.payload.get("count").and_then(View::count),
            head: checkpoint.payload.get_text("head").map(owned).unwrap_or_default(),
            at: checkpoint.at().map(owned),
            key_id: checkpoint.key_id.map(owned),
            workspace,
        });
    }

    /// The problems of lines, in the order of the checks.
    pub(super) fn problems(&mut self, tail_records: u64, unvouched: u64) -> Vec<Problem> {
        let mut problems = Vec::new();
        problems.extend(self.breaks.drain(..).map(Problem::ChainBreak));
        problems.extend(self.corrupt.drain(..).map(Problem::CorruptLine));
        problems.extend(self.malformed.drain(..).map(Problem::MalformedCheckpoint));
        problems.extend(self.unaddressed.drain(..).map(Problem::RecordNotSelfAddressed));
        if self.last.is_some() && tail_records > 0 {
            problems.push(Problem::UncoveredTail { records: tail_records });
        }
        if unvouched > tail_records {
            problems.push(Problem::TailNotVouched { records: unvouched });
        }
        problems.extend(self.liars.drain(..).map(Problem::HeadLiar));
        problems.extend(self.bad_signatures.drain(..).map(Problem::CheckpointSignatureInvalid));
        problems.extend(self.replayed.drain(..).map(Problem::CheckpointReplayed));
        problems.extend(self.strangers.drain(..).map(Problem::CheckpointWorkspaceMismatch));
        problems
    }
}

fn stated_id(record: View<'_>) -> Option<String> {
    Some(record.get_text("evidenceId")?.to_str().into_owned())
}

fn note(list: &mut Vec<Place>, place: Place) {
    if list.len() < limits::PROBLEMS_NAMED_MAX {
        list.push(place);
    }
}

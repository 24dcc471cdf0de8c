//! The audit of a chain by its own host, section 4: the log, the anchor and the baseline file against each other.
//!
//! A host knows more than a verifier of bundles: which key is its own, that the anchor is out of reach of whoever writes the log,
//! and that a checkpoint without a signature was once allowed. What nobody could check is listed and fails nothing.

use serde::Serialize;

use super::anchor::{Anchor, Unusable};
use super::baseline;
use super::evidence;
use super::key::Keys;
use super::vocabulary::ChainMode;
use super::walk::{Checkpoint, Entry, Walk};
use crate::canonical::{self, Scratch};

/// How a writer says in `sigError` that it would not sign over a broken chain.
const REFUSED: &str = "refused-to-sign";

/// What an audit looks at.
#[derive(Clone, Copy, Debug)]
pub struct Subject<'a> {
    /// The log.
    pub log: &'a str,
    /// The anchor file, when there is one.
    pub anchor: Option<&'a str>,
    /// The baseline file, when there is one.
    pub baseline: Option<&'a str>,
    /// The workspace; a checkpoint of another one vouches for nothing.
    pub workspace_key: Option<&'a str>,
}

/// The result.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Audit {
    /// Whether nothing fails.
    pub ok: bool,
    /// Evidence records.
    pub total: u64,
    /// Checks whose records are not named by their content.
    pub corrupt: Vec<String>,
    /// An anchor that does not read: a missing capability.
    pub anchor_unreadable: bool,
    /// The chain.
    pub chain: ChainAudit,
    /// The line of the newest checkpoint that this host vouches for. Trust decisions read only what stands above it.
    #[serde(skip)]
    pub vouched_floor: Option<u64>,
}

/// What was found on the chain; numbers are lines that are not blank, from 0.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChainAudit {
    /// How it is linked and signed.
    pub mode: ChainMode,
    /// Lines that do not name the line before them.
    pub breaks: Vec<u64>,
    /// How many checkpoints there are.
    pub checkpoints: u64,
    /// Signatures that do not verify under the key that they name.
    pub bad_checkpoints: Vec<u64>,
    /// Signatures of keys that are not held.
    pub unverifiable_checkpoints: Vec<u64>,
    /// Checkpoints without a signature where one was due.
    pub unsigned_checkpoints: Vec<u64>,
    /// Checkpoints whose head is not the line before them.
    pub head_mismatches: Vec<u64>,
    /// Checkpoints whose writer could not sign.
    pub sig_error_checkpoints: Vec<u64>,
    /// Checkpoints whose writer would not sign.
    pub refused_to_sign: Vec<u64>,
    /// Those of them that a verified checkpoint follows.
    pub refused_to_sign_pardoned: Vec<u64>,
    /// Checkpoints from before there was a key.
    pub unsigned_era_checkpoints: Vec<u64>,
    /// Checkpoints that do not count what was counted, and envelopes of unknown kinds.
    pub malformed_checkpoints: Vec<u64>,
    /// Lines that are no envelope.
    pub corrupt_lines: Vec<u64>,
    /// Records after the last checkpoint.
    pub tail_records: u64,
    /// The log ends before the anchor.
    pub rewind: bool,
    /// The log went another way than the anchor.
    pub anchor_mismatch: bool,
    /// The anchor's signature is not that of the key that it names.
    pub anchor_forged: bool,
    /// The anchor names no key, has no signature, or counts what nobody can count.
    pub anchor_invalid: bool,
    /// The baseline file is not the one that the chain recorded.
    pub baseline_tampered: bool,
    /// Protected markers that do not name the line before them.
    pub suspect_markers: Vec<u64>,
}

impl Default for ChainAudit {
    fn default() -> Self {
        Self {
            mode: ChainMode::Unsigned,
            breaks: Vec::new(),
            checkpoints: 0,
            bad_checkpoints: Vec::new(),
            unverifiable_checkpoints: Vec::new(),
            unsigned_checkpoints: Vec::new(),
            head_mismatches: Vec::new(),
            sig_error_checkpoints: Vec::new(),
            refused_to_sign: Vec::new(),
            refused_to_sign_pardoned: Vec::new(),
            unsigned_era_checkpoints: Vec::new(),
            malformed_checkpoints: Vec::new(),
            corrupt_lines: Vec::new(),
            tail_records: 0,
            rewind: false,
            anchor_mismatch: false,
            anchor_forged: false,
            anchor_invalid: false,
            baseline_tampered: false,
            suspect_markers: Vec::new(),
        }
    }
}

/// What the walk leaves for the judgements that need all of it.
#[derive(Default)]
struct Seen {
    /// Well-formed checkpoints: key, count, head.
    anchored: Vec<(String, u64, String)>,
    /// Checkpoints without key and signature.
    naked: Vec<u64>,
    /// Checkpoints with a `sigError`, and the key that they name.
    failed: Vec<(u64, String)>,
    /// Verified checkpoints, and their key.
    verified: Vec<(u64, String)>,
    /// The last checkpoint with a signature, whoever's.
    signed: Option<u64>,
    /// Line and digest of the last trusted `baseline/saved`, and of the last suspect one.
    saved: Option<(u64, String)>,
    suspect_saved: Option<(u64, String)>,
}

/// Audits a chain. `keys` holds the host's own key, or nothing.
pub fn audit(subject: &Subject<'_>, keys: &Keys) -> Audit {
    let mut audit = Audit::default();
    let mut seen = Seen::default();
    let mut scratch = Scratch::default();
    let mut walk = Walk::default();
    for line in subject.log.split('\n') {
        let Some(step) = walk.step(line.as_bytes()) else { continue };
        let line = step.line;
        if !step.linked {
            audit.chain.breaks.push(line);
        }
        match step.entry {
            Entry::Corrupt => audit.chain.corrupt_lines.push(line),
            Entry::UnknownKind => audit.chain.malformed_checkpoints.push(line),
            Entry::Ignored => {}
            Entry::Evidence(record) => {
                audit.total += 1;
                if !record.is_some_and(|record| evidence::is_self_addressed(record, &mut scratch)) {
                    let check = record.and_then(|record| record.get_text("checkId"));
                    audit.corrupt.push(check.map(|id| id.to_str().into_owned()).unwrap_or_default());
                }
            }
            Entry::Marker(marker) => {
                let is_suspect = marker.is_suspect(step.before);
                if is_suspect {
                    audit.chain.suspect_markers.push(line);
                }
                if marker.label().is_some_and(|label| label.is("baseline/saved")) {
                    let digest = marker.payload.and_then(|payload| payload.get_text("digest"));
                    let saved = Some((line, digest.map(|digest| digest.to_str().into_owned()).unwrap_or_default()));
                    if is_suspect || marker.is_legacy {
                        seen.suspect_saved = saved;
                    } else {
                        seen.saved = saved;
                    }
                }
            }
            Entry::Checkpoint(checkpoint) => {
                audit.checkpoint(line, &checkpoint, subject, keys, &mut seen, &mut scratch);
            }
        }
    }
    audit.chain.mode = walk.mode();
    audit.chain.tail_records = walk.state().tail_records;
    audit.judge_unsigned(keys, &seen);
    audit.judge_anchor(subject, keys, &seen);
    audit.judge_baseline(subject, keys, &seen);
    audit.ok = audit.holds(keys, &seen);
    audit
}

impl Audit {
    fn checkpoint(
        &mut self,
        line: u64,
        checkpoint: &Checkpoint<'_>,
        subject: &Subject<'_>,
        keys: &Keys,
        seen: &mut Seen,
        scratch: &mut Scratch,
    ) {
        let chain = &mut self.chain;
        chain.checkpoints += 1;
        if !checkpoint.is_well_formed {
            chain.malformed_checkpoints.push(line);
        }
        if !checkpoint.head_holds {
            chain.head_mismatches.push(line);
        }
        let key = checkpoint.key_id.map(|key| key.to_str().into_owned()).unwrap_or_default();
        if checkpoint.is_well_formed {
            let head = checkpoint.payload.get_text("head").map(|head| head.to_str().into_owned());
            seen.anchored.push((key.clone(), checkpoint.records, head.unwrap_or_default()));
        }
        let Some(signature) = checkpoint.signature else {
            match checkpoint.sig_error {
                Some(error) if error.to_str().starts_with(REFUSED) => chain.refused_to_sign.push(line),
                Some(_) => {
                    chain.sig_error_checkpoints.push(line);
                    seen.failed.push((line, key));
                }
                None if keys.is_empty() => {}
                None if checkpoint.key_id.is_some() => chain.unsigned_checkpoints.push(line),
                None => seen.naked.push(line),
            }
            return;
        };
        seen.signed = Some(line);
        match keys.check(&key, &checkpoint.signed_bytes(scratch), &signature.to_str()) {
            None => chain.unverifiable_checkpoints.push(line),
            Some(false) => chain.bad_checkpoints.push(line),
            Some(true) => {
                seen.verified.push((line, key));
                let workspace = checkpoint.workspace_key().map(|key| key.to_str().into_owned());
                let is_here = workspace.is_none() || workspace.as_deref() == subject.workspace_key;
                if checkpoint.is_well_formed && checkpoint.head_holds && is_here {
                    self.vouched_floor = Some(line);
                }
            }
        }
    }

    /// Checkpoints without a signature: from before there was a key, or where one was due.
    fn judge_unsigned(&mut self, keys: &Keys, seen: &Seen) {
        let first = seen.verified.first().map(|(line, _)| *line);
        for line in &seen.naked {
            if first.is_none_or(|first| *line < first) {
                self.chain.unsigned_era_checkpoints.push(*line);
            } else {
                self.chain.unsigned_checkpoints.push(*line);
            }
        }
        self.chain.unsigned_checkpoints.sort_unstable();
        let last = seen.verified.last().map(|(line, _)| *line).filter(|_| !keys.is_empty());
        let pardoned = self.chain.refused_to_sign.iter().filter(|line| last.is_some_and(|last| **line < last));
        self.chain.refused_to_sign_pardoned = pardoned.copied().collect();
    }

    fn judge_anchor(&mut self, subject: &Subject<'_>, keys: &Keys, seen: &Seen) {
        let anchor = match subject.anchor.map(Anchor::parse) {
            None => return,
            Some(Err(Unusable::Unreadable)) => {
                self.anchor_unreadable = true;
                return;
            }
            Some(Err(Unusable::Invalid)) => {
                self.chain.anchor_invalid = true;
                return;
            }
            Some(Ok(anchor)) => anchor,
        };
        let mut named = seen.anchored.iter().filter(|(key, ..)| *key == anchor.key_id);
        let answered = named.clone().any(|(_, count, head)| *count == anchor.count && *head == anchor.head);
        if !answered {
            let last = named.next_back().map(|(_, count, _)| *count);
            let is_short = last.is_none_or(|last| last < anchor.count);
            (self.chain.rewind, self.chain.anchor_mismatch) = (is_short, !is_short);
        }
        self.chain.anchor_forged = anchor.is_signed(keys) == Some(false);
    }

    fn judge_baseline(&mut self, subject: &Subject<'_>, keys: &Keys, seen: &Seen) {
        let Some(file) = subject.baseline else { return };
        let is_recorded = seen.saved.as_ref().or(seen.suspect_saved.as_ref()).is_none_or(|(line, recorded)| {
            // a host that signs believes no marker that no signature covers
            let is_covered = keys.is_empty() || seen.signed.is_some_and(|cover| *line < cover);
            is_covered && *recorded == canonical::sha256_hex(file.as_bytes())
        });
        // a chain that recorded no baseline has none to compare with: its end may be missing, which the anchor shows
        self.chain.baseline_tampered = !baseline::read(file).flaws.is_empty() || !is_recorded;
    }

    fn holds(&self, keys: &Keys, seen: &Seen) -> bool {
        let chain = &self.chain;
        let is_recovered = |line: u64, key: &str| {
            !keys.holds(key) || seen.verified.iter().any(|(later, signer)| *later > line && signer == key)
        };
        self.corrupt.is_empty()
            && chain.mode != ChainMode::Legacy
            && [&chain.corrupt_lines, &chain.breaks, &chain.bad_checkpoints, &chain.head_mismatches]
                .into_iter()
                .chain([&chain.malformed_checkpoints, &chain.unsigned_checkpoints])
                .all(Vec::is_empty)
            && chain.refused_to_sign.len() == chain.refused_to_sign_pardoned.len()
            && seen.failed.iter().all(|(line, key)| is_recovered(*line, key))
            && !(chain.rewind || chain.anchor_mismatch || chain.anchor_forged || chain.anchor_invalid)
            && !chain.baseline_tampered
    }
}

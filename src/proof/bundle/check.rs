//! The verification itself: what streams in is judged in the order of the protocol.

use std::io::{self, Read};

use super::log::Log;
use super::manifest::{self, Present};
use super::problem::Problem;
use super::stream::{Fault, Sink, Stream};
use super::{AnchorSeen, LAYOUT, Mode, Transparency, Verification, transparency};
use crate::canonical::{Tape, View};
use crate::limits;
use crate::proof::address::Digest;
use crate::proof::anchor::Anchor;
use crate::proof::baseline::{self, Flaw};
use crate::proof::key::Keys;

/// Hex digits of a workspace key of jim's; the reference's have 16.
const OWN_WORKSPACE_DIGITS: usize = 32;

/// Names of files outside the layout that are remembered.
const STRANGERS_MAX: usize = 16;

struct Contents<'k> {
    keys: &'k Keys,
    manifest: Option<String>,
    log: Log<'k>,
    documents: [Vec<u8>; 2],
    present: Present,
    current: Current,
}

/// The file that is being read.
#[derive(Clone, Copy)]
enum Current {
    Log,
    /// A document, by its place after the log.
    Document(usize),
    Stranger,
}

impl Sink for Contents<'_> {
    fn manifest(&mut self, text: &str) {
        self.manifest = Some(text.to_owned());
    }

    fn files(&mut self) {
        self.present = Present::default();
    }

    fn file(&mut self, name: &str) {
        self.current = match LAYOUT.iter().position(|known| *known == name) {
            Some(0) => {
                self.log = Log::new(self.keys);
                Current::Log
            }
            Some(at) => {
                self.documents[at - 1].clear();
                Current::Document(at)
            }
            None => {
                if self.present.strangers.len() < STRANGERS_MAX && !self.present.strangers.iter().any(|n| n == name) {
                    self.present.strangers.push(name.to_owned());
                }
                Current::Stranger
            }
        };
    }

    fn bytes(&mut self, bytes: &[u8]) -> bool {
        match self.current {
            Current::Log => self.log.push(bytes),
            Current::Document(at) => {
                self.documents[at - 1].extend_from_slice(bytes);
                self.documents[at - 1].len() <= limits::PROOF_DOCUMENT_BYTES_MAX
            }
            Current::Stranger => true,
        }
    }

    fn end(&mut self) {
        match self.current {
            Current::Log => self.present.known[0] = Some(self.log.end()),
            Current::Document(at) => {
                let bytes = &self.documents[at - 1];
                self.present.known[at] = Some((Digest::of(bytes), bytes.len() as u64));
            }
            Current::Stranger => {}
        }
    }
}

/// See [`super::verify`].
pub(super) fn verify(source: impl Read, keys: &Keys) -> io::Result<Verification> {
    let mut contents = Contents {
        keys,
        manifest: None,
        log: Log::new(keys),
        documents: Default::default(),
        present: Present::default(),
        current: Current::Stranger,
    };
    match Stream::new(source).read(&mut contents) {
        Ok(()) => Ok(contents.judge()),
        Err(Fault::Io(error)) => Err(error),
        Err(Fault::Json(byte)) => {
            let mut result = blank();
            result.problems.push(Problem::Unreadable { byte });
            Ok(result)
        }
    }
}

fn blank() -> Verification {
    Verification {
        protocol_ok: false,
        manifest_ok: false,
        digest_mismatches: Vec::new(),
        chain_breaks: Vec::new(),
        corrupt_lines: Vec::new(),
        malformed_checkpoints: Vec::new(),
        tail_records: 0,
        head_liars: 0,
        chain_mode: Mode::Unsigned,
        anchor: None,
        baseline_id: None,
        baseline_self_addressed: false,
        transparency: None,
        legacy_protocol: false,
        checkpoint_signature: None,
        workspace_key: None,
        records: 0,
        problems: Vec::new(),
    }
}

impl Contents<'_> {
    fn judge(mut self) -> Verification {
        let mut result = blank();
        let text = self.manifest.take();
        let mut tape = Tape::default();
        let manifest = text.as_deref().and_then(|text| tape.read(text).ok()).filter(|manifest| manifest.is_object());
        result.workspace_key = manifest.and_then(|m| m.get_text("workspaceKey")).map(|key| key.to_str().into_owned());
        manifest::check_dialect(manifest, &mut result);
        manifest::check_files(manifest, &self.present, &mut result);
        self.judge_log(&mut result);
        self.judge_header(manifest, &mut result);
        self.judge_anchor(&mut result);
        self.judge_baseline(&mut result);
        self.judge_publication(manifest, &mut result);
        result
    }

    fn judge_log(&mut self, result: &mut Verification) {
        if self.present.known[0].is_none() {
            // a log that a later `files` took away does not count
            self.log = Log::new(self.keys);
            return;
        }
        let log = &mut self.log;
        if log.lines() == 0 {
            result.problems.push(Problem::LogEmpty);
        } else if log.records() == 0 {
            result.problems.push(Problem::LogNoRecords);
        }
        let lines = |places: &[super::Place]| places.iter().map(|place| place.line).collect();
        result.chain_breaks = lines(&log.found.breaks);
        result.corrupt_lines = lines(&log.found.corrupt);
        result.malformed_checkpoints = lines(&log.found.malformed);
        result.records = log.records();
        result.tail_records = log.tail_records();
        result.head_liars = log.found.liar_count;
        result.chain_mode = log.mode();
        result.checkpoint_signature = log.signature();
        let (tail, unvouched) = (log.tail_records(), log.unvouched());
        result.problems.extend(log.found.problems(tail, unvouched));
    }

    /// The members of the manifest that nobody signed, against what was signed.
    fn judge_header(&self, manifest: Option<View<'_>>, result: &mut Verification) {
        let found = &self.log.found;
        if let Some(chain) = &found.workspace
            && result.workspace_key.as_ref() != Some(chain)
        {
            let manifest = result.workspace_key.clone();
            result.problems.push(Problem::ManifestWorkspaceMismatch { manifest, chain: chain.clone() });
        }
        let own = found.last.as_ref().filter(|last| last.workspace.as_deref().is_some_and(is_own_workspace));
        if let Some(expected) = own.and_then(|last| last.at.clone()) {
            let stated = manifest.and_then(|m| m.get_text("createdAt")).map(|at| at.to_str().into_owned());
            if stated.as_ref() != Some(&expected) {
                result.problems.push(Problem::ManifestCreatedAt { stated, expected });
            }
        }
    }

    fn judge_anchor(&self, result: &mut Verification) {
        if self.present.known[2].is_none() {
            return;
        }
        let read = std::str::from_utf8(&self.documents[1]).ok().and_then(|text| Anchor::parse(text).ok());
        let Some(anchor) = read else {
            result.problems.push(Problem::AnchorUnparseable);
            return;
        };
        let last = self.log.found.last.as_ref();
        let head_matches_chain = last.is_some_and(|last| last.head == anchor.head);
        if last.is_none() {
            result.problems.push(Problem::AnchorWithoutCheckpoint);
        } else if !head_matches_chain {
            result.problems.push(Problem::AnchorHeadMismatch);
        }
        match (anchor.is_signed(self.keys), last) {
            // what a held key signed is compared with nothing that anybody could write
            (Some(true), _) | (None, None) => {}
            (Some(false), _) => result.problems.push(Problem::AnchorSignatureInvalid),
            (None, Some(last)) => {
                if last.key_id.as_ref().or(self.log.found.signed_key.as_ref()) != Some(&anchor.key_id) {
                    result.problems.push(Problem::AnchorKeyIdMismatch);
                }
                if last.count != Some(anchor.count) {
                    result.problems.push(Problem::AnchorCountMismatch);
                }
                if anchor.workspace_key.is_some() && anchor.workspace_key != result.workspace_key {
                    result.problems.push(Problem::AnchorWorkspaceMismatch);
                }
            }
        }
        let Anchor { key_id, count, head, .. } = anchor;
        result.anchor = Some(AnchorSeen { key_id, count, head, head_matches_chain });
    }

    fn judge_baseline(&self, result: &mut Verification) {
        let Some((digest, _)) = self.present.known[1] else { return };
        let reading = match std::str::from_utf8(&self.documents[0]) {
            Ok(text) => baseline::read(text),
            Err(_) => baseline::Reading { flaws: vec![Flaw::Unparseable], ..baseline::Reading::default() },
        };
        result.problems.extend(reading.flaws.into_iter().take(limits::PROBLEMS_NAMED_MAX).map(|flaw| match flaw {
            Flaw::Unparseable => Problem::BaselineUnparseable,
            Flaw::NoId => Problem::BaselineNoId,
            Flaw::Material => Problem::BaselineMaterialMalformed,
            Flaw::NotSelfAddressed => Problem::BaselineNotSelfAddressed,
            Flaw::Check { at, record } => Problem::BaselineCheckNotSelfAddressed { check: at as u64, record },
            Flaw::Root => Problem::BaselineRootMismatch,
        }));
        let computed = digest.to_string();
        let recorded = self.log.baseline_digest();
        if recorded != Some(&computed) {
            result.problems.push(Problem::BaselineDigestMismatch { recorded: recorded.cloned(), computed });
        }
        result.baseline_id = reading.id;
        result.baseline_self_addressed = reading.is_self_addressed;
    }

    fn judge_publication(&self, manifest: Option<View<'_>>, result: &mut Verification) {
        let Some(record) = manifest.and_then(|manifest| manifest.get("transparency")) else { return };
        if let Some(rule) = transparency::first_flaw(record) {
            result.transparency = Some(Transparency::Malformed);
            result.problems.push(Problem::TransparencyMalformed { rule });
            return;
        }
        result.transparency = Some(Transparency::Recorded);
        if matches!(result.chain_mode, Mode::Legacy | Mode::Unsigned) {
            result.problems.push(Problem::TransparencyWithoutSignedCheckpoint);
        }
    }
}

/// Whether a workspace is one of jim's: its bundles are made of their last checkpoint, the time included.
fn is_own_workspace(key: &str) -> bool {
    key.len() == OWN_WORKSPACE_DIGITS && key.bytes().all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
}

//! The manifest of a bundle against the files that came with it.

use super::problem::Problem;
use super::{LAYOUT, Verification};
use crate::canonical::View;
use crate::proof::address::Digest;
use crate::proof::dialect::{self, Dialect};

/// Files of a bundle as they were read.
#[derive(Debug, Default)]
pub(super) struct Present {
    /// Digest and size of the files of the layout, in its order.
    pub(super) known: [Option<(Digest, u64)>; 3],
    /// Names of others.
    pub(super) strangers: Vec<String>,
}

impl Present {
    fn of(&self, path: &str) -> Option<(Digest, u64)> {
        LAYOUT.iter().position(|name| *name == path).and_then(|at| self.known[at])
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        let known = LAYOUT.into_iter().zip(&self.known).filter(|(_, file)| file.is_some()).map(|(name, _)| name);
        known.chain(self.strangers.iter().map(String::as_str))
    }
}

/// Judges the dialect.
pub(super) fn check_dialect(manifest: Option<View<'_>>, result: &mut Verification) {
    let member = |name| manifest?.get_text(name).map(|text| text.to_str().into_owned());
    let (protocol, stated) = (member("protocol"), member("appFingerprint"));
    match dialect::adjudicate(protocol.as_deref(), stated.as_deref()) {
        Dialect::Current => result.protocol_ok = true,
        Dialect::Legacy => (result.protocol_ok, result.legacy_protocol) = (true, true),
        Dialect::Unknown { expected } => {
            result.problems.push(Problem::ProtocolUnsupported { protocol, stated, expected });
        }
    }
}

/// Judges the list of files.
pub(super) fn check_files(manifest: Option<View<'_>>, present: &Present, result: &mut Verification) {
    let before = result.problems.len();
    let mut listed: Vec<String> = Vec::new();
    match manifest.and_then(|manifest| manifest.get("files")).and_then(View::items) {
        None => result.problems.push(Problem::ManifestFilesMissing),
        Some(entries) => {
            for (entry, view) in entries.enumerate() {
                check_entry(entry as u64, view, present, &mut listed, result);
            }
        }
    }
    let mut unlisted: Vec<&str> = present.names().filter(|name| !listed.iter().any(|path| path == name)).collect();
    unlisted.sort_by(|a, b| a.encode_utf16().cmp(b.encode_utf16()));
    result.problems.extend(unlisted.into_iter().map(|path| Problem::UnlistedFile { path: path.to_owned() }));
    if present.known[0].is_none() {
        result.problems.push(Problem::EvidenceLogMissing);
    }
    result.manifest_ok = result.problems.len() == before;
}

fn check_entry(entry: u64, view: View<'_>, present: &Present, listed: &mut Vec<String>, result: &mut Verification) {
    let text = |name| view.get_text(name).map(|text| text.to_str().into_owned());
    let size = view.get("bytes").filter(|bytes| bytes.number().is_some());
    let (Some(path), Some(stated), Some(size)) = (text("path"), text("sha256"), size) else {
        result.problems.push(Problem::ManifestEntryMalformed { entry });
        return;
    };
    if !LAYOUT.contains(&path.as_str()) {
        result.problems.push(Problem::ManifestPathOutsideLayout { entry, path });
        return;
    }
    if listed.contains(&path) {
        result.problems.push(Problem::ManifestDuplicate { path });
        return;
    }
    listed.push(path.clone());
    let Some((digest, bytes)) = present.of(&path) else {
        result.digest_mismatches.push(path.clone());
        result.problems.push(Problem::ManifestFileAbsent { path });
        return;
    };
    let computed = digest.to_string();
    if computed != stated {
        result.digest_mismatches.push(path.clone());
        result.problems.push(Problem::DigestMismatch { path, stated, computed });
    } else if size.count() != Some(bytes) {
        result.digest_mismatches.push(path.clone());
        result.problems.push(Problem::SizeMismatch { path, computed: bytes });
    }
}

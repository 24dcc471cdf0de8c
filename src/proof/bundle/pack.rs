//! Makes bundles. The chain is read first: what does not verify is not packed.

use std::io::{self, Write};

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::super::chain::{Broken, Chain};
use super::{ANCHOR, BASELINE, EVIDENCE};
use crate::canonical;
use crate::proof::dialect;
use crate::proof::walk::{Entry, Walk};

/// What a bundle is made of.
#[derive(Clone, Copy, Debug)]
pub struct Parts<'a> {
    /// The workspace of the chain.
    pub workspace_key: &'a str,
    /// The chain, segment by segment, in the bytes that were hashed.
    pub segments: &'a [&'a [u8]],
    /// The baseline file.
    pub baseline: Option<&'a str>,
    /// The anchor file.
    pub anchor: Option<&'a str>,
    /// The record of publication, as JSON text.
    pub transparency: Option<&'a serde_json::Value>,
}

/// Why there is no bundle.
#[derive(Debug, thiserror::Error)]
pub enum Unpackable {
    /// The chain does not verify.
    #[error(transparent)]
    Broken(#[from] Broken),
    /// The chain has no checkpoint, so that nothing says when it ended.
    #[error("the chain has no checkpoint")]
    NoCheckpoint,
    /// The chain is not UTF-8.
    #[error("the chain is not UTF-8")]
    NotText,
    /// The bundle could not be written.
    #[error(transparent)]
    Io(#[from] io::Error),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Manifest<'a> {
    protocol: &'static str,
    app_fingerprint: &'static str,
    workspace_key: &'a str,
    created_at: &'a str,
    files: Vec<Listed>,
    #[serde(skip_serializing_if = "Option::is_none")]
    transparency: Option<&'a serde_json::Value>,
}

#[derive(Serialize)]
struct Listed {
    path: &'static str,
    sha256: String,
    bytes: usize,
}

/// Writes the bundle. Its time is that of the last checkpoint, so that one chain always makes the same bytes. Beside the parts no
/// more than one segment is held in memory.
pub fn pack(parts: &Parts<'_>, mut out: impl Write) -> Result<(), Unpackable> {
    Chain::reopen(parts.workspace_key, parts.segments.iter().copied())?;
    let log: Vec<&str> = parts
        .segments
        .iter()
        .map(|segment| std::str::from_utf8(segment).map_err(|_| Unpackable::NotText))
        .collect::<Result<_, _>>()?;
    let created_at =
        log.iter().rev().find_map(|segment| last_checkpoint_at(segment)).ok_or(Unpackable::NoCheckpoint)?;
    let documents = [(BASELINE, parts.baseline), (ANCHOR, parts.anchor)];
    let documents: Vec<(&'static str, &str)> =
        documents.into_iter().filter_map(|(path, text)| Some((path, text?))).collect();
    let manifest = Manifest {
        protocol: dialect::CURRENT,
        app_fingerprint: dialect::current_fingerprint(),
        workspace_key: parts.workspace_key,
        created_at: &created_at,
        files: std::iter::once(listed(EVIDENCE, &log))
            .chain(documents.iter().map(|(path, text)| listed(path, &[text])))
            .collect(),
        transparency: parts.transparency,
    };
    out.write_all(b"{\"manifest\":")?;
    serde_json::to_writer(&mut out, &manifest).map_err(io::Error::from)?;
    write!(out, ",\"files\":{{\"{EVIDENCE}\":\"")?;
    for segment in log {
        let quoted = serde_json::to_string(segment).map_err(io::Error::from)?;
        out.write_all(&quoted.as_bytes()[1..quoted.len() - 1])?;
    }
    out.write_all(b"\"")?;
    for (path, text) in documents {
        write!(out, ",\"{path}\":")?;
        serde_json::to_writer(&mut out, text).map_err(io::Error::from)?;
    }
    out.write_all(b"}}")?;
    Ok(())
}

fn listed(path: &'static str, pieces: &[&str]) -> Listed {
    let mut hasher = Sha256::new();
    pieces.iter().for_each(|piece| hasher.update(piece));
    Listed { path, sha256: canonical::hex(&hasher.finalize()), bytes: pieces.iter().map(|piece| piece.len()).sum() }
}

fn last_checkpoint_at(log: &str) -> Option<String> {
    let last = log.lines().rev().find(|line| !line.trim().is_empty())?;
    let mut walk = Walk::default();
    match walk.step(last.as_bytes())?.entry {
        Entry::Checkpoint(checkpoint) => Some(checkpoint.at()?.to_str().into_owned()),
        _ => None,
    }
}

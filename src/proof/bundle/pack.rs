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

/// Writes the bundle. Its time is that of the last checkpoint, so that one chain always makes the same bytes.
pub fn pack(parts: &Parts<'_>, mut out: impl Write) -> Result<(), Unpackable> {
    let log = parts.segments.concat();
    Chain::reopen(parts.workspace_key, &log)?;
    let log = std::str::from_utf8(&log).map_err(|_| Unpackable::NotText)?;
    let created_at = last_checkpoint_at(log).ok_or(Unpackable::NoCheckpoint)?;
    let files = [(EVIDENCE, Some(log)), (BASELINE, parts.baseline), (ANCHOR, parts.anchor)];
    let files: Vec<(&'static str, &str)> = files.into_iter().filter_map(|(path, text)| Some((path, text?))).collect();
    let entry = |(path, text): &(&'static str, &str)| Listed {
        path,
        sha256: canonical::hex(&Sha256::digest(text)),
        bytes: text.len(),
    };
    let manifest = Manifest {
        protocol: dialect::CURRENT,
        app_fingerprint: dialect::current_fingerprint(),
        workspace_key: parts.workspace_key,
        created_at: &created_at,
        files: files.iter().map(entry).collect(),
        transparency: parts.transparency,
    };
    out.write_all(b"{\"manifest\":")?;
    serde_json::to_writer(&mut out, &manifest).map_err(io::Error::from)?;
    out.write_all(b",\"files\":{")?;
    for (at, (path, text)) in files.iter().enumerate() {
        out.write_all(if at == 0 { b"\"" } else { b",\"" })?;
        out.write_all(path.as_bytes())?;
        out.write_all(b"\":")?;
        serde_json::to_writer(&mut out, text).map_err(io::Error::from)?;
    }
    out.write_all(b"}}")?;
    Ok(())
}

fn last_checkpoint_at(log: &str) -> Option<String> {
    let last = log.lines().rev().find(|line| !line.trim().is_empty())?;
    let mut walk = Walk::default();
    match walk.step(last.as_bytes())?.entry {
        Entry::Checkpoint(checkpoint) => Some(checkpoint.at()?.to_str().into_owned()),
        _ => None,
    }
}

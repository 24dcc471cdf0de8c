//! The anchor, section 4: the highest checkpoint of a chain, kept where its writer cannot reach.

use serde::Serialize;

use super::address::Digest;
use super::key::Keys;
use super::walk;
use crate::canonical::{Scratch, Tape, View};

/// An anchor file that was read.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Anchor {
    /// Version, always 1.
    pub v: u64,
    /// The key that signed.
    pub key_id: String,
    /// Records before the checkpoint.
    pub count: u64,
    /// Digest of the line before the checkpoint.
    pub head: String,
    /// Signature of the checkpoint.
    pub sig: String,
    /// Time of the checkpoint.
    pub at: String,
    /// The workspace; old anchors name none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub workspace_key: Option<String>,
}

/// Why an anchor says nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unusable {
    /// No JSON, another version, or members of other types: a missing capability.
    Unreadable,
    /// It reads, but names no key, has no signature, or counts what nobody can count: a failure.
    Invalid,
}

impl Anchor {
    /// Reads an anchor file.
    pub fn parse(text: &str) -> Result<Self, Unusable> {
        let mut tape = Tape::default();
        let view = tape.read(text).map_err(|_| Unusable::Unreadable)?;
        let string = |name| view.get_text(name).map(|text| text.to_str().into_owned());
        if view.get("v").and_then(View::number) != Some(1.0) {
            return Err(Unusable::Unreadable);
        }
        let workspace_key = match view.get("workspaceKey") {
            None => None,
            Some(key) => Some(key.text().ok_or(Unusable::Unreadable)?.to_str().into_owned()),
        };
        let count = view.get("count").filter(|count| count.number().is_some()).ok_or(Unusable::Unreadable)?;
        let (Some(key_id), Some(head), Some(at)) = (string("keyId"), string("head"), string("at")) else {
            return Err(Unusable::Unreadable);
        };
        let sig = match view.get("sig") {
            None => String::new(),
            Some(sig) => sig.text().ok_or(Unusable::Unreadable)?.to_str().into_owned(),
        };
        let count = count.count().filter(|_| !key_id.is_empty() && !sig.is_empty()).ok_or(Unusable::Invalid)?;
        Ok(Self { v: 1, key_id, count, head, sig, at, workspace_key })
    }

    /// Whether its signature is that of the key that it names; `None` when the key is not held. An anchor without a workspace is
    /// read as one that names none.
    pub fn is_signed(&self, keys: &Keys) -> Option<bool> {
        let text = serde_json::to_string(self).expect("text and numbers serialize");
        let mut tape = Tape::default();
        let view = tape.read(&text).expect("what was written is JSON");
        keys.check(&self.key_id, &walk::signed_bytes(view, &mut Scratch::default()), &self.sig)
    }

    /// The head as a digest, when it is one.
    pub fn head_digest(&self) -> Option<Digest> {
        Digest::parse(&self.head)
    }

    /// The file as it is written.
    pub fn to_file(&self) -> String {
        serde_json::to_string_pretty(self).expect("text and numbers serialize")
    }
}

//! Memos that the gate accepted, kept by what they were written from, so that the same facts are not written about twice.
//!
//! A hit is a proposal like any other: it is gated again over the snapshot at hand. Nothing here outlives the process.

use std::sync::Arc;

use quick_cache::Weighter;
use quick_cache::sync::Cache;

use crate::limits;
use crate::memo::{Draft, Fingerprint, Mode, Snapshot};

/// Bytes of a kept memo beside its text.
const OVERHEAD_BYTES: u64 = 256;

/// Accepted memos, the least used ones forgotten beyond [`limits::MEMO_CACHE_BYTES`].
pub(super) struct MemoCache(Cache<Key, Arc<Kept>, Bytes>);

/// A kept memo, and whether a second opinion was asked for when it was new.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Kept {
    pub(super) draft: Draft,
    pub(super) is_reviewed: bool,
}

/// What a memo was written from, for whom, and by whom.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    facts: Fingerprint,
    mode: Mode,
    writer: Box<str>,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Arc<Kept>> for Bytes {
    fn weight(&self, _key: &Key, kept: &Arc<Kept>) -> u64 {
        kept.draft.len_bytes() as u64 + OVERHEAD_BYTES
    }
}

impl Key {
    pub(super) fn new(snapshot: &Snapshot, mode: Mode, writer: &str) -> Self {
        Self { facts: snapshot.fingerprint(), mode, writer: writer.into() }
    }
}

impl MemoCache {
    pub(super) fn new() -> Self {
        Self(Cache::with_weighter(limits::MEMO_CACHE_ENTRIES, limits::MEMO_CACHE_BYTES, Bytes))
    }

    /// The memo written from these facts, if it is kept.
    pub(super) fn get(&self, key: &Key) -> Option<Kept> {
        self.0.get(key).map(|kept| Kept::clone(&kept))
    }

    /// Keeps an accepted memo.
    pub(super) fn keep(&self, key: Key, draft: &Draft, is_reviewed: bool) {
        self.0.insert(key, Arc::new(Kept { draft: draft.clone(), is_reviewed }));
    }

    /// Forgets one that is not accepted any more.
    pub(super) fn forget(&self, key: &Key) {
        self.0.remove(key);
    }
}

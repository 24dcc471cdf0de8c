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
pub(super) struct MemoCache(Cache<Key, Arc<Draft>, Bytes>);

/// What a memo was written from, for whom, and by whom.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key {
    facts: Fingerprint,
    mode: Mode,
    writer: Box<str>,
}

#[derive(Clone)]
struct Bytes;

impl Weighter<Key, Arc<Draft>> for Bytes {
    fn weight(&self, _key: &Key, draft: &Arc<Draft>) -> u64 {
        draft.len_bytes() as u64 + OVERHEAD_BYTES
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
    pub(super) fn get(&self, key: &Key) -> Option<Draft> {
        self.0.get(key).map(|draft| Draft::clone(&draft))
    }

    /// Keeps an accepted memo.
    pub(super) fn keep(&self, key: Key, draft: &Draft) {
        self.0.insert(key, Arc::new(draft.clone()));
    }

    /// Forgets one that is not accepted any more.
    pub(super) fn forget(&self, key: &Key) {
        self.0.remove(key);
    }
}

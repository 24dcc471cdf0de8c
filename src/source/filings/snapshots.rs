//! Snapshots that were put together already, by ticker, each with a mark of the documents that it was made from.

use std::sync::Arc;

use quick_cache::sync::Cache;

use crate::limits;
use crate::memo::Snapshot;

/// Snapshots by ticker; the least used ones are forgotten beyond [`limits::SNAPSHOTS_KEPT_MAX`].
pub(super) struct Snapshots<Mark>(Cache<Arc<str>, (Arc<Mark>, Snapshot)>);

impl<Mark> Snapshots<Mark> {
    pub(super) fn new() -> Self {
        Self(Cache::new(limits::SNAPSHOTS_KEPT_MAX))
    }

    /// The snapshot of a ticker, if its mark still holds.
    pub(super) fn get(&self, ticker: &str, holds: impl FnOnce(&Mark) -> bool) -> Option<Snapshot> {
        let (mark, snapshot) = self.0.get(ticker)?;
        holds(&mark).then_some(snapshot)
    }

    pub(super) fn keep(&self, ticker: &str, mark: Mark, snapshot: &Snapshot) {
        self.0.insert(ticker.into(), (Arc::new(mark), snapshot.clone()));
    }
}

//! What a live source needs from storage: documents with the moment they were fetched.

use async_trait::async_trait;
use bytes::Bytes;
use time::OffsetDateTime;

/// A kept document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cached {
    /// The document, byte for byte.
    pub body: Bytes,
    /// When it was fetched.
    pub fetched_at: OffsetDateTime,
}

/// Storage failed. The source then works without it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the filing cache failed: {0}")]
pub struct CacheError(pub String);

/// Keeps fetched documents by key. It does not judge age: its user does.
#[async_trait]
pub trait FilingCache: Send + Sync {
    /// The document kept under a key.
    async fn load(&self, key: &str) -> Result<Option<Cached>, CacheError>;

    /// Keeps a document. One that was fetched later and is there already stays.
    async fn save(&self, key: &str, body: Bytes, fetched_at: OffsetDateTime) -> Result<(), CacheError>;

    /// Drops what was fetched before a moment: it would never be served again.
    async fn forget_before(&self, moment: OffsetDateTime) -> Result<(), CacheError>;
}

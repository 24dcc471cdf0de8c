//! The table `filing_cache`: fetched documents with the moment of retrieval. Does not judge age.

use async_trait::async_trait;
use bytes::Bytes;
use sqlx::PgPool;
use time::OffsetDateTime;

use crate::source::cache::{CacheError, Cached, FilingCache};

/// The filing cache in Postgres.
#[derive(Clone, Debug)]
pub struct PgFilingCache {
    pool: PgPool,
}

impl PgFilingCache {
    /// Over a pool whose database has migration 0002.
    pub fn new(pool: PgPool) -> Self {
        Self { pool }
    }
}

#[async_trait]
impl FilingCache for PgFilingCache {
    async fn load(&self, key: &str) -> Result<Option<Cached>, CacheError> {
        load(&self.pool, key).await.map_err(failed)
    }

    async fn save(&self, key: &str, body: Bytes, fetched_at: OffsetDateTime) -> Result<(), CacheError> {
        save(&self.pool, key, &body, fetched_at).await.map_err(failed)
    }

    async fn forget_before(&self, moment: OffsetDateTime) -> Result<(), CacheError> {
        delete_before(&self.pool, moment).await.map(|_| ()).map_err(failed)
    }
}

/// The document under a key.
pub async fn load(pool: &PgPool, key: &str) -> Result<Option<Cached>, sqlx::Error> {
    let row: Option<(Vec<u8>, OffsetDateTime)> =
        sqlx::query_as("SELECT body, fetched_at FROM filing_cache WHERE key = $1")
            .bind(key)
            .fetch_optional(pool)
            .await?;
    Ok(row.map(|(body, fetched_at)| Cached { body: Bytes::from(body), fetched_at }))
}

/// Writes a document. Two replicas may fetch at once; the later retrieval stays, whichever writes last.
pub async fn save(pool: &PgPool, key: &str, body: &[u8], fetched_at: OffsetDateTime) -> Result<(), sqlx::Error> {
    sqlx::query(
        "INSERT INTO filing_cache AS kept (key, body, fetched_at) VALUES ($1, $2, $3) \
         ON CONFLICT (key) DO UPDATE SET body = EXCLUDED.body, fetched_at = EXCLUDED.fetched_at \
         WHERE kept.fetched_at < EXCLUDED.fetched_at",
    )
    .bind(key)
    .bind(body)
    .bind(fetched_at)
    .execute(pool)
    .await
    .map(|_| ())
}

/// Deletes what was retrieved before a moment; how many documents that were.
pub async fn delete_before(pool: &PgPool, moment: OffsetDateTime) -> Result<u64, sqlx::Error> {
    let done = sqlx::query("DELETE FROM filing_cache WHERE fetched_at < $1").bind(moment).execute(pool).await?;
    Ok(done.rows_affected())
}

fn failed(error: sqlx::Error) -> CacheError {
    CacheError(error.to_string())
}

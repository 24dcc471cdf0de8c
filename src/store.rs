//! All SQL of the service, one file per table family. Postgres is the storage; there is no storage trait.
//!
//! Statements are plain text with bound values; migrations are the data dictionary.

pub mod contract;
pub mod filing_cache;
pub mod invariants;
pub mod journal;
pub mod margin;
pub mod payments;
pub mod recovery;
pub mod refunds;
pub mod simulated;

use std::time::Duration;

use sqlx::postgres::{PgConnectOptions, PgConnection, PgPoolOptions};
use sqlx::{ConnectOptions, Connection, PgPool};

use crate::limits;

/// The database cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// It did not answer, or refused us.
    #[error("cannot connect to the database: {0}")]
    Connect(#[source] sqlx::Error),
    /// The schema could not be brought up to date.
    #[error("cannot migrate the database: {0}")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// A statement failed.
    #[error("database: {0}")]
    Statement(#[from] sqlx::Error),
    /// A statement that wrote for several callers failed, and it is not known what of it was committed.
    #[error("database, for a group of payments: {0}")]
    Group(#[source] std::sync::Arc<Error>),
    /// A row holds what the code does not know: written by another version.
    #[error("database: {what} holds {value:?}, which this version does not know")]
    UnknownValue {
        /// Column.
        what: &'static str,
        /// Its value.
        value: String,
    },
}

impl Error {
    /// True when the database was away or the session broke: the same statement may succeed in a moment. What the database
    /// itself refused is refused again.
    pub fn is_passing(&self) -> bool {
        match self {
            Self::Connect(_) => true,
            Self::Group(error) => error.is_passing(),
            // 57P: the server is stopping, starting, or lost another backend
            Self::Statement(sqlx::Error::Database(error)) => error.code().is_some_and(|code| code.starts_with("57P")),
            Self::Statement(_) => true,
            Self::Migrate(_) | Self::UnknownValue { .. } => false,
        }
    }
}

/// Connects and brings the schema up to date.
///
/// One plain connection is opened first: a pool that cannot connect says only that it timed out.
pub async fn open(options: PgConnectOptions) -> Result<PgPool, Error> {
    let options = options
        .application_name("jim")
        .statement_cache_capacity(limits::STATEMENT_CACHE)
        .log_slow_statements(tracing::log::LevelFilter::Warn, Duration::from_secs(1));
    let mut first = PgConnection::connect_with(&options).await.map_err(Error::Connect)?;
    sqlx::migrate!("./migrations").run(&mut first).await?;
    first.close().await.map_err(Error::Connect)?;
    PgPoolOptions::new()
        .max_connections(limits::DATABASE_CONNECTIONS)
        .acquire_timeout(limits::DATABASE_WAIT)
        .connect_with(options)
        .await
        .map_err(Error::Connect)
}

/// True when the database answers.
pub async fn ping(pool: &PgPool) -> bool {
    tokio::time::timeout(limits::DATABASE_WAIT, sqlx::query("select 1").execute(pool)).await.is_ok_and(|r| r.is_ok())
}

/// The database's clock.
pub async fn load_clock(pool: &PgPool) -> Result<time::OffsetDateTime, Error> {
    Ok(sqlx::query_scalar("select clock_timestamp()").fetch_one(pool).await?)
}

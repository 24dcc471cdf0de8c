//! Who recovers: one process at a time, by a lock of the database that ends with its session.

use std::sync::Arc;

use sqlx::postgres::PgConnectOptions;
use sqlx::{AssertSqlSafe, Connection, PgConnection, PgPool};

use crate::limits;
use crate::store::Error;

/// The advisory lock of recovery in each database: "jim" and a number.
const LOCK: i64 = 0x006a_696d_0009;

/// A session that holds the lock, or waits for it.
#[derive(Debug)]
pub struct Holder {
    options: Arc<PgConnectOptions>,
    session: Option<PgConnection>,
    holds: bool,
}

impl Holder {
    /// One that holds nothing yet. Its session is its own, none of the pool's.
    pub fn new(pool: &PgPool) -> Self {
        Self { options: pool.connect_options(), session: None, holds: false }
    }

    /// True when this process holds the lock now; takes it when it is free. A session that broke has lost it.
    pub async fn hold(&mut self) -> Result<bool, Error> {
        // taken out: a session in the middle of a statement that failed is not used again
        let mut session = match self.session.take() {
            Some(session) => session,
            None => {
                self.holds = false;
                self.connect().await?
            }
        };
        let query = match self.holds {
            true => sqlx::query_scalar("select true").fetch_one(&mut session).await,
            false => sqlx::query_scalar("select pg_try_advisory_lock($1)").bind(LOCK).fetch_one(&mut session).await,
        };
        let was = self.holds;
        self.holds = query?;
        self.session = Some(session);
        if self.holds && !was {
            tracing::info!("this process recovers payments from now on");
        }
        Ok(self.holds)
    }

    /// Gives the lock back at once.
    pub async fn release(self) {
        if let Some(session) = self.session {
            // the server sees the end of the session by itself when the goodbye does not arrive
            let _ = tokio::time::timeout(limits::DATABASE_WAIT, session.close()).await;
        }
    }

    async fn connect(&self) -> Result<PgConnection, Error> {
        let mut session = PgConnection::connect_with(&self.options).await.map_err(Error::Connect)?;
        // a host that went away without a word holds the lock no longer than this
        let silence = format!("set idle_session_timeout = '{}s'", limits::RECOVERY_SILENCE.as_secs());
        sqlx::query(AssertSqlSafe(silence)).execute(&mut session).await?;
        Ok(session)
    }
}

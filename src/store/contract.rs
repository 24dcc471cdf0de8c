//! When a refusal contract took effect: stored once per content, so that restarts and replicas agree.

use sqlx::{PgPool, Row};
use time::OffsetDateTime;

use super::Error;

/// The dates of one contract.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effective {
    /// First time that any process published it, to the second.
    pub from: OffsetDateTime,
    /// Id of the contract that was published before it.
    pub previous: Option<String>,
}

/// Stores the content unless it is there, and returns its dates. `contract_id` names a content with its dates.
pub async fn publish(
    pool: &PgPool,
    content_id: &str,
    now: OffsetDateTime,
    contract_id: impl Fn(&Effective) -> String,
) -> Result<Effective, Error> {
    let mut transaction = pool.begin().await?;
    // two replicas that start at once must agree on which came first
    sqlx::query("lock table contracts in exclusive mode").execute(&mut *transaction).await?;
    let stored = sqlx::query("select effective_from, previous from contracts where content_id = $1")
        .bind(content_id)
        .fetch_optional(&mut *transaction)
        .await?;
    if let Some(row) = stored {
        return Ok(Effective { from: row.try_get("effective_from")?, previous: row.try_get("previous")? });
    }
    let previous = sqlx::query("select contract_id from contracts order by effective_from desc, contract_id limit 1")
        .fetch_optional(&mut *transaction)
        .await?
        .map(|row| row.try_get("contract_id"))
        .transpose()?;
    let effective = Effective { from: now.replace_nanosecond(0).unwrap_or(now), previous };
    sqlx::query("insert into contracts (content_id, contract_id, effective_from, previous) values ($1, $2, $3, $4)")
        .bind(content_id)
        .bind(contract_id(&effective))
        .bind(effective.from)
        .bind(&effective.previous)
        .execute(&mut *transaction)
        .await?;
    transaction.commit().await?;
    Ok(effective)
}

//! Money that is owed back, as rows: refunds, what was done about each, and who works on it (migration 0005).

pub mod list;
pub mod work;

use sqlx::{PgPool, Row};
use time::OffsetDateTime;
use uuid::Uuid;

use super::Error;

/// A refund and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefundRow {
    /// The refund.
    pub refund_id: Uuid,
    /// `pending`, or `sent` once the chain has it.
    pub status: String,
    /// Its last step, or `owed`.
    pub state: String,
    /// When it is on chain at the latest, or an operator has been told.
    pub due_by: OffsetDateTime,
    /// Atomic units, decimal.
    pub amount: String,
    /// Who gets it, lower case.
    pub to_addr: String,
    /// Token, lower case.
    pub asset: String,
    /// CAIP-2.
    pub network: String,
    /// The transaction of its last step, when that has one.
    pub tx_hash: Option<String>,
}

/// The refund of a payment; None when nothing is owed back for it.
pub async fn load_of_payment(pool: &PgPool, payment_id: Uuid) -> Result<Option<RefundRow>, Error> {
    let row = sqlx::query(
        "select refund_id, status, state, due_by, amount::text as amount, to_addr, asset, network, tx_hash \
         from refund_states where payment_id = $1",
    )
    .bind(payment_id)
    .fetch_optional(pool)
    .await?;
    row.map(|row| {
        Ok(RefundRow {
            refund_id: row.try_get("refund_id")?,
            status: row.try_get("status")?,
            state: row.try_get("state")?,
            due_by: row.try_get("due_by")?,
            amount: row.try_get("amount")?,
            to_addr: row.try_get("to_addr")?,
            asset: row.try_get("asset")?,
            network: row.try_get("network")?,
            tx_hash: row.try_get("tx_hash")?,
        })
    })
    .transpose()
}

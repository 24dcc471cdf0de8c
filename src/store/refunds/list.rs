//! Refunds as the operator and the payer see them.

use serde::Serialize;
use serde_json::{Value, json};
use sqlx::{FromRow, PgPool};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::limits;
use crate::store::Error;

/// Where a refund may stand: `owed`, or its last step (migration 0005).
pub const STATES: [&str; 6] = ["owed", "signed", "broadcast", "failed", "parked", "confirmed"];

/// Which refunds to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// One of [`STATES`].
    pub state: Option<String>,
}

/// All refunds by state, and what is still to be paid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, FromRow)]
pub struct Summary {
    /// Nothing was done yet.
    pub owed: i64,
    /// Signed, broadcast, or to be tried again.
    pub pending: i64,
    /// The chain has them.
    pub confirmed: i64,
    /// An operator should look.
    pub parked: i64,
    /// Not confirmed, in millionths of a dollar.
    pub owed_micros: i64,
}

/// One refund.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, FromRow)]
pub struct Row {
    /// The refund.
    pub refund_id: Uuid,
    /// The payment whose money it returns.
    pub payment_id: Uuid,
    /// Number of the order, when there is one.
    pub order_no: Option<i64>,
    /// When it was owed.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// Promised to the payer.
    #[serde(with = "time::serde::rfc3339")]
    pub due_by: OffsetDateTime,
    /// CAIP-2.
    pub network: String,
    /// Token.
    pub asset: String,
    /// Who gets it.
    pub to: String,
    /// Atomic units, decimal.
    pub amount: String,
    /// The same in millionths of a dollar.
    pub amount_micros: i64,
    /// What came in, atomic units, decimal.
    pub transferred: String,
    /// Why the money goes back.
    pub reason: String,
    /// The refusal behind it.
    pub refusal_code: Option<String>,
    /// Nonce of the payout: with it an operator can find or make it on chain.
    pub refund_nonce: String,
    /// Its last step, or `owed`.
    pub state: String,
    /// What the payer is shown: `pending`, or `sent` once the chain has it.
    pub status: String,
    /// Who signed or paid last.
    pub treasury: Option<String>,
    /// The transaction of the last step: a proof only when confirmed.
    pub tx: Option<String>,
    /// What went wrong last.
    pub detail: Option<String>,
    /// Tries that failed.
    pub failures: i64,
    /// When it is tried again.
    #[serde(with = "time::serde::rfc3339::option")]
    pub next_at: Option<OffsetDateTime>,
}

impl Row {
    /// What the payer is shown: `{id, status, due_by, status_url?, amount, to, tx?}`; a transaction only once it is a proof.
    pub fn shown(&self, status_url: Option<String>) -> Value {
        // the same spelling as in the refusal that promised it
        let due_by = self.due_by.to_offset(time::UtcOffset::UTC);
        let due_by = due_by.replace_nanosecond(0).unwrap_or(due_by).format(&Rfc3339).unwrap_or_default();
        let mut shown = json!({
            "id": self.refund_id, "status": self.status, "due_by": due_by, "amount": self.amount, "to": self.to,
        });
        let proof = self.tx.clone().filter(|_| self.status == "sent");
        for (name, value) in [("status_url", status_url), ("tx", proof)] {
            if let (Some(value), Value::Object(shown)) = (value, &mut shown) {
                shown.insert(name.to_owned(), value.into());
            }
        }
        shown
    }
}

const ROWS: &str = "select r.refund_id, r.payment_id, o.order_no, r.created_at, r.due_by, r.network, r.asset, r.to_addr as \"to\", \
     r.amount::text as amount, r.amount_micros, r.transferred::text as transferred, r.reason, r.refusal_code, r.refund_nonce, r.state, \
     r.status, s.treasury, r.tx_hash as tx, nullif(s.detail, '') as detail, r.failures, \
     case when r.state <> 'confirmed' then r.next_at end as next_at \
     from refund_states r left join refund_steps s on s.refund_id = r.refund_id and s.step = r.step \
     left join orders o on o.order_id = order_of(r.payment_id)";

/// The counts, over all refunds.
pub async fn load_summary(pool: &PgPool) -> Result<Summary, Error> {
    let sums = "select count(*) filter (where state = 'owed') as owed, \
                count(*) filter (where state in ('signed', 'broadcast', 'failed')) as pending, \
                count(*) filter (where state = 'confirmed') as confirmed, count(*) filter (where state = 'parked') as parked, \
                coalesce(sum(amount_micros) filter (where state <> 'confirmed'), 0)::bigint as owed_micros from refund_states";
    Ok(sqlx::query_as(sums).fetch_one(pool).await?)
}

/// One page of refunds, newest first. `before` is the refund that the page before ended with.
pub async fn load_rows(pool: &PgPool, filter: &Filter, before: Option<Uuid>, limit: i64) -> Result<Vec<Row>, Error> {
    let text = format!(
        "{ROWS} where ($1::text is null or r.state = $1) and ($2::uuid is null or (r.created_at, r.refund_id) < \
         (select created_at, refund_id from refunds where refund_id = $2)) order by r.created_at desc, r.refund_id desc limit $3"
    );
    let rows = sqlx::query_as(sqlx::AssertSqlSafe(text))
        .bind(&filter.state)
        .bind(before)
        .bind(limit.clamp(1, limits::LEDGER_PAGE_MAX))
        .fetch_all(pool)
        .await?;
    Ok(rows)
}

/// The refund of a payment; None when none is owed.
pub async fn find_of_payment(pool: &PgPool, payment_id: Uuid) -> Result<Option<Row>, Error> {
    let text = format!("{ROWS} where r.payment_id = $1");
    Ok(sqlx::query_as(sqlx::AssertSqlSafe(text)).bind(payment_id).fetch_optional(pool).await?)
}

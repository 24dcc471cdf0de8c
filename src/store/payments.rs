//! Payments as the operator lists them: one row each, newest first.

use serde::Serialize;
use sqlx::{FromRow, PgPool};
use time::OffsetDateTime;
use uuid::Uuid;

use super::Error;
use crate::limits;

/// Which payments to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// State, by its name in rows.
    pub state: Option<String>,
    /// First presented at or after.
    pub from: Option<OffsetDateTime>,
    /// First presented before.
    pub to: Option<OffsetDateTime>,
    /// The payment that the page before ended with.
    pub before: Option<Uuid>,
}

/// One payment.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, FromRow)]
pub struct PaymentRow {
    /// The payment.
    pub payment_id: Uuid,
    /// Number of the order that it pays for, when there is one.
    pub order_no: Option<i64>,
    /// `exact` or `client-broadcast`.
    pub rail: String,
    /// State.
    pub state: String,
    /// Who signed.
    pub payer: String,
    /// Price in atomic units, decimal.
    pub amount: String,
    /// When it was first presented.
    #[serde(with = "time::serde::rfc3339")]
    pub created_at: OffsetDateTime,
    /// The transaction of the charge, or the last one that was named.
    pub transaction: Option<String>,
    /// Who judged it; None before that.
    pub facilitator: Option<String>,
    /// Kinds of what the chain said, in the order seen.
    pub evidence: Vec<String>,
}

/// One page, newest first.
pub async fn load_page(pool: &PgPool, filter: &Filter, limit: i64) -> Result<Vec<PaymentRow>, Error> {
    let rows = sqlx::query_as(
        "select p.payment_id, o.order_no, p.rail, p.state, p.payer, p.amount::text as amount, p.created_at, \
         coalesce(s.transaction, (select x.transaction from settle_results x where x.payment_id = p.payment_id \
         and x.transaction is not null order by attempt desc limit 1), (select e.tx_hash from chain_evidence e \
         where e.payment_id = p.payment_id and e.kind = 'transfer' order by e.evidence_id desc limit 1)) as transaction, \
         nullif(a.facilitator, '') as facilitator, array(select e.kind from chain_evidence e where e.payment_id = p.payment_id \
         order by e.evidence_id) as evidence from payment_states p left join orders o on o.order_id = order_of(p.payment_id) \
         left join settlements s on s.payment_id = p.payment_id left join answers a on a.payment_id = p.payment_id \
         where ($1::text is null or p.state = $1) and ($2::timestamptz is null or p.created_at >= $2) \
         and ($3::timestamptz is null or p.created_at < $3) and ($4::uuid is null or p.payment_id < $4) \
         order by p.payment_id desc limit $5",
    )
    .bind(&filter.state)
    .bind(filter.from)
    .bind(filter.to)
    .bind(filter.before)
    .bind(limit.clamp(1, limits::PAYMENTS_PAGE_MAX))
    .fetch_all(pool)
    .await?;
    Ok(rows)
}

/// How many transfers came in that belong to no payment and to no offer of ours.
pub async fn count_unidentified(pool: &PgPool) -> Result<i64, Error> {
    Ok(sqlx::query_scalar("select count(*) from unidentified_transfers").fetch_one(pool).await?)
}

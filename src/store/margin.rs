//! Reads the margin ledger: sums over all runs, and rows by page.

use serde::Serialize;
use sqlx::{FromRow, PgPool, Row};
use time::OffsetDateTime;
use uuid::Uuid;

use super::Error;
use crate::limits;

/// Which runs to look at.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Product id.
    pub product: Option<String>,
    /// `organic`, `own` or `test`.
    pub payer_class: Option<String>,
    /// State of the payment.
    pub state: Option<String>,
    /// Started at or after.
    pub from: Option<OffsetDateTime>,
    /// Started before.
    pub to: Option<OffsetDateTime>,
}

/// Sums over all runs of a filter, rejected and failed ones included. Money in millionths of a dollar.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, FromRow)]
pub struct Summary {
    /// Runs.
    pub runs: i64,
    /// Booked from settled payments only.
    pub revenue_micros: i64,
    /// What facts cost.
    pub data_cost_micros: i64,
    /// What drafts cost.
    pub inference_cost_micros: i64,
    /// Given back.
    pub refund_micros: i64,
    /// Revenue less costs. Refunds are not in it: what goes back was never booked as revenue.
    pub margin_micros: i64,
    /// Answers that were charged.
    pub delivered: i64,
    /// Payments that settled.
    pub settled: i64,
    /// Payments whose outcome is not known.
    pub unknown: i64,
    /// Runs that were refused, by code.
    #[sqlx(skip)]
    pub refused: serde_json::Map<String, serde_json::Value>,
}

/// One run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, FromRow)]
pub struct MarginRow {
    /// Id of the run.
    pub run_id: Uuid,
    /// When it began.
    #[serde(with = "time::serde::rfc3339")]
    pub started_at: OffsetDateTime,
    /// When it ended.
    #[serde(with = "time::serde::rfc3339")]
    pub finished_at: OffsetDateTime,
    /// Id of the request.
    pub request_id: String,
    /// Number of the order, when there is one.
    pub order_no: Option<i64>,
    /// Product id.
    pub product: String,
    /// Subject as asked.
    pub subject: String,
    /// `agent` or `human`.
    pub mode: String,
    /// Who would pay.
    pub payer: Option<String>,
    /// `organic`, `own` or `test`.
    pub payer_class: String,
    /// Who wrote the draft.
    pub synthesizer: String,
    /// `accepted`, `rejected` or `none`.
    pub gate_verdict: String,
    /// Drafts judged.
    pub attempts: i32,
    /// Figures that the gate read.
    pub figures_checked: i32,
    /// Why it was refused.
    pub refusal_code: Option<String>,
    /// CAIP-2.
    pub network: Option<String>,
    /// Token.
    pub asset: Option<String>,
    /// Price in atomic units, decimal.
    pub price_atomic: Option<String>,
    /// State of the payment.
    pub settle_state: String,
    /// True when the payment was settled.
    pub charged: bool,
    /// The transaction that charged it.
    pub transaction: Option<String>,
    /// Hops of the inbound call chain.
    pub call_chain_depth: i32,
    /// Booked.
    pub revenue_micros: i64,
    /// Given back.
    pub refund_micros: i64,
    /// What facts cost.
    pub data_cost_micros: i64,
    /// What drafts cost.
    pub inference_cost_micros: i64,
    /// Tokens that models read; null where none was asked, or none said.
    pub input_tokens: Option<i64>,
    /// Tokens that models wrote, likewise.
    pub output_tokens: Option<i64>,
    /// Revenue less costs. Refunds are not in it: what goes back was never booked as revenue.
    pub margin_micros: i64,
}

const WHERE: &str = "where ($1::text is null or product = $1) and ($2::text is null or payer_class = $2) \
     and ($3::text is null or settle_state = $3) and ($4::timestamptz is null or started_at >= $4) \
     and ($5::timestamptz is null or started_at < $5)";

/// The sums.
pub async fn load_summary(pool: &PgPool, filter: &Filter) -> Result<Summary, Error> {
    let sums = format!(
        "select count(*) as runs, coalesce(sum(revenue_micros), 0)::bigint as revenue_micros, \
         coalesce(sum(data_cost_micros), 0)::bigint as data_cost_micros, \
         coalesce(sum(inference_cost_micros), 0)::bigint as inference_cost_micros, \
         coalesce(sum(refund_micros), 0)::bigint as refund_micros, \
         coalesce(sum(revenue_micros - data_cost_micros - inference_cost_micros), 0)::bigint as margin_micros, \
         count(*) filter (where settle_state = 'settled' and gate_verdict = 'accepted') as delivered, \
         count(*) filter (where settle_state = 'settled') as settled, \
         count(*) filter (where settle_state in ('unknown', 'settling')) as unknown from margins {WHERE}"
    );
    let mut summary: Summary = bind(sqlx::query_as(sqlx::AssertSqlSafe(sums)), filter).fetch_one(pool).await?;
    let codes = format!(
        "select coalesce(refusal_code, 'settlement_denied') as code, count(*) as n from margins {WHERE} \
         and (refusal_code is not null or settle_state = 'denied') group by 1 order by 1"
    );
    let query = sqlx::query(sqlx::AssertSqlSafe(codes))
        .bind(&filter.product)
        .bind(&filter.payer_class)
        .bind(&filter.state)
        .bind(filter.from)
        .bind(filter.to);
    for row in query.fetch_all(pool).await? {
        summary.refused.insert(row.try_get("code")?, row.try_get::<i64, _>("n")?.into());
    }
    Ok(summary)
}

/// One page of rows, newest first. `before` is the run id that the page before ended with.
pub async fn load_rows(
    pool: &PgPool,
    filter: &Filter,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<MarginRow>, Error> {
    let text = format!(
        "select run_id, started_at, finished_at, request_id, order_no, product, subject, mode, payer, payer_class, synthesizer, \
         gate_verdict, attempts, figures_checked, refusal_code, network, asset, price_atomic::text as price_atomic, settle_state, \
         settle_state = 'settled' as charged, transaction, call_chain_depth, revenue_micros, refund_micros, data_cost_micros, \
         inference_cost_micros, input_tokens, output_tokens, revenue_micros - data_cost_micros - inference_cost_micros as margin_micros \
         from margins {WHERE} and ($6::uuid is null or (started_at, run_id) < (select started_at, run_id from runs where run_id = $6)) \
         order by started_at desc, run_id desc limit $7"
    );
    let rows = bind(sqlx::query_as(sqlx::AssertSqlSafe(text)), filter)
        .bind(before)
        .bind(limit.clamp(1, limits::LEDGER_PAGE_MAX))
        .fetch_all(pool)
        .await?;
    Ok(rows)
}

type Bound<'q, T> = sqlx::query::QueryAs<'q, sqlx::Postgres, T, sqlx::postgres::PgArguments>;

fn bind<'q, T>(query: Bound<'q, T>, filter: &'q Filter) -> Bound<'q, T> {
    query.bind(&filter.product).bind(&filter.payer_class).bind(&filter.state).bind(filter.from).bind(filter.to)
}

//! A payment that has landed, as rows: recorded with its proof and its order, and ended once (migration 0007).

use sqlx::Row;
use sqlx::postgres::PgRow;
use time::OffsetDateTime;
use uuid::Uuid;

use super::evidence::Columns;
use super::rows::{Decision, Held, NewPayment, RunRow, read_state};
use super::{Evidence, Journal, seconds};
use crate::canonical::sha256_hex;
use crate::fault;
use crate::limits;
use crate::machine::State;
use crate::refusal::RefusalCode;
use crate::store::Error;

/// What recording a landed payment came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Land {
    /// The caller works on it now, or refuses it.
    Won {
        /// The claim.
        held: Held,
        /// Another payment that holds this purchase, or was charged for it a moment ago.
        other: Option<Uuid>,
    },
    /// It was recorded before.
    Known(KnownLanding),
}

/// A payment that was presented before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KnownLanding {
    /// The payment.
    pub payment_id: Uuid,
    /// Its state.
    pub state: State,
    /// Whether it was presented for the same request.
    pub is_same_request: bool,
}

/// What is needed to end a landed payment without whoever recorded it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LandingRow {
    /// True while its owner works on it.
    pub is_worked_on: bool,
    /// Its order.
    pub order_id: String,
    /// Identity of the payment.
    pub auth_key: String,
    /// Product that it was made for.
    pub product: String,
    /// Who paid, lower case.
    pub from: String,
    /// Atomic units that moved, decimal.
    pub value: String,
    /// The transaction.
    pub tx: String,
}

/// The refund that ends a landed payment, or returns what was paid too much. It exists on paper only until the payment ends so.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewRefund {
    /// Its id.
    pub refund_id: Uuid,
    /// When it is on chain at the latest.
    pub due_by: OffsetDateTime,
}

const LAND: &str = "select outcome, o_payment_id, o_state, o_other from journal_land(\
     row($1, $2, $3, 2, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13::text::numeric, $14, $15::text::numeric, $16::text::numeric, now())::payments, \
     row(0, $1, $17, $18, $19, $20, $21, $22, $23, $24::text::numeric, null, now())::chain_evidence, $25, $26, $27, $28)";

const END: &str = "select journal_end_landing(row($1, $2, 1, $3, $4, $5, $6, $7, now(), '')::answers, \
     row($8, $9, $1, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $29, $30)::runs, $26, $27, $28)";

impl Journal {
    /// The payment that a transfer was recorded as; `nonce` tells several of one transaction apart, and without it the one for
    /// this request comes first. None when it was never recorded.
    pub async fn find_landing(
        &self,
        tx: &str,
        nonce: Option<&str>,
        request_fp: &str,
    ) -> Result<Option<KnownLanding>, Error> {
        let row = sqlx::query(
            "select p.payment_id, payment_state(p.payment_id) as state, p.request_fp = $3 as same from payments p \
             join chain_evidence e using (payment_id) where e.kind = 'transfer' and e.tx_hash = $1 and p.rail = 'client-broadcast' \
             and ($2::text is null or p.auth_nonce = $2) order by same desc, e.evidence_id limit 1",
        )
        .bind(tx)
        .bind(nonce)
        .bind(request_fp)
        .fetch_optional(self.pool())
        .await?;
        row.map(|row| read_known(&row, "payment_id", "state", row.try_get("same")?)).transpose()
    }

    /// Records a landed payment with its proof (which must be a transfer) and its order, and claims it, in one commit.
    pub async fn land(&self, payment: &NewPayment, proof: &Evidence, order_id: &str) -> Result<Land, Error> {
        let payment_id = Uuid::now_v7();
        let log = Columns::of(proof);
        fault::point("before-land");
        let row = sqlx::query(LAND)
            .bind(payment_id)
            .bind(&payment.auth_key)
            .bind(payment.rail.name())
            .bind(&payment.network)
            .bind(&payment.asset)
            .bind(&payment.payer)
            .bind(&payment.pay_to)
            .bind(&payment.auth_nonce)
            .bind(&payment.payload_sha256)
            .bind(&payment.request_fp)
            .bind(&payment.product)
            .bind(&payment.contract_id)
            .bind(&payment.amount)
            .bind(payment.amount_micros.0)
            .bind(&payment.valid_after)
            .bind(&payment.valid_before)
            .bind(log.kind)
            .bind(log.block)
            .bind(log.block_hash)
            .bind(log.tx)
            .bind(log.log_index)
            .bind(log.from)
            .bind(log.to)
            .bind(log.value)
            .bind(order_id)
            .bind(self.instance)
            .bind(seconds(limits::CLAIM_LEASE))
            .bind(seconds(limits::PURCHASE_WINDOW))
            .fetch_one(self.pool())
            .await?;
        fault::point("after-land");
        let known = |is_same| read_known(&row, "o_payment_id", "o_state", is_same).map(Land::Known);
        match row.try_get("outcome")? {
            "won" => Ok(Land::Won { held: Held { payment_id, epoch: 1 }, other: row.try_get("o_other")? }),
            "existing" => known(true),
            "reused" => known(false),
            other => Err(Error::UnknownValue { what: "landing outcome", value: other.to_owned() }),
        }
    }

    /// Ends a landed payment in one commit: an answer with its charge, a refusal with its refund. False when somebody else has
    /// ended it: then nothing was written.
    pub async fn end_landing(
        &self,
        held: Held,
        decision: &Decision,
        order_id: &str,
        run: &RunRow,
        refund: &NewRefund,
    ) -> Result<bool, Error> {
        let code = decision.kind.refusal_code();
        let reason = if code == Some(RefusalCode::ExecutionFailed.name()) { "failed" } else { "refused" };
        fault::point("before-end-landing");
        let query = sqlx::query_scalar(END)
            .bind(held.payment_id)
            .bind(decision.kind.as_str())
            .bind(i16::try_from(decision.status).unwrap_or(i16::MAX))
            .bind(&decision.content_type)
            .bind(&decision.body)
            .bind(sha256_hex(&decision.body))
            .bind(code);
        let ended = query
            .bind(Uuid::now_v7())
            .bind(order_id)
            .bind(&run.request_id)
            .bind(&run.product)
            .bind(&run.subject)
            .bind(&run.mode)
            .bind(&run.payer)
            .bind(run.payer_class)
            .bind(run.synthesizer)
            .bind(run.gate_verdict)
            .bind(run.attempts)
            .bind(run.figures_checked)
            .bind(run.refusal_code)
            .bind(run.data_cost.0)
            .bind(run.inference_cost.0)
            .bind(run.call_chain_depth)
            .bind(run.started_at)
            .bind(run.finished_at)
            .bind(refund.refund_id)
            .bind(reason)
            .bind(refund.due_by)
            .bind(run.tokens.map(|(input, _)| input))
            .bind(run.tokens.map(|(_, output)| output))
            .fetch_one(self.pool())
            .await?;
        fault::point("after-end-landing");
        Ok(ended)
    }

    /// What is recorded of a landed payment; None when nothing has landed or it has no order (money without a request).
    pub async fn load_landing(&self, payment_id: Uuid) -> Result<Option<LandingRow>, Error> {
        let row = sqlx::query(
            "select claim_lives(p.payment_id) as lives, o.order_id, p.auth_key, p.product, e.from_addr, e.value::text as value, e.tx_hash \
             from payments p join orders o using (payment_id) join chain_evidence e using (payment_id) \
             where p.payment_id = $1 and e.kind = 'transfer' order by e.evidence_id limit 1",
        )
        .bind(payment_id)
        .fetch_optional(self.pool())
        .await?;
        row.map(|row| {
            Ok(LandingRow {
                is_worked_on: row.try_get("lives")?,
                order_id: row.try_get("order_id")?,
                auth_key: row.try_get("auth_key")?,
                product: row.try_get("product")?,
                from: row.try_get("from_addr")?,
                value: row.try_get("value")?,
                tx: row.try_get("tx_hash")?,
            })
        })
        .transpose()
    }
}

fn read_known(row: &PgRow, id: &str, state: &str, is_same_request: bool) -> Result<KnownLanding, Error> {
    Ok(KnownLanding { payment_id: row.try_get(id)?, state: read_state(row.try_get(state)?)?, is_same_request })
}

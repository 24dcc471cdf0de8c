//! The three transitions of a sale as statements over groups: claim, decide, record. What they do is ruled by the functions of
//! migration 0006, which take a whole group at once where nobody was there before, and one by one otherwise.

use sqlx::postgres::PgRow;
use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::rows::{Claim, Decision, DecisionKind, Held, NewPayment, Recorded, RunRow, SettleEnd, read_state};
use super::writer::Transition;
use super::seconds;
use crate::limits;
use crate::store::Error;

/// A payment that is claimed.
#[derive(Clone, Debug)]
pub(super) struct ClaimOf {
    pub(super) instance: Uuid,
    pub(super) payment: NewPayment,
}

/// What was decided for a payment.
#[derive(Clone, Debug)]
pub(super) struct DecisionOf {
    pub(super) instance: Uuid,
    pub(super) held: Held,
    pub(super) decision: Decision,
    pub(super) order_id: Option<String>,
    pub(super) run: Option<RunRow>,
    /// Body of the settle call.
    pub(super) intent: Option<String>,
    pub(super) facilitator: String,
}

/// What settle answered for a payment.
#[derive(Clone, Debug)]
pub(super) struct SettleOf {
    pub(super) payment_id: Uuid,
    pub(super) attempt: i32,
    pub(super) end: SettleEnd,
    /// Whether a chain is read: then it, and not a used nonce, says who was charged.
    pub(super) has_chain: bool,
}

const CLAIM: &str = "select c.outcome, c.o_payment_id, c.o_epoch, c.o_state, c.o_other from journal_claims(array(\
     select row(x.id, x.auth_key, x.rail, x.version, x.network, x.asset, x.payer, x.pay_to, x.nonce, x.payload, x.fp, x.product, \
     x.contract, x.amount::numeric, x.micros, x.after::numeric, x.before::numeric, now())::payments \
     from unnest($1::uuid[], $2::text[], $3::smallint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], \
     $10::text[], $11::text[], $12::text[], $13::text[], $14::bigint[], $15::text[], $16::text[], $17::text[]) with ordinality \
     as x(id, auth_key, version, network, asset, payer, pay_to, nonce, payload, fp, product, contract, amount, micros, after, \
     before, rail, n) order by x.n), $18, $19, $20) c";

const DECIDE: &str = "select journal_decisions(array(select row(row(x.id, x.kind, x.epoch, x.status, x.content_type, x.body, \
     x.body_sha256, x.code, now(), x.facilitator)::answers, x.order_id, row(x.run_id, x.order_id, x.id, x.request_id, x.product, x.subject, x.mode, \
     x.payer, x.payer_class, x.synthesizer, x.verdict, x.attempts, x.figures, x.refused, x.data_cost, x.inference_cost, x.depth, \
     x.started_at, x.finished_at)::runs, x.owner, x.intent, x.request)::decision \
     from unnest($1::uuid[], $2::text[], $3::integer[], $4::smallint[], $5::text[], $6::bytea[], $7::text[], $8::text[], \
     $9::text[], $10::uuid[], $11::text[], $12::text[], $13::text[], $14::text[], $15::text[], $16::text[], $17::text[], \
     $18::text[], $19::integer[], $20::integer[], $21::text[], $22::bigint[], $23::bigint[], $24::integer[], \
     $25::timestamptz[], $26::timestamptz[], $28::uuid[], $29::text[], $30::text[], $31::text[]) with ordinality as x(id, kind, epoch, status, \
     content_type, body, body_sha256, code, order_id, run_id, request_id, product, subject, mode, payer, payer_class, \
     synthesizer, verdict, attempts, figures, refused, data_cost, inference_cost, depth, started_at, finished_at, owner, \
     intent, facilitator, request, n) order by x.n), $27)";

const RECORD: &str = "select r.o_state as state, r.o_booked as booked from journal_records(array(\
     select row(x.id, x.attempt, x.class, x.reason, x.transaction)::settle_outcome \
     from unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::text[]) with ordinality \
     as x(id, attempt, class, reason, transaction, n) order by x.n), $6) r";

impl Transition for ClaimOf {
    type Outcome = Claim;

    async fn write(group: &[&Self], connection: &mut PgConnection) -> Result<Vec<Claim>, Error> {
        let text = |value: fn(&NewPayment) -> &String| -> Vec<&str> {
            group.iter().map(|claim| value(&claim.payment).as_str()).collect()
        };
        let rows = sqlx::query(CLAIM)
            .bind(group.iter().map(|_| Uuid::now_v7()).collect::<Vec<_>>())
            .bind(text(|p| &p.auth_key))
            .bind(group.iter().map(|claim| claim.payment.x402_version).collect::<Vec<_>>())
            .bind(text(|p| &p.network))
            .bind(text(|p| &p.asset))
            .bind(text(|p| &p.payer))
            .bind(text(|p| &p.pay_to))
            .bind(text(|p| &p.auth_nonce))
            .bind(text(|p| &p.payload_sha256))
            .bind(text(|p| &p.request_fp))
            .bind(text(|p| &p.product))
            .bind(text(|p| &p.contract_id))
            .bind(text(|p| &p.amount))
            .bind(group.iter().map(|claim| claim.payment.amount_micros.0).collect::<Vec<_>>())
            .bind(text(|p| &p.valid_after))
            .bind(text(|p| &p.valid_before))
            .bind(group.iter().map(|claim| claim.payment.rail.name()).collect::<Vec<_>>())
            .bind(group.first().map(|claim| claim.instance))
            .bind(seconds(limits::CLAIM_LEASE))
            .bind(seconds(limits::PURCHASE_WINDOW))
            .fetch_all(connection)
            .await?;
        rows.iter().map(read_claim).collect()
    }
}

fn read_claim(row: &PgRow) -> Result<Claim, Error> {
    let payment_id: Uuid = row.try_get("o_payment_id")?;
    let state = read_state(row.try_get("o_state")?)?;
    Ok(match row.try_get("outcome")? {
        "won" => Claim::Won {
            held: Held { payment_id, epoch: row.try_get("o_epoch")? },
            takes_over: row.try_get("o_other")?,
        },
        "free" => Claim::Free { payment_id },
        "held" => Claim::PurchaseLive { payment_id, state },
        "reused" => Claim::Reused { payment_id, state },
        "existing" => Claim::Existing { payment_id, state },
        other => return Err(Error::UnknownValue { what: "claim outcome", value: other.to_owned() }),
    })
}

/// Digest of a settle body, kept beside it.
pub(super) fn digest(body: &str) -> String {
    crate::canonical::sha256_hex(body.as_bytes())
}

/// The column of one value of each decision.
fn column<'a, V>(group: &[&'a DecisionOf], value: impl Fn(&'a DecisionOf) -> V) -> Vec<V> {
    group.iter().map(|item| value(item)).collect()
}

/// The column of one value of each run; null where there is none.
fn of_run<'a, V>(group: &[&'a DecisionOf], value: impl Fn(&'a RunRow) -> V) -> Vec<Option<V>> {
    group.iter().map(|item| item.run.as_ref().map(&value)).collect()
}

impl Transition for DecisionOf {
    type Outcome = bool;

    async fn write(group: &[&Self], connection: &mut PgConnection) -> Result<Vec<bool>, Error> {
        let query = sqlx::query(DECIDE)
            .bind(column(group, |d| d.held.payment_id))
            .bind(column(group, |d| d.decision.kind.as_str()))
            .bind(column(group, |d| d.held.epoch))
            .bind(column(group, |d| i16::try_from(d.decision.status).unwrap_or(i16::MAX)))
            .bind(column(group, |d| d.decision.content_type.as_str()))
            .bind(column(group, |d| d.decision.body.as_slice()))
            .bind(column(group, |d| crate::canonical::sha256_hex(&d.decision.body)))
            .bind(column(group, |d| DecisionKind::refusal_code(d.decision.kind)))
            .bind(column(group, |d| d.order_id.as_deref()));
        let rows = query
            .bind(of_run(group, |_| Uuid::now_v7()))
            .bind(of_run(group, |r| r.request_id.as_str()))
            .bind(of_run(group, |r| r.product.as_str()))
            .bind(of_run(group, |r| r.subject.as_str()))
            .bind(of_run(group, |r| r.mode.as_str()))
            .bind(of_run(group, |r| r.payer.as_str()))
            .bind(of_run(group, |r| r.payer_class))
            .bind(of_run(group, |r| r.synthesizer))
            .bind(of_run(group, |r| r.gate_verdict))
            .bind(of_run(group, |r| r.attempts))
            .bind(of_run(group, |r| r.figures_checked))
            .bind(column(group, |d| d.run.as_ref().and_then(|r| r.refusal_code)))
            .bind(of_run(group, |r| r.data_cost.0))
            .bind(of_run(group, |r| r.inference_cost.0))
            .bind(of_run(group, |r| r.call_chain_depth))
            .bind(of_run(group, |r| r.started_at))
            .bind(of_run(group, |r| r.finished_at))
            .bind(seconds(limits::SETTLE_LEASE))
            .bind(column(group, |d| d.instance))
            .bind(column(group, |d| d.intent.as_deref().map(digest)))
            .bind(column(group, |d| d.facilitator.as_str()))
            .bind(column(group, |d| d.intent.as_deref()))
            .fetch_all(connection)
            .await?;
        rows.iter().map(|row| Ok(row.try_get(0)?)).collect()
    }
}

impl Transition for SettleOf {
    type Outcome = Recorded;

    async fn write(group: &[&Self], connection: &mut PgConnection) -> Result<Vec<Recorded>, Error> {
        let rows = sqlx::query(RECORD)
            .bind(group.iter().map(|s| s.payment_id).collect::<Vec<_>>())
            .bind(group.iter().map(|s| s.attempt).collect::<Vec<_>>())
            .bind(group.iter().map(|s| s.end.class.as_str()).collect::<Vec<_>>())
            .bind(group.iter().map(|s| s.end.reason.as_deref()).collect::<Vec<_>>())
            .bind(group.iter().map(|s| s.end.transaction.as_deref()).collect::<Vec<_>>())
            .bind(group.first().is_some_and(|s| s.has_chain))
            .fetch_all(connection)
            .await?;
        rows.iter()
            .map(|row| Ok(Recorded { state: read_state(row.try_get("state")?)?, booked: row.try_get("booked")? }))
            .collect()
    }
}

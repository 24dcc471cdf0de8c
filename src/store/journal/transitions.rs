//! The three transitions of a sale: claim, decide, record. Groups are bound to the quick statements; what those leave over is written
//! alone, by the functions of migrations 0006 and 0015.

use sqlx::{PgConnection, Row};
use uuid::Uuid;

use super::quick::Kind;
use super::rows::{Claim, Decision, DecisionKind, Held, NewPayment, Recorded, RunRow, SettleEnd, read_state};
use super::seconds;
use super::writer::{Bound, Transition};
use crate::limits;
use crate::machine::State;
use crate::store::Error;

/// A payment that is claimed.
#[derive(Clone, Debug)]
pub(super) struct ClaimOf {
    pub(super) instance: Uuid,
    /// Its id, when it is new.
    pub(super) payment_id: Uuid,
    pub(super) payment: NewPayment,
}

/// What was decided for a payment.
#[derive(Clone, Debug)]
pub(super) struct DecisionOf {
    pub(super) instance: Uuid,
    pub(super) held: Held,
    pub(super) decision: Decision,
    pub(super) body_sha256: String,
    pub(super) order_id: Option<String>,
    pub(super) run: Option<RunRow>,
    pub(super) intent: Option<Intent>,
    pub(super) facilitator: String,
}

/// The settle call that is to follow.
#[derive(Clone, Debug)]
pub(super) struct Intent {
    pub(super) body: String,
    pub(super) sha256: String,
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

/// A claim that meets others of its payment or its purchase.
const CLAIM: &str = "select c.outcome, c.o_payment_id, c.o_epoch, c.o_state, c.o_other from unnest($1::uuid[], $2::text[], \
     $3::smallint[], $4::text[], $5::text[], $6::text[], $7::text[], $8::text[], $9::text[], $10::text[], $11::text[], $12::text[], \
     $13::text[], $14::bigint[], $15::text[], $16::text[], $17::text[]) as x(id, auth_key, version, network, asset, payer, pay_to, nonce, \
     payload, fp, product, contract, amount, micros, after, before, rail), journal_claim(row(x.id, x.auth_key, x.rail, x.version, \
     x.network, x.asset, x.payer, x.pay_to, x.nonce, x.payload, x.fp, x.product, x.contract, x.amount::numeric, x.micros, \
     x.after::numeric, x.before::numeric, now())::payments, $18, $19, $20) c";

/// A settle call that ended otherwise than with a first charge.
const RECORD: &str = "select journal_record(x.id, x.attempt, x.class, x.reason, x.transaction, $6) as state from unnest($1::uuid[], $2::integer[], $3::text[], $4::text[], $5::text[]) \
     as x(id, attempt, class, reason, transaction)";

impl Transition for ClaimOf {
    type Outcome = Claim;
    const KIND: Kind = Kind::Claim;

    fn bind<'q>(group: &[&Self], query: Bound<'q>) -> Bound<'q> {
        let text = |value: fn(&NewPayment) -> &String| -> Vec<&str> {
            group.iter().map(|claim| value(&claim.payment).as_str()).collect()
        };
        query
            .bind(group.iter().map(|claim| claim.payment_id).collect::<Vec<_>>())
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
    }

    fn written(&self) -> Claim {
        Claim::Won { held: Held { payment_id: self.payment_id, epoch: 1 }, takes_over: None }
    }

    async fn write_slowly(&self, connection: &mut PgConnection) -> Result<Claim, Error> {
        let row = Self::bind(&[self], sqlx::query(CLAIM)).fetch_one(connection).await?;
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
    const KIND: Kind = Kind::Decision;

    fn bind<'q>(group: &[&Self], query: Bound<'q>) -> Bound<'q> {
        query
            .bind(column(group, |d| d.held.payment_id))
            .bind(column(group, |d| d.decision.kind.as_str()))
            .bind(column(group, |d| d.held.epoch))
            .bind(column(group, |d| i16::try_from(d.decision.status).unwrap_or(i16::MAX)))
            .bind(column(group, |d| d.decision.content_type.as_str()))
            .bind(column(group, |d| d.decision.body.as_slice()))
            .bind(column(group, |d| d.body_sha256.as_str()))
            .bind(column(group, |d| DecisionKind::refusal_code(d.decision.kind)))
            .bind(column(group, |d| d.order_id.as_deref()))
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
            .bind(column(group, |d| d.intent.as_ref().map(|intent| intent.sha256.as_str())))
            .bind(column(group, |d| d.facilitator.as_str()))
            .bind(column(group, |d| d.intent.as_ref().map(|intent| intent.body.as_str())))
            .bind(column(group, |d| d.run.as_ref().and_then(|r| r.tokens).map(|(input, _)| input)))
            .bind(column(group, |d| d.run.as_ref().and_then(|r| r.tokens).map(|(_, output)| output)))
    }

    fn written(&self) -> bool {
        true
    }

    /// Nothing is left to try: its claim was lost.
    async fn write_slowly(&self, _connection: &mut PgConnection) -> Result<bool, Error> {
        Ok(false)
    }
}

impl Transition for SettleOf {
    type Outcome = Recorded;
    const KIND: Kind = Kind::Record;

    fn bind<'q>(group: &[&Self], query: Bound<'q>) -> Bound<'q> {
        query
            .bind(group.iter().map(|s| s.payment_id).collect::<Vec<_>>())
            .bind(group.iter().map(|s| s.attempt).collect::<Vec<_>>())
            .bind(group.iter().map(|s| s.end.class.as_str()).collect::<Vec<_>>())
            .bind(group.iter().map(|s| s.end.reason.as_deref()).collect::<Vec<_>>())
            .bind(group.iter().map(|s| s.end.transaction.as_deref()).collect::<Vec<_>>())
            .bind(group.first().is_some_and(|s| s.has_chain))
    }

    fn written(&self) -> Recorded {
        Recorded { state: State::Settled, booked: true }
    }

    async fn write_slowly(&self, connection: &mut PgConnection) -> Result<Recorded, Error> {
        let row = Self::bind(&[self], sqlx::query(RECORD)).fetch_one(connection).await?;
        Ok(Recorded { state: read_state(row.try_get("state")?)?, booked: false })
    }
}

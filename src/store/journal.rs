//! The payment journal: claim, decide, intend, record. Each is one call of one function and one commit (migration 0006).
//!
//! Who calls settle holds an attempt number that came with a stored intent: from
//! [`Journal::intend`], [`Journal::take_over`], or [`Journal::decide`].

mod evidence;
mod landing;
mod quick;
mod rows;
mod transitions;
mod writer;

use std::collections::HashSet;
use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::Error;
use crate::fault;
use crate::limits;
use crate::machine::{self, State};
use crate::money::Atomic;

use rows::read_state;
use transitions::{ClaimOf, DecisionOf, Intent, SettleOf, digest};
use writer::Writer;

pub use evidence::{Authorization, Evidence};
pub use landing::{KnownLanding, Land, LandingRow, NewRefund};
pub use rows::{
    Claim, Decision, DecisionKind, Held, NewPayment, OrderRow, Record, Recorded, RunRow, SettleClass, SettleEnd,
};

/// Writes and reads payments on behalf of one running process.
#[derive(Clone, Debug)]
pub struct Journal {
    pool: PgPool,
    instance: Uuid,
    writer: Writer,
    has_chain: bool,
}

impl Journal {
    /// Registers this process; its claims live as long as its heart beats ([`Journal::beat`]). `has_chain`: a chain is read, and
    /// says who was charged where the facilitator leaves it open.
    pub async fn open(pool: PgPool, has_chain: bool) -> Result<Self, Error> {
        compare_moves(&pool).await?;
        let instance = Uuid::now_v7();
        sqlx::query("insert into instances (instance_id) values ($1)").bind(instance).execute(&pool).await?;
        let writer = Writer::start(&pool.connect_options())?;
        Ok(Self { pool, instance, writer, has_chain })
    }

    /// Name of this process in leases.
    pub fn instance(&self) -> Uuid {
        self.instance
    }

    /// Where the rows are.
    pub fn pool(&self) -> &PgPool {
        &self.pool
    }

    /// Says that this process lives; called every [`limits::HEARTBEAT`].
    pub async fn beat(&self) -> Result<(), Error> {
        sqlx::query("update instances set beat_at = now() where instance_id = $1")
            .bind(self.instance)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Ends this process's claims at once, after its work has been drained.
    pub async fn retire(&self) -> Result<(), Error> {
        self.writer.close().await;
        sqlx::query("update instances set beat_at = '-infinity' where instance_id = $1")
            .bind(self.instance)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Claims a payment before anything is done for it.
    pub async fn claim(&self, payment: &NewPayment) -> Result<Claim, Error> {
        fault::point("before-claim");
        let claim = self
            .writer
            .claim(ClaimOf { instance: self.instance, payment_id: Uuid::now_v7(), payment: payment.clone() })
            .await;
        fault::point("after-claim");
        claim
    }

    /// Looks a payment up without claiming it; None when it was never presented.
    pub async fn find(&self, auth_key: &str, request_fp: &str, payload_sha256: &str) -> Result<Option<Claim>, Error> {
        let row = sqlx::query(
            "select payment_id, payment_state(payment_id) as state, request_fp = $2 and payload_sha256 = $3 as same \
             from payments where auth_key = $1",
        )
        .bind(auth_key)
        .bind(request_fp)
        .bind(payload_sha256)
        .fetch_optional(&self.pool)
        .await?;
        row.map(|row| {
            let payment_id = row.try_get("payment_id")?;
            let state = read_state(row.try_get("state")?)?;
            Ok(if row.try_get("same")? {
                Claim::Existing { payment_id, state }
            } else {
                Claim::Reused { payment_id, state }
            })
        })
        .transpose()
    }

    /// Gives a claim back: nothing was done and nothing decided. False when that is not so any more: then nothing was written.
    pub async fn give_back(&self, held: Held, reason: &str) -> Result<bool, Error> {
        fault::point("before-give-back");
        let done = sqlx::query_scalar("select journal_give_back($1, $2, $3)")
            .bind(held.payment_id)
            .bind(held.epoch)
            .bind(reason)
            .fetch_one(&self.pool)
            .await?;
        fault::point("after-give-back");
        Ok(done)
    }

    /// Stores what was decided, its order and its run in one commit. With `intent` (the body of the settle call) the
    /// intent to settle as attempt 1 is part of the same commit; `facilitator` judged the payment and will settle it. False when the claim was lost: then nothing was written.
    pub async fn decide(
        &self,
        held: Held,
        decision: &Decision,
        order_id: Option<&str>,
        run: Option<&RunRow>,
        facilitator: &str,
        intent: Option<&str>,
    ) -> Result<bool, Error> {
        let transition = DecisionOf {
            instance: self.instance,
            held,
            decision: decision.clone(),
            // here and not by the writer: a digest of a body is work that many can do at once
            body_sha256: crate::canonical::sha256_hex(&decision.body),
            order_id: order_id.map(str::to_owned),
            run: run.cloned(),
            intent: intent.map(|body| Intent { body: body.to_owned(), sha256: digest(body) }),
            facilitator: facilitator.to_owned(),
        };
        fault::point("before-decide");
        let mut decided = self.writer.decide(transition.clone()).await;
        let until = Instant::now() + limits::JOURNAL_INSIST;
        while decided.as_ref().is_err_and(Error::is_passing) && Instant::now() < until {
            sleep(limits::JOURNAL_INSIST_PAUSE).await;
            decided = self.writer.decide(transition.clone()).await;
            if let Ok(false) = decided {
                // an earlier try may have been committed, and its answer lost
                decided = self.has_decided(held).await;
            }
        }
        fault::point("after-decide");
        decided
    }

    /// True when what is decided for a payment was decided under this claim.
    async fn has_decided(&self, held: Held) -> Result<bool, Error> {
        let select = "select exists (select 1 from answers where payment_id = $1 and epoch = $2)";
        let row = sqlx::query(select).bind(held.payment_id).bind(held.epoch).fetch_one(&self.pool).await?;
        Ok(row.try_get(0)?)
    }

    /// Lets a claimed payment pay for the answer of another one that was never sent to settle, with the intent to settle it as
    /// attempt 1. False when either has moved on meanwhile: then nothing was written.
    pub async fn take_over(&self, held: Held, other: Uuid, request: &str, facilitator: &str) -> Result<bool, Error> {
        fault::point("before-take-over");
        let done = sqlx::query_scalar("select journal_take_over($1, $2, $3, $4, $5, $6, $7, $8)")
            .bind(held.payment_id)
            .bind(held.epoch)
            .bind(other)
            .bind(self.instance)
            .bind(seconds(limits::SETTLE_LEASE))
            .bind(digest(request))
            .bind(request)
            .bind(facilitator)
            .fetch_one(&self.pool)
            .await?;
        fault::point("after-take-over");
        Ok(done)
    }

    /// Writes the intent to settle an answer that is ready, or to present an unknown payment again.
    /// None when its state does not allow that: somebody else settles it or has settled it.
    pub async fn intend(&self, payment_id: Uuid, request: &str) -> Result<Option<i32>, Error> {
        fault::point("before-intend");
        let attempt: i32 = sqlx::query_scalar("select journal_intend($1, $2, $3, $4, $5)")
            .bind(payment_id)
            .bind(self.instance)
            .bind(seconds(limits::SETTLE_LEASE))
            .bind(digest(request))
            .bind(request)
            .fetch_one(&self.pool)
            .await?;
        fault::point("after-intend");
        Ok((attempt > 0).then_some(attempt))
    }

    /// Records how a settle call ended; with a charge come its settlement and its revenue.
    pub async fn record(&self, payment_id: Uuid, attempt: i32, end: SettleEnd) -> Result<Recorded, Error> {
        let transition = SettleOf { payment_id, attempt, end, has_chain: self.has_chain };
        fault::point("before-record");
        let mut recorded = self.writer.record(transition.clone()).await;
        let until = Instant::now() + limits::JOURNAL_INSIST;
        // a result that is stored already stays as it is, so that a try whose answer was lost does no harm
        while recorded.as_ref().is_err_and(Error::is_passing) && Instant::now() < until {
            sleep(limits::JOURNAL_INSIST_PAUSE).await;
            recorded = self.writer.record(transition.clone()).await;
        }
        fault::point("after-record");
        recorded
    }

    /// Notes the answer to a repeat of a payment.
    pub async fn note_served(&self, payment_id: Uuid, status: u16, code: Option<&str>) -> Result<(), Error> {
        sqlx::query("insert into served (payment_id, status, code) values ($1, $2, $3)")
            .bind(payment_id)
            .bind(i16::try_from(status).unwrap_or(i16::MAX))
            .bind(code)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Notes that a copy of a payment is being worked on; false, and nothing written, when money may move for it by now.
    pub async fn note_in_progress(&self, payment_id: Uuid, status: u16, code: &str) -> Result<bool, Error> {
        let noted = sqlx::query(
            "insert into served (payment_id, status, code) select $1, $2, $3 \
             where payment_state($1) in ('claimed', 'abandoned', 'superseded', 'landed')",
        )
        .bind(payment_id)
        .bind(i16::try_from(status).unwrap_or(i16::MAX))
        .bind(code)
        .execute(&self.pool)
        .await?;
        Ok(noted.rows_affected() > 0)
    }

    /// What is stored for a payment; for one that was answered from another, that answer.
    pub async fn load(&self, payment_id: Uuid) -> Result<Record, Error> {
        let row = sqlx::query(
            "select payment_state(p.payment_id) as state, p.payer, coalesce(g.amount, p.amount)::text as charged, order_of(p.payment_id) as order_id, a.kind, a.status, a.content_type, \
             a.body, a.refusal_code, coalesce(s.transaction, r.transaction) as transaction, r.reason, \
             (select x.payment_id from successions x where x.of_payment = p.payment_id and x.kind = 'supersede') as successor \
             from payments p left join successions f on f.payment_id = p.payment_id and f.kind = 'free' \
             left join payments g on g.payment_id = f.of_payment left join answers a on a.payment_id = coalesce(f.of_payment, p.payment_id) \
             left join settlements s on s.payment_id = coalesce(f.of_payment, p.payment_id) \
             left join lateral (select transaction, reason from settle_results x where x.payment_id = p.payment_id \
             order by attempt desc limit 1) r on true where p.payment_id = $1",
        )
        .bind(payment_id)
        .fetch_one(&self.pool)
        .await?;
        read_record(&row)
    }

    /// The state of a payment alone.
    pub async fn load_state(&self, payment_id: Uuid) -> Result<State, Error> {
        let row = sqlx::query("select payment_state($1)").bind(payment_id).fetch_one(&self.pool).await?;
        read_state(row.try_get(0)?)
    }

    /// An order by its id; None when there is none.
    pub async fn load_order(&self, order_id: &str) -> Result<Option<OrderRow>, Error> {
        let row = sqlx::query(
            "select p.payment_id, o.created_at, payment_state(p.payment_id) as state, \
             coalesce(s.transaction, (select x.transaction from settle_results x where x.payment_id = p.payment_id \
             order by attempt desc limit 1), (select x.tx_hash from chain_evidence x where x.payment_id = p.payment_id \
             and x.kind = 'transfer' order by evidence_id limit 1)) as transaction \
             from orders o join payments p on p.payment_id = payer_of(o.order_id) left join settlements s on s.payment_id = p.payment_id \
             where o.order_id = $1",
        )
        .bind(order_id)
        .fetch_optional(&self.pool)
        .await?;
        row.map(|row| {
            Ok(OrderRow {
                payment_id: row.try_get("payment_id")?,
                state: read_state(row.try_get("state")?)?,
                transaction: row.try_get("transaction")?,
                created_at: row.try_get("created_at")?,
            })
        })
        .transpose()
    }
}

/// A row of what is stored for a payment.
fn read_record(row: &PgRow) -> Result<Record, Error> {
    let decision = match row.try_get::<Option<&str>, _>("kind")? {
        None => None,
        Some(kind) => Some(Decision {
            kind: DecisionKind::read(kind, row.try_get("refusal_code")?)?,
            status: u16::try_from(row.try_get::<i16, _>("status")?).unwrap_or(500),
            content_type: row.try_get("content_type")?,
            body: row.try_get("body")?,
        }),
    };
    Ok(Record {
        state: read_state(row.try_get("state")?)?,
        order_id: row.try_get("order_id")?,
        decision,
        transaction: row.try_get("transaction")?,
        settle_reason: row.try_get("reason")?,
        payer: row.try_get("payer")?,
        charged: read_atomic(row.try_get("charged")?)?,
        successor: row.try_get("successor")?,
    })
}

fn read_atomic(digits: &str) -> Result<Atomic, Error> {
    let odd = |_| Error::UnknownValue { what: "payments.amount", value: digits.to_owned() };
    digits.parse().map(Atomic).map_err(odd)
}

/// The database's copy of the table of moves is ours, or it was migrated by another version.
async fn compare_moves(pool: &PgPool) -> Result<(), Error> {
    let stored: Vec<String> = sqlx::query_scalar("select unnest(moves())").fetch_all(pool).await?;
    let ours = machine::MOVES.iter().map(|m| {
        let from = m.from.map_or("none", State::name);
        format!("{} {from} {}", m.rail.name(), m.to.name())
    });
    let (stored, ours): (HashSet<_>, HashSet<_>) = (stored.into_iter().collect(), ours.collect());
    match stored.symmetric_difference(&ours).next() {
        None => Ok(()),
        Some(odd) => Err(Error::UnknownValue { what: "moves()", value: odd.clone() }),
    }
}

fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}

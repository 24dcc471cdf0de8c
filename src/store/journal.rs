//! The payment journal: claim, decide, intend, record. Each is one call of one function and one commit (migration 0001).
//!
//! payments.md sections 2 to 4. Who calls settle holds an attempt number that [`Journal::intend`] or [`Journal::decide`]
//! returned, which means that the intent is on disk.

mod rows;
mod transitions;
mod writer;

use std::time::Duration;

use sqlx::postgres::PgRow;
use sqlx::{PgPool, Row};
use uuid::Uuid;

use super::Error;
use crate::limits;

use transitions::{ClaimOf, DecisionOf, SettleOf};
use writer::Writer;

pub use rows::{Claim, Decision, DecisionKind, Held, NewPayment, OrderRow, PaymentState, Record, RunRow, SettleClass};

/// Writes and reads payments on behalf of one running process.
#[derive(Clone, Debug)]
pub struct Journal {
    pool: PgPool,
    instance: Uuid,
    claims: Writer<ClaimOf>,
    decisions: Writer<DecisionOf>,
    settles: Writer<SettleOf>,
}

impl Journal {
    /// Registers this process; its claims live as long as its heart beats ([`Journal::beat`]).
    pub async fn open(pool: PgPool) -> Result<Self, Error> {
        let instance = Uuid::now_v7();
        sqlx::query("insert into instances (instance_id) values ($1)").bind(instance).execute(&pool).await?;
        let options = pool.connect_options();
        let (claims, decisions, settles) = (Writer::start(&options), Writer::start(&options), Writer::start(&options));
        Ok(Self { pool, instance, claims, decisions, settles })
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
        tokio::join!(self.claims.close(), self.decisions.close(), self.settles.close());
        sqlx::query("update instances set beat_at = '-infinity' where instance_id = $1")
            .bind(self.instance)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Claims a payment before anything is done for it.
    pub async fn claim(&self, payment: &NewPayment) -> Result<Claim, Error> {
        self.claims.write(ClaimOf { instance: self.instance, payment: payment.clone() }).await
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
            let state = PaymentState::parse(row.try_get("state")?)?;
            Ok(if row.try_get("same")? {
                Claim::Existing { payment_id, state }
            } else {
                Claim::Reused { payment_id, state }
            })
        })
        .transpose()
    }

    /// Gives a claim back: nothing was done and nothing decided.
    pub async fn give_back(&self, held: Held, reason: &str) -> Result<(), Error> {
        sqlx::query("insert into releases (payment_id, epoch, reason) values ($1, $2, $3) on conflict do nothing")
            .bind(held.payment_id)
            .bind(held.epoch)
            .bind(reason)
            .execute(&self.pool)
            .await?;
        Ok(())
    }

    /// Stores what was decided, its order and its run in one commit. With `intent` (digest of the settle body) the intent
    /// to settle as attempt 1 is part of the same commit. False when the claim was lost: then nothing was written.
    pub async fn decide(
        &self,
        held: Held,
        decision: &Decision,
        order_id: Option<&str>,
        run: Option<&RunRow>,
        intent: Option<&str>,
    ) -> Result<bool, Error> {
        let transition = DecisionOf {
            instance: self.instance,
            held,
            decision: decision.clone(),
            order_id: order_id.map(str::to_owned),
            run: run.cloned(),
            intent: intent.map(str::to_owned),
        };
        self.decisions.write(transition).await
    }

    /// Writes the intent to settle an answer that is ready, or to present an unknown payment again.
    /// None when its state does not allow that: somebody else settles it or has settled it.
    pub async fn intend(&self, payment_id: Uuid, request_sha256: &str) -> Result<Option<i32>, Error> {
        let attempt: i32 = sqlx::query("select journal_intend($1, $2, $3, $4)")
            .bind(payment_id)
            .bind(self.instance)
            .bind(seconds(limits::SETTLE_LEASE))
            .bind(request_sha256)
            .fetch_one(&self.pool)
            .await?
            .try_get(0)?;
        Ok((attempt > 0).then_some(attempt))
    }

    /// Records what settle answered; with a charge come its settlement and its revenue. Returns what is stored after it.
    pub async fn record(
        &self,
        payment_id: Uuid,
        attempt: i32,
        class: SettleClass,
        reason: Option<&str>,
        transaction: Option<&str>,
    ) -> Result<Record, Error> {
        let [reason, transaction] = [reason, transaction].map(|text| text.map(str::to_owned));
        let record = self.settles.write(SettleOf { payment_id, attempt, class, reason, transaction }).await?;
        // another attempt may have settled it while this one waited for the row
        if attempt == 1 { Ok(record) } else { self.load(payment_id).await }
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

    /// What is stored for a payment.
    pub async fn load(&self, payment_id: Uuid) -> Result<Record, Error> {
        let row = sqlx::query(
            "select payment_state(p.payment_id) as state, p.payer, o.order_id, a.kind, a.status, a.content_type, a.body, \
             a.refusal_code, coalesce(s.transaction, r.transaction) as transaction, r.reason \
             from payments p left join orders o using (payment_id) left join answers a using (payment_id) \
             left join settlements s using (payment_id) \
             left join lateral (select transaction, reason from settle_results x where x.payment_id = p.payment_id \
             order by attempt desc limit 1) r on true where p.payment_id = $1",
        )
        .bind(payment_id)
        .fetch_one(&self.pool)
        .await?;
        read_record(&row)
    }

    /// The state of a payment alone.
    pub async fn load_state(&self, payment_id: Uuid) -> Result<PaymentState, Error> {
        let row = sqlx::query("select payment_state($1)").bind(payment_id).fetch_one(&self.pool).await?;
        PaymentState::parse(row.try_get(0)?)
    }

    /// An order by its id; None when there is none.
    pub async fn load_order(&self, order_id: &str) -> Result<Option<OrderRow>, Error> {
        let row = sqlx::query(
            "select o.payment_id, o.created_at, payment_state(o.payment_id) as state, \
             coalesce(s.transaction, (select x.transaction from settle_results x where x.payment_id = o.payment_id \
             order by attempt desc limit 1)) as transaction \
             from orders o left join settlements s using (payment_id) where o.order_id = $1",
        )
        .bind(order_id)
        .fetch_optional(&self.pool)
        .await?;
        row.map(|row| {
            Ok(OrderRow {
                payment_id: row.try_get("payment_id")?,
                state: PaymentState::parse(row.try_get("state")?)?,
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
        state: PaymentState::parse(row.try_get("state")?)?,
        order_id: row.try_get("order_id")?,
        decision,
        transaction: row.try_get("transaction")?,
        settle_reason: row.try_get("reason")?,
        payer: row.try_get("payer")?,
    })
}

fn seconds(duration: Duration) -> i32 {
    i32::try_from(duration.as_secs()).unwrap_or(i32::MAX)
}

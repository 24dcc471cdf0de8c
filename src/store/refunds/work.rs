//! What a refund worker writes: the lease under which it works, one row for each thing that it did, and the confirmation.
//!
//! Steps are insert-only; each is fenced by the lease, so that a worker whose lease has lapsed writes
//! nothing. Whether a refund may be sent is judged by its caller, from the chain.

use std::time::Duration;

use sqlx::{PgPool, Row};
use time::OffsetDateTime;
use uuid::Uuid;

use crate::limits;
use crate::store::Error;

/// A refund that the caller works on now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owed {
    /// The refund.
    pub refund_id: Uuid,
    /// The payment whose money it returns.
    pub payment_id: Uuid,
    /// CAIP-2.
    pub network: String,
    /// Token, lower case.
    pub asset: String,
    /// Who gets it, lower case.
    pub to: String,
    /// Atomic units, decimal.
    pub amount: String,
    /// Nonce of the payout, lower-case hex with 0x; the same in every life of the database.
    pub nonce: String,
    /// The transaction that brought the money.
    pub landed_tx: String,
    /// A time before which it cannot have been paid out, unix seconds, as far as the rows tell.
    pub since_s: u64,
    /// Promised to the payer.
    pub due_by: OffsetDateTime,
    /// The newest authorization that each treasury has signed for it.
    pub signed: Vec<Signed>,
    /// Tries that failed.
    pub failures: u32,
    /// Transactions that a node has taken.
    pub broadcasts: u32,
    /// The lease: who, and until when. It names this taking and no other.
    owner: Uuid,
    lease_until: OffsetDateTime,
}

/// An authorization that was signed, and may have been sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signed {
    /// Who signed, lower case.
    pub treasury: String,
    /// End of its window, unix seconds.
    pub valid_before_s: u64,
    /// 65 bytes.
    pub signature: Vec<u8>,
}

/// One thing that was done. All but `Signed` end the work: the lease is given up, and the refund is due again after `next`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step<'a> {
    /// The authorization is stored, before it is sent.
    Signed {
        /// End of its window, unix seconds.
        valid_before_s: u64,
        /// 65 bytes.
        signature: &'a [u8; 65],
    },
    /// The node took a transaction.
    Broadcast {
        /// Its hash, lower-case hex with 0x.
        tx: &'a str,
        /// When to look for it.
        next: Duration,
    },
    /// The try did not work.
    Failed {
        /// Why.
        detail: &'a str,
        /// When to try again.
        next: Duration,
    },
    /// An operator should look.
    Parked {
        /// Why.
        detail: &'a str,
        /// When it is tried again all the same.
        next: Duration,
    },
}

const TAKE: &str = "with due as (select r.refund_id from refunds r left join lateral (select next_at from refund_steps x \
     where x.refund_id = r.refund_id order by step desc limit 1) s on true left join refund_leases l on l.refund_id = r.refund_id \
     where not exists (select 1 from refund_steps c where c.refund_id = r.refund_id and c.kind = 'confirmed') \
     and coalesce(s.next_at, '-infinity') <= now() \
     and (l.refund_id is null or l.lease_until <= now() or not instance_lives(l.owner)) \
     order by coalesce(s.next_at, r.created_at), r.refund_id limit 1 for update of r skip locked) \
     insert into refund_leases as l (refund_id, owner, lease_until) select refund_id, $1, now() + make_interval(secs => $2) from due \
     on conflict (refund_id) do update set owner = excluded.owner, lease_until = excluded.lease_until \
     where l.lease_until <= now() or not instance_lives(l.owner) returning refund_id, lease_until";

// the window of an exact payment was at most an hour and the skew when it was first seen, whatever a restored database says of
// the time at which a row was made
const LOAD: &str = "select r.payment_id, r.network, r.asset, r.to_addr, r.amount::text as amount, r.refund_nonce, e.tx_hash, r.due_by, \
     greatest(0, least(extract(epoch from r.created_at), extract(epoch from p.created_at), p.valid_before - $2))::bigint as since_s, \
     (select count(*) from refund_steps f where f.refund_id = r.refund_id and f.kind = 'failed') as failures, \
     (select count(*) from refund_steps f where f.refund_id = r.refund_id and f.kind = 'broadcast') as broadcasts \
     from refunds r join chain_evidence e using (evidence_id) join payments p on p.payment_id = r.payment_id where r.refund_id = $1";

const SIGNED: &str = "select distinct on (treasury) treasury, valid_before, signature from refund_steps \
     where refund_id = $1 and kind = 'signed' order by treasury, valid_before desc, step desc";

// the lease is written in every case: that locks it, and a worker that has lost it finds no row
const STEP: &str = "with mine as (update refund_leases set lease_until = case when $4 = 'signed' then lease_until else now() end \
     where refund_id = $1 and owner = $2 and lease_until = $3 and lease_until > now() returning refund_id) \
     insert into refund_steps (refund_id, step, kind, treasury, valid_before, signature, tx_hash, detail, next_at) \
     select refund_id, 1 + coalesce((select max(step) from refund_steps s where s.refund_id = $1), 0), $4, $5, $6, $7, $8, $9, \
     now() + make_interval(secs => $10) from mine \
     where not exists (select 1 from refund_steps c where c.refund_id = $1 and c.kind = 'confirmed')";

/// Takes one refund that is due and that nobody works on, for [`limits::REFUND_LEASE`]. None when there is none.
pub async fn take(pool: &PgPool, instance: Uuid) -> Result<Option<Owed>, Error> {
    let taken = sqlx::query(TAKE).bind(instance).bind(limits::REFUND_LEASE.as_secs_f64()).fetch_optional(pool).await?;
    let Some(taken) = taken else { return Ok(None) };
    let refund_id: Uuid = taken.try_get("refund_id")?;
    let window_s =
        i64::try_from(limits::AUTHORIZATION_LIFE_S_MAX.saturating_add(limits::CLOCK_SKEW_S)).unwrap_or(i64::MAX);
    let row = sqlx::query(LOAD).bind(refund_id).bind(window_s).fetch_one(pool).await?;
    let signed = sqlx::query(SIGNED).bind(refund_id).fetch_all(pool).await?;
    let signed = signed.iter().map(read_signed).collect::<Result<_, _>>()?;
    Ok(Some(Owed {
        refund_id,
        payment_id: row.try_get("payment_id")?,
        network: row.try_get("network")?,
        asset: row.try_get("asset")?,
        to: row.try_get("to_addr")?,
        amount: row.try_get("amount")?,
        nonce: row.try_get("refund_nonce")?,
        landed_tx: row.try_get("tx_hash")?,
        since_s: u64::try_from(row.try_get::<i64, _>("since_s")?).unwrap_or(0),
        due_by: row.try_get("due_by")?,
        signed,
        failures: u32::try_from(row.try_get::<i64, _>("failures")?).unwrap_or(u32::MAX),
        broadcasts: u32::try_from(row.try_get::<i64, _>("broadcasts")?).unwrap_or(u32::MAX),
        owner: instance,
        lease_until: taken.try_get("lease_until")?,
    }))
}

/// Writes the next step. False when the lease was lost: then nothing was written.
pub async fn step(pool: &PgPool, owed: &Owed, treasury: &str, step: &Step<'_>) -> Result<bool, Error> {
    let (kind, next) = match step {
        Step::Signed { .. } => ("signed", Duration::ZERO),
        Step::Broadcast { next, .. } => ("broadcast", *next),
        Step::Failed { next, .. } => ("failed", *next),
        Step::Parked { next, .. } => ("parked", *next),
    };
    let (valid_before, signature) = match step {
        Step::Signed { valid_before_s, signature } => {
            (Some(i64::try_from(*valid_before_s).unwrap_or(i64::MAX)), Some(signature.as_slice()))
        }
        Step::Broadcast { .. } | Step::Failed { .. } | Step::Parked { .. } => (None, None),
    };
    let (tx, detail) = match step {
        Step::Broadcast { tx, .. } => (Some(*tx), ""),
        Step::Failed { detail, .. } | Step::Parked { detail, .. } => (None, *detail),
        Step::Signed { .. } => (None, ""),
    };
    let written = sqlx::query(STEP)
        .bind(owed.refund_id)
        .bind(owed.owner)
        .bind(owed.lease_until)
        .bind(kind)
        .bind(treasury)
        .bind(valid_before)
        .bind(signature)
        .bind(tx)
        .bind(detail)
        .bind(next.as_secs_f64())
        .execute(pool)
        .await?;
    Ok(written.rows_affected() == 1)
}

/// Leaves a refund as it is for so long: there was nothing to do that a row should tell.
pub async fn rest(pool: &PgPool, owed: &Owed, pause: Duration) -> Result<(), Error> {
    let lease = "update refund_leases set lease_until = now() + make_interval(secs => $4) \
                 where refund_id = $1 and owner = $2 and lease_until = $3";
    sqlx::query(lease)
        .bind(owed.refund_id)
        .bind(owed.owner)
        .bind(owed.lease_until)
        .bind(pause.as_secs_f64())
        .execute(pool)
        .await?;
    Ok(())
}

/// The chain shows the payout: its last step, the entry in the ledger and the move of the payment in one commit. False when
/// that was written before. No lease is needed: what the chain shows is true whoever writes it.
pub async fn confirm(pool: &PgPool, refund_id: Uuid, treasury: &str, tx: &str) -> Result<bool, Error> {
    let text = "select journal_refund_confirmed($1, $2, $3)";
    Ok(sqlx::query_scalar(text).bind(refund_id).bind(treasury).bind(tx).fetch_one(pool).await?)
}

fn read_signed(row: &sqlx::postgres::PgRow) -> Result<Signed, Error> {
    Ok(Signed {
        treasury: row.try_get("treasury")?,
        valid_before_s: u64::try_from(row.try_get::<i64, _>("valid_before")?).unwrap_or(0),
        signature: row.try_get("signature")?,
    })
}

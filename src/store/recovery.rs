//! What recovery reads and writes: the lists of payments whose end is not proven, the moves of dead owners, the sweep's cursor
//! and what it found (migration 0009).
//!
//! A list gives ids in the order of their key, from a key on; what is done about a payment is decided from a fresh read of it.

mod holder;

use sqlx::{PgPool, Row};
use uuid::Uuid;

use super::Error;
use super::journal::Evidence;
use crate::limits;

pub use holder::Holder;

/// Place of a payment in a list: its moment (microseconds, 0 where the id itself is in order) and its id.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    /// Microseconds since 1970.
    pub at_us: i64,
    /// The payment.
    pub payment_id: Uuid,
}

impl Key {
    /// Before every payment.
    pub const FIRST: Self = Self { at_us: i64::MIN, payment_id: Uuid::nil() };

    /// The place just before this one.
    #[must_use]
    pub fn before(self) -> Self {
        Self { payment_id: Uuid::from_u128(self.payment_id.as_u128().saturating_sub(1)), ..self }
    }
}

/// A list of payments that recovery works on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum List {
    /// Unknown or denied: the chain knows.
    Unclear,
    /// Landed: somebody should be working on it.
    Landed,
    /// Never charged, as far as we know, and its window is over.
    Over,
    /// Called settled by the facilitator, with no proof in time.
    Unproven,
}

impl List {
    /// The place of a payment that came at that time (unix seconds), before all others of that second.
    pub fn place(self, unix_s: u64) -> Key {
        let at_us = i64::try_from(unix_s.saturating_mul(1_000_000)).unwrap_or(i64::MAX);
        match self {
            Self::Unclear | Self::Landed | Self::Over => Key { at_us, payment_id: Uuid::nil() },
            // ids are UUIDs of version 7: milliseconds first
            Self::Unproven => Key { at_us: 0, payment_id: Uuid::from_u128((u128::from(unix_s) * 1_000) << 80) },
        }
    }

    const fn query(self) -> &'static str {
        match self {
            Self::Unclear => {
                "select e.at_us, e.payment_id from payment_events e where e.to_state in ('unknown', 'denied') \
                 and (e.at_us, e.payment_id) > ($1, $2) and not exists (select 1 from payment_events n \
                 where n.payment_id = e.payment_id and n.seq = e.seq + 1) order by e.at_us, e.payment_id limit $3"
            }
            Self::Landed => {
                "select e.at_us, e.payment_id from payment_events e where e.to_state = 'landed' \
                 and (e.at_us, e.payment_id) > ($1, $2) and not exists (select 1 from payment_events n \
                 where n.payment_id = e.payment_id and n.seq = e.seq + 1) and not claim_lives(e.payment_id) \
                 order by e.at_us, e.payment_id limit $3"
            }
            Self::Over => {
                "select e.at_us, e.payment_id from payment_events e join payments p using (payment_id) where e.to_state in \
                 ('refused', 'superseded', 'free', 'ready', 'abandoned') and (e.at_us, e.payment_id) > ($1, $2) \
                 and not exists (select 1 from payment_events n where n.payment_id = e.payment_id and n.seq = e.seq + 1) \
                 and p.rail <> 'client-broadcast' and p.valid_before + $4 < extract(epoch from now()) and not is_proven(e.payment_id) \
                 order by e.at_us, e.payment_id limit $3"
            }
            Self::Unproven => {
                // $1 is not needed: ids are in the order of their time. The simulated facilitator moves nothing on any chain.
                "select 0::bigint as at_us, s.payment_id from settlements s where $1::bigint is not null and s.payment_id > $2 \
                 and s.settled_at < now() - make_interval(secs => $4) and payment_state(s.payment_id) = 'settled' \
                 and not is_proven(s.payment_id) and not exists (select 1 from answers a where a.payment_id = s.payment_id \
                 and a.facilitator = 'simulated') order by s.payment_id limit $3"
            }
        }
    }

    const fn bound(self) -> u64 {
        match self {
            Self::Unclear | Self::Landed => 0,
            Self::Over => limits::FINALITY_MARGIN_S,
            Self::Unproven => limits::EVIDENCE_DUE.as_secs(),
        }
    }
}

/// One page of a list after a key, oldest first.
pub async fn load_list(pool: &PgPool, list: List, after: Key) -> Result<Vec<Key>, Error> {
    let query = sqlx::query(list.query()).bind(after.at_us).bind(after.payment_id).bind(limits::RECOVERY_PAGE);
    let query = match list {
        List::Unclear | List::Landed => query,
        List::Over | List::Unproven => query.bind(i32::try_from(list.bound()).unwrap_or(i32::MAX)),
    };
    let rows = query.fetch_all(pool).await?;
    rows.iter().map(|row| Ok(Key { at_us: row.try_get("at_us")?, payment_id: row.try_get("payment_id")? })).collect()
}

/// A transfer that a charge rests on, young enough to be taken by a reorganisation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sighting {
    /// The payment.
    pub payment_id: Uuid,
    /// The row of evidence.
    pub evidence_id: i64,
    /// The block it was in.
    pub block: u64,
    /// Its hash, lower-case hex with 0x.
    pub block_hash: String,
    /// The transaction, lower-case hex with 0x.
    pub tx: String,
    /// Index of the log in the block.
    pub log_index: u64,
    /// When it was seen, microseconds since 1970.
    pub seen_us: i64,
}

/// Transfers seen within [`limits::REORG_WATCH`] that charges of the rails that we settle rest on, after an id, in the order of their ids.
pub async fn load_sightings(pool: &PgPool, after: i64) -> Result<Vec<Sighting>, Error> {
    let rows = sqlx::query(
        "select e.evidence_id, e.payment_id, e.block, e.block_hash, e.tx_hash, e.log_index, \
         (extract(epoch from e.observed_at) * 1000000)::bigint as seen_us from chain_evidence e join payments p using (payment_id) where e.kind = 'transfer' and p.rail <> 'client-broadcast' and e.evidence_id > $1 \
         and e.observed_at > now() - make_interval(secs => $2) and payment_state(e.payment_id) = 'settled' \
         and not exists (select 1 from chain_evidence l where l.kind = 'lost' and l.of_evidence = e.evidence_id) \
         order by e.evidence_id limit $3",
    )
    .bind(after)
    .bind(i32::try_from(limits::REORG_WATCH.as_secs()).unwrap_or(i32::MAX))
    .bind(limits::RECOVERY_PAGE)
    .fetch_all(pool)
    .await?;
    let sighting = |row: &sqlx::postgres::PgRow| {
        Ok(Sighting {
            payment_id: row.try_get("payment_id")?,
            evidence_id: row.try_get("evidence_id")?,
            block: u64::try_from(row.try_get::<i64, _>("block")?).unwrap_or(0),
            block_hash: row.try_get("block_hash")?,
            tx: row.try_get("tx_hash")?,
            log_index: u64::try_from(row.try_get::<i32, _>("log_index")?).unwrap_or(0),
            seen_us: row.try_get("seen_us")?,
        })
    };
    rows.iter().map(sighting).collect()
}

/// Writes the moves of dead owners, up to [`limits::LAPSES_MAX`]; how many. SQL only.
pub async fn lapse(pool: &PgPool) -> Result<i32, Error> {
    let query = sqlx::query_scalar("select journal_lapse($1, $2)").bind(limits::LAPSES_MAX).bind(limits::LEASE_S_MAX);
    Ok(query.fetch_one(pool).await?)
}

/// Owes back landed money that nobody works on; false when somebody does, or when it was ended meanwhile.
pub async fn strand(pool: &PgPool, payment_id: Uuid) -> Result<bool, Error> {
    let query = sqlx::query_scalar("select journal_strand($1, $2)").bind(payment_id).bind(due_s());
    Ok(query.fetch_one(pool).await?)
}

/// Up to which block a sweep has looked; None before its first run.
pub async fn load_cursor(pool: &PgPool, name: &str) -> Result<Option<u64>, Error> {
    let block: Option<i64> =
        sqlx::query_scalar("select block from cursors where name = $1").bind(name).fetch_optional(pool).await?;
    Ok(block.map(|block| u64::try_from(block).unwrap_or(0)))
}

/// Stores that; it never goes back.
pub async fn store_cursor(pool: &PgPool, name: &str, block: u64) -> Result<(), Error> {
    sqlx::query(
        "insert into cursors values ($1, $2) on conflict (name) do update set block = greatest(cursors.block, excluded.block)",
    )
    .bind(name)
    .bind(i64::try_from(block).unwrap_or(i64::MAX))
    .execute(pool)
    .await?;
    Ok(())
}

/// Which of these authorizations have a payment.
pub async fn find_known(pool: &PgPool, auth_keys: &[String]) -> Result<Vec<String>, Error> {
    let query = sqlx::query_scalar("select auth_key from payments where auth_key = any($1)").bind(auth_keys);
    Ok(query.fetch_all(pool).await?)
}

/// Money under an offer of ours, without a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Orphan {
    /// Identity of the payment, as [`crate::x402::auth_key`] makes it.
    pub auth_key: String,
    /// CAIP-2.
    pub network: String,
    /// Token, lower case.
    pub asset: String,
    /// Nonce of the offer, lower-case hex with 0x.
    pub nonce: String,
    /// Digest of what a request would have carried.
    pub payload_sha256: String,
    /// Digest that no request has.
    pub request_fp: String,
    /// Product id.
    pub product: String,
    /// The refusal contract in force.
    pub contract_id: String,
    /// Price of the offer in atomic units, decimal.
    pub amount: String,
    /// The same in dollar micros.
    pub amount_micros: i64,
    /// End of the offer, unix seconds.
    pub ends_at_s: u64,
}

/// Stores an orphan with its transfer and the refund that is owed, in one commit. False when the payment is known. Evidence of
/// another kind than a transfer is no orphan.
pub async fn store_orphan(pool: &PgPool, orphan: &Orphan, transfer: &Evidence) -> Result<bool, Error> {
    let Evidence::Transfer { block, block_hash, tx, log_index, from, to, value } = transfer else { return Ok(false) };
    let payment_id = Uuid::now_v7();
    let query = sqlx::query_scalar(
        "select journal_orphan($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12::text::numeric, $13, $14, $15, $16, $17, $18, \
         $19::text::numeric, $20)",
    )
    .bind(payment_id)
    .bind(&orphan.auth_key)
    .bind(&orphan.network)
    .bind(&orphan.asset)
    .bind(from)
    .bind(to)
    .bind(&orphan.nonce)
    .bind(&orphan.payload_sha256)
    .bind(&orphan.request_fp)
    .bind(&orphan.product)
    .bind(&orphan.contract_id)
    .bind(&orphan.amount)
    .bind(orphan.amount_micros)
    .bind(i64::try_from(orphan.ends_at_s).unwrap_or(i64::MAX))
    .bind(i64::try_from(*block).unwrap_or(i64::MAX))
    .bind(block_hash)
    .bind(tx)
    .bind(i32::try_from(*log_index).unwrap_or(i32::MAX))
    .bind(value)
    .bind(due_s());
    Ok(query.fetch_one(pool).await?)
}

/// Notes a transfer to us that belongs to nothing; false when it was noted before, or is no transfer.
pub async fn store_unidentified(pool: &PgPool, network: &str, transfer: &Evidence) -> Result<bool, Error> {
    let Evidence::Transfer { block, tx, log_index, from, value, .. } = transfer else { return Ok(false) };
    let done = sqlx::query(
        "insert into unidentified_transfers (network, tx_hash, log_index, from_addr, value, block) \
         values ($1, $2, $3, $4, $5::text::numeric, $6) on conflict do nothing",
    )
    .bind(network)
    .bind(tx)
    .bind(i32::try_from(*log_index).unwrap_or(i32::MAX))
    .bind(from)
    .bind(value)
    .bind(i64::try_from(*block).unwrap_or(i64::MAX))
    .execute(pool)
    .await?;
    Ok(done.rows_affected() == 1)
}

fn due_s() -> i32 {
    i32::try_from(limits::REFUND_DUE.as_secs()).unwrap_or(i32::MAX)
}

//! What the chain said about a payment, as rows, and the moves that follow from it (function `journal_evidence`, migration 0006).

use sqlx::Row;
use uuid::Uuid;

use super::rows::{read_rail, read_state};
use super::{Journal, seconds};
use crate::fault;
use crate::limits;
use crate::machine::{Rail, State};
use crate::store::Error;

/// The authorization behind a payment, as a chain is asked about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Authorization {
    /// The payment.
    pub payment_id: Uuid,
    /// How its money comes.
    pub rail: Rail,
    /// Its state.
    pub state: State,
    /// Token, lower case.
    pub asset: String,
    /// Who signed, lower case.
    pub payer: String,
    /// Who is paid, lower case.
    pub pay_to: String,
    /// Nonce, lower-case hex with 0x.
    pub nonce: String,
    /// Price in atomic units, decimal.
    pub amount: String,
    /// End of its window, unix seconds.
    pub valid_before_s: i64,
    /// When it was first presented, unix seconds: the chain is searched from a little before.
    pub since_s: i64,
}

/// One thing seen on chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Evidence {
    /// The money moved.
    Transfer {
        /// Block, its hash, and the log in it.
        block: u64,
        /// Hash of the block, lower-case hex with 0x.
        block_hash: String,
        /// The transaction.
        tx: String,
        /// Index of the log.
        log_index: u64,
        /// Who paid, lower case.
        from: String,
        /// Who was paid, lower case.
        to: String,
        /// Atomic units, decimal.
        value: String,
    },
    /// The payer cancelled the authorization.
    Cancelled {
        /// Block.
        block: u64,
        /// The transaction.
        tx: String,
        /// Index of the log.
        log_index: u64,
    },
    /// Not used, in a block later than the window and its margin.
    UnusedAfterExpiry {
        /// That block.
        block: u64,
    },
    /// A transfer that was seen is gone.
    Lost {
        /// The evidence that it was.
        of: i64,
        /// The block at which it was missed.
        block: u64,
    },
    /// Called settled, and no transfer after the window and its margin.
    Missing {
        /// The block at which it was missed.
        block: u64,
    },
}

impl Journal {
    /// The authorization of a payment.
    pub async fn load_authorization(&self, payment_id: Uuid) -> Result<Authorization, Error> {
        let text = format!("{AUTHORIZATION} where payment_id = $1");
        let row = sqlx::query(sqlx::AssertSqlSafe(text)).bind(payment_id).fetch_one(self.pool()).await?;
        read_authorization(&row)
    }

    /// The body of the last settle call, and who was asked; None for rows from before it was kept.
    pub async fn load_settle_call(&self, payment_id: Uuid) -> Result<Option<(String, String)>, Error> {
        let call = "select t.request, a.facilitator from settle_attempts t join answers a using (payment_id) \
                    where payment_id = $1 and t.request is not null order by attempt desc limit 1";
        Ok(sqlx::query_as(call).bind(payment_id).fetch_optional(self.pool()).await?)
    }

    /// Who judged a payment: he settles it, and nobody else. None for rows from before that was kept.
    pub async fn load_facilitator(&self, payment_id: Uuid) -> Result<Option<String>, Error> {
        let name = "select facilitator from answers where payment_id = $1 and facilitator <> ''";
        Ok(sqlx::query_scalar(name).bind(payment_id).fetch_optional(self.pool()).await?)
    }

    /// Stores evidence and makes the move that follows from it, in one commit. Returns the state after it.
    pub async fn store_evidence(&self, payment_id: Uuid, evidence: &Evidence) -> Result<State, Error> {
        let row = Columns::of(evidence);
        fault::point("before-evidence");
        let state: String = sqlx::query_scalar(
            "select journal_evidence(row(0, $1, $2, $3, $4, $5, $6, $7, $8, $9::text::numeric, $10, now())::chain_evidence, $11)",
        )
        .bind(payment_id)
        .bind(row.kind)
        .bind(row.block)
        .bind(row.block_hash)
        .bind(row.tx)
        .bind(row.log_index)
        .bind(row.from)
        .bind(row.to)
        .bind(row.value)
        .bind(row.of)
        .bind(seconds(limits::REFUND_DUE))
        .fetch_one(self.pool())
        .await?;
        fault::point("after-evidence");
        read_state(&state)
    }
}

pub(super) const AUTHORIZATION: &str = "select payment_id, rail, payment_state(payment_id) as state, asset, payer, pay_to, auth_nonce, \
     amount::text as amount, valid_before::bigint as valid_before, extract(epoch from created_at)::bigint as since from payments";

pub(super) fn read_authorization(row: &sqlx::postgres::PgRow) -> Result<Authorization, Error> {
    Ok(Authorization {
        payment_id: row.try_get("payment_id")?,
        rail: read_rail(row.try_get("rail")?)?,
        state: read_state(row.try_get("state")?)?,
        asset: row.try_get("asset")?,
        payer: row.try_get("payer")?,
        pay_to: row.try_get("pay_to")?,
        nonce: row.try_get("auth_nonce")?,
        amount: row.try_get("amount")?,
        valid_before_s: row.try_get("valid_before")?,
        since_s: row.try_get("since")?,
    })
}

/// The columns of one row of evidence.
pub(super) struct Columns<'a> {
    pub(super) kind: &'static str,
    pub(super) block: i64,
    pub(super) block_hash: Option<&'a str>,
    pub(super) tx: &'a str,
    pub(super) log_index: i32,
    pub(super) from: Option<&'a str>,
    pub(super) to: Option<&'a str>,
    pub(super) value: Option<&'a str>,
    of: Option<i64>,
}

impl<'a> Columns<'a> {
    pub(super) fn of(evidence: &'a Evidence) -> Self {
        let plain = |kind, block: u64| Self {
            kind,
            block: i64::try_from(block).unwrap_or(i64::MAX),
            block_hash: None,
            tx: "",
            log_index: -1,
            from: None,
            to: None,
            value: None,
            of: None,
        };
        let index = |log_index: u64| i32::try_from(log_index).unwrap_or(i32::MAX);
        match evidence {
            Evidence::Transfer { block, block_hash, tx, log_index, from, to, value } => Self {
                block_hash: Some(block_hash),
                tx,
                log_index: index(*log_index),
                from: Some(from),
                to: Some(to),
                value: Some(value),
                ..plain("transfer", *block)
            },
            Evidence::Cancelled { block, tx, log_index } => {
                Self { tx, log_index: index(*log_index), ..plain("cancelled", *block) }
            }
            Evidence::UnusedAfterExpiry { block } => plain("unused_after_expiry", *block),
            Evidence::Lost { of, block } => Self { of: Some(*of), ..plain("lost", *block) },
            Evidence::Missing { block } => plain("missing", *block),
        }
    }
}

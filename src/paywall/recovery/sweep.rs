//! Money under our offers whose request never came (client-broadcast rail).
//!
//! Blocks are read in bounded ranges behind a stored cursor. The cursor does not pass a block with money under an offer that a
//! request may still use: that block is read again until the offer is over or the payment is there.

use std::collections::HashSet;
use std::sync::Arc;

use serde_json::json;
use sqlx::PgPool;

use super::Fault;
use crate::canonical::{canonical_json, hex, sha256};
use crate::evm::{Address, Network, U256, lower};
use crate::limits;
use crate::paywall::evidence::transfer_of;
use crate::paywall::port::chain::{Chain, Landing};
use crate::store::recovery::{self as rows, Orphan};
use crate::x402::{Candidate, IssuedOffer, Offer, OfferSecret, auth_key};

/// What the sweep must know of the shop.
#[derive(Clone, Debug)]
pub struct Sweep {
    /// The secret behind our offers.
    pub secret: Arc<OfferSecret>,
    /// Chain.
    pub network: Network,
    /// Token.
    pub asset: Address,
    /// Its decimals.
    pub asset_decimals: u8,
    /// Who is paid.
    pub pay_to: Address,
    /// The refusal contract in force.
    pub contract_id: String,
    /// Products with their terms.
    pub sold: Vec<(String, Offer)>,
}

/// What is done about one transfer to us.
enum Ruling {
    /// Its payment is there.
    Known,
    /// A request for it may still come.
    Open,
    /// No request can come any more.
    Orphan(IssuedOffer, String),
    /// Not ours to judge.
    Unidentified,
}

impl Sweep {
    /// Reads on from the cursor, at most [`limits::SWEEP_CHUNKS_MAX`] ranges. The first run begins a
    /// range below the head: an offer may have been broadcast before it.
    pub(super) async fn run(&self, pool: &PgPool, chain: &dyn Chain, now_s: u64) -> Result<(), Fault> {
        let name = format!("landings/{}/{}/{}", self.network, lower(&self.asset), lower(&self.pay_to));
        let head = chain.load_head().await?.number;
        let stored = rows::load_cursor(pool, &name).await?;
        let mut done = stored.unwrap_or_else(|| head.saturating_sub(limits::CHAIN_LOG_BLOCKS));
        for _ in 0..limits::SWEEP_CHUNKS_MAX {
            let (from, to) = (done + 1, head.min(done.saturating_add(limits::CHAIN_LOG_BLOCKS)));
            if from > to {
                break;
            }
            let landings = chain.find_landings(self.asset, self.pay_to, from, to).await?;
            if let Some(odd) = landings.iter().find(|l| !(from..=to).contains(&l.block)) {
                return Err(Fault::Odd(format!("a transfer of block {} among the blocks {from} to {to}", odd.block)));
            }
            let open = self.judge_all(pool, &landings, now_s).await?;
            done = open.map_or(to, |block| block.saturating_sub(1));
            rows::store_cursor(pool, &name, done).await?;
            if open.is_some() {
                break;
            }
        }
        Ok(())
    }

    /// Writes what the transfers come to; the first block with one that is open.
    async fn judge_all(&self, pool: &PgPool, landings: &[Landing], now_s: u64) -> Result<Option<u64>, Fault> {
        let keys: Vec<String> = landings.iter().map(|landing| self.key(landing)).collect();
        let known: HashSet<String> = rows::find_known(pool, &keys).await?.into_iter().collect();
        let mut open = None;
        for (landing, key) in landings.iter().zip(keys) {
            let (tx, value) = (landing.tx, landing.value);
            match self.judge(landing, key, &known, now_s) {
                Ruling::Known => {}
                Ruling::Open => open = Some(open.map_or(landing.block, |block: u64| block.min(landing.block))),
                Ruling::Orphan(issued, key) => match self.store_orphan(pool, landing, issued, key).await {
                    Ok(true) => {
                        tracing::warn!(%tx, %value, "money under an offer whose request never came; it goes back")
                    }
                    Ok(false) => {}
                    Err(error) => {
                        // for an operator to see to, and no reason to leave everybody's money behind it unread
                        tracing::error!(%error, %tx, "money under an offer of ours could not be owed back");
                        self.note_unidentified(pool, landing).await?;
                    }
                },
                Ruling::Unidentified => self.note_unidentified(pool, landing).await?,
            }
        }
        Ok(open)
    }

    fn judge(&self, landing: &Landing, key: String, known: &HashSet<String>, now_s: u64) -> Ruling {
        if known.contains(&key) {
            return Ruling::Known;
        }
        let candidates = self.sold.iter().map(|(product, offer)| Candidate { product, offer });
        match self.secret.recognise(&landing.key.nonce, candidates) {
            Some(issued) if !issued.is_over(now_s) => Ruling::Open,
            // nothing came, so there is nothing to return
            Some(_) if landing.value == U256::ZERO => Ruling::Unidentified,
            Some(issued) => Ruling::Orphan(issued, key),
            None => Ruling::Unidentified,
        }
    }

    async fn store_orphan(
        &self,
        pool: &PgPool,
        landing: &Landing,
        issued: IssuedOffer,
        key: String,
    ) -> Result<bool, Fault> {
        let odd = |_| Fault::Odd("the price in the offer cannot be read".to_owned());
        let micros = issued.amount.to_usd_micros(self.asset_decimals).map_err(odd)?;
        let orphan = self.orphan(landing, issued, key, micros.0);
        Ok(rows::store_orphan(pool, &orphan, &transfer_of(landing)).await?)
    }

    async fn note_unidentified(&self, pool: &PgPool, landing: &Landing) -> Result<(), Fault> {
        if rows::store_unidentified(pool, &self.network.to_string(), &transfer_of(landing)).await? {
            let Landing { tx, value, .. } = landing;
            tracing::warn!(%tx, %value, "a transfer to us that is sent back to nobody: an operator should look");
        }
        Ok(())
    }

    fn key(&self, landing: &Landing) -> String {
        auth_key(&self.network, &self.asset, &landing.key.authorizer, &landing.key.nonce)
    }

    fn orphan(&self, landing: &Landing, issued: IssuedOffer, auth_key: String, amount_micros: i64) -> Orphan {
        let payload = canonical_json(&json!({ "txHash": format!("{:#x}", landing.tx) }));
        Orphan {
            // no request has this digest: it is over something else than a request
            request_fp: hex(&sha256(format!("orphan{auth_key}").as_bytes())),
            auth_key,
            network: self.network.to_string(),
            asset: lower(&self.asset),
            nonce: format!("{:#x}", landing.key.nonce),
            payload_sha256: hex(&sha256(payload.as_bytes())),
            product: issued.product.clone(),
            contract_id: self.contract_id.clone(),
            amount: issued.amount.0.to_string(),
            amount_micros,
            ends_at_s: issued.ends_at_s(),
        }
    }
}

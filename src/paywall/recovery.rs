//! Recovery: finds out, without any request, what became of payments whose end nobody saw.
//!
//! On start and in rounds; one process of all replicas at a time. It reads the chain and writes what the chain proves. It never
//! starts a settle: a charge that nobody waits for would be one that nobody fetches the answer of. Where no chain is read it
//! writes no more than what died with its owner.
//!
//! - `looker`: one look at one payment
//! - `pager`: whose turn it is
//! - [`sweep`]: money whose request never came

mod looker;
mod pager;
pub mod sweep;

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::stream;
use tokio_util::sync::CancellationToken;
use uuid::Uuid;

use super::port::chain::{Chain, ChainFault};
use crate::clock::Clock;
use crate::limits;
use crate::store::journal::Journal;
use crate::store::recovery::{self as rows, Holder, Key, List};
use crate::store::{self};
use looker::Looker;
use pager::{Paces, Pager};
use sweep::Sweep;

/// One look that is under way: the payment, and how it went.
type Look = Pin<Box<dyn Future<Output = (Uuid, Result<(), Fault>)> + Send>>;

/// Why a round ended early.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The database.
    #[error(transparent)]
    Store(#[from] store::Error),
    /// The node.
    #[error(transparent)]
    Chain(#[from] ChainFault),
    /// An answer that cannot be.
    #[error("recovery: {0}")]
    Odd(String),
}

/// Recovers payments as long as the process runs.
pub struct Recovery {
    journal: Journal,
    looker: Option<Looker>,
    sweep: Option<Sweep>,
    clock: Arc<dyn Clock>,
    pause: Duration,
    holder: Holder,
    paces: Paces,
    pagers: [Pager; 3],
    landed: Pager,
    seen: i64,
}

impl Recovery {
    /// Recovery that has not begun. `sweep` is for the client-broadcast rail; `pause` between two rounds.
    pub fn new(
        journal: Journal,
        chain: Option<Arc<dyn Chain>>,
        sweep: Option<Sweep>,
        clock: Arc<dyn Clock>,
        pause: Duration,
    ) -> Self {
        Self {
            looker: chain.map(|chain| Looker::new(journal.clone(), chain)),
            sweep,
            clock,
            pause,
            holder: Holder::new(journal.pool()),
            paces: Paces::default(),
            pagers: [List::Unclear, List::Over, List::Unproven].map(Pager::new),
            landed: Pager::new(List::Landed),
            seen: 0,
            journal,
        }
    }

    /// Writes what died with its owner, before the first request is taken. SQL only, and bounded: what is left over is written
    /// by the rounds.
    pub async fn on_start(&self) -> Result<(), store::Error> {
        let mut moves = 0;
        for _ in 0..limits::LAPSE_CALLS_MAX {
            let done = rows::lapse(self.journal.pool()).await?;
            moves += done;
            if done < limits::LAPSES_MAX {
                break;
            }
        }
        if moves > 0 {
            tracing::info!(moves, "what died with its owner is written");
        }
        Ok(())
    }

    /// Rounds until `stop`. An error is logged and makes the pause longer, up to [`limits::RECOVERY_PAUSE_MAX`].
    pub async fn run(mut self, stop: CancellationToken) {
        let mut pause = self.pause;
        while stop.run_until_cancelled(tokio::time::sleep(pause)).await.is_some() {
            pause = match stop.run_until_cancelled(self.round()).await {
                None => break,
                Some(Ok(())) => self.pause,
                Some(Err(error)) => {
                    tracing::warn!(%error, "a round of recovery ended early");
                    (pause * 2).min(limits::RECOVERY_PAUSE_MAX)
                }
            };
        }
        self.holder.release().await;
    }

    /// One round; nothing when another process holds the lock.
    async fn round(&mut self) -> Result<(), Fault> {
        if !self.holder.hold().await? {
            return Ok(());
        }
        self.on_start().await?;
        self.return_stranded().await?;
        let Some(looker) = self.looker.clone() else { return Ok(()) };
        // a node that is down is asked once, not once for each payment
        looker.chain().load_head().await?;
        for list in 0..self.pagers.len() {
            self.look_at_list(&looker, list).await?;
            if !self.holder.hold().await? {
                return Ok(());
            }
        }
        self.look_at_sightings(&looker).await?;
        if let Some(sweep) = &self.sweep {
            let run = sweep.run(self.journal.pool(), looker.chain(), self.clock.unix_s());
            match tokio::time::timeout(limits::RECOVERY_STAGE, run).await {
                Ok(swept) => swept?,
                Err(_) => tracing::warn!("the sweep goes on in the next round"),
            }
        }
        Ok(())
    }

    /// Landed money that nobody works on goes back.
    async fn return_stranded(&mut self) -> Result<(), Fault> {
        let page = rows::load_list(self.journal.pool(), List::Landed, self.landed.after()).await?;
        self.landed.turn(&page, self.clock.unix_s());
        for Key { payment_id, .. } in page {
            match rows::strand(self.journal.pool(), payment_id).await {
                Ok(true) => {
                    tracing::warn!(%payment_id, "its request died before there was an answer; the money goes back")
                }
                Ok(false) => {}
                Err(error) => tracing::error!(%error, %payment_id, "landed money could not be owed back"),
            }
        }
        Ok(())
    }

    async fn look_at_list(&mut self, looker: &Looker, at: usize) -> Result<(), Fault> {
        let (now_s, pager) = (self.clock.unix_s(), &mut self.pagers[at]);
        let list = pager.list();
        let page = rows::load_list(self.journal.pool(), list, pager.after()).await?;
        pager.turn(&page, now_s);
        let due: Vec<Key> = page.into_iter().filter(|key| self.paces.is_due(key.payment_id)).collect();
        for key in &due {
            let age = match list {
                List::Unclear => age(now_s, key.at_us),
                // nothing hurries about these: what matters was said to the buyer
                List::Over | List::Unproven | List::Landed => Duration::MAX,
            };
            self.paces.note(key.payment_id, age);
        }
        let mut looks: Vec<Look> = Vec::new();
        for Key { payment_id, .. } in due {
            let looker = looker.clone();
            looks.push(Box::pin(async move { (payment_id, looker.look(payment_id).await) }));
        }
        look_at_all(looks).await
    }

    async fn look_at_sightings(&mut self, looker: &Looker) -> Result<(), Fault> {
        let page = rows::load_sightings(self.journal.pool(), self.seen).await?;
        let full = i64::try_from(page.len()).is_ok_and(|n| n >= limits::RECOVERY_PAGE);
        self.seen = page.last().filter(|_| full).map_or(0, |last| last.evidence_id);
        let now_s = self.clock.unix_s();
        let due: Vec<_> = page.into_iter().filter(|s| self.paces.is_due(s.payment_id)).collect();
        for sighting in &due {
            self.paces.note(sighting.payment_id, age(now_s, sighting.seen_us));
        }
        let mut looks: Vec<Look> = Vec::new();
        for sighting in due {
            let looker = looker.clone();
            looks.push(Box::pin(async move { (sighting.payment_id, looker.look_again(&sighting).await) }));
        }
        look_at_all(looks).await
    }
}

/// Looks, some at a time and no longer than a list may take. A look that fails keeps no other one waiting; the database
/// failing ends the round.
async fn look_at_all(looks: Vec<Look>) -> Result<(), Fault> {
    let mut looks = stream::iter(looks).buffer_unordered(limits::RECOVERY_PARALLEL);
    let all = async {
        while let Some((payment_id, looked)) = looks.next().await {
            match looked {
                Ok(()) => {}
                Err(Fault::Store(store::Error::Connect(error))) => {
                    return Err(Fault::Store(store::Error::Connect(error)));
                }
                Err(error) => tracing::warn!(%error, %payment_id, "a payment could not be looked at"),
            }
        }
        Ok(())
    };
    match tokio::time::timeout(limits::RECOVERY_STAGE, all).await {
        Ok(done) => done,
        Err(_) => {
            tracing::warn!("a list of recovery took too long; the rest of it waits for its next turn");
            Ok(())
        }
    }
}

/// How long ago that was; zero for what is said to be in the future.
fn age(now_s: u64, at_us: i64) -> Duration {
    let at_s = u64::try_from(at_us / 1_000_000).unwrap_or(0);
    Duration::from_secs(now_s.saturating_sub(at_s))
}

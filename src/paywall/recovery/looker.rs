//! One look at one payment: what the chain says is stored, with the move that follows. Nothing here settles.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use uuid::Uuid;

use super::Fault;
use crate::machine::State;
use crate::paywall::evidence::{find_evidence, find_use};
use crate::paywall::port::chain::{Chain, Use};
use crate::store::journal::{Evidence, Journal};
use crate::store::recovery::Sighting;

/// Asks the chain about payments.
#[derive(Clone)]
pub(super) struct Looker {
    journal: Journal,
    chain: Arc<dyn Chain>,
    /// Transfers that were missed once: a node that lags behind its neighbours misses them too.
    missed: Arc<Mutex<HashSet<i64>>>,
}

impl Looker {
    pub(super) fn new(journal: Journal, chain: Arc<dyn Chain>) -> Self {
        Self { journal, chain, missed: Arc::default() }
    }

    pub(super) fn chain(&self) -> &dyn Chain {
        self.chain.as_ref()
    }

    /// Stores what the chain proves about a payment, if anything.
    pub(super) async fn look(&self, payment_id: Uuid) -> Result<(), Fault> {
        let authorization = self.journal.load_authorization(payment_id).await?;
        let state = authorization.state;
        if matches!(state, State::Claimed | State::Settling) {
            return Ok(());
        }
        let evidence = match (state, find_evidence(self.chain.as_ref(), &authorization).await?) {
            (_, None) => return Ok(()),
            // the facilitator named a transfer, its window is over, and there is none
            (State::Settled, Some(Evidence::UnusedAfterExpiry { block })) => Evidence::Missing { block },
            (_, Some(evidence)) => evidence,
        };
        let after = self.journal.store_evidence(payment_id, &evidence).await?;
        self.tell(payment_id, state, &evidence, after).await?;
        Ok(())
    }

    /// Looks whether a transfer that a charge rests on is still where it was. Missed twice it is lost: then the outcome is
    /// unknown, unless the chain has it elsewhere.
    pub(super) async fn look_again(&self, sighting: &Sighting) -> Result<(), Fault> {
        let authorization = self.journal.load_authorization(sighting.payment_id).await?;
        if authorization.state != State::Settled {
            return Ok(());
        }
        let head = self.chain.load_head().await?;
        if head.number < sighting.block {
            return Ok(());
        }
        let stands = match find_use(self.chain.as_ref(), &authorization).await? {
            Some(Use::Transferred(landing)) => {
                format!("{:#x}", landing.block_hash) == sighting.block_hash
                    && format!("{:#x}", landing.tx) == sighting.tx
                    && landing.log_index == sighting.log_index
            }
            Some(Use::Cancelled { .. }) | None => false,
        };
        if self.note_miss(sighting.evidence_id, stands) < 2 {
            return Ok(());
        }
        let lost = Evidence::Lost { of: sighting.evidence_id, block: head.number };
        let after = self.journal.store_evidence(sighting.payment_id, &lost).await?;
        let Sighting { payment_id, tx, .. } = sighting;
        tracing::error!(%payment_id, tx, ?after, "a transfer that was seen is gone from the chain");
        self.look(sighting.payment_id).await
    }

    /// How often in a row the transfer was missed now; 0 when it stands.
    fn note_miss(&self, evidence_id: i64, stands: bool) -> u8 {
        let mut missed = self.missed.lock().unwrap_or_else(PoisonError::into_inner);
        let before = missed.remove(&evidence_id);
        match (stands, before) {
            (true, _) => 0,
            (false, false) => {
                missed.insert(evidence_id);
                1
            }
            (false, true) => 2,
        }
    }

    async fn tell(&self, payment_id: Uuid, before: State, evidence: &Evidence, after: State) -> Result<(), Fault> {
        let kind = kind(evidence);
        match (before, evidence) {
            (State::Settled, Evidence::Missing { .. } | Evidence::Cancelled { .. }) => {
                let facilitator = self.journal.load_facilitator(payment_id).await?;
                tracing::error!(%payment_id, kind, facilitator, "ALARM: the facilitator called this settled, and no money came");
            }
            (State::Settled, _) => tracing::debug!(%payment_id, kind, "a charge is proven"),
            _ if after == State::RefundOwed => {
                tracing::warn!(%payment_id, kind, ?before, "money came that nobody owes an answer for; it goes back");
            }
            _ if after != before => {
                tracing::info!(%payment_id, kind, ?before, ?after, "the chain says what became of it")
            }
            _ => tracing::debug!(%payment_id, kind, ?after, "the chain says that it was never charged"),
        }
        Ok(())
    }
}

fn kind(evidence: &Evidence) -> &'static str {
    match evidence {
        Evidence::Transfer { .. } => "transfer",
        Evidence::Cancelled { .. } => "cancelled",
        Evidence::UnusedAfterExpiry { .. } => "unused_after_expiry",
        Evidence::Lost { .. } => "lost",
        Evidence::Missing { .. } => "missing",
    }
}

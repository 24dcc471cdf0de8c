//! What the chain says about a payment whose outcome nobody knows (payments.md section 1).
//!
//! Optional: without a chain to read, an outcome is found out by presenting the same payment again. Nothing here settles, and
//! a node that does not answer says nothing at all.

use uuid::Uuid;

use super::Paywall;
use super::port::chain::{AuthorizationKey, Chain, ChainFault, Landing, Use};
use crate::evm::{lower, parse_address, parse_word};
use crate::limits;
use crate::machine::State;
use crate::store;
use crate::store::journal::{Authorization, Evidence};

impl Paywall {
    /// Asks the chain once and stores what it says. Returns the state after it.
    pub async fn look(&self, payment_id: Uuid) -> Result<State, store::Error> {
        let authorization = self.journal.load_authorization(payment_id).await?;
        let Some(chain) = &self.chain else { return Ok(authorization.state) };
        match find_evidence(chain.as_ref(), &authorization).await {
            Ok(Some(evidence)) => self.journal.store_evidence(payment_id, &evidence).await,
            Ok(None) => Ok(authorization.state),
            Err(error) => {
                tracing::warn!(%error, %payment_id, "the chain could not be asked");
                Ok(authorization.state)
            }
        }
    }

    /// Asks the chain a few times, as long as the outcome is not known: a transfer that was sent a moment ago takes a while.
    pub(super) async fn look_for_a_while(&self, payment_id: Uuid) -> Result<State, store::Error> {
        let mut state = State::Unknown;
        if self.chain.is_none() {
            return Ok(state);
        }
        for pause in limits::CHAIN_LOOKS {
            tokio::time::sleep(pause).await;
            state = self.look(payment_id).await?;
            if state != State::Unknown {
                break;
            }
        }
        Ok(state)
    }
}

/// What the chain proves about an authorization, if anything.
pub async fn find_evidence(chain: &dyn Chain, authorization: &Authorization) -> Result<Option<Evidence>, ChainFault> {
    let key = key_of(authorization)?;
    // the head comes first: what is searched after it covers it
    let head = chain.load_head().await?;
    let since_s = u64::try_from(authorization.since_s).unwrap_or(0).saturating_sub(limits::CLOCK_SKEW_S);
    Ok(match chain.find_use(&key, since_s).await? {
        Some(Use::Transferred(landing)) if lower(&landing.to) == authorization.pay_to => Some(transfer_of(&landing)),
        // the payer spent the nonce on somebody else: what he signed for us is void
        Some(Use::Transferred(landing)) => Some(Evidence::Cancelled {
            block: landing.block,
            tx: format!("{:#x}", landing.tx),
            log_index: landing.log_index,
        }),
        Some(Use::Cancelled { tx, block, log_index }) => {
            Some(Evidence::Cancelled { block, tx: format!("{tx:#x}"), log_index })
        }
        None => {
            let over = u64::try_from(authorization.valid_before_s).unwrap_or(u64::MAX);
            let is_over = head.time_s > over.saturating_add(limits::FINALITY_MARGIN_S);
            let unused = is_over && !chain.is_nonce_used(&key).await?;
            unused.then_some(Evidence::UnusedAfterExpiry { block: head.number })
        }
    })
}

/// Money that moved, as evidence.
pub(super) fn transfer_of(landing: &Landing) -> Evidence {
    Evidence::Transfer {
        block: landing.block,
        block_hash: format!("{:#x}", landing.block_hash),
        tx: format!("{:#x}", landing.tx),
        log_index: landing.log_index,
        from: lower(&landing.key.authorizer),
        to: lower(&landing.to),
        value: landing.value.to_string(),
    }
}

/// The authorization as the chain knows it.
pub fn key_of(authorization: &Authorization) -> Result<AuthorizationKey, ChainFault> {
    let odd = |what: &str| ChainFault(format!("payment {} has an unreadable {what}", authorization.payment_id));
    Ok(AuthorizationKey {
        asset: parse_address(&authorization.asset).map_err(|_| odd("asset"))?,
        authorizer: parse_address(&authorization.payer).map_err(|_| odd("payer"))?,
        nonce: parse_word(&authorization.nonce).map_err(|_| odd("nonce"))?,
    })
}

//! What the chain says about a payment whose outcome nobody knows.
//!
//! Optional: without a chain to read, an outcome is found out by presenting the same payment again. Nothing here settles, and
//! a node that does not answer says nothing at all.

use uuid::Uuid;

use super::Paywall;
use super::port::chain::{AuthorizationKey, Chain, ChainFault, Landing, PermitKey, Use};
use crate::evm::{Address, EXACT_PROXY, UPTO_PROXY, lower, parse_address, parse_uint, parse_word};
use crate::limits;
use crate::machine::{Rail, State};
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
    // the head comes first: what is searched after it covers it
    let head = chain.load_head().await?;
    Ok(match find_use(chain, authorization).await? {
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
            let unused = is_over && !may_be_used(chain, authorization).await?;
            unused.then_some(Evidence::UnusedAfterExpiry { block: head.number })
        }
    })
}

/// What the chain has of an authorization, by the rules of its rail.
pub(super) async fn find_use(chain: &dyn Chain, authorization: &Authorization) -> Result<Option<Use>, ChainFault> {
    let since_s = u64::try_from(authorization.since_s).unwrap_or(0).saturating_sub(limits::CLOCK_SKEW_S);
    match authorization.rail {
        Rail::Exact | Rail::ClientBroadcast => chain.find_use(&key_of(authorization)?, since_s).await,
        Rail::ExactPermit2 => chain.find_permit(&permit_of(authorization, EXACT_PROXY)?, since_s).await,
        Rail::Upto => chain.find_permit(&permit_of(authorization, UPTO_PROXY)?, since_s).await,
    }
}

/// Whether an authorization of which the logs have nothing may be used all the same. A bit of Permit2 says nothing about it: its owner
/// can set it without a transfer, and what was searched are the transfers themselves.
async fn may_be_used(chain: &dyn Chain, authorization: &Authorization) -> Result<bool, ChainFault> {
    match authorization.rail {
        Rail::Exact | Rail::ClientBroadcast => chain.is_nonce_used(&key_of(authorization)?).await,
        Rail::ExactPermit2 | Rail::Upto => Ok(false),
    }
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

/// The permit as the chain knows it.
fn permit_of(authorization: &Authorization, proxy: Address) -> Result<PermitKey, ChainFault> {
    let odd = |what: &str| ChainFault(format!("payment {} has an unreadable {what}", authorization.payment_id));
    let key = key_of(authorization)?;
    Ok(PermitKey {
        asset: key.asset,
        owner: key.authorizer,
        nonce: key.nonce.into(),
        payee: parse_address(&authorization.pay_to).map_err(|_| odd("payee"))?,
        value: parse_uint(&authorization.amount).map_err(|_| odd("amount"))?,
        proxy,
    })
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

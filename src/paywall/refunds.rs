//! The desk that pays refunds.
//!
//! Each refund has one nonce, so that the token itself refuses a second payout. The chain is asked before anything is sent and
//! is the only proof: a hash proves nothing. What is signed is stored before it is sent, and is sent again while it holds; after
//! that the same payout is signed anew, never under another nonce, and never while another key's authorization could still be
//! used. Nothing here decides that a refund is owed.

use std::sync::Arc;
use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::port::chain::{AuthorizationKey, Block, Chain, ChainFault, Landing, Treasury, Use};
use crate::clock::Clock;
use crate::evm::{Address, B256, Network, TransferAuthorization, U256, lower, parse_address, parse_uint, parse_word};
use crate::fault;
use crate::limits;
use crate::store::Error;
use crate::store::journal::Journal;
use crate::store::refunds::work::{self, Owed, Step};

/// Which refunds it may pay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terms {
    /// The chain that is read.
    pub network: Network,
    /// The token of the deployment.
    pub asset: Address,
    /// Whether it sends; if not, it only confirms what an operator has sent under the refund's nonce.
    pub auto: bool,
}

/// Works off what is owed back.
pub struct RefundDesk {
    journal: Journal,
    chain: Arc<dyn Chain>,
    treasury: Arc<dyn Treasury>,
    clock: Arc<dyn Clock>,
    terms: Terms,
}

/// Why a try ended without a broadcast and without a confirmation.
enum Trouble {
    /// The database failed: nothing can be written about it.
    Store(Error),
    /// Somebody else works on it by now.
    Lost,
    /// Nothing to do at this moment, and nothing to tell.
    Rest(String),
    /// It did not work; it may work later.
    Failed(String),
    /// It will not work by itself.
    Parked(String),
}

impl From<Error> for Trouble {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<ChainFault> for Trouble {
    fn from(fault: ChainFault) -> Self {
        Self::Failed(fault.to_string())
    }
}

/// A refund whose text members were read.
struct Payout {
    asset: Address,
    to: Address,
    amount: U256,
    nonce: B256,
    landed_tx: B256,
}

/// What is known of a signer's authorization.
enum Seen {
    /// It paid this refund.
    Paid(Landing),
    /// It was used for something else, or cancelled: it can pay nothing any more.
    Spent(String),
    /// Neither used nor cancelled up to the head.
    Unused,
}

impl RefundDesk {
    /// A desk that pays from `treasury` what the rows of `journal` owe.
    pub fn new(
        journal: Journal,
        chain: Arc<dyn Chain>,
        treasury: Arc<dyn Treasury>,
        clock: Arc<dyn Clock>,
        terms: Terms,
    ) -> Self {
        Self { journal, chain, treasury, clock, terms }
    }

    /// Works off what is due until `stop`; a try that is under way ends first.
    pub async fn run(self: Arc<Self>, stop: CancellationToken) {
        while stop.run_until_cancelled(tokio::time::sleep(limits::REFUND_PAUSE)).await.is_some() {
            let (desk, until) = (Arc::clone(&self), stop.clone());
            // a task of its own: a panic ends one round, not the desk
            match tokio::spawn(async move { desk.work_off(&until).await }).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => tracing::error!(%error, "refunds could not be worked on"),
                Err(error) => tracing::error!(%error, "a round of refunds ended in a panic"),
            }
        }
    }

    /// Works off what is due now. Returns how many refunds were looked at.
    pub async fn run_once(&self) -> Result<usize, Error> {
        self.work_off(&CancellationToken::new()).await
    }

    async fn work_off(&self, stop: &CancellationToken) -> Result<usize, Error> {
        let mut count = 0;
        while !stop.is_cancelled()
            && let Some(owed) = work::take(self.journal.pool(), self.journal.instance()).await?
        {
            self.work(&owed).await?;
            count += 1;
        }
        Ok(count)
    }

    async fn work(&self, owed: &Owed) -> Result<(), Error> {
        let tried = tokio::time::timeout(limits::REFUND_WORK, self.pay(owed)).await;
        let trouble = match tried {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(trouble)) => trouble,
            // what was sent, if anything, is found by its nonce
            Err(_) => Trouble::Failed(format!("no end within {} s", limits::REFUND_WORK.as_secs())),
        };
        if self.clock.now() > owed.due_by {
            tracing::error!(refund_id = %owed.refund_id, due_by = %owed.due_by, "a refund is late");
        }
        match trouble {
            Trouble::Store(error) => Err(error),
            Trouble::Lost => {
                tracing::warn!(refund_id = %owed.refund_id, "somebody else works on this refund by now");
                Ok(())
            }
            Trouble::Rest(why) => {
                tracing::info!(why, refund_id = %owed.refund_id, "a refund waits");
                work::rest(self.journal.pool(), owed, limits::REFUND_REST).await
            }
            Trouble::Failed(why) => self.fail(owed, &why).await,
            Trouble::Parked(why) => self.park(owed, &why).await,
        }
    }

    /// The next thing to do for one refund: confirm it, or send it.
    async fn pay(&self, owed: &Owed) -> Result<(), Trouble> {
        let payout = self.read(owed)?;
        // the head comes first: what is searched after it covers it
        let head = match self.chain.load_head().await {
            Ok(head) => head,
            // no fault of this refund
            Err(fault) => return Err(Trouble::Rest(fault.to_string())),
        };
        let own = self.treasury.address();
        let mut open = false;
        for signer in self.others(owed)? {
            match self.look(owed, &payout, signer.address).await? {
                Seen::Paid(landing) => return Ok(self.confirm(owed, signer.address, &landing).await?),
                Seen::Spent(_) => {}
                Seen::Unused => open |= head.time_s <= signer.until_s.saturating_add(limits::FINALITY_MARGIN_S),
            }
        }
        match self.look(owed, &payout, own).await? {
            Seen::Paid(landing) => return Ok(self.confirm(owed, own, &landing).await?),
            Seen::Spent(how) => return Err(Trouble::Parked(how)),
            Seen::Unused => {}
        }
        if !self.terms.auto {
            return Err(Trouble::Rest("refunds.auto is false".to_owned()));
        }
        if open {
            // nonces are per signer: the token would pay both
            return Err(Trouble::Rest("another treasury's authorization can still be used".to_owned()));
        }
        self.send(owed, &payout, head).await
    }

    async fn send(&self, owed: &Owed, payout: &Payout, head: Block) -> Result<(), Trouble> {
        let (authorization, signature) = match self.signed(owed, payout, head) {
            Some(signed) => signed,
            None => self.sign(owed, payout, head).await?,
        };
        fault::point("before-refund-broadcast");
        let tx = self.treasury.broadcast(&authorization, &signature).await?;
        fault::point("after-refund-broadcast");
        let tx = format!("{tx:#x}");
        let next = pace(limits::REFUND_MINED_WAIT, owed.broadcasts);
        self.write(owed, &Step::Broadcast { tx: &tx, next }).await?;
        tracing::info!(refund_id = %owed.refund_id, tx, "a refund was sent; the chain has yet to show it");
        if owed.broadcasts >= limits::REFUND_FAILURES_MAX {
            tracing::error!(refund_id = %owed.refund_id, count = owed.broadcasts, "transactions of a refund are never mined");
        }
        Ok(())
    }

    /// What this treasury has signed before, while it holds.
    fn signed(&self, owed: &Owed, payout: &Payout, head: Block) -> Option<(TransferAuthorization, [u8; 65])> {
        let own = lower(&self.treasury.address());
        let signed = owed.signed.iter().find(|signed| signed.treasury == own)?;
        if signed.valid_before_s <= head.time_s.saturating_add(limits::REFUND_LIFE_LEFT_S) {
            return None;
        }
        let signature = signed.signature.as_slice().try_into().ok()?;
        Some((self.authorization(payout, signed.valid_before_s), signature))
    }

    /// Signs with a window from now on, under the refund's own nonce, and stores that before it is sent.
    async fn sign(
        &self,
        owed: &Owed,
        payout: &Payout,
        head: Block,
    ) -> Result<(TransferAuthorization, [u8; 65]), Trouble> {
        let valid_before_s = head.time_s.max(self.clock.unix_s()).saturating_add(limits::REFUND_LIFE_S);
        let authorization = self.authorization(payout, valid_before_s);
        let signature = self.treasury.sign(&authorization);
        fault::point("before-refund-signed");
        self.write(owed, &Step::Signed { valid_before_s, signature: &signature }).await?;
        fault::point("after-refund-signed");
        Ok((authorization, signature))
    }

    fn authorization(&self, payout: &Payout, valid_before_s: u64) -> TransferAuthorization {
        TransferAuthorization {
            from: self.treasury.address(),
            to: payout.to,
            value: payout.amount,
            valid_after: U256::ZERO,
            valid_before: U256::from(valid_before_s),
            nonce: payout.nonce,
        }
    }

    /// What became of the payout as far as one signer is concerned.
    async fn look(&self, owed: &Owed, payout: &Payout, signer: Address) -> Result<Seen, ChainFault> {
        let key = AuthorizationKey { asset: payout.asset, authorizer: signer, nonce: payout.nonce };
        let mut found = self.chain.find_use(&key, owed.since_s).await?;
        if found.is_none() && self.chain.is_nonce_used(&key).await? {
            // a restored database may believe that all of this began later than it did; the landing's own block does not
            let landings = self.chain.load_landings(payout.asset, payout.landed_tx).await?.unwrap_or_default();
            let landed_s = landings.iter().map(|landing| landing.time_s).min().unwrap_or(owed.since_s);
            found = self.chain.find_use(&key, landed_s).await?;
            if found.is_none() {
                return Err(ChainFault("the nonce of the refund is used, and its log is not found".to_owned()));
            }
        }
        Ok(match found {
            None => Seen::Unused,
            Some(Use::Transferred(landing)) if landing.to == payout.to && landing.value == payout.amount => {
                Seen::Paid(landing)
            }
            Some(Use::Transferred(Landing { to, value, tx, .. })) => {
                Seen::Spent(format!("its nonce moved {value} to {to} in {tx:#x}: not this refund"))
            }
            Some(Use::Cancelled { tx, .. }) => Seen::Spent(format!("its nonce was cancelled in {tx:#x}")),
        })
    }

    async fn confirm(&self, owed: &Owed, payer: Address, landing: &Landing) -> Result<(), Error> {
        let tx = format!("{:#x}", landing.tx);
        fault::point("before-refund-confirmed");
        let fresh = work::confirm(self.journal.pool(), owed.refund_id, &lower(&payer), &tx).await?;
        fault::point("after-refund-confirmed");
        if fresh {
            tracing::info!(refund_id = %owed.refund_id, payment_id = %owed.payment_id, tx, "a refund is on chain");
        }
        Ok(())
    }

    async fn write(&self, owed: &Owed, step: &Step<'_>) -> Result<(), Trouble> {
        let written = work::step(self.journal.pool(), owed, &lower(&self.treasury.address()), step).await?;
        if written { Ok(()) } else { Err(Trouble::Lost) }
    }

    async fn fail(&self, owed: &Owed, why: &str) -> Result<(), Error> {
        if owed.failures.saturating_add(1) >= limits::REFUND_FAILURES_MAX {
            return self.park(owed, why).await;
        }
        tracing::warn!(why, refund_id = %owed.refund_id, "a refund could not be sent");
        let next = pace(limits::REFUND_RETRY_MIN, owed.failures);
        self.end(owed, &Step::Failed { detail: why, next }).await
    }

    /// The loud end of a try: nobody may overlook that somebody's money is still here.
    async fn park(&self, owed: &Owed, why: &str) -> Result<(), Error> {
        tracing::error!(why, refund_id = %owed.refund_id, payment_id = %owed.payment_id, amount = owed.amount, to = owed.to,
            "a refund is parked: an operator has to look");
        self.end(owed, &Step::Parked { detail: why, next: limits::REFUND_PARKED }).await
    }

    async fn end(&self, owed: &Owed, step: &Step<'_>) -> Result<(), Error> {
        match self.write(owed, step).await {
            Err(Trouble::Store(error)) => Err(error),
            _ => Ok(()),
        }
    }

    fn read(&self, owed: &Owed) -> Result<Payout, Trouble> {
        let Terms { network, asset, .. } = self.terms;
        if owed.network != network.to_string() || owed.asset != lower(&asset) {
            let Owed { network: theirs, asset: their_asset, .. } = owed;
            let why = format!("it is owed in {their_asset} on {theirs}; this deployment has {asset} on {network}");
            return Err(Trouble::Parked(why));
        }
        let odd = |what: &str| Trouble::Parked(format!("its {what} cannot be read"));
        Ok(Payout {
            asset,
            to: parse_address(&owed.to).map_err(|_| odd("receiver"))?,
            amount: parse_uint(&owed.amount).map_err(|_| odd("amount"))?,
            nonce: parse_word(&owed.nonce).map_err(|_| odd("nonce"))?,
            landed_tx: parse_word(&owed.landed_tx).map_err(|_| odd("landing"))?,
        })
    }

    /// Who else has signed this refund: the key of the treasury was changed meanwhile.
    fn others(&self, owed: &Owed) -> Result<Vec<Signer>, Trouble> {
        let own = lower(&self.treasury.address());
        let others = owed.signed.iter().filter(|signed| signed.treasury != own);
        let read = others.map(|signed| {
            let address = parse_address(&signed.treasury);
            let address = address.map_err(|_| Trouble::Parked("a signer of it cannot be read".to_owned()))?;
            Ok(Signer { address, until_s: signed.valid_before_s })
        });
        read.collect()
    }
}

/// A former treasury, and until when what it signed can be used.
struct Signer {
    address: Address,
    until_s: u64,
}

/// A pause that doubles with each time before, up to [`limits::REFUND_RETRY_MAX`].
fn pace(first: Duration, times: u32) -> Duration {
    first.saturating_mul(2_u32.saturating_pow(times)).min(limits::REFUND_RETRY_MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_an_hour() {
        let seconds: Vec<u64> = (0..11).map(|n| pace(limits::REFUND_RETRY_MIN, n).as_secs()).collect();
        assert_eq!(seconds, [5, 10, 20, 40, 80, 160, 320, 640, 1_280, 2_560, 3_600]);
        assert_eq!(pace(limits::REFUND_RETRY_MIN, u32::MAX), limits::REFUND_RETRY_MAX);
    }
}

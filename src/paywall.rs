//! The seam between a payment and the answer it pays for.
//!
//! A payment is claimed, verified, worked for, and then committed or refused; [`Verified`] can do one of the two, once
//! (seed 002). Every write commits before the next outside call. No HTTP types and no SQL here.
//!
//! - [`admission`]: from a decoded payment to [`Verified`], or to an answer that needs no work
//! - [`verified`]: commit or refuse
//! - `settle`: the settle call and its outcome, first or repeated
//! - [`landing`]: a payment that has moved its money before the request
//! - [`repeat`]: a payment that was presented before, or whose purchase another one holds
//! - [`evidence`]: what the chain says where the facilitator left it open
//! - [`recovery`]: what is found out without a request
//! - [`refunds`]: pays back what is owed
//! - [`contract`]: what refusals are signed under

pub mod admission;
pub mod contract;
pub mod evidence;
pub mod landing;
pub mod outcome;
pub mod port;
pub mod recovery;
pub mod refunds;
pub mod repeat;
mod settle;
pub mod verified;

use std::collections::HashSet;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use tokio::sync::Semaphore;

use crate::clock::Clock;
use crate::evm::{Address, Network};
use crate::ledger::PayerClass;
use crate::store::journal::Journal;
use crate::x402::SCHEME;
use contract::Contract;
use landing::Landings;
use port::chain::Chain;
use port::{Facilitator, Kind, Member};

pub use outcome::{Delivery, Outcome, Refused};
pub use verified::{Home, Presence, Verified};

/// What the operator decides about payers and load.
#[derive(Clone, Debug)]
pub struct Policy {
    /// Payers that are not served.
    pub denied_payers: HashSet<Address>,
    /// Payers that are ourselves: the payee and the identity in call chains.
    pub own: HashSet<Address>,
    /// Paid requests a minute of one payer; 0 switches the limit off.
    pub rate_per_minute: u32,
    /// Paid requests that are worked on at one time.
    pub max_in_flight: usize,
    /// Whether signatures that are not 65 bytes go to the facilitator.
    pub contract_wallets: bool,
}

/// Admits payments and settles what they paid for.
pub struct Paywall {
    journal: Journal,
    facilitator: Arc<dyn Facilitator>,
    chain: Option<Arc<dyn Chain>>,
    landings: Option<Landings>,
    contract: Arc<Contract>,
    clock: Arc<dyn Clock>,
    policy: Policy,
    payer_rate: Option<DefaultKeyedRateLimiter<Address>>,
    slots: Arc<Semaphore>,
    supported: AtomicBool,
}

impl Paywall {
    /// A paywall that sheds everything until [`Paywall::check_supported`] has seen our kind.
    pub fn new(
        journal: Journal,
        facilitator: Arc<dyn Facilitator>,
        chain: Option<Arc<dyn Chain>>,
        contract: Arc<Contract>,
        clock: Arc<dyn Clock>,
        policy: Policy,
    ) -> Self {
        Self {
            journal,
            facilitator,
            chain,
            landings: None,
            contract,
            clock,
            payer_rate: NonZeroU32::new(policy.rate_per_minute).map(|n| RateLimiter::keyed(Quota::per_minute(n))),
            slots: Arc::new(Semaphore::new(policy.max_in_flight)),
            supported: AtomicBool::new(false),
            policy,
        }
    }

    /// Asks the facilitators whether one settles what we offer. Called all the time: each has its own pace.
    pub async fn check_supported(&self, network: Network) -> Result<bool, port::Unreachable> {
        let kinds = self.facilitator.fetch_supported().await?;
        let ours = kinds
            .iter()
            .any(|kind: &Kind| kind.x402_version == 2 && kind.scheme == SCHEME && kind.network == network.to_string());
        self.supported.store(ours, Ordering::SeqCst);
        Ok(ours)
    }

    /// True once the facilitator has listed our kind.
    pub fn is_supported(&self) -> bool {
        self.supported.load(Ordering::SeqCst)
    }

    /// The contract in force.
    pub fn contract(&self) -> &Arc<Contract> {
        &self.contract
    }

    /// The journal, for faces that show an order.
    pub fn journal(&self) -> &Journal {
        &self.journal
    }

    /// The facilitator's name, and whether it moves no money.
    pub fn facilitator(&self) -> (&str, bool) {
        (self.facilitator.name(), self.facilitator.is_simulated())
    }

    /// Each facilitator, as it was last seen.
    pub fn facilitators(&self) -> Vec<Member> {
        self.facilitator.members()
    }

    /// Keeps the table of payers small.
    pub fn forget_old_rates(&self) {
        if let Some(limiter) = &self.payer_rate {
            limiter.retain_recent();
        }
    }

    fn payer_class(&self, payer: &Address) -> PayerClass {
        if self.facilitator.is_simulated() {
            PayerClass::Test
        } else if self.policy.own.contains(payer) {
            PayerClass::Own
        } else {
            PayerClass::Organic
        }
    }
}

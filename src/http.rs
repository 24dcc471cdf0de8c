//! The HTTP face: translates requests into calls of the application and outcomes into responses, and nothing else.
//!
//! Start at [`router`]: it is the contents page. [`stack`] holds the layers around every route, `paid` the order of checks of a
//! route that is sold.

pub mod answer;
mod document;
mod health;
mod meta;
mod openapi;
mod operator;
mod orders;
mod paid;
mod problem;
mod refunds;
mod research;
pub mod router;
pub mod server;
pub mod shelf;
pub mod stack;

use std::collections::HashSet;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::Arc;

use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use sqlx::PgPool;
use tokio_util::task::TaskTracker;

use crate::clock::Clock;
use crate::evm::Address;
use crate::paywall::Paywall;
use crate::pipeline::Pipeline;
use shelf::Shelf;

/// Everything that a handler may use.
pub struct Shop {
    /// What is sold, with its terms rendered.
    pub shelves: Vec<Arc<Shelf>>,
    /// Admits and settles payments.
    pub paywall: Arc<Paywall>,
    /// Does the work.
    pub pipeline: Pipeline,
    /// The database, for readiness and the operator's ledger.
    pub pool: PgPool,
    /// Wall-clock time.
    pub clock: Arc<dyn Clock>,
    /// What the operator decided.
    pub rules: Rules,
    /// Where we are reached, without a slash at the end.
    pub public_url: String,
    /// Requests of one address; None when the limit is off.
    pub address_rate: Option<DefaultKeyedRateLimiter<IpAddr>>,
    /// Paid work in progress: drained before the process ends.
    pub work: TaskTracker,
}

/// What the operator decides about requests.
#[derive(Clone, Debug)]
pub struct Rules {
    /// Tickers that are not sold, upper case.
    pub denied_subjects: HashSet<String>,
    /// Who we are in call chains.
    pub identity: Address,
    /// Hops at which a chain is too deep.
    pub max_depth: usize,
    /// Requests a minute of one address; 0 is off.
    pub rate_per_minute: u32,
}

/// A limiter of that many requests a minute; None when it is 0.
pub fn per_address(rate_per_minute: u32) -> Option<DefaultKeyedRateLimiter<IpAddr>> {
    NonZeroU32::new(rate_per_minute).map(|n| RateLimiter::keyed(Quota::per_minute(n)))
}

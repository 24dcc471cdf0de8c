//! Facilitators: the one over HTTP, and the one in process that stands in for a chain.
//!
//! Both implement `paywall::port::Facilitator`. Settling takes an intent that only the paywall makes; the functions behind
//! it are private to the two files, so that nobody can settle around it.

mod answer;
mod reason;
mod remote;
mod simulated;

pub use remote::{BadUrl, Budgets, Remote};
pub use simulated::{Calls, Simulated};

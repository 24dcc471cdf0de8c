//! Facilitators: those over HTTP, several of them in a pool, and the one in process that stands in for a chain.
//!
//! All implement `paywall::port::Facilitator`. Settling takes an intent that only the paywall makes; the functions behind
//! it are private to these files, so that nobody can settle around it.

use crate::paywall::port::FacilitatorRequest;
use crate::x402::FacilitatorCall;

mod answer;
mod pool;
mod reason;
mod remote;
mod simulated;

pub use pool::Pool;
pub use remote::{BadUrl, Budgets, Remote};
pub use simulated::{Calls, Simulated};

impl From<FacilitatorCall> for FacilitatorRequest {
    fn from(call: FacilitatorCall) -> Self {
        Self {
            x402_version: call.x402_version,
            payment_payload: call.payment_payload,
            payment_requirements: call.payment_requirements,
        }
    }
}

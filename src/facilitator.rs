//! Facilitators: the one over HTTP, and the one in process that stands in for a chain.
//!
//! Both implement `paywall::port::Facilitator`. Settling takes an intent that only the paywall makes; the functions behind
//! it are private to the two files, so that nobody can settle around it.

use crate::paywall::port::FacilitatorRequest;
use crate::x402::FacilitatorCall;

mod answer;
mod reason;
mod remote;
mod simulated;

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

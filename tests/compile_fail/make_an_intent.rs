//! An intent to settle is made by the paywall alone, after its commit.
use jim::paywall::port::{Facilitator, FacilitatorRequest, SettleIntent};

async fn settle(facilitator: &dyn Facilitator, request: FacilitatorRequest) {
    facilitator.settle(&SettleIntent { request, attempt: 1, facilitator: String::new() }).await;
}

fn main() {}

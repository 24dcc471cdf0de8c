//! The rail on which the buyer moves the money himself: an EIP-3009 transfer that he broadcasts before the paid request, which
//! then carries no more than the transaction's hash.
//!
//! On the wire it is scheme `exact` with `extra.assetTransferMethod` [`METHOD`] and payment flow `upfront`, in version 2 only.
//! Pure: no chain is read here. A request is ruled in this order, by its caller:
//! `decode_presented`, the transfers of that transaction from the chain, [`OfferSecret::check`] on the nonce of one of them,
//! [`match_landing`], then [`match_broadcast`]. Whatever refuses after the transfer was found owes a refund.

mod challenge;
mod matching;
mod nonce;
mod payment;

pub use challenge::ChallengeTemplate;
pub use matching::{Landed, LandingMismatch, Overpaid, match_broadcast, match_landing};
pub use nonce::{Candidate, IssueError, IssuedOffer, NonceError, OfferSecret};
pub use payment::{BroadcastPayment, Presented, decode_presented};

use serde_json::{Map, Value};

use super::Offer;

/// `extra.assetTransferMethod` of the rail.
pub const METHOD: &str = "eip3009-client-broadcast";

/// `extra.paymentFlow` of the rail: the money moves before the work.
pub const FLOW: &str = "upfront";

/// Members of `extra` but for the nonce, which is another one in each 402.
fn extra(offer: &Offer) -> Map<String, Value> {
    let mut members = offer.extra();
    members.insert("assetTransferMethod".to_owned(), Value::from(METHOD));
    members.insert("paymentFlow".to_owned(), Value::from(FLOW));
    members
}

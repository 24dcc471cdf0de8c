//! x402, versions 1 and 2, scheme `exact` by EIP-3009: what we offer, how a payment is read, and whether it fits. In version 2 the
//! buyer may also sign for Permit2 (`exact` or `upto`), or broadcast the transfer himself (`broadcast`).
//!
//! Pure: nothing here calls a facilitator or knows the time. What is read from a buyer is read strictly, since a text that
//! two programs may read in two ways is a way to pay one of them less. Wire facts follow the specifications of
//! coinbase/x402 (`specs/`); where clients disagree with them, the comment says so.

mod authorization;
mod broadcast;
mod buyer;
mod challenge;
mod codec;
mod offer;
mod payment;
mod receipt;
mod terms;

#[cfg(test)]
pub(crate) mod fixture;

pub use authorization::{Authorization, Method};
pub use broadcast::{
    BroadcastPayment, Candidate, ChallengeTemplate, FLOW as BROADCAST_FLOW, IssueError, IssuedOffer, Landed,
    LandingMismatch, METHOD as BROADCAST_METHOD, NonceError, OfferSecret, Overpaid, Presented, decode_presented,
    match_broadcast, match_landing,
};
pub use buyer::{
    OutgoingPayment, PeerChallenge, PeerOffer, UnreadableChallenge, pay, read_body, read_required, read_terms,
};
pub use challenge::{Challenge, TooLarge};
pub use offer::{Offer, Permit2Rails};
pub use payment::{Accepted, Malformed, Payment, auth_key, decode};
pub use receipt::{Receipt, UnreadableReceipt};
pub use terms::{
    FacilitatorCall, Mismatch, SignatureCheck, WindowError, check_window, facilitator_request, match_offer,
    verify_signature,
};

/// The scheme of a fixed price.
pub const SCHEME: &str = "exact";

/// The scheme of a signed cap, of which no more is charged than what was delivered costs.
pub const UPTO: &str = "upto";

/// `extra.assetTransferMethod` of what moves through Permit2.
pub const PERMIT2_METHOD: &str = "permit2";

/// Header of a 402 that carries the version 2 terms.
pub const REQUIRED_HEADER: &str = "payment-required";

/// A version of the protocol. It decides the names of headers and the shape of what they hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Version {
    /// `X-PAYMENT`, terms in the JSON body, network names such as `base-sepolia`.
    V1,
    /// `PAYMENT-SIGNATURE`, terms in a header, CAIP-2 networks.
    V2,
}

impl Version {
    /// The number in `x402Version`.
    pub fn number(self) -> u64 {
        match self {
            Self::V1 => 1,
            Self::V2 => 2,
        }
    }

    /// The version of that number.
    pub fn from_number(number: u64) -> Option<Self> {
        match number {
            1 => Some(Self::V1),
            2 => Some(Self::V2),
            _ => None,
        }
    }

    /// Name of the header that carries a payment, in lower case.
    pub fn payment_header(self) -> &'static str {
        match self {
            Self::V1 => "x-payment",
            Self::V2 => "payment-signature",
        }
    }

    /// Name of the header that carries a receipt, in lower case.
    pub fn receipt_header(self) -> &'static str {
        match self {
            Self::V1 => "x-payment-response",
            Self::V2 => "payment-response",
        }
    }
}

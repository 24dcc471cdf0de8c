//! Whether a broadcast payment fits our offer: what the buyer says he accepted, and what the chain says he did.

use super::{BroadcastPayment, IssuedOffer};
use crate::evm::{Address, B256, U256};
use crate::limits::OFFER_BROADCAST_LIFE_S;
use crate::money::Atomic;
use crate::x402::terms::match_accepted;
use crate::x402::{Mismatch, Offer, SCHEME};

/// One transfer under an authorization, as the chain's logs tell it (`AuthorizationUsed` and its `Transfer`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Landed {
    /// The token that moved.
    pub asset: Address,
    /// Who was paid.
    pub to: Address,
    /// Atomic units.
    pub value: U256,
    /// Nonce of the authorization.
    pub nonce: B256,
}

/// Atomic units above the price, which are the buyer's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overpaid(pub U256);

/// Why a transfer does not pay for an offer. The texts may be shown to the buyer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LandingMismatch {
    /// Another token.
    #[error("client_broadcast_landing: another token was moved")]
    WrongToken,
    /// To somebody else.
    #[error("client_broadcast_landing: another address was paid")]
    WrongPayee,
    /// Under another nonce than the offer's.
    #[error("client_broadcast_landing: the transfer has not the nonce of the offer")]
    OtherNonce,
    /// Under another nonce than `accepted` names.
    #[error("client_broadcast_landing: the transfer has not the nonce that accepted names")]
    NotAsAccepted,
    /// Less than the price of the offer.
    #[error("client_broadcast_landing: {paid} atomic units were paid, the price is {}", .price.0)]
    TooLittle {
        /// What moved.
        paid: U256,
        /// The price of the offer.
        price: Atomic,
    },
}

/// Compares a transfer with the offer under whose nonce it was made. `stated` is the nonce that the payment names, when it does.
/// More than the price is taken, and the rest is owed back.
pub fn match_landing(
    landed: &Landed,
    stated: Option<&B256>,
    issued: &IssuedOffer,
    offer: &Offer,
) -> Result<Overpaid, LandingMismatch> {
    if landed.asset != offer.asset {
        return Err(LandingMismatch::WrongToken);
    }
    if landed.to != offer.pay_to {
        return Err(LandingMismatch::WrongPayee);
    }
    if landed.nonce != issued.nonce {
        return Err(LandingMismatch::OtherNonce);
    }
    if stated.is_some_and(|nonce| *nonce != landed.nonce) {
        return Err(LandingMismatch::NotAsAccepted);
    }
    let price = U256::from(issued.amount.0);
    let rest = landed.value.checked_sub(price);
    rest.map(Overpaid).ok_or(LandingMismatch::TooLittle { paid: landed.value, price: issued.amount })
}

/// Compares what a buyer says he accepted with the offer in every field. The price is that of the issued offer, not of now.
pub fn match_broadcast(payment: &BroadcastPayment, offer: &Offer, issued: &IssuedOffer) -> Result<(), Mismatch> {
    let mut extra = super::extra(offer);
    if payment.nonce.is_some_and(|nonce| nonce != issued.nonce) {
        return Err(Mismatch::Extra);
    }
    // compared by its value, above: hex has two cases
    if let Some(nonce) = payment.accepted.extra.get("nonce") {
        extra.insert("nonce".to_owned(), nonce.clone());
    }
    let offered = Offer { amount: issued.amount, max_timeout_s: OFFER_BROADCAST_LIFE_S, ..offer.clone() };
    if payment.accepted.scheme != SCHEME {
        return Err(Mismatch::Scheme);
    }
    match_accepted(&payment.accepted, &offered, &extra)?;
    let named = payment.resource_url.as_ref();
    if named.is_none_or(|url| *url == offer.resource_url) { Ok(()) } else { Err(Mismatch::Resource) }
}

#[cfg(test)]
mod tests;

//! Which transfer of a transaction is the payment: one that moved money to us under a nonce of ours.

use super::{LandingPurchase, Landings};
use crate::paywall::port::chain::Landing;
use crate::x402::{IssuedOffer, LandingMismatch, NonceError};

/// Why a transaction holds no payment to us. Nothing of ours has moved, so the texts go into a 402.
#[derive(Debug, thiserror::Error)]
pub(super) enum NoPayment {
    /// It failed, or moved other things.
    #[error("client_broadcast_landing: the transaction moved nothing of the token under an authorization")]
    Nothing,
    /// Another payee, or another nonce than the one named.
    #[error(transparent)]
    Mismatch(#[from] LandingMismatch),
    /// A nonce that we did not make.
    #[error(transparent)]
    Nonce(#[from] NonceError),
    /// More than one payment to us, and the buyer does not say which.
    #[error("client_broadcast_landing: the transaction holds several payments; name one by accepted.extra.nonce")]
    Several,
}

/// The payment, and the offer under whose nonce it was made.
pub(super) fn pick<'a>(
    rail: &Landings,
    landings: &'a [Landing],
    purchase: &LandingPurchase,
) -> Result<(&'a Landing, IssuedOffer), NoPayment> {
    let moved: Vec<&Landing> = landings.iter().filter(|landing| !landing.value.is_zero()).collect();
    if moved.is_empty() {
        return Err(NoPayment::Nothing);
    }
    let stated = purchase.payment.nonce;
    let is_named = |landing: &&&Landing| stated.is_none_or(|nonce| nonce == landing.key.nonce);
    let named: Vec<&Landing> = moved.iter().filter(is_named).copied().collect();
    if named.is_empty() {
        return Err(LandingMismatch::NotAsAccepted.into());
    }
    let recognised = named.iter().filter_map(|landing| {
        let issued = rail.secret.recognise(&landing.key.nonce, rail.candidates())?;
        Some((*landing, issued))
    });
    let recognised: Vec<(&Landing, IssuedOffer)> = recognised.collect();
    if recognised.is_empty() {
        return Err(NonceError::NotOurs.into());
    }
    let mut ours = recognised.into_iter().filter(|(landing, _)| landing.to == purchase.offer.pay_to);
    let first = ours.next().ok_or(LandingMismatch::WrongPayee)?;
    if ours.next().is_some() { Err(NoPayment::Several) } else { Ok(first) }
}

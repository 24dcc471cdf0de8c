//! Nonces that prove by themselves that we offered: making an offer writes nothing.
//!
//! 32 bytes: 4 of issue time (seconds since 2020, big endian), 4 of price (a decimal exponent and a 24-bit mantissa, exact or
//! not at all), 8 random ones, and 16 of HMAC-SHA-256 (RFC 2104) under a server secret over a tag, those 16 bytes, chain, token,
//! payee and product. The price of the moment travels in the nonce, so an offer is honoured at its own price for its whole life,
//! whatever the price is by then. A changed payee, token, chain or secret makes old offers foreign.

use alloy_primitives::B256;
use hmac::digest::KeyInit;
use hmac::{Hmac, Mac};
use sha2::Sha256;

use crate::limits::{OFFER_BROADCAST_GRACE_S, OFFER_BROADCAST_LIFE_S};
use crate::money::Atomic;
use crate::x402::Offer;

/// Keeps these codes apart from any other use of the secret, and one layout from the next.
const TAG: &[u8] = b"jim/offer-nonce/1";

/// 2020-01-01T00:00:00Z: four bytes of seconds reach to 2156.
const EPOCH_S: u64 = 1_577_836_800;

/// Bytes before the code.
const OPEN_BYTES: usize = 16;

/// First mantissa that does not fit three bytes.
const MANTISSA_END: u128 = 1 << 24;

/// The server secret behind our offers. Its `Debug` shows nothing.
#[derive(Clone)]
pub struct OfferSecret {
    // keyed once, copied for each code
    keyed: Hmac<Sha256>,
}

/// A product with its terms, for which a nonce may have been made. Of the offer only chain, token and payee count.
#[derive(Clone, Copy, Debug)]
pub struct Candidate<'a> {
    /// Id of the product.
    pub product: &'a str,
    /// Its terms.
    pub offer: &'a Offer,
}

/// What a nonce of ours says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IssuedOffer {
    /// The nonce.
    pub nonce: B256,
    /// Id of the product.
    pub product: String,
    /// The price at the time, which is the price for the life of the offer.
    pub amount: Atomic,
    /// Unix seconds.
    pub issued_at_s: u64,
}

/// Why an offer cannot be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IssueError {
    /// A clock before 2020 or after 2156.
    #[error("the clock is outside of the years that an offer can carry")]
    Time,
    /// More significant digits than 24 bits hold.
    #[error("a price of {} atomic units has more significant digits than an offer can carry", .0.0)]
    Amount(Atomic),
}

/// Why a nonce does not pay for what is asked. The texts may be shown to the buyer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NonceError {
    /// Not made by us, or for another payee, token or chain.
    #[error("client_broadcast_nonce: not the nonce of an offer of this seller")]
    NotOurs,
    /// An offer for something else. Its money has moved.
    #[error("client_broadcast_nonce: the offer was made for {}", .0.product)]
    OtherProduct(IssuedOffer),
    /// An offer whose life was over when the request came. Its money has moved.
    #[error("client_broadcast_nonce: the offer ended {OFFER_BROADCAST_LIFE_S} s after it was made")]
    Expired(IssuedOffer),
}

impl std::fmt::Debug for OfferSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("OfferSecret").finish_non_exhaustive()
    }
}

impl OfferSecret {
    /// The secret of 32 random bytes; replicas share it.
    pub fn from_bytes(bytes: [u8; 32]) -> Self {
        // a key shorter than a block of SHA-256 is padded with zeros, as RFC 2104 says
        let mut block = hmac::digest::Key::<Hmac<Sha256>>::default();
        block[..bytes.len()].copy_from_slice(&bytes);
        Self { keyed: Hmac::new(&block) }
    }

    /// A nonce for one offer of a product at its price. `random` must be: two buyers never share a nonce.
    pub fn issue(&self, product: &str, offer: &Offer, now_s: u64, random: [u8; 8]) -> Result<B256, IssueError> {
        let seconds = now_s.checked_sub(EPOCH_S).and_then(|s| u32::try_from(s).ok()).ok_or(IssueError::Time)?;
        let mut nonce = [0; 32];
        nonce[..4].copy_from_slice(&seconds.to_be_bytes());
        nonce[4..8].copy_from_slice(&pack(offer.amount).ok_or(IssueError::Amount(offer.amount))?);
        nonce[8..OPEN_BYTES].copy_from_slice(&random);
        let code = self.mac(&nonce[..OPEN_BYTES], Candidate { product, offer }).finalize().into_bytes();
        nonce[OPEN_BYTES..].copy_from_slice(&code[..32 - OPEN_BYTES]);
        Ok(B256::from(nonce))
    }

    /// Whose offer a nonce is, whatever its age: for money that is found without a request.
    pub fn recognise<'a>(
        &self,
        nonce: &B256,
        candidates: impl IntoIterator<Item = Candidate<'a>>,
    ) -> Option<IssuedOffer> {
        let (open, code) = nonce.split_at(OPEN_BYTES);
        // compared in constant time
        let is_for = |c: &Candidate<'_>| self.mac(open, *c).verify_truncated_left(code).is_ok();
        let found = candidates.into_iter().find(is_for)?;
        let seconds = u32::from_be_bytes(nonce[..4].try_into().ok()?);
        Some(IssuedOffer {
            nonce: *nonce,
            product: found.product.to_owned(),
            amount: unpack(nonce[4..8].try_into().ok()?)?,
            issued_at_s: EPOCH_S + u64::from(seconds),
        })
    }

    /// Whether a nonce pays for `wanted` now. `others` is what else is sold, to tell a wrong route from a foreign nonce; the
    /// wanted product may stand in it.
    pub fn check<'a>(
        &self,
        nonce: &B256,
        wanted: Candidate<'a>,
        others: impl IntoIterator<Item = Candidate<'a>>,
        now_s: u64,
    ) -> Result<IssuedOffer, NonceError> {
        let found = self.recognise(nonce, std::iter::once(wanted).chain(others)).ok_or(NonceError::NotOurs)?;
        if found.product != wanted.product {
            return Err(NonceError::OtherProduct(found));
        }
        if found.is_open(now_s) { Ok(found) } else { Err(NonceError::Expired(found)) }
    }

    fn mac(&self, open: &[u8], candidate: Candidate<'_>) -> Hmac<Sha256> {
        let mut mac = self.keyed.clone();
        // every part has a fixed length but the last
        mac.update(TAG);
        mac.update(open);
        mac.update(&candidate.offer.network.chain_id().to_be_bytes());
        mac.update(candidate.offer.asset.as_slice());
        mac.update(candidate.offer.pay_to.as_slice());
        mac.update(candidate.product.as_bytes());
        mac
    }
}

impl IssuedOffer {
    /// Last second in which a request may begin, as `maxTimeoutSeconds` of the offer said.
    pub fn ends_at_s(&self) -> u64 {
        self.issued_at_s + u64::from(OFFER_BROADCAST_LIFE_S)
    }

    /// Whether a request may begin now. A replica's clock may be ahead of ours, so an offer from the future is open.
    pub fn is_open(&self, now_s: u64) -> bool {
        now_s <= self.ends_at_s()
    }

    /// Whether no request for it can be on its way any more: money under it without a payment is then to be returned.
    pub fn is_over(&self, now_s: u64) -> bool {
        now_s > self.ends_at_s() + OFFER_BROADCAST_GRACE_S
    }
}

/// An amount as a decimal exponent and three bytes of mantissa; None when that would not be exact.
fn pack(amount: Atomic) -> Option<[u8; 4]> {
    let (mut mantissa, mut exponent) = (amount.0, 0);
    while mantissa >= MANTISSA_END {
        if mantissa % 10 != 0 {
            return None;
        }
        (mantissa, exponent) = (mantissa / 10, exponent + 1);
    }
    let [.., a, b, c] = mantissa.to_be_bytes();
    Some([exponent, a, b, c])
}

fn unpack([exponent, a, b, c]: [u8; 4]) -> Option<Atomic> {
    let mantissa = u128::from(u32::from_be_bytes([0, a, b, c]));
    10u128.checked_pow(u32::from(exponent))?.checked_mul(mantissa).map(Atomic)
}

#[cfg(test)]
mod tests;

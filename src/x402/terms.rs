//! Whether a payment fits our offer: terms, window, signature. And what a facilitator is then asked.
//!
//! Exact means equal, in both versions and in every field: a facilitator that takes more than was asked, or other terms,
//! must never get to see them. The texts are stable and may be shown to the buyer in the `error` of a fresh 402.

use serde_json::{Map, Value, json};

use super::{Accepted, Authorization, Method, Offer, Payment, SCHEME, UPTO, Version};
use crate::evm::{Address, PermitTransfer, Signature, SignatureError, U256, parse_address};
use crate::limits::{AUTHORIZATION_LIFE_S_MAX, CLOCK_SKEW_S};

/// The first field in which a payment differs from the offer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", self.code(), self.field())]
pub enum Mismatch {
    /// A scheme that is not offered.
    Scheme,
    /// Another network.
    Network,
    /// Another price in `accepted`.
    Amount,
    /// Another token.
    Asset,
    /// Another payee in `accepted`.
    PayTo,
    /// Another timeout.
    MaxTimeoutSeconds,
    /// `extra` has not exactly our members.
    Extra,
    /// `accepted` has a member that our offer has not.
    UnknownMember,
    /// `resource.url` names something else.
    Resource,
    /// The signed value is not the price.
    Value,
    /// The signed payee is not ours.
    To,
    /// What a permit allows is not the price, or for `upto` less than it.
    PermitAmount,
    /// The payee in the witness of a permit is not ours.
    PermitTo,
    /// The permit is for another contract than the proxy of its scheme.
    Spender,
    /// The permit is for another token.
    Token,
    /// The witness names another facilitator than the offer, or one where the offer has none.
    Facilitator,
}

/// Why the window of an authorization is not taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WindowError {
    /// It begins later than now.
    #[error("not valid yet")]
    NotYetValid,
    /// It ends before an answer could be made and settled.
    #[error("at least {needed_s} more seconds are needed")]
    TooShort {
        /// Seconds that must be left.
        needed_s: u64,
    },
    /// It ends later than any honest client asks for.
    #[error("at most {AUTHORIZATION_LIFE_S_MAX} seconds are taken")]
    TooLong,
}

impl WindowError {
    /// The text for a buyer, under the code that the kind of his authorization has.
    pub fn said_of(self, auth: &Authorization) -> String {
        let code = match (auth, self) {
            (Authorization::Eip3009(_), Self::NotYetValid) => "invalid_exact_evm_payload_authorization_valid_after",
            (Authorization::Eip3009(_), Self::TooShort { .. } | Self::TooLong) => {
                "invalid_exact_evm_payload_authorization_valid_before"
            }
            (Authorization::Permit2(_), Self::NotYetValid) => "permit2_not_yet_valid",
            (Authorization::Permit2(_), Self::TooShort { .. }) => "permit2_deadline_expired",
            (Authorization::Permit2(_), Self::TooLong) => "permit2_deadline_too_late",
        };
        format!("{code}: {self}")
    }
}

/// What can be said about a signature without a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SignatureCheck {
    /// 65 bytes, made by the key of `from`.
    Eoa,
    /// Of another length: a contract wallet, perhaps. Only a chain can tell.
    NotSixtyFiveBytes,
    /// 65 bytes, but malformed, not canonical, or of another key.
    Bad(SignatureError),
}

/// The body of a facilitator call: the buyer's signed payload and our terms, never the buyer's copy of them.
#[derive(Clone, Debug, PartialEq)]
pub struct FacilitatorCall {
    /// 1 or 2.
    pub x402_version: u64,
    /// `paymentPayload`.
    pub payment_payload: Value,
    /// `paymentRequirements`.
    pub payment_requirements: Value,
}

impl Mismatch {
    /// Stable name of the kind of mismatch.
    pub fn code(self) -> &'static str {
        match self {
            Self::Value => "invalid_exact_evm_payload_authorization_value_mismatch",
            Self::To => "invalid_exact_evm_payload_recipient_mismatch",
            Self::PermitAmount => "permit2_amount_mismatch",
            Self::PermitTo => "invalid_permit2_recipient_mismatch",
            Self::Spender => "invalid_permit2_spender",
            Self::Token => "permit2_token_mismatch",
            Self::Facilitator => "upto_facilitator_mismatch",
            Self::Scheme
            | Self::Network
            | Self::Amount
            | Self::Asset
            | Self::PayTo
            | Self::MaxTimeoutSeconds
            | Self::Extra
            | Self::UnknownMember
            | Self::Resource => "accepted_requirements_mismatch",
        }
    }

    /// The field that differs, as it is called on the wire.
    pub fn field(self) -> &'static str {
        match self {
            Self::Scheme => "scheme",
            Self::Network => "network",
            Self::Amount => "amount",
            Self::Asset => "asset",
            Self::PayTo => "payTo",
            Self::MaxTimeoutSeconds => "maxTimeoutSeconds",
            Self::Extra => "extra",
            Self::UnknownMember => "unknown member",
            Self::Resource => "resource.url",
            Self::Value => "authorization.value",
            Self::To => "authorization.to",
            Self::PermitAmount => "permit2Authorization.permitted.amount",
            Self::PermitTo => "permit2Authorization.witness.to",
            Self::Spender => "permit2Authorization.spender",
            Self::Token => "permit2Authorization.permitted.token",
            Self::Facilitator => "permit2Authorization.witness.facilitator",
        }
    }
}

impl Payment {
    /// By which entry of the offer it is made; a scheme that is not offered, or a payload of another kind, is a mismatch.
    pub fn method(&self, offer: &Offer) -> Result<Method, Mismatch> {
        let method = match (&self.authorization, self.scheme.as_str(), offer.permit2.upto) {
            (Authorization::Eip3009(_), SCHEME, _) => Method::Eip3009,
            (Authorization::Permit2(_), SCHEME, _) if offer.permit2.exact => Method::Permit2,
            (Authorization::Permit2(_), SCHEME, _) => return Err(Mismatch::Extra),
            (Authorization::Permit2(_), UPTO, Some(facilitator)) => Method::Upto(facilitator),
            _ => return Err(Mismatch::Scheme),
        };
        Ok(method)
    }
}

/// Compares a payment with the offer in every field.
pub fn match_offer(payment: &Payment, offer: &Offer) -> Result<(), Mismatch> {
    let method = payment.method(offer)?;
    let network = match payment.version {
        Version::V1 => offer.network.v1_name() == Some(payment.network.as_str()),
        Version::V2 => payment.network == offer.network.to_string(),
    };
    demand(network, Mismatch::Network)?;
    if let Some(accepted) = &payment.accepted {
        demand(accepted.scheme == method.scheme(), Mismatch::Scheme)?;
        match_accepted(accepted, offer, &offer.extra_by(method))?;
    }
    demand(payment.resource_url.as_ref().is_none_or(|url| *url == offer.resource_url), Mismatch::Resource)?;
    match &payment.authorization {
        Authorization::Eip3009(auth) => {
            demand(auth.value == U256::from(offer.amount.0), Mismatch::Value)?;
            demand(auth.to == offer.pay_to, Mismatch::To)
        }
        Authorization::Permit2(permit) => match_permit(permit, method, offer),
    }
}

/// Compares what was signed for Permit2 with the offer: each member that a facilitator could be shown differently.
fn match_permit(permit: &PermitTransfer, method: Method, offer: &Offer) -> Result<(), Mismatch> {
    let price = U256::from(offer.amount.0);
    let (is_enough, facilitator) = match method {
        Method::Eip3009 | Method::Permit2 => (permit.amount == price, None),
        Method::Upto(facilitator) => (permit.amount >= price, Some(facilitator)),
    };
    demand(permit.spender == method.proxy(), Mismatch::Spender)?;
    demand(permit.token == offer.asset, Mismatch::Token)?;
    demand(is_enough, Mismatch::PermitAmount)?;
    demand(permit.to == offer.pay_to, Mismatch::PermitTo)?;
    demand(permit.facilitator == facilitator, Mismatch::Facilitator)
}

/// Compares what a version 2 buyer says he accepts with an offer whose `extra` is that.
pub(super) fn match_accepted(accepted: &Accepted, offer: &Offer, extra: &Map<String, Value>) -> Result<(), Mismatch> {
    let is = |text: &str, address: &Address| parse_address(text).is_ok_and(|value| value == *address);
    demand(accepted.network == offer.network.to_string(), Mismatch::Network)?;
    demand(accepted.amount == offer.amount.to_string(), Mismatch::Amount)?;
    demand(is(&accepted.asset, &offer.asset), Mismatch::Asset)?;
    demand(is(&accepted.pay_to, &offer.pay_to), Mismatch::PayTo)?;
    demand(accepted.max_timeout_s == u64::from(offer.max_timeout_s), Mismatch::MaxTimeoutSeconds)?;
    demand(accepted.extra == *extra, Mismatch::Extra)?;
    demand(accepted.unknown.is_empty(), Mismatch::UnknownMember)
}

fn demand(equal: bool, mismatch: Mismatch) -> Result<(), Mismatch> {
    if equal { Ok(()) } else { Err(mismatch) }
}

/// Checks that an authorization is valid now, stays so for `needed_s` seconds, and does not live longer than buyers
/// need. Its beginning may lie ahead by the skew of clocks: the facilitator's clock has the last word on it.
pub fn check_window(auth: &Authorization, now_s: u64, needed_s: u64) -> Result<(), WindowError> {
    // u64 sums cannot overflow in 256 bits
    let (now, skew) = (U256::from(now_s), U256::from(CLOCK_SKEW_S));
    if auth.valid_after() > now + skew {
        return Err(WindowError::NotYetValid);
    }
    if auth.valid_before() < now + U256::from(needed_s) || auth.valid_before() <= auth.valid_after() {
        return Err(WindowError::TooShort { needed_s });
    }
    if auth.valid_before() > now + U256::from(AUTHORIZATION_LIFE_S_MAX) + skew {
        return Err(WindowError::TooLong);
    }
    Ok(())
}

/// Checks the signature against `from`, for the token of the offer.
pub fn verify_signature(payment: &Payment, offer: &Offer) -> SignatureCheck {
    if payment.signature.len() != 65 {
        return SignatureCheck::NotSixtyFiveBytes;
    }
    let auth = &payment.authorization;
    let checked = Signature::from_bytes(&payment.signature)
        .and_then(|signature| signature.verify(&auth.digest(&offer.domain()), &auth.from()));
    match checked {
        Ok(()) => SignatureCheck::Eoa,
        Err(error) => SignatureCheck::Bad(error),
    }
}

/// What a facilitator is asked to settle for a payment that matched the offer. `None` for a version 1 payment on a chain that
/// version 1 cannot name and for a method that is not offered, which never match.
pub fn facilitator_request(payment: &Payment, offer: &Offer) -> Option<FacilitatorCall> {
    let mut members = payment.document.clone();
    members.insert("payload".to_owned(), payment.normal_payload());
    let requirements = match payment.version {
        Version::V1 => {
            members.insert("scheme".to_owned(), json!(SCHEME));
            members.insert("network".to_owned(), json!(offer.network.v1_name()?));
            offer.requirements_v1()?
        }
        Version::V2 => {
            let ours = offer.requirements_by(payment.method(offer).ok()?);
            members.insert("accepted".to_owned(), ours.clone());
            ours
        }
    };
    Some(FacilitatorCall {
        x402_version: payment.version.number(),
        payment_payload: Value::Object(members),
        payment_requirements: requirements,
    })
}

#[cfg(test)]
mod tests;

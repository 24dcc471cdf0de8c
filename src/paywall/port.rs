//! What the paywall needs from the outside: a facilitator that verifies and settles payments, and a look at the chain.
//!
//! `settle` takes a [`SettleIntent`], which only the journal makes, after the intent is on disk: nobody else can settle.

pub mod chain;

use std::borrow::Cow;

use async_trait::async_trait;
use serde_json::Value;

use crate::evm::U256;
use crate::money::Atomic;
use crate::x402::UPTO;

/// Verifies and settles payments of one or more kinds.
#[async_trait]
pub trait Facilitator: Send + Sync {
    /// Name for logs: `simulated`, or origin and path of the URL; of several, all of them.
    fn name(&self) -> &str;

    /// The name that settle calls go to when there is no choice; None when there is one.
    fn sole(&self) -> Option<&str>;

    /// True when no money moves: the in-process double.
    fn is_simulated(&self) -> bool;

    /// Each facilitator behind this, as it was last seen.
    fn members(&self) -> Vec<Member>;

    /// The kinds of payment that it can verify and settle.
    async fn fetch_supported(&self) -> Result<Vec<Kind>, Unreachable>;

    /// Asks whether a payment would settle. No money moves. Where there is a choice of facilitators it is made here, for good.
    async fn verify(&self, request: &FacilitatorRequest) -> Result<Judged, Unreachable>;

    /// Moves the money, at the facilitator that the intent names and at no other. Every ending is an answer: what is not known is
    /// [`Settlement::Unknown`].
    async fn settle(&self, intent: &SettleIntent) -> Settlement;
}

/// One of the facilitators behind the port.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// Its stable name.
    pub name: String,
    /// Whether its last list has our kind.
    pub supported: bool,
    /// Why its last call failed, until one is answered.
    pub failing: Option<String>,
}

/// One entry of `/supported`.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Kind {
    /// 1 or 2.
    pub x402_version: u64,
    /// `exact` or `upto`.
    pub scheme: String,
    /// CAIP-2 for version 2, the old name for version 1.
    pub network: String,
}

/// The body of `/verify` and `/settle`: the buyer's signed payload and **our** terms, never the buyer's copy of them.
#[derive(Clone, Debug, PartialEq)]
pub struct FacilitatorRequest {
    /// 1 or 2, at the top level of the body.
    pub x402_version: u64,
    /// The payment as the buyer sent it, with our terms in place of `accepted`.
    pub payment_payload: Value,
    /// Our terms in the shape of that version.
    pub payment_requirements: Value,
}

impl FacilitatorRequest {
    /// From the body of an earlier call, as it was stored.
    pub fn from_body(body: &str) -> Option<Self> {
        let mut body: Value = serde_json::from_str(body).ok()?;
        Some(Self {
            x402_version: body["x402Version"].as_u64()?,
            payment_payload: body["paymentPayload"].take(),
            payment_requirements: body["paymentRequirements"].take(),
        })
    }

    /// What is verified for it: a cap is verified as what was signed, and what is settled may be less.
    pub fn for_verify(&self, signed: &U256) -> Cow<'_, Self> {
        if self.payment_requirements["scheme"] != UPTO {
            return Cow::Borrowed(self);
        }
        let mut request = self.clone();
        request.payment_requirements["amount"] = signed.to_string().into();
        Cow::Owned(request)
    }

    /// The same at the price that the payment was claimed at, where what is settled is ours to say.
    pub fn at_price(mut self, price: Atomic) -> Self {
        if self.payment_requirements["scheme"] == UPTO {
            self.payment_requirements["amount"] = price.to_string().into();
        }
        self
    }

    /// The JSON body.
    pub fn body(&self) -> String {
        // members in the order of their names, as everything that is hashed has them
        format!(
            "{{\"paymentPayload\":{},\"paymentRequirements\":{},\"x402Version\":{}}}",
            self.payment_payload, self.payment_requirements, self.x402_version
        )
    }
}

/// A settle call whose intent is on disk. Nobody else makes one, so nobody else settles:
///
/// ```
/// use jim::paywall::port::{Facilitator, SettleIntent};
///
/// async fn settle(facilitator: &dyn Facilitator, intent: &SettleIntent) {
///     facilitator.settle(intent).await;
/// }
/// ```
///
/// ```compile_fail,E0451
/// use jim::paywall::port::{Facilitator, FacilitatorRequest, SettleIntent};
///
/// async fn settle(facilitator: &dyn Facilitator, request: FacilitatorRequest) {
///     facilitator.settle(&SettleIntent { request, attempt: 1, facilitator: String::new() }).await;
/// }
/// ```
#[derive(Debug)]
pub struct SettleIntent {
    request: FacilitatorRequest,
    attempt: i32,
    facilitator: String,
}

impl SettleIntent {
    /// Made by the journal alone, after its commit.
    pub(in crate::paywall) fn new(request: FacilitatorRequest, attempt: i32, facilitator: String) -> Self {
        Self { request, attempt, facilitator }
    }

    /// What is to be settled.
    pub fn request(&self) -> &FacilitatorRequest {
        &self.request
    }

    /// 1 for the first settle call of an authorization.
    pub fn attempt(&self) -> i32 {
        self.attempt
    }

    /// Name of the facilitator that verified the payment.
    pub fn facilitator(&self) -> &str {
        &self.facilitator
    }
}

/// A verdict, and whose it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What it says.
    pub verdict: Verdict,
    /// Stable name of the facilitator that said so; every settle call of the payment goes to it.
    pub facilitator: String,
}

/// The answer of `/verify`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It would settle; the payer as the facilitator names it, when it does.
    Valid {
        /// The payer, as given.
        payer: Option<String>,
    },
    /// It would not; the reason is one of the published codes or an opaque one.
    Invalid {
        /// `invalidReason`, cut and cleaned.
        reason: String,
    },
}

/// The answer of `/settle`, by what it means for the money.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Settlement {
    /// The facilitator says that the transfer is on chain.
    Settled {
        /// Hash of the transaction.
        transaction: String,
        /// The payer, as given.
        payer: Option<String>,
    },
    /// Nothing was sent: a reason that can only come before a broadcast, and no transaction.
    Denied {
        /// `errorReason`.
        reason: String,
    },
    /// It says that the nonce is used: by our own earlier call, by a third party, or by a cancellation.
    NonceUsed {
        /// `errorReason`.
        reason: String,
        /// A transaction, when one is named.
        transaction: Option<String>,
    },
    /// Money may have moved.
    Unknown {
        /// What happened, for the journal.
        reason: String,
        /// A transaction, when one is named.
        transaction: Option<String>,
    },
    /// The connection was refused before anything was sent.
    NotSent {
        /// What happened, for the journal.
        reason: String,
    },
}

/// The facilitator gave no usable answer to a call that moves no money.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("facilitator: {0}")]
pub struct Unreachable(pub String);

/// The end of a settle call for a payment that another facilitator verified: it is not made, since that one may have broadcast
/// the payment before, and it stays open until evidence or that facilitator says more.
pub fn not_ours(facilitator: &str) -> Settlement {
    let reason =
        format!("facilitator {facilitator} verified this payment and is not configured; no other may settle it");
    Settlement::Unknown { reason, transaction: None }
}

//! A payment that is known good and claimed, and not charged: commit it or refuse it, once.
//!
//! `commit` and `refuse` take the value, so there is no second call. What a handler forgets or drops (a panic included) goes
//! [`Home`], where the layer that admitted it finds it and refuses it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use tokio::sync::OwnedSemaphorePermit;
use uuid::Uuid;

use super::Paywall;
use super::contract::Circumstances;
use super::landing::LandedMoney;
use super::outcome::{Delivery, Outcome, Refused};
use super::port::FacilitatorRequest;
use super::settle::SettleCall;
use crate::evm::{U256, lower};
use crate::ledger::{Account, Customer};
use crate::limits;
use crate::memo::gate::Accepted;
use crate::money::Atomic;
use crate::refusal::{Refusal, RefusalCode};
use crate::store::{self, journal};

/// HTTP status where the allowance of Permit2 is missing (x402 scheme `exact`, EVM).
pub const UNAPPROVED: u16 = 412;

/// A verified, unsettled payment.
///
/// It can be committed or refused, once. This compiles:
///
/// ```
/// use jim::ledger::Account;
/// use jim::memo::gate::Accepted;
/// use jim::paywall::Verified;
/// use jim::paywall::verified::Answer;
/// use jim::refusal::Refusal;
///
/// async fn either(verified: Verified, accepted: &Accepted, answer: Answer, account: &Account) {
///     verified.commit(accepted, answer, account).await;
/// }
/// async fn or(verified: Verified, refusal: Refusal, account: &Account) {
///     verified.refuse(refusal, Some(account)).await;
/// }
/// fn hand_on(verified: Verified) -> Verified {
///     verified
/// }
/// ```
///
/// The same in one function does not, in no order, and nothing is charged twice:
///
/// ```compile_fail,E0382
/// use jim::ledger::Account;
/// use jim::memo::gate::Accepted;
/// use jim::paywall::Verified;
/// use jim::paywall::verified::Answer;
/// use jim::refusal::Refusal;
///
/// async fn both(verified: Verified, refusal: Refusal, accepted: &Accepted, answer: Answer, account: &Account) {
///     verified.refuse(refusal, Some(account)).await;
///     verified.commit(accepted, answer, account).await;
/// }
/// ```
///
/// ```compile_fail,E0382
/// use jim::ledger::Account;
/// use jim::memo::gate::Accepted;
/// use jim::paywall::Verified;
/// use jim::paywall::verified::Answer;
///
/// async fn twice(verified: Verified, accepted: &Accepted, answer: Answer, account: &Account) {
///     verified.commit(accepted, answer.clone(), account).await;
///     verified.commit(accepted, answer, account).await;
/// }
/// ```
///
/// Nor can it be copied, or billed for what the gate rejected:
///
/// ```compile_fail,E0308
/// use jim::paywall::Verified;
///
/// fn copy(verified: &Verified) -> Verified {
///     verified.clone()
/// }
/// ```
///
/// ```compile_fail,E0308
/// use jim::ledger::Account;
/// use jim::memo::gate::Rejected;
/// use jim::paywall::Verified;
/// use jim::paywall::verified::Answer;
///
/// async fn bill(verified: Verified, rejected: &Rejected, answer: Answer, account: &Account) {
///     verified.commit(rejected, answer, account).await;
/// }
/// ```
#[derive(Debug)]
pub struct Verified {
    work: Option<Box<Work>>,
    home: Home,
}

/// Where a payment goes that was neither committed nor refused.
#[derive(Clone, Debug, Default)]
pub struct Home(Arc<Mutex<Option<Box<Work>>>>);

/// Whether the buyer still waits for the answer.
#[derive(Clone, Debug, Default)]
pub struct Presence(Arc<AtomicBool>);

/// The finished body of an answer.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Media type.
    pub content_type: String,
    /// The exact bytes.
    pub body: Vec<u8>,
}

/// What is needed to decide a claimed payment.
pub(super) struct Work {
    pub(super) paywall: Arc<Paywall>,
    pub(super) held: journal::Held,
    pub(super) circumstances: Circumstances,
    pub(super) customer: Customer,
    pub(super) amount: Atomic,
    pub(super) money: Money,
    pub(super) synthesizer: &'static str,
    pub(super) presence: Presence,
    /// Counts as work in progress until this is dropped; None for work that only refuses.
    pub(super) permit: Option<OwnedSemaphorePermit>,
}

/// Where the money of a payment is.
pub(super) enum Money {
    /// With the buyer: our settle call moves it.
    Signed(Signed),
    /// With us: the buyer has moved it.
    Landed(LandedMoney),
}

/// What settles a payment.
pub(super) struct Signed {
    pub(super) request: FacilitatorRequest,
    pub(super) facilitator: String,
    pub(super) valid_before: U256,
}

impl std::fmt::Debug for Work {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Work").field("held", &self.held).finish_non_exhaustive()
    }
}

impl Verified {
    pub(super) fn new(work: Work, home: Home) -> Self {
        Self { work: Some(Box::new(work)), home }
    }

    /// Id of the order that this payment buys.
    pub fn order_id(&self) -> &str {
        self.work.as_ref().and_then(|work| work.circumstances.order_id.as_deref()).unwrap_or_default()
    }

    /// The payment, by the name that an unknown outcome is told under.
    pub fn payment_id(&self) -> Uuid {
        self.work.as_ref().map_or(Uuid::nil(), |work| work.held.payment_id)
    }

    /// Stores the answer with the intent to settle, then settles. Only a memo that the gate accepted can be billed.
    pub async fn commit(mut self, _accepted: &Accepted, answer: Answer, account: &Account) -> Outcome {
        match self.work.take() {
            Some(work) => work.commit(answer, account).await,
            None => unreachable!("the work leaves a Verified only with the Verified"),
        }
    }

    /// Stores the refusal; it is final for this authorization and no settle call is ever made for it.
    pub async fn refuse(mut self, refusal: Refusal, account: Option<&Account>) -> Outcome {
        match self.work.take() {
            Some(work) => work.refuse(refusal, account).await,
            None => unreachable!("the work leaves a Verified only with the Verified"),
        }
    }
}

impl Drop for Verified {
    fn drop(&mut self) {
        if let Some(work) = self.work.take() {
            let mut home = self.home.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *home = Some(work);
        }
    }
}

impl Home {
    /// Refuses what came home; None when the payment was committed or refused.
    pub async fn refuse_left_over(&self) -> Option<Outcome> {
        let left = self.0.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take()?;
        tracing::error!(payment_id = %left.held.payment_id, "a handler ended without a decision; the payment is refused");
        let refusal = Refusal::new(RefusalCode::ExecutionFailed, "The run ended without an answer.");
        Some(left.refuse(refusal, None).await)
    }
}

impl Presence {
    /// Called when the connection is gone.
    pub fn leave(&self) {
        self.0.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_gone(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

impl Work {
    async fn commit(self: Box<Self>, answer: Answer, account: &Account) -> Outcome {
        let Money::Signed(signed) = &self.money else { return self.deliver(answer, account).await };
        let now = U256::from(self.paywall.clock.unix_s());
        if signed.valid_before < now + U256::from(limits::SETTLE_RESERVE_S) {
            // a settle call that must fail is not made, and an answer that cannot be charged is not kept
            let detail =
                "The authorization would have ended before it could be settled; sign one with a longer window.";
            return self.refuse(Refusal::new(RefusalCode::ExecutionFailed, detail), Some(account)).await;
        }
        let decision = journal::Decision {
            kind: journal::DecisionKind::Answer,
            status: 200,
            content_type: answer.content_type,
            body: answer.body,
        };
        // whoever has hung up is not charged: the answer waits for the same payment to come again
        let body = signed.request.body();
        let intent = (!self.presence.is_gone()).then_some(body.as_str());
        match self.decide(&decision, Some(account), None, intent).await {
            Ok(true) => {}
            Ok(false) => return self.answer_from_rows().await,
            Err(error) => return self.undecided(&error).await,
        }
        let Self { paywall, held, money, circumstances, amount, customer, .. } = *self;
        match money {
            Money::Signed(Signed { request, facilitator, .. }) if intent.is_some() => {
                let kept = Delivery {
                    order_id: circumstances.order_id.clone().unwrap_or_default(),
                    content_type: decision.content_type,
                    body: decision.body,
                    transaction: None,
                    payer: lower(&customer.payer),
                    charged: amount,
                    replay: false,
                };
                let call = SettleCall { payment_id: held.payment_id, attempt: 1, facilitator, request };
                paywall.settle(call, circumstances, Some(kept)).await
            }
            Money::Signed(_) | Money::Landed(_) => Outcome::Pending { payment_id: held.payment_id, transaction: None },
        }
    }

    pub(super) async fn refuse(self: Box<Self>, refusal: Refusal, account: Option<&Account>) -> Outcome {
        if let Money::Landed(money) = &self.money {
            let money = money.clone();
            return self.send_back(money, refusal, account).await;
        }
        let refusal = refusal.with("payment", serde_json::json!({"id": self.held.payment_id, "state": "none"}));
        let body = self.paywall.contract.refusal_body(&refusal, &self.circumstances, self.paywall.clock.now());
        let decision = journal::Decision {
            kind: journal::DecisionKind::Refusal(refusal.code.name()),
            status: refusal.code.status(),
            content_type: "application/problem+json".into(),
            body,
        };
        match self.decide(&decision, account, Some(refusal.code), None).await {
            Ok(true) => Outcome::Refused(Refused::new(&refusal, decision.body)),
            Ok(false) => self.answer_from_rows().await,
            Err(error) => self.undecided(&error).await,
        }
    }

    pub(super) async fn verify_failed(&self, reason: &str, status: u16) -> Result<Outcome, store::Error> {
        let decision = journal::Decision {
            kind: journal::DecisionKind::VerifyFailed,
            status,
            content_type: "text/plain".into(),
            body: reason.as_bytes().to_vec(),
        };
        if self.paywall.journal.decide(self.held, &decision, None, None, self.facilitator(), None).await? {
            return Ok(failed(reason.to_owned(), status));
        }
        Ok(self.answer_from_rows().await)
    }

    /// Who judged the payment and settles it; nobody where the money is here.
    pub(super) fn facilitator(&self) -> &str {
        match &self.money {
            Money::Signed(signed) => &signed.facilitator,
            Money::Landed(_) => "",
        }
    }

    async fn decide(
        &self,
        decision: &journal::Decision,
        account: Option<&Account>,
        refused: Option<RefusalCode>,
        intent: Option<&str>,
    ) -> Result<bool, store::Error> {
        let empty = Account::empty(self.synthesizer, self.paywall.clock.now());
        let run = account.unwrap_or(&empty).row(&self.customer, refused);
        let order_id = self.circumstances.order_id.as_deref();
        self.paywall.journal.decide(self.held, decision, order_id, Some(&run), self.facilitator(), intent).await
    }

    /// The claim was lost: somebody else decided, and their rows are the answer.
    pub(super) async fn answer_from_rows(&self) -> Outcome {
        let payment_id = self.held.payment_id;
        let replayed = match self.paywall.journal.load(payment_id).await {
            Ok(record) => self.paywall.replay(payment_id, record),
            Err(error) => Err(error),
        };
        replayed.unwrap_or_else(|error| {
            tracing::error!(%error, %payment_id, "a payment whose claim was lost could not be read");
            Outcome::Pending { payment_id, transaction: None }
        })
    }

    /// The database failed at the decision. An error on commit is an unknown outcome, not a failure: nothing was settled by us,
    /// but the intent may be on disk, so the buyer is told to come back and never that it was refused.
    pub(super) async fn undecided(&self, error: &store::Error) -> Outcome {
        tracing::error!(%error, payment_id = %self.held.payment_id, "the decision could not be stored");
        let transaction = match &self.money {
            Money::Signed(_) => None,
            Money::Landed(money) => Some(money.tx.clone()),
        };
        Outcome::Pending { payment_id: self.held.payment_id, transaction }
    }
}

/// How a payment that did not pass verify is answered.
pub(super) fn failed(error: String, status: u16) -> Outcome {
    match status {
        UNAPPROVED => Outcome::Unapproved { error },
        _ => Outcome::Unpaid { error },
    }
}

//! A payment that was presented before, or whose purchase another one holds: answered from the rows.
//!
//! The stored answer, the stored refusal, or the settle call again where its outcome is not known. An unknown outcome is never shown as a refusal, and nothing here settles a payment that was refused.

use std::sync::Arc;

use serde_json::{Value, json};
use tokio::time::Instant;
use uuid::Uuid;

use super::Paywall;
use super::admission::{Purchase, facilitator_call};
use super::outcome::{Delivery, Outcome, Refused};
use super::port::FacilitatorRequest;
use super::settle::SettleCall;
use super::verified::{UNAPPROVED, failed};
use crate::limits;
use crate::machine::State;
use crate::refusal::{Refusal, RefusalCode};
use crate::store::journal::{Claim, DecisionKind, Record};
use crate::store::refunds::list;
use crate::store::{self};

impl Paywall {
    /// Answers what a claim came to when it was not won.
    pub(super) async fn answer_repeat(
        self: &Arc<Self>,
        purchase: &Purchase,
        claim: Claim,
    ) -> Result<Outcome, store::Error> {
        match claim {
            Claim::Existing { payment_id, state } => self.answer_existing(purchase, payment_id, state).await,
            Claim::Free { payment_id } => self.answer_from_rows(purchase, payment_id).await,
            Claim::Reused { payment_id, state } => {
                let detail = "This authorization was presented before, for another request or with another signature.";
                let refusal =
                    Refusal::new(RefusalCode::PaymentReused, detail).with("payment", named(payment_id, state));
                self.refuse_noted(purchase, payment_id, refusal).await
            }
            Claim::PurchaseLive { payment_id, state: State::Settling | State::Unknown } => {
                // not this payment but the purchase is in doubt: neither may be called refused while the other one is
                let transaction = self.journal.load(payment_id).await?.transaction;
                Ok(Outcome::Pending { payment_id, transaction })
            }
            Claim::PurchaseLive { payment_id, state } => {
                let detail = "Another payment of this payer for the same request is still live; send that one again.";
                let refusal =
                    Refusal::new(RefusalCode::PaymentInProgress, detail).with("payment", named(payment_id, state));
                Ok(self.refuse_unclaimed(purchase, refusal))
            }
            Claim::Won { held, .. } => self.answer_existing(purchase, held.payment_id, State::Claimed).await,
        }
    }

    async fn answer_existing(
        self: &Arc<Self>,
        purchase: &Purchase,
        payment_id: Uuid,
        state: State,
    ) -> Result<Outcome, store::Error> {
        let mut state = self.wait_while_settling(payment_id, state).await?;
        if state == State::Unknown {
            state = self.look(payment_id).await?;
        }
        match state {
            State::Claimed | State::Abandoned | State::Landed => {
                let detail = "A copy of this payment is being worked on.";
                match self.refuse_in_progress(purchase, payment_id, detail, (payment_id, state)).await? {
                    Some(refused) => Ok(refused),
                    // it has moved on since it was read
                    None => {
                        let state = self.journal.load_state(payment_id).await?;
                        Box::pin(self.answer_existing(purchase, payment_id, state)).await
                    }
                }
            }
            State::Settling => self.pending(payment_id).await,
            State::Ready | State::Unknown => match facilitator_call(purchase) {
                Some(request) => {
                    let request = request.at_price(self.journal.load(payment_id).await?.charged);
                    self.present_again(purchase, payment_id, request).await
                }
                None => self.pending(payment_id).await,
            },
            State::Superseded => self.answer_superseded(purchase, payment_id).await,
            State::Settled
            | State::Refused
            | State::Denied
            | State::Free
            | State::Dead
            | State::RefundOwed
            | State::Refunded => self.answer_from_rows(purchase, payment_id).await,
        }
    }

    /// The one that took the answer over pays for it: once it has, the answer is this one's too.
    async fn answer_superseded(&self, purchase: &Purchase, payment_id: Uuid) -> Result<Outcome, store::Error> {
        let mut record = self.journal.load(payment_id).await?;
        let mut successor = payment_id;
        while let (State::Superseded, Some(next)) = (record.state, record.successor) {
            successor = next;
            // found out inside this request, as for any other holder of the purchase: this payment is never settled itself
            self.resolve_holder(successor, self.journal.load_state(successor).await?, purchase).await?;
            record = self.journal.load(successor).await?;
        }
        let state = record.state;
        match state {
            State::Settled => {
                let outcome = self.replay(successor, record)?;
                return self.note(payment_id, outcome).await;
            }
            State::Denied | State::Dead | State::Refused | State::Abandoned | State::RefundOwed | State::Refunded => {
                let error =
                    "another authorization took this purchase over and was not charged; sign a new one".to_owned();
                return self.note(payment_id, Outcome::Unpaid { error }).await;
            }
            State::Settling | State::Unknown => {
                let outcome = Outcome::Pending { payment_id: successor, transaction: record.transaction };
                return self.note(payment_id, outcome).await;
            }
            State::Claimed | State::Ready | State::Landed | State::Superseded | State::Free => {}
        }
        let detail = "Another payment of this payer took this purchase over; send that one again.";
        match self.refuse_in_progress(purchase, payment_id, detail, (successor, state)).await? {
            Some(refused) => Ok(refused),
            None => self.pending(payment_id).await,
        }
    }

    /// Says that a copy is worked on, if that is still so: what was read a moment ago may have come to settle since. None then.
    async fn refuse_in_progress(
        &self,
        purchase: &Purchase,
        payment_id: Uuid,
        detail: &str,
        of: (Uuid, State),
    ) -> Result<Option<Outcome>, store::Error> {
        let code = RefusalCode::PaymentInProgress;
        if !self.journal.note_in_progress(payment_id, code.status(), code.name()).await? {
            return Ok(None);
        }
        let refusal = Refusal::new(code, detail).with("payment", named(of.0, of.1));
        Ok(Some(self.refuse_unclaimed(purchase, refusal)))
    }

    /// Finds out, inside this request, what became of the payment that holds the purchase. True when it holds it no longer,
    /// or was charged: then the claim is worth another try.
    pub(super) async fn resolve_holder(
        &self,
        holder: Uuid,
        state: State,
        purchase: &Purchase,
    ) -> Result<bool, store::Error> {
        let mut state = self.wait_while_settling(holder, state).await?;
        if state == State::Unknown {
            state = self.look(holder).await?;
        }
        // a client that signs anew on every retry never sends the first payment again; its stored call is presented for it
        // (and neither is that of one whose connection was refused)
        if matches!(state, State::Unknown | State::Ready)
            && let Some((request, facilitator)) = self.journal.load_settle_call(holder).await?
            && let Some(request) = FacilitatorRequest::from_body(&request)
            && let Some(attempt) = self.journal.intend(holder, &request.body()).await?
        {
            let call = SettleCall { payment_id: holder, attempt, facilitator, request };
            self.settle(call, purchase.circumstances(None), None).await;
            state = self.journal.load_state(holder).await?;
        }
        Ok(!state.holds_purchase())
    }

    /// A settle call that runs now usually ends within moments: its answer is worth waiting for.
    async fn wait_while_settling(&self, payment_id: Uuid, first: State) -> Result<State, store::Error> {
        let (mut state, until) = (first, Instant::now() + limits::REPEAT_WAIT);
        while state == State::Settling && Instant::now() < until {
            tokio::time::sleep(limits::REPEAT_POLL).await;
            state = self.journal.load_state(payment_id).await?;
        }
        Ok(state)
    }

    /// Settles an answer that is ready, or presents the same payload again where the outcome is not known.
    async fn present_again(
        &self,
        purchase: &Purchase,
        payment_id: Uuid,
        request: FacilitatorRequest,
    ) -> Result<Outcome, store::Error> {
        let stored = self.journal.load_facilitator(payment_id).await?;
        // rows from before the name was kept are of a deployment with one
        let Some(facilitator) = stored.or_else(|| self.facilitator.sole().map(str::to_owned)) else {
            return self.pending(payment_id).await;
        };
        match self.journal.intend(payment_id, &request.body()).await? {
            Some(attempt) => {
                let call = SettleCall { payment_id, attempt, facilitator, request };
                Ok(self.settle(call, purchase.circumstances(None), None).await)
            }
            // another copy settles it at this moment
            None => self.pending(payment_id).await,
        }
    }

    async fn pending(&self, payment_id: Uuid) -> Result<Outcome, store::Error> {
        let transaction = self.journal.load(payment_id).await?.transaction;
        self.note(payment_id, Outcome::Pending { payment_id, transaction }).await
    }

    async fn refuse_noted(
        &self,
        purchase: &Purchase,
        payment_id: Uuid,
        refusal: Refusal,
    ) -> Result<Outcome, store::Error> {
        self.journal.note_served(payment_id, refusal.code.status(), Some(refusal.code.name())).await?;
        Ok(self.refuse_unclaimed(purchase, refusal))
    }

    async fn answer_from_rows(&self, purchase: &Purchase, payment_id: Uuid) -> Result<Outcome, store::Error> {
        let record = self.journal.load(payment_id).await?;
        if let Some(refusal) = self.refuse_returned(payment_id, &record).await? {
            return self.refuse_noted(purchase, payment_id, refusal).await;
        }
        let outcome = self.replay(payment_id, record)?;
        self.note(payment_id, outcome).await
    }

    /// Money that nobody owes an answer for came in and goes back. None unless that is so and no refusal is stored, whose bytes
    /// would be the answer.
    async fn refuse_returned(&self, payment_id: Uuid, record: &Record) -> Result<Option<Refusal>, store::Error> {
        let is_refused = record.decision.as_ref().is_some_and(|d| matches!(d.kind, DecisionKind::Refusal(_)));
        if is_refused || !matches!(record.state, State::RefundOwed | State::Refunded) {
            return Ok(None);
        }
        let Some(refund) = list::find_of_payment(self.journal.pool(), payment_id).await? else { return Ok(None) };
        let detail = "The money of this payment came in without an answer that it pays for; it goes back to its payer.";
        let status_url = record.order_id.as_ref().map(|id| format!("/api/orders/{id}"));
        let refusal = Refusal::new(RefusalCode::ExecutionFailed, detail)
            .with("payment", named(payment_id, record.state))
            .with("refund", refund.shown(status_url));
        Ok(Some(refusal))
    }

    /// Notes how a repeat was answered.
    pub(super) async fn note(&self, payment_id: Uuid, outcome: Outcome) -> Result<Outcome, store::Error> {
        let (status, code) = match &outcome {
            Outcome::Delivered(_) => (200, None),
            Outcome::Refused(refused) => (refused.status, Some("replayed")),
            Outcome::Unpaid { .. } => (402, Some("denied")),
            Outcome::Unapproved { .. } => (UNAPPROVED, Some("denied")),
            Outcome::Pending { .. } => (503, Some("settlement_pending")),
        };
        self.journal.note_served(payment_id, status, code).await?;
        Ok(outcome)
    }

    /// The stored end of a payment, as bytes.
    pub(super) fn replay(&self, payment_id: Uuid, record: Record) -> Result<Outcome, store::Error> {
        let pending = Outcome::Pending { payment_id, transaction: record.transaction.clone() };
        let gone = |why: &str| Ok(Outcome::Unpaid { error: why.to_owned() });
        match record.state {
            State::Denied => return gone(record.settle_reason.as_deref().unwrap_or("settlement was denied")),
            State::Dead => {
                return gone("this authorization was never charged and can be charged no more; sign a new one");
            }
            State::RefundOwed | State::Refunded | State::Settled | State::Free | State::Refused => {}
            State::Claimed
            | State::Abandoned
            | State::Superseded
            | State::Ready
            | State::Settling
            | State::Unknown
            | State::Landed => {}
        }
        let Some(decision) = record.decision else { return Ok(pending) };
        Ok(match decision.kind {
            DecisionKind::Answer if matches!(record.state, State::Settled | State::Free) => {
                Outcome::Delivered(Delivery {
                    order_id: record.order_id.unwrap_or_default(),
                    content_type: decision.content_type,
                    body: decision.body,
                    transaction: record.transaction,
                    payer: record.payer,
                    charged: record.charged,
                    replay: true,
                })
            }
            DecisionKind::Answer => pending,
            DecisionKind::Refusal(code) => {
                // the same wait as in the body, which says it a second time
                let retry_after_s = RefusalCode::from_name(code).and_then(|code| code.row().after_s);
                Outcome::Refused(Refused { status: decision.status, retry_after_s, body: decision.body })
            }
            DecisionKind::VerifyFailed => failed(String::from_utf8_lossy(&decision.body).into_owned(), decision.status),
        })
    }
}

/// The `payment` member that names an earlier payment.
pub(super) fn named(payment_id: Uuid, state: State) -> Value {
    json!({"id": payment_id, "state": shown_state(state)})
}

/// The state of a payment in words for buyers.
pub fn shown_state(state: State) -> &'static str {
    match state {
        State::Settled => "settled",
        State::Settling | State::Unknown => "unknown",
        State::Landed | State::RefundOwed | State::Refunded => "landed",
        State::Claimed
        | State::Abandoned
        | State::Refused
        | State::Superseded
        | State::Free
        | State::Ready
        | State::Denied
        | State::Dead => "none",
    }
}

//! The settle call and what becomes of it. Reached only with an attempt that the journal has committed.

use uuid::Uuid;

use super::Paywall;
use super::contract::Circumstances;
use super::outcome::{Delivery, Outcome, Refused};
use super::port::{FacilitatorRequest, SettleIntent, Settlement};
use crate::canonical;
use crate::money::Atomic;
use crate::refusal::{Refusal, RefusalCode};
use crate::store::journal::{PaymentState, Record, SettleClass};

/// Digest of a settle body, kept with the intent.
pub(super) fn digest(request: &FacilitatorRequest) -> String {
    canonical::address(&request.body())
}

impl Paywall {
    /// Settles under a committed intent, records the outcome, and answers from the rows.
    pub(super) async fn settle(
        &self,
        payment_id: Uuid,
        attempt: i32,
        request: FacilitatorRequest,
        circumstances: Circumstances,
        amount: Atomic,
    ) -> Outcome {
        let settlement = self.facilitator.settle(&SettleIntent::new(request, attempt)).await;
        let (class, reason, transaction) = classify(settlement);
        if class != SettleClass::Settled {
            tracing::warn!(%payment_id, attempt, ?class, reason, "settle did not end with a transfer");
        }
        match self.journal.record(payment_id, attempt, class, reason.as_deref(), transaction.as_deref()).await {
            Ok(record) => self.conclude(payment_id, record, circumstances, amount),
            Err(error) => {
                // the intent is on disk, so the rows say "unknown" until the same payment comes again: never a refusal
                tracing::error!(%error, %payment_id, ?class, "the outcome of a settle call could not be stored");
                Outcome::Pending { payment_id, transaction }
            }
        }
    }

    /// What the rows say now; bytes that leave are bytes that were read back.
    fn conclude(&self, payment_id: Uuid, record: Record, circumstances: Circumstances, amount: Atomic) -> Outcome {
        if record.state == PaymentState::Ready {
            let detail = "The facilitator refused the connection before anything was sent; the answer is kept.";
            let refusal = Refusal::new(RefusalCode::Overloaded, detail);
            let body = self.contract.refusal_body(&refusal, &circumstances, self.clock.now());
            return Outcome::Refused(Refused::new(&refusal, body));
        }
        match self.replay(payment_id, record, amount) {
            Ok(Outcome::Delivered(delivery)) => Outcome::Delivered(Delivery { replay: false, ..delivery }),
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::error!(%error, %payment_id, "a recorded outcome could not be understood");
                Outcome::Pending { payment_id, transaction: None }
            }
        }
    }
}

fn classify(settlement: Settlement) -> (SettleClass, Option<String>, Option<String>) {
    match settlement {
        Settlement::Settled { transaction, payer: _ } => (SettleClass::Settled, None, Some(transaction)),
        Settlement::Denied { reason } => (SettleClass::Denied, Some(reason), None),
        Settlement::NonceUsed { reason, transaction } => (SettleClass::NonceUsed, Some(reason), transaction),
        Settlement::Unknown { reason, transaction } => (SettleClass::Unknown, Some(reason), transaction),
        Settlement::NotSent { reason } => (SettleClass::NotSent, Some(reason), None),
    }
}

//! The settle call and what becomes of it. Reached only with an attempt that the journal has committed.

use std::panic::AssertUnwindSafe;

use futures_util::FutureExt;
use uuid::Uuid;

use super::Paywall;
use super::contract::Circumstances;
use super::outcome::{Delivery, Outcome, Refused};
use super::port::{FacilitatorRequest, SettleIntent, Settlement};
use crate::fault;
use crate::machine::State;
use crate::refusal::{Refusal, RefusalCode};
use crate::store;
use crate::store::journal::{Record, SettleClass, SettleEnd};

/// A settle call whose intent is committed.
pub(super) struct SettleCall {
    pub(super) payment_id: Uuid,
    pub(super) attempt: i32,
    pub(super) facilitator: String,
    pub(super) request: FacilitatorRequest,
}

impl Paywall {
    /// Settles under a committed intent, records the outcome, and answers from the rows. `kept` is the answer as it was
    /// committed with the intent, where the caller holds it: it leaves when this very call is what charged for it.
    pub(super) async fn settle(
        &self,
        call: SettleCall,
        circumstances: Circumstances,
        kept: Option<Delivery>,
    ) -> Outcome {
        let SettleCall { payment_id, attempt, facilitator, request } = call;
        let intent = SettleIntent::new(request, attempt, facilitator);
        let calling = async {
            fault::point("before-settle");
            let settlement = self.facilitator.settle(&intent).await;
            fault::point("after-settle");
            settlement
        };
        // a panic in the call leaves its outcome open, and that is written at once: the buyer need not wait for a lease to lapse
        let settlement = AssertUnwindSafe(calling).catch_unwind().await.unwrap_or_else(|_| {
            tracing::error!(%payment_id, attempt, "the settle call panicked");
            Settlement::Unknown { reason: "the settle call panicked".to_owned(), transaction: None }
        });
        let end = classify(settlement);
        if end.class != SettleClass::Settled {
            let SettleEnd { class, reason, .. } = &end;
            tracing::warn!(%payment_id, attempt, ?class, reason, "settle did not end with a transfer");
        }
        let transaction = end.transaction.clone();
        let recorded = match self.journal.record(payment_id, attempt, end).await {
            Ok(recorded) => match kept.filter(|_| recorded.booked) {
                Some(kept) => return Outcome::Delivered(Delivery { transaction, ..kept }),
                None => self.load_end(payment_id, recorded.state).await,
            },
            Err(error) => Err(error),
        };
        match recorded {
            Ok(record) => self.conclude(payment_id, record, circumstances),
            Err(error) => {
                // the intent is on disk, so the rows say "unknown" until the same payment comes again: never a refusal
                tracing::error!(%error, %payment_id, "the outcome of a settle call could not be stored");
                Outcome::Pending { payment_id, transaction }
            }
        }
    }

    /// What is stored after a settle call; the chain may know what the facilitator did not say.
    async fn load_end(&self, payment_id: Uuid, state: State) -> Result<Record, store::Error> {
        if state == State::Unknown {
            self.look_for_a_while(payment_id).await?;
        }
        self.journal.load(payment_id).await
    }

    /// What the rows say now.
    fn conclude(&self, payment_id: Uuid, record: Record, circumstances: Circumstances) -> Outcome {
        if record.state == State::Ready {
            let detail = "The facilitator refused the connection before anything was sent; the answer is kept.";
            let refusal = Refusal::new(RefusalCode::Overloaded, detail);
            let body = self.contract.refusal_body(&refusal, &circumstances, self.clock.now());
            return Outcome::Refused(Refused::new(&refusal, body));
        }
        match self.replay(payment_id, record) {
            Ok(Outcome::Delivered(delivery)) => Outcome::Delivered(Delivery { replay: false, ..delivery }),
            Ok(outcome) => outcome,
            Err(error) => {
                tracing::error!(%error, %payment_id, "a recorded outcome could not be understood");
                Outcome::Pending { payment_id, transaction: None }
            }
        }
    }
}

fn classify(settlement: Settlement) -> SettleEnd {
    let end = |class, reason, transaction| SettleEnd { class, reason, transaction };
    match settlement {
        Settlement::Settled { transaction, payer: _ } => end(SettleClass::Settled, None, Some(transaction)),
        Settlement::Denied { reason } => end(SettleClass::Denied, Some(reason), None),
        Settlement::NonceUsed { reason, transaction } => end(SettleClass::NonceUsed, Some(reason), transaction),
        Settlement::Unknown { reason, transaction } => end(SettleClass::Unknown, Some(reason), transaction),
        Settlement::NotSent { reason } => end(SettleClass::NotSent, Some(reason), None),
    }
}

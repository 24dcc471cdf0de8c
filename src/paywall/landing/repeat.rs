//! A landed payment that was presented before, answered from its rows. It is never worked on twice.

use std::sync::Arc;

use uuid::Uuid;

use super::{LandedMoney, LandingPurchase};
use crate::evm::{Address, parse_address};
use crate::machine::State;
use crate::paywall::Paywall;
use crate::paywall::outcome::Outcome;
use crate::paywall::repeat::named;
use crate::paywall::verified::Presence;
use crate::refusal::{Refusal, RefusalCode};
use crate::store;
use crate::store::journal::{Held, KnownLanding};
use crate::store::refunds::list;

impl Paywall {
    pub(super) async fn answer_known(
        self: &Arc<Self>,
        purchase: &LandingPurchase,
        known: KnownLanding,
    ) -> Result<Outcome, store::Error> {
        let KnownLanding { payment_id, state, is_same_request } = known;
        if !is_same_request {
            let detail = "This transfer was presented before for another request, or its money goes back already.";
            return self.refuse_known(purchase, known, Refusal::new(RefusalCode::PaymentReused, detail)).await;
        }
        match state {
            State::Landed => self.answer_landed(purchase, payment_id).await,
            State::Settled
            | State::RefundOwed
            | State::Refunded
            | State::Claimed
            | State::Abandoned
            | State::Refused
            | State::Superseded
            | State::Free
            | State::Ready
            | State::Settling
            | State::Unknown
            | State::Denied
            | State::Dead => {
                let record = self.journal.load(payment_id).await?;
                let outcome = self.replay(payment_id, record)?;
                self.note(payment_id, outcome).await
            }
        }
    }

    /// Somebody works on it; or he has died, and then its money goes back: what he delivered before the database was restored,
    /// nobody knows.
    async fn answer_landed(
        self: &Arc<Self>,
        purchase: &LandingPurchase,
        payment_id: Uuid,
    ) -> Result<Outcome, store::Error> {
        let known = KnownLanding { payment_id, state: State::Landed, is_same_request: true };
        let row = self.journal.load_landing(payment_id).await?;
        let (Some(rail), Some(row)) = (&self.landings, row) else {
            return Ok(Outcome::Pending { payment_id, transaction: None });
        };
        if row.is_worked_on {
            let refusal = Refusal::new(RefusalCode::PaymentInProgress, "A copy of this payment is being worked on.");
            return self.refuse_known(purchase, known, refusal).await;
        }
        let money = LandedMoney::recorded(&row, rail);
        let payer = parse_address(&row.from).unwrap_or(Address::ZERO);
        let about = purchase.circumstances(row.order_id, row.auth_key);
        let held = Held { payment_id, epoch: 1 };
        let work = self.landed_work(purchase, held, about, money, payer, &Presence::default());
        let detail = "The process that worked on this payment ended before it had an answer; the money goes back.";
        Ok(Box::new(work).refuse(Refusal::new(RefusalCode::ExecutionFailed, detail), None).await)
    }

    /// A refusal that changes nothing, with the state of the payment that it names and of its refund.
    async fn refuse_known(
        &self,
        purchase: &LandingPurchase,
        known: KnownLanding,
        refusal: Refusal,
    ) -> Result<Outcome, store::Error> {
        let mut refusal = refusal.with("payment", named(known.payment_id, known.state));
        // without the address of its order, which is for whoever ordered
        if let Some(refund) = list::find_of_payment(self.journal.pool(), known.payment_id).await? {
            refusal = refusal.with("refund", refund.shown(None));
        }
        self.journal.note_served(known.payment_id, refusal.code.status(), Some(refusal.code.name())).await?;
        Ok(self.refuse_request(purchase, None, &refusal))
    }
}

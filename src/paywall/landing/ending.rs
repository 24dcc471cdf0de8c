//! The two ends of a landed payment: the answer with its charge, the refusal with its refund. One commit each, no outside call.

use serde_json::{Value, json};
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::Landings;
use crate::evm::lower;
use crate::ledger::Account;
use crate::limits;
use crate::paywall::outcome::{Delivery, Outcome, Refused};
use crate::paywall::port::chain::Landing;
use crate::paywall::verified::{Answer, Work};
use crate::refusal::{Refusal, RefusalCode};
use crate::store;
use crate::store::journal::{Decision, DecisionKind, LandingRow, NewRefund};

/// What to do after a refusal whose code would ask for the same payment again: it has been given up.
const HINT: &str = "Do not send this payment again to be served; its money goes back by itself, see refund.";

/// The money of a landed payment.
#[derive(Clone, Debug)]
pub(in crate::paywall) struct LandedMoney {
    /// The transaction.
    pub(in crate::paywall) tx: String,
    /// Who paid, lower case: refunds go there and nowhere else.
    from: String,
    /// Atomic units that moved, decimal.
    value: String,
    /// Where its order is shown.
    status_url: String,
}

impl LandedMoney {
    pub(super) fn of(landing: &Landing, order_id: &str, rail: &Landings) -> Self {
        Self {
            tx: format!("{:#x}", landing.tx),
            from: lower(&landing.key.authorizer),
            value: landing.value.to_string(),
            status_url: format!("{}{order_id}", rail.orders_url),
        }
    }

    pub(super) fn recorded(row: &LandingRow, rail: &Landings) -> Self {
        Self {
            tx: row.tx.clone(),
            from: row.from.clone(),
            value: row.value.clone(),
            status_url: format!("{}{}", rail.orders_url, row.order_id),
        }
    }
}

impl Work {
    /// Stores the answer and books the charge. Whether the buyer still waits does not matter: he has paid.
    pub(in crate::paywall) async fn deliver(self: Box<Self>, answer: Answer, account: &Account) -> Outcome {
        let decision =
            Decision { kind: DecisionKind::Answer, status: 200, content_type: answer.content_type, body: answer.body };
        match self.end(&decision, Some(account), &self.new_refund()).await {
            Ok(true) => match self.answer_from_rows().await {
                Outcome::Delivered(delivery) => Outcome::Delivered(Delivery { replay: false, ..delivery }),
                other => other,
            },
            Ok(false) => self.answer_from_rows().await,
            Err(error) => self.undecided(&error).await,
        }
    }

    /// Stores the refusal and owes all of the money back.
    pub(in crate::paywall) async fn send_back(
        self: Box<Self>,
        money: LandedMoney,
        refusal: Refusal,
        account: Option<&Account>,
    ) -> Outcome {
        let refund = self.new_refund();
        let row = refusal.code.row();
        let mut refusal = refusal
            .with("payment", json!({"id": self.held.payment_id, "state": "landed", "tx": money.tx}))
            .with("refund", promised(&money, &refund));
        if row.same_payment {
            refusal = refusal.with("hint", HINT.into()).with("retry", json!({"safe": false, "same_payment": false}));
        }
        let body = self.paywall.contract.refusal_body(&refusal, &self.circumstances, self.paywall.clock.now());
        let decision = Decision {
            kind: DecisionKind::Refusal(refusal.code.name()),
            status: refusal.code.status(),
            content_type: "application/problem+json".into(),
            body,
        };
        match self.end(&decision, account, &refund).await {
            Ok(true) => {
                let retry_after_s = if row.same_payment { None } else { refusal.retry_after_s() };
                Outcome::Refused(Refused { retry_after_s, ..Refused::new(&refusal, decision.body) })
            }
            Ok(false) => self.answer_from_rows().await,
            Err(error) => self.undecided(&error).await,
        }
    }

    async fn end(
        &self,
        decision: &Decision,
        account: Option<&Account>,
        refund: &NewRefund,
    ) -> Result<bool, store::Error> {
        let empty = Account::empty(self.synthesizer, self.paywall.clock.now());
        let run = account.unwrap_or(&empty).row(&self.customer, refused_code(decision.kind));
        let order_id = self.circumstances.order_id.as_deref().unwrap_or_default();
        self.paywall.journal.end_landing(self.held, decision, order_id, &run, refund).await
    }

    fn new_refund(&self) -> NewRefund {
        NewRefund { refund_id: Uuid::now_v7(), due_by: self.paywall.clock.now() + limits::REFUND_DUE }
    }
}

fn refused_code(kind: DecisionKind) -> Option<RefusalCode> {
    match kind {
        DecisionKind::Refusal(name) => RefusalCode::from_name(name),
        DecisionKind::Answer | DecisionKind::VerifyFailed => None,
    }
}

fn promised(money: &LandedMoney, refund: &NewRefund) -> Value {
    json!({
        "id": refund.refund_id,
        "status": "pending",
        "due_by": to_the_second(refund.due_by),
        "status_url": money.status_url,
        "amount": money.value,
        "to": money.from,
    })
}

/// RFC 3339 in UTC, to the second.
fn to_the_second(at: OffsetDateTime) -> String {
    let at = at.to_offset(time::UtcOffset::UTC);
    at.replace_nanosecond(0).unwrap_or(at).format(&Rfc3339).unwrap_or_default()
}

//! The closed refusal matrix: every way in which a request can be declined, and that it costs nothing.
//!
//! Seed 002 (its four codes keep name, status and meaning). One table; the body of a refusal,
//! its status, the manifest, the OpenAPI document, llms.txt and verification.md are all made from it ([`document`]).
//! Adding a code breaks the build until its row is written.

pub mod document;
mod matrix;

use serde::{Serialize, Serializer};
use serde_json::{Map, Value, json};

/// A definite no. Nothing is charged for any of these.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalCode {
    /// The operator's policy says no.
    PolicyRefusal,
    /// Invalid input, unknown subject, or too little data on it.
    InsufficientSubject,
    /// Our fault or an upstream's, after verify.
    ExecutionFailed,
    /// A live source is down or too stale.
    DataUnavailable,
    /// The sourcing gate rejected every attempt.
    ResearchRejected,
    /// The call chain holds our own address.
    CallChainLoop,
    /// The call chain is at the ceiling.
    CallChainDepth,
    /// The call chain does not parse.
    CallChainInvalid,
    /// The payment header does not decode strictly.
    PaymentMalformed,
    /// The payment was already spent on another request.
    PaymentReused,
    /// The same payment is being served now.
    PaymentInProgress,
    /// Too many requests; said before any payment is looked at.
    RateLimited,
    /// The payer is on the operator's deny list.
    PayerDeclined,
    /// Shed before verify, or the facilitator cannot be reached for verify.
    Overloaded,
}

/// What a caller may do after a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Recovery {
    /// Ask for something else.
    ChooseAlternative,
    /// Correct the request.
    ChangeRequest,
    /// Ask again at once, with a new payment.
    RetryImmediately,
    /// Ask again later, with a new payment or none.
    RetryLater,
    /// Send the same payment again.
    RetrySamePayment,
}

/// One row of the matrix.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    /// The code.
    pub code: RefusalCode,
    /// Its name on the wire.
    pub name: &'static str,
    /// HTTP status.
    pub status: u16,
    /// Title of the problem, a few words.
    pub title: &'static str,
    /// When it is said, one sentence.
    pub reason: &'static str,
    /// What to do, one sentence.
    pub hint: &'static str,
    /// The same as a value.
    pub recovery: Recovery,
    /// True when asking again can help without changing anything.
    pub retry_safe: bool,
    /// True when the same payment may be sent again and may then be charged.
    pub same_payment: bool,
    /// Seconds to wait, when that is known.
    pub after_s: Option<u32>,
}

/// The unknown outcome: not a refusal, published apart.
pub mod unknown_outcome {
    /// Its name on the wire.
    pub const NAME: &str = "settlement_pending";
    /// HTTP status: never 402.
    pub const STATUS: u16 = 503;
    /// Title of the problem.
    pub const TITLE: &str = "The outcome of the settlement is not known yet";
    /// What to do.
    pub const HINT: &str = "Send the same request with the same payment header again; it cannot be charged twice.";
    /// Seconds to wait.
    pub const AFTER_S: u32 = 2;
}

impl RefusalCode {
    /// Every code, in the order in which documents list them.
    pub const ALL: [Self; 14] = [
        Self::PolicyRefusal,
        Self::InsufficientSubject,
        Self::ExecutionFailed,
        Self::DataUnavailable,
        Self::ResearchRejected,
        Self::CallChainLoop,
        Self::CallChainDepth,
        Self::CallChainInvalid,
        Self::PaymentMalformed,
        Self::PaymentReused,
        Self::PaymentInProgress,
        Self::RateLimited,
        Self::PayerDeclined,
        Self::Overloaded,
    ];

    /// Its row.
    pub fn row(self) -> &'static Row {
        matrix::row(self)
    }

    /// Its name on the wire.
    pub fn name(self) -> &'static str {
        self.row().name
    }

    /// Its HTTP status.
    pub fn status(self) -> u16 {
        self.row().status
    }

    /// The code of a name on the wire.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.name() == name)
    }
}

impl Serialize for RefusalCode {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl Recovery {
    /// Its name in the manifest.
    pub fn name(self) -> &'static str {
        match self {
            Self::ChooseAlternative => "choose_alternative",
            Self::ChangeRequest => "change_request",
            Self::RetryImmediately => "retry_immediately",
            Self::RetryLater => "retry_later",
            Self::RetrySamePayment => "retry_same_payment",
        }
    }
}

/// A refusal as it is said to one caller: the code, what exactly was wrong, and members that only some codes have.
#[derive(Clone, Debug, PartialEq)]
pub struct Refusal {
    /// The code.
    pub code: RefusalCode,
    /// What exactly was wrong; public text.
    pub detail: String,
    /// Seconds to wait, where this case knows better than the row.
    pub after_s: Option<u32>,
    /// Further members of the body: `sourcing`, `attempts`, `payment`, `call_chain`.
    pub members: Map<String, Value>,
}

impl Refusal {
    /// A refusal without further members.
    pub fn new(code: RefusalCode, detail: impl Into<String>) -> Self {
        Self { code, detail: detail.into(), after_s: None, members: Map::new() }
    }

    /// Adds a member to the body.
    pub fn with(mut self, name: &str, value: Value) -> Self {
        self.members.insert(name.to_owned(), value);
        self
    }

    /// Sets the seconds to wait.
    pub fn after_s(mut self, seconds: u32) -> Self {
        self.after_s = Some(seconds);
        self
    }

    /// Seconds to wait: this case's, or the row's.
    pub fn retry_after_s(&self) -> Option<u32> {
        self.after_s.or(self.code.row().after_s)
    }

    /// The problem body (RFC 9457) without a receipt. `type` is the anchor of the code in the published contract.
    pub fn body(&self, contract_url: &str) -> Map<String, Value> {
        let row = self.code.row();
        let mut retry = json!({"safe": row.retry_safe, "same_payment": row.same_payment});
        if let (Some(seconds), Value::Object(retry)) = (self.retry_after_s(), &mut retry) {
            retry.insert("after_s".into(), seconds.into());
        }
        let mut body = Map::new();
        body.insert("type".into(), format!("{contract_url}#{}", row.name).into());
        body.insert("title".into(), row.title.into());
        body.insert("status".into(), row.status.into());
        body.insert("detail".into(), self.detail.clone().into());
        body.insert("error".into(), self.detail.clone().into());
        body.insert("code".into(), row.name.into());
        body.insert("charged".into(), false.into());
        body.insert("hint".into(), row.hint.into());
        body.insert("retry".into(), retry);
        body.extend(self.members.clone());
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_codes_of_the_seed_keep_their_statuses() {
        let of = |name| RefusalCode::from_name(name).map(RefusalCode::status);
        assert_eq!(of("policy_refusal"), Some(409));
        assert_eq!(of("insufficient_subject"), Some(422));
        assert_eq!(of("execution_failed"), Some(502));
        assert_eq!(of("data_unavailable"), Some(503));
    }

    #[test]
    fn the_same_payment_may_be_sent_again_only_where_the_claim_is_given_back() {
        let same: Vec<_> =
            RefusalCode::ALL.into_iter().filter(|code| code.row().same_payment).map(RefusalCode::name).collect();
        assert_eq!(same, ["payment_in_progress", "overloaded"]);
    }

    #[test]
    fn no_member_can_make_a_refusal_say_that_it_charged() {
        for code in RefusalCode::ALL {
            let body = Refusal::new(code, "why").body("https://jim.example/api/meta/refusal-contract");
            assert_eq!(body["charged"], false);
            assert_eq!(body["status"], code.status());
            assert_eq!(body["code"], code.name());
            assert_ne!(code.status(), 402);
        }
    }
}

//! What the journal writes and reads: the rows as values, and the closed sets that their text columns hold.

use time::OffsetDateTime;
use uuid::Uuid;

use crate::machine::{Rail, State};
use crate::money::{Atomic, UsdMicros};
use crate::refusal::RefusalCode;
use crate::store::Error;

/// A payment as it is first presented.
#[derive(Clone, Debug)]
pub struct NewPayment {
    /// `<caip2>/eip3009/<asset>/<from>/<nonce>` or `<caip2>/permit2/<owner>/<nonce>`, lower case.
    pub auth_key: String,
    /// How the money comes.
    pub rail: Rail,
    /// Version of the header that carried it.
    pub x402_version: i16,
    /// CAIP-2.
    pub network: String,
    /// Token, lower case.
    pub asset: String,
    /// Who signed, lower case.
    pub payer: String,
    /// Who is paid, lower case.
    pub pay_to: String,
    /// Nonce of the authorization, lower-case hex with 0x.
    pub auth_nonce: String,
    /// Digest of the authorization and its normalised signature.
    pub payload_sha256: String,
    /// Digest of the request it was presented for.
    pub request_fp: String,
    /// Product id.
    pub product: String,
    /// The refusal contract in force.
    pub contract_id: String,
    /// Price in atomic units, decimal.
    pub amount: String,
    /// Price in dollar micros.
    pub amount_micros: UsdMicros,
    /// Start of its window, decimal seconds.
    pub valid_after: String,
    /// End of its window, decimal seconds.
    pub valid_before: String,
}

/// What a claim came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claim {
    /// The caller works on it now.
    Won {
        /// The claim.
        held: Held,
        /// Another payment of this purchase has an answer that was never sent to settle; this one may pay for it.
        takes_over: Option<Uuid>,
    },
    /// Another authorization of the same purchase is live; nothing was written.
    PurchaseLive {
        /// That payment.
        payment_id: Uuid,
        /// Its state.
        state: State,
    },
    /// Another authorization of the same purchase was charged a moment ago: its answer is this one's too, for nothing.
    Free {
        /// The payment that is not charged.
        payment_id: Uuid,
    },
    /// Presented before for another request, or with another signature.
    Reused {
        /// That payment.
        payment_id: Uuid,
        /// Its state.
        state: State,
    },
    /// Presented before for this request.
    Existing {
        /// That payment.
        payment_id: Uuid,
        /// Its state.
        state: State,
    },
}

impl Claim {
    /// The payment that was presented before, and its state.
    pub fn known(&self) -> Option<(Uuid, State)> {
        match self {
            Self::Existing { payment_id, state } | Self::Reused { payment_id, state } => Some((*payment_id, *state)),
            Self::Won { .. } | Self::PurchaseLive { .. } | Self::Free { .. } => None,
        }
    }
}

/// A claim that the caller holds: the fence for what it decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Held {
    /// The payment.
    pub payment_id: Uuid,
    /// The claim's epoch.
    pub epoch: i32,
}

/// How a settle call ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettleEnd {
    /// What it means.
    pub class: SettleClass,
    /// What the facilitator said, or what went wrong.
    pub reason: Option<String>,
    /// A transaction that it named.
    pub transaction: Option<String>,
}

/// What is stored for a payment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// Answer, refusal or failed verify.
    pub kind: DecisionKind,
    /// HTTP status.
    pub status: u16,
    /// Media type of the body.
    pub content_type: String,
    /// The exact bytes.
    pub body: Vec<u8>,
}

/// What was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecisionKind {
    /// A finished memo.
    Answer,
    /// A definite refusal, with its code.
    Refusal(&'static str),
    /// The facilitator said no; the body is the reason.
    VerifyFailed,
}

/// One run of the pipeline, for the ledger.
#[derive(Clone, Debug)]
pub struct RunRow {
    /// Id of the request that caused it.
    pub request_id: String,
    /// Product id.
    pub product: String,
    /// What it was about, as asked.
    pub subject: String,
    /// `agent` or `human`.
    pub mode: String,
    /// Who would pay, lower case.
    pub payer: String,
    /// `organic`, `own` or `test`.
    pub payer_class: &'static str,
    /// Who wrote the draft.
    pub synthesizer: &'static str,
    /// `accepted`, `rejected` or `none`.
    pub gate_verdict: &'static str,
    /// Drafts that were judged.
    pub attempts: i32,
    /// Figures that the gate read in the last draft.
    pub figures_checked: i32,
    /// Why it was refused.
    pub refusal_code: Option<&'static str>,
    /// What the facts cost.
    pub data_cost: UsdMicros,
    /// What the drafts cost.
    pub inference_cost: UsdMicros,
    /// Tokens that models read and wrote; None where none was asked, or none said.
    pub tokens: Option<(i64, i64)>,
    /// Hops of the inbound call chain.
    pub call_chain_depth: i32,
    /// When it began.
    pub started_at: OffsetDateTime,
    /// When it ended.
    pub finished_at: OffsetDateTime,
}

/// The class of a settle answer, as it is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SettleClass {
    /// On chain, with a transaction.
    Settled,
    /// Refused before anything was sent.
    Denied,
    /// The nonce is used.
    NonceUsed,
    /// Money may have moved.
    Unknown,
    /// The call was never sent.
    NotSent,
}

/// What recording the end of a settle call came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// State of the payment after it.
    pub state: State,
    /// True when this call booked the charge as the first of its payment: what the caller holds is what is stored.
    pub booked: bool,
}

/// Everything that a repeat of a payment is answered from.
#[derive(Clone, Debug)]
pub struct Record {
    /// Its state.
    pub state: State,
    /// The order that it pays for, or whose answer it was given.
    pub order_id: Option<String>,
    /// What was decided.
    pub decision: Option<Decision>,
    /// The transaction that charged it, or that a settle answer named.
    pub transaction: Option<String>,
    /// The reason that the last settle answer gave.
    pub settle_reason: Option<String>,
    /// Who paid, lower case.
    pub payer: String,
    /// What it is charged, in atomic units; of one that was answered from another, what that one was.
    pub charged: Atomic,
    /// The payment that took its answer over.
    pub successor: Option<Uuid>,
}

/// An order as its holder may see it.
#[derive(Clone, Debug)]
pub struct OrderRow {
    /// The payment that pays for it.
    pub payment_id: Uuid,
    /// State of that payment.
    pub state: State,
    /// The transaction that charged it, or that a settle answer named.
    pub transaction: Option<String>,
    /// When it was made.
    pub created_at: OffsetDateTime,
}

/// A state as a row has it.
pub(super) fn read_state(value: &str) -> Result<State, Error> {
    State::from_name(value).ok_or_else(|| Error::UnknownValue { what: "payment state", value: value.to_owned() })
}

/// A rail as a row has it.
pub(super) fn read_rail(value: &str) -> Result<Rail, Error> {
    Rail::from_name(value).ok_or_else(|| Error::UnknownValue { what: "payment rail", value: value.to_owned() })
}

impl SettleClass {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Settled => "settled",
            Self::Denied => "denied",
            Self::NonceUsed => "nonce_used",
            Self::Unknown => "unknown",
            Self::NotSent => "not_sent",
        }
    }
}

impl DecisionKind {
    /// A stored refusal code is one of the matrix, or the row is from another version.
    pub(super) fn read(kind: &str, code: Option<&str>) -> Result<Self, Error> {
        match (kind, code) {
            ("answer", None) => Ok(Self::Answer),
            ("verify_failed", None) => Ok(Self::VerifyFailed),
            ("refusal", Some(code)) => RefusalCode::from_name(code)
                .map(|known| Self::Refusal(known.name()))
                .ok_or_else(|| Error::UnknownValue { what: "answers.refusal_code", value: code.to_owned() }),
            (kind, _) => Err(Error::UnknownValue { what: "answers.kind", value: kind.to_owned() }),
        }
    }

    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Answer => "answer",
            Self::Refusal(_) => "refusal",
            Self::VerifyFailed => "verify_failed",
        }
    }

    pub(super) fn refusal_code(self) -> Option<&'static str> {
        match self {
            Self::Refusal(code) => Some(code),
            Self::Answer | Self::VerifyFailed => None,
        }
    }
}

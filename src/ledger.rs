//! What a run is booked as: its costs always, revenue only from a settlement (the journal books that in the same commit).

use time::OffsetDateTime;

use crate::evm::{self, Address};
use crate::memo::Mode;
use crate::money::UsdMicros;
use crate::pipeline::port::Usage;
use crate::refusal::RefusalCode;
use crate::store::journal::RunRow;

/// What one run did and cost, however it ended.
#[derive(Clone, Debug)]
pub struct Account {
    /// Drafts that were judged.
    pub attempts: u32,
    /// Figures that the gate read in the last draft.
    pub figures_checked: usize,
    /// What the gate said.
    pub verdict: Verdict,
    /// Who wrote.
    pub synthesizer: &'static str,
    /// What the facts cost.
    pub data_cost: UsdMicros,
    /// What models were paid for.
    pub usage: Usage,
    /// When it began.
    pub started_at: OffsetDateTime,
    /// When it ended.
    pub finished_at: OffsetDateTime,
}

/// What the gate said about the last draft.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It may ship.
    Accepted,
    /// It may not.
    Rejected,
    /// No draft was judged.
    None,
}

/// Who asked, and for what.
#[derive(Clone, Debug)]
pub struct Customer {
    /// Id of the request.
    pub request_id: String,
    /// Product id.
    pub product: String,
    /// Subject as asked.
    pub subject: String,
    /// Who the memo is for.
    pub mode: Mode,
    /// Who would pay.
    pub payer: Address,
    /// Organic, own or test.
    pub payer_class: PayerClass,
    /// Hops of the inbound call chain.
    pub call_chain_depth: usize,
}

/// Whose money it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PayerClass {
    /// A stranger's.
    Organic,
    /// Our own.
    Own,
    /// Nobody's: the facilitator is simulated.
    Test,
}

impl Account {
    /// An account of a run that ended before it did anything.
    pub fn empty(synthesizer: &'static str, at: OffsetDateTime) -> Self {
        Self {
            attempts: 0,
            figures_checked: 0,
            verdict: Verdict::None,
            synthesizer,
            data_cost: UsdMicros(0),
            usage: Usage::default(),
            started_at: at,
            finished_at: at,
        }
    }

    /// The row of the ledger.
    pub fn row(&self, customer: &Customer, refused: Option<RefusalCode>) -> RunRow {
        RunRow {
            request_id: customer.request_id.clone(),
            product: customer.product.clone(),
            subject: customer.subject.clone(),
            mode: match customer.mode {
                Mode::Agent => "agent".into(),
                Mode::Human => "human".into(),
            },
            payer: evm::lower(&customer.payer),
            payer_class: match customer.payer_class {
                PayerClass::Organic => "organic",
                PayerClass::Own => "own",
                PayerClass::Test => "test",
            },
            synthesizer: self.synthesizer,
            gate_verdict: match self.verdict {
                Verdict::Accepted => "accepted",
                Verdict::Rejected => "rejected",
                Verdict::None => "none",
            },
            attempts: i32::try_from(self.attempts).unwrap_or(i32::MAX),
            figures_checked: i32::try_from(self.figures_checked).unwrap_or(i32::MAX),
            refusal_code: refused.map(RefusalCode::name),
            data_cost: self.data_cost,
            inference_cost: self.usage.cost,
            tokens: self.usage.tokens.map(|tokens| (count(tokens.input), count(tokens.output))),
            call_chain_depth: i32::try_from(customer.call_chain_depth).unwrap_or(i32::MAX),
            started_at: self.started_at,
            finished_at: self.finished_at,
        }
    }
}

/// A count as a row has it.
fn count(tokens: u64) -> i64 {
    i64::try_from(tokens).unwrap_or(i64::MAX)
}

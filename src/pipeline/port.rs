//! What the pipeline needs from the outside: a source of facts and a writer of drafts.

use std::sync::{Mutex, PoisonError};

use async_trait::async_trait;

use crate::memo::{Draft, Mode, Snapshot, Subject};
use crate::money::UsdMicros;

/// Where facts come from.
#[async_trait]
pub trait Source: Send + Sync {
    /// Looks a subject up in memory only; never fetches.
    fn get_subject(&self, ticker: &str) -> Lookup;

    /// Gathers the facts of a subject. `ticker` is upper case and well formed.
    async fn fetch_snapshot(&self, ticker: &str) -> Result<Snapshot, SourceError>;
}

/// What memory says about a ticker.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Lookup {
    /// The list is in memory and has it.
    Known(Subject),
    /// The list is in memory and does not have it.
    Unknown,
    /// The list is not in memory: only a fetch can tell.
    NotLoaded,
}

/// Why there are no facts.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SourceError {
    /// No such subject, or nothing usable is on file about it.
    #[error("{0}")]
    Insufficient(String),
    /// The live source is down, and nothing fresh enough is kept.
    #[error("{public}")]
    Unavailable {
        /// What the buyer is told.
        public: String,
        /// What the log is told.
        cause: String,
    },
}

/// Who writes a draft over a snapshot.
#[async_trait]
pub trait Synthesizer: Send + Sync {
    /// Name for the ledger, as `renderer`.
    fn name(&self) -> &'static str;

    /// All that a draft depends on beside facts and mode (model, prompt, settings), where equal facts may have one memo; None
    /// where every draft is to be written anew.
    fn identity(&self) -> Option<&str>;

    /// Writes a draft.
    async fn draft(&self, assignment: &Assignment<'_>) -> Result<Draft, SynthesisError>;

    /// A second opinion on a draft that the gate accepted. It may only refuse.
    async fn review(&self, snapshot: &Snapshot, draft: &Draft, meter: &Meter) -> Opinion;
}

/// What a draft is asked for.
#[derive(Debug)]
pub struct Assignment<'a> {
    /// The facts.
    pub snapshot: &'a Snapshot,
    /// Who the memo is for.
    pub mode: Mode,
    /// What became of the attempt before.
    pub setback: Option<&'a Setback>,
    /// Where the cost is written down, as it arises: a run that is cut off in the middle has cost what it has cost.
    pub meter: &'a Meter,
}

/// An attempt that came to nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Setback {
    /// The draft, where there was one.
    pub draft: Option<Draft>,
    /// What was wrong, one line each.
    pub feedback: String,
}

/// Why there is no draft.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SynthesisError {
    /// The writer answered with something that is no memo; what is wrong with it.
    #[error("no memo: {0}")]
    Unusable(String),
    /// The writer could not be had; text for the log.
    #[error("{0}")]
    Unavailable(String),
}

/// What a second opinion comes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Opinion {
    /// None was asked for.
    Skipped,
    /// The draft says what its facts say.
    Faithful,
    /// It does not, or nobody could tell.
    Refused,
}

/// What the writing of one run has used so far.
#[derive(Debug, Default)]
pub struct Meter(Mutex<Usage>);

/// What models were paid for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Usage {
    /// Its price.
    pub cost: UsdMicros,
    /// Tokens read and written; None while no model has said.
    pub tokens: Option<Tokens>,
}

/// Tokens of one or more calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tokens {
    /// Read by the model.
    pub input: u64,
    /// Written by it.
    pub output: u64,
}

impl Meter {
    /// Adds what one call has used; sums stay at their greatest value rather than begin anew.
    pub fn add(&self, cost: UsdMicros, tokens: Option<Tokens>) {
        let mut usage = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        usage.cost = usage.cost.checked_add(cost).unwrap_or(UsdMicros(i64::MAX));
        if let Some(tokens) = tokens {
            let before = usage.tokens.unwrap_or_default();
            usage.tokens = Some(Tokens {
                input: before.input.saturating_add(tokens.input),
                output: before.output.saturating_add(tokens.output),
            });
        }
    }

    /// What was used until now.
    pub fn read(&self) -> Usage {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

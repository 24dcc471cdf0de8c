//! What the pipeline needs from the outside: a source of facts and a writer of drafts.

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

    /// Writes a draft. `feedback` lists what the gate found wrong with the draft before.
    async fn draft(&self, snapshot: &Snapshot, mode: Mode, feedback: Option<&str>) -> Result<Written, SynthesisError>;
}

/// A draft and what it cost.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Written {
    /// The draft.
    pub draft: Draft,
    /// Cost of the inference.
    pub cost: UsdMicros,
}

/// Why there is no draft.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SynthesisError(pub String);

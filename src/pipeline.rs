//! snapshot -> draft -> gate: the work that is sold.
//!
//! The synthesizer proposes, the gate disposes. How attempts follow each other is in `attempt`; a run ends with a memo that every
//! check accepted, or with nothing of it delivered. No payment, no HTTP, no SQL here.

mod attempt;
mod cache;
pub mod port;

use std::sync::Arc;

use tokio::time::{Instant, timeout_at};

use crate::catalog::input::Fundamentals;
use crate::clock::Clock;
use crate::ledger::Account;
use crate::limits;
use crate::memo::Snapshot;
use crate::memo::gate::{Accepted, Rejected};
use crate::memo::impersonal::Advice;
use attempt::Draftsman;
use cache::MemoCache;
use port::{Lookup, Meter, Source, SourceError, Synthesizer};

/// Gathers, writes and judges.
pub struct Pipeline {
    source: Arc<dyn Source>,
    clock: Arc<dyn Clock>,
    writing: Writing,
    memos: MemoCache,
}

/// Who writes, how often, and who stands in.
#[derive(Clone)]
pub struct Writing {
    /// Who writes.
    pub synthesizer: Arc<dyn Synthesizer>,
    /// Attempts before a run is rejected; at least one.
    pub attempts_max: u32,
    /// Who writes when every attempt of the synthesizer came to nothing, or it could not be had; None: the run is rejected.
    pub stand_in: Option<Arc<dyn Synthesizer>>,
}

/// One run, however it ended; what it cost is booked either way.
#[derive(Debug)]
pub struct Run {
    /// A memo that may be sold, or why there is none.
    pub outcome: Result<Memo, Failure>,
    /// What it did and cost.
    pub account: Account,
}

/// A memo that may be sold.
#[derive(Debug)]
pub struct Memo {
    /// What the gate accepted.
    pub accepted: Accepted,
    /// Whether a second opinion was asked for; it did not refuse, or there would be no memo.
    pub is_reviewed: bool,
    /// What the buyer is told about the writing, when it did not go as usual.
    pub note: Option<&'static str>,
}

/// Why a run has no memo.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// Unknown subject, or too little on file; public text.
    Insufficient(String),
    /// The live source is down or too stale; public text.
    Unavailable(String),
    /// No attempt could be sold; why the last one could not.
    Rejected(Rejection),
    /// The synthesizer failed, or took too long; text for the log.
    Broken(String),
}

/// Why a draft is not sold.
#[derive(Clone, Debug, PartialEq)]
pub enum Rejection {
    /// The sourcing gate refused it.
    Sourcing(Box<Rejected>),
    /// It gives advice.
    Advice(Vec<Advice>),
    /// The second opinion refused it.
    Unfaithful,
    /// It is no memo at all; what is wrong with it, for the log.
    Unusable(String),
}

impl Pipeline {
    /// A pipeline over a source.
    pub fn new(source: Arc<dyn Source>, writing: Writing, clock: Arc<dyn Clock>) -> Self {
        Self { source, clock, writing, memos: MemoCache::new() }
    }

    /// Name of who writes, for the ledger.
    pub fn synthesizer(&self) -> &'static str {
        self.writing.synthesizer.name()
    }

    /// Looks a ticker up in memory.
    pub fn get_subject(&self, ticker: &str) -> Lookup {
        self.source.get_subject(ticker)
    }

    /// Runs within [`limits::WORK_BUDGET`].
    pub async fn run(&self, asked: &Fundamentals) -> Run {
        let mut account = Account::empty(self.synthesizer(), self.clock.now());
        let until = Instant::now() + limits::WORK_BUDGET;
        let meter = Meter::default();
        let outcome = match timeout_at(until, self.gather(asked)).await {
            Ok(Ok(snapshot)) => {
                let draftsman = Draftsman { writing: &self.writing, memos: &self.memos, meter: &meter, until };
                draftsman.write(snapshot, asked.mode, &mut account).await
            }
            Ok(Err(failure)) => Err(failure),
            Err(_) => Err(Failure::Broken("the facts took longer than the work budget".to_owned())),
        };
        account.usage = meter.read();
        account.finished_at = self.clock.now();
        Run { outcome, account }
    }

    async fn gather(&self, asked: &Fundamentals) -> Result<Snapshot, Failure> {
        self.source.fetch_snapshot(&asked.ticker).await.map_err(|error| match error {
            SourceError::Insufficient(public) => Failure::Insufficient(public),
            SourceError::Unavailable { public, cause } => {
                tracing::warn!(ticker = %asked.ticker, %cause, "filings are not available");
                Failure::Unavailable(public)
            }
        })
    }
}

#[cfg(test)]
mod tests;

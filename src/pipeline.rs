//! snapshot -> draft -> gate: the work that is sold.
//!
//! The synthesizer proposes, the gate disposes. A rejected draft goes back with what was wrong; after the last attempt the run
//! is rejected and nothing of it is delivered. No payment, no HTTP, no SQL here.

mod cache;
pub mod port;

use std::sync::Arc;

use crate::catalog::input::Fundamentals;
use crate::clock::Clock;
use crate::ledger::{Account, Verdict};
use crate::limits;
use crate::memo::gate::{self, Accepted, Rejected, Report};
use crate::memo::{Draft, Snapshot};
use crate::money::UsdMicros;
use cache::{Key, MemoCache};
use port::{Lookup, Source, SourceError, Synthesizer, Written};

/// Gathers, writes and judges.
pub struct Pipeline {
    source: Arc<dyn Source>,
    synthesizer: Arc<dyn Synthesizer>,
    clock: Arc<dyn Clock>,
    attempts_max: u32,
    memos: MemoCache,
}

/// One run, however it ended; what it cost is booked either way.
#[derive(Debug)]
pub struct Run {
    /// A memo that may be sold, or why there is none.
    pub outcome: Result<Accepted, Failure>,
    /// What it did and cost.
    pub account: Account,
}

/// Why a run has no memo.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// Unknown subject, or too little on file; public text.
    Insufficient(String),
    /// The live source is down or too stale; public text.
    Unavailable(String),
    /// The gate rejected every attempt; the report is of the last.
    Rejected(Box<Report>),
    /// The synthesizer failed, or took too long; text for the log.
    Broken(String),
}

impl Pipeline {
    /// `attempts_max` drafts are judged before a run is rejected; at least one.
    pub fn new(
        source: Arc<dyn Source>,
        synthesizer: Arc<dyn Synthesizer>,
        clock: Arc<dyn Clock>,
        attempts_max: u32,
    ) -> Self {
        Self { source, synthesizer, clock, attempts_max: attempts_max.max(1), memos: MemoCache::new() }
    }

    /// Looks a ticker up in memory.
    pub fn get_subject(&self, ticker: &str) -> Lookup {
        self.source.get_subject(ticker)
    }

    /// Runs within [`limits::WORK_BUDGET`].
    pub async fn run(&self, asked: &Fundamentals) -> Run {
        let mut account = Account::empty(self.synthesizer.name(), self.clock.now());
        // on time-out, what was spent by then stays in the account
        let outcome = tokio::time::timeout(limits::WORK_BUDGET, self.work(asked, &mut account))
            .await
            .unwrap_or_else(|_| Err(Failure::Broken("the work budget was used up".into())));
        account.finished_at = self.clock.now();
        Run { outcome, account }
    }

    async fn work(&self, asked: &Fundamentals, account: &mut Account) -> Result<Accepted, Failure> {
        let mut snapshot = self.source.fetch_snapshot(&asked.ticker).await.map_err(|error| match error {
            SourceError::Insufficient(public) => Failure::Insufficient(public),
            SourceError::Unavailable { public, cause } => {
                tracing::warn!(ticker = %asked.ticker, %cause, "filings are not available");
                Failure::Unavailable(public)
            }
        })?;
        let key = self.synthesizer.identity().map(|writer| Key::new(&snapshot, asked.mode, writer));
        if let Some(kept) = key.as_ref().and_then(|key| self.memos.get(key)) {
            match self.judge(snapshot.clone(), kept, account) {
                Ok(accepted) => return sellable(accepted),
                Err(_) => key.iter().for_each(|key| self.memos.forget(key)),
            }
        }
        let mut feedback = None;
        loop {
            let written = self.write(&snapshot, asked, feedback.as_deref()).await?;
            account.inference_cost = account.inference_cost.checked_add(written.cost).unwrap_or(UsdMicros(i64::MAX));
            let rejected = match self.judge(snapshot, written.draft, account) {
                Ok(accepted) => {
                    key.into_iter().for_each(|key| self.memos.keep(key, accepted.draft()));
                    return sellable(accepted);
                }
                Err(rejected) => rejected,
            };
            if account.attempts >= self.attempts_max {
                return Err(Failure::Rejected(Box::new(rejected.report().clone())));
            }
            feedback = Some(rejected.feedback());
            snapshot = rejected.into_snapshot();
        }
    }

    /// The gate, and what the account says of it.
    fn judge(&self, snapshot: Snapshot, draft: Draft, account: &mut Account) -> Result<Accepted, Rejected> {
        account.attempts += 1;
        let judged = gate::judge(snapshot, draft);
        let report = judged.as_ref().map_or_else(Rejected::report, Accepted::report);
        account.figures_checked = report.figures_checked;
        account.verdict = if report.passed { Verdict::Accepted } else { Verdict::Rejected };
        if !report.passed {
            tracing::info!(attempt = account.attempts, violations = report.violations.len(), "draft rejected");
        }
        judged
    }

    async fn write(
        &self,
        snapshot: &Snapshot,
        asked: &Fundamentals,
        feedback: Option<&str>,
    ) -> Result<Written, Failure> {
        self.synthesizer.draft(snapshot, asked.mode, feedback).await.map_err(|e| Failure::Broken(e.to_string()))
    }
}

/// A memo without a single bound figure passes the gate but is not sold.
fn sellable(accepted: Accepted) -> Result<Accepted, Failure> {
    if accepted.report().figures_covered == 0 {
        return Err(Failure::Insufficient("too little is on file for a memo with a single cited figure".into()));
    }
    Ok(accepted)
}

#[cfg(test)]
mod tests;

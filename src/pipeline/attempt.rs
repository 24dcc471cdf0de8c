//! Attempts at one memo: each draft passes the gate, the impersonal guard and the second opinion, or goes back with what was wrong;
//! after the last attempt the stand-in writes, or nobody does.

use std::time::Duration;

use tokio::time::{Instant, timeout_at};

use super::cache::{Key, MemoCache};
use super::port::{Assignment, Meter, Opinion, Setback, SynthesisError, Synthesizer};
use super::{Failure, Memo, Rejection, Writing};
use crate::ledger::{Account, Verdict};
use crate::memo::gate::{self, Accepted};
use crate::memo::{Draft, Mode, Snapshot, impersonal};

/// Time that is kept for the stand-in when the synthesizer has used up the rest.
const STAND_IN_RESERVE: Duration = Duration::from_secs(2);

/// What a buyer is told about a memo of the stand-in.
const STOOD_IN: &str =
    "The language model's drafts could not be used for this memo; it is jim's own rendering of the facts.";

/// Writes one memo.
pub(super) struct Draftsman<'a> {
    pub(super) writing: &'a Writing,
    pub(super) memos: &'a MemoCache,
    pub(super) meter: &'a Meter,
    pub(super) until: Instant,
}

impl Draftsman<'_> {
    pub(super) async fn write(&self, snapshot: Snapshot, mode: Mode, account: &mut Account) -> Result<Memo, Failure> {
        let writer = self.writing.synthesizer.as_ref();
        let key = writer.identity().map(|identity| Key::new(&snapshot, mode, identity));
        if let Some(kept) = key.as_ref().and_then(|key| self.memos.get(key)) {
            match accept(&snapshot, kept.draft, account) {
                Ok(accepted) => return sellable(Memo { accepted, is_reviewed: kept.is_reviewed, note: None }),
                Err(_) => key.iter().for_each(|key| self.memos.forget(key)),
            }
        }
        let until = match self.writing.stand_in {
            Some(_) => self.until - STAND_IN_RESERVE,
            None => self.until,
        };
        let failure = match timeout_at(until, self.attempts(writer, &snapshot, mode, account)).await {
            Ok(Ok(memo)) => {
                key.into_iter().for_each(|key| self.memos.keep(key, memo.accepted.draft(), memo.is_reviewed));
                return sellable(memo);
            }
            Ok(Err(failure)) => failure,
            Err(_) => Failure::Broken("the work budget was used up".to_owned()),
        };
        match &self.writing.stand_in {
            Some(stand_in) => self.stand_in(stand_in.as_ref(), &snapshot, mode, account, failure).await,
            None => Err(failure),
        }
    }

    async fn attempts(
        &self,
        writer: &dyn Synthesizer,
        snapshot: &Snapshot,
        mode: Mode,
        account: &mut Account,
    ) -> Result<Memo, Failure> {
        let mut setback: Option<Setback> = None;
        loop {
            let assignment = Assignment { snapshot, mode, setback: setback.as_ref(), meter: self.meter };
            let (draft, rejection) = match writer.draft(&assignment).await {
                Ok(draft) => match self.judge(writer, snapshot, draft.clone(), account).await {
                    Ok(memo) => return Ok(memo),
                    Err(rejection) => (Some(draft), rejection),
                },
                Err(SynthesisError::Unusable(why)) => {
                    account.attempts += 1;
                    (None, Rejection::Unusable(why))
                }
                Err(SynthesisError::Unavailable(cause)) => return Err(Failure::Broken(cause)),
            };
            account.verdict = Verdict::Rejected;
            tracing::info!(attempt = account.attempts, reason = rejection.word(), "draft rejected");
            if account.attempts >= self.writing.attempts_max.max(1) {
                return Err(Failure::Rejected(rejection));
            }
            setback = Some(Setback { draft, feedback: rejection.feedback() });
        }
    }

    async fn judge(
        &self,
        writer: &dyn Synthesizer,
        snapshot: &Snapshot,
        draft: Draft,
        account: &mut Account,
    ) -> Result<Memo, Rejection> {
        let accepted = accept(snapshot, draft, account)?;
        match writer.review(snapshot, accepted.draft(), self.meter).await {
            Opinion::Refused => Err(Rejection::Unfaithful),
            Opinion::Skipped => Ok(Memo { accepted, is_reviewed: false, note: None }),
            Opinion::Faithful => Ok(Memo { accepted, is_reviewed: true, note: None }),
        }
    }

    /// The memo of the stand-in. Should even that be refused, what went wrong before is the reason.
    async fn stand_in(
        &self,
        writer: &dyn Synthesizer,
        snapshot: &Snapshot,
        mode: Mode,
        account: &mut Account,
        failure: Failure,
    ) -> Result<Memo, Failure> {
        tracing::warn!(reason = failure.word(), writer = writer.name(), "the stand-in writes");
        let assignment = Assignment { snapshot, mode, setback: None, meter: self.meter };
        let Ok(draft) = writer.draft(&assignment).await else { return Err(failure) };
        match accept(snapshot, draft, account) {
            Ok(accepted) => {
                account.synthesizer = writer.name();
                sellable(Memo { accepted, is_reviewed: false, note: Some(STOOD_IN) })
            }
            Err(rejection) => {
                tracing::error!(reason = rejection.word(), "the stand-in's memo was rejected");
                Err(failure)
            }
        }
    }
}

/// The gate, then the impersonal guard, and what the account says of them.
fn accept(snapshot: &Snapshot, draft: Draft, account: &mut Account) -> Result<Accepted, Rejection> {
    account.attempts += 1;
    let judged = gate::judge(snapshot.clone(), draft);
    let report = judged.as_ref().map_or_else(gate::Rejected::report, Accepted::report);
    account.figures_checked = report.figures_checked;
    account.verdict = Verdict::Rejected;
    let accepted = judged.map_err(|rejected| Rejection::Sourcing(Box::new(rejected)))?;
    let advice = impersonal::find(accepted.draft());
    if !advice.is_empty() {
        return Err(Rejection::Advice(advice));
    }
    account.verdict = Verdict::Accepted;
    Ok(accepted)
}

/// A memo without a single bound figure passes the gate but is not sold.
fn sellable(memo: Memo) -> Result<Memo, Failure> {
    if memo.accepted.report().figures_covered == 0 {
        return Err(Failure::Insufficient("too little is on file for a memo with a single cited figure".into()));
    }
    Ok(memo)
}

impl Failure {
    /// A word for the log, which never holds a memo.
    fn word(&self) -> &str {
        match self {
            Self::Insufficient(why) | Self::Unavailable(why) | Self::Broken(why) => why,
            Self::Rejected(rejection) => rejection.word(),
        }
    }
}

impl Rejection {
    /// One word for the log.
    fn word(&self) -> &'static str {
        match self {
            Self::Sourcing(_) => "sourcing",
            Self::Advice(_) => "advice",
            Self::Unfaithful => "unfaithful",
            Self::Unusable(_) => "unusable",
        }
    }

    /// What the next attempt is told.
    fn feedback(&self) -> String {
        match self {
            Self::Sourcing(rejected) => rejected.feedback(),
            Self::Advice(advice) => impersonal::feedback(advice),
            Self::Unfaithful => {
                "a reviewer found statements that the facts do not support; say only what they say\n".into()
            }
            Self::Unusable(why) => format!("the answer was no memo: {why}\n"),
        }
    }
}

use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use time::OffsetDateTime;

use super::cache::Key;
use super::port::{Assignment, Lookup, Meter, Opinion, Source, SourceError, SynthesisError, Synthesizer, Tokens};
use super::{Pipeline, Run, Writing};
use crate::catalog::input::{Format, Fundamentals};
use crate::clock::FixedClock;
use crate::memo::{Coverage, Currency, Draft, Mode, Snapshot, Subject, Unit, fixture};
use crate::money::UsdMicros;

/// A filer whose revenue the test sets.
struct Filer(Mutex<i64>);

/// Writes the revenue down, at a cost, and counts.
#[derive(Default)]
struct Clerk {
    drafts: AtomicU32,
}

fn snapshot(revenue: i64) -> Snapshot {
    let mut fact = fixture::fact("C1", "Revenue", Unit::Money(Currency::USD), revenue.into());
    (fact.fiscal_year, fact.fiscal_period) = (Some(2025), Some("FY".into()));
    let subject = Subject { ticker: "CLDR".into(), cik: 1, name: "Calder".into() };
    Snapshot::new(subject, OffsetDateTime::UNIX_EPOCH, vec![fact], Coverage::Narrow, Vec::new()).expect("a snapshot")
}

fn draft(revenue: i64) -> Draft {
    Draft { title: "Calder".into(), summary: format!("Revenue was ${revenue} [C1]."), sections: Vec::new() }
}

#[async_trait]
impl Source for Filer {
    fn get_subject(&self, _: &str) -> Lookup {
        Lookup::NotLoaded
    }

    async fn fetch_snapshot(&self, _: &str) -> Result<Snapshot, SourceError> {
        Ok(snapshot(*self.0.lock().expect("no test panics with it")))
    }
}

#[async_trait]
impl Synthesizer for Clerk {
    fn name(&self) -> &'static str {
        "clerk"
    }

    fn identity(&self) -> Option<&str> {
        Some("clerk")
    }

    async fn draft(&self, assignment: &Assignment<'_>) -> Result<Draft, SynthesisError> {
        self.drafts.fetch_add(1, Ordering::SeqCst);
        let revenue = assignment.snapshot.facts()[0].value.try_into().expect("a whole number");
        assignment.meter.add(UsdMicros(70), Some(Tokens { input: 5, output: 2 }));
        Ok(draft(revenue))
    }

    async fn review(&self, _: &Snapshot, _: &Draft, _: &Meter) -> Opinion {
        Opinion::Skipped
    }
}

/// A pipeline over a filer and a clerk, and both of them.
fn office() -> (Pipeline, Arc<Filer>, Arc<Clerk>) {
    let (filer, clerk) = (Arc::new(Filer(Mutex::new(48_217))), Arc::new(Clerk::default()));
    let clock = Arc::new(FixedClock(OffsetDateTime::UNIX_EPOCH));
    let writing = Writing { synthesizer: Arc::clone(&clerk) as _, attempts_max: 2, stand_in: None };
    (Pipeline::new(Arc::clone(&filer) as _, writing, clock), filer, clerk)
}

async fn run(pipeline: &Pipeline, mode: Mode) -> (Draft, Run) {
    let run = pipeline.run(&Fundamentals { ticker: "CLDR".into(), mode, format: Format::Json }).await;
    (run.outcome.as_ref().expect("a memo").accepted.draft().clone(), run)
}

#[tokio::test]
async fn the_same_facts_are_written_about_once_and_gated_each_time() {
    let (pipeline, _, clerk) = office();
    let (first, paid) = run(&pipeline, Mode::Agent).await;
    let (again, free) = run(&pipeline, Mode::Agent).await;
    assert_eq!((&first, clerk.drafts.load(Ordering::SeqCst)), (&again, 1));
    assert_eq!((paid.account.usage.cost, free.account.usage.cost), (UsdMicros(70), UsdMicros(0)));
    assert_eq!((paid.account.usage.tokens.map(|t| t.output), free.account.usage.tokens), (Some(2), None));
    assert_eq!((free.account.attempts, free.account.figures_checked), (1, 1), "a hit is judged like a draft");
    assert_eq!(free.outcome.expect("a memo").accepted.report().figures_covered, 1);
}

#[tokio::test]
async fn other_facts_and_other_readers_get_a_memo_of_their_own() {
    let (pipeline, filer, clerk) = office();
    run(&pipeline, Mode::Agent).await;
    run(&pipeline, Mode::Human).await;
    *filer.0.lock().expect("no panic") = 48_218;
    let (moved, _) = run(&pipeline, Mode::Agent).await;
    assert_eq!((moved, clerk.drafts.load(Ordering::SeqCst)), (draft(48_218), 3));
}

#[tokio::test]
async fn a_kept_memo_that_the_gate_refuses_is_written_anew() {
    let (pipeline, _, clerk) = office();
    let key = || Key::new(&snapshot(48_217), Mode::Agent, "clerk");
    pipeline.memos.keep(key(), &draft(61_000), false);
    let (memo, account) = run(&pipeline, Mode::Agent).await;
    assert_eq!((memo, clerk.drafts.load(Ordering::SeqCst)), (draft(48_217), 1));
    assert_eq!(account.account.attempts, 2, "the refused one was judged too");
    assert_eq!(pipeline.memos.get(&key()).map(|kept| kept.draft), Some(draft(48_217)));
}

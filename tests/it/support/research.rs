//! Sources and synthesizers for tests: honest ones, and ones that fail in every way that the ports allow.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use jim::memo::{Coverage, Currency, Draft, Fact, Provenance, Section, Snapshot, Subject, Unit};
use jim::money::UsdMicros;
use jim::pipeline::port::{Assignment, Lookup, Meter, Opinion, Source, SourceError, SynthesisError, Synthesizer};
use time::OffsetDateTime;
use tokio::sync::Notify;

/// What a source does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Stock {
    /// Knows ACME and nothing else.
    #[default]
    Known,
    /// Has no list in memory, and knows nobody when asked.
    NotLoaded,
    /// Is down.
    Down,
}

/// A source of one fact about ACME.
#[derive(Debug, Default)]
pub(crate) struct Shelves(pub(crate) Stock);

#[async_trait]
impl Source for Shelves {
    fn get_subject(&self, ticker: &str) -> Lookup {
        match (self.0, ticker) {
            (Stock::NotLoaded, _) => Lookup::NotLoaded,
            (_, "ACME" | "BETA") => Lookup::Known(subject(ticker)),
            _ => Lookup::Unknown,
        }
    }

    async fn fetch_snapshot(&self, ticker: &str) -> Result<Snapshot, SourceError> {
        match self.0 {
            Stock::Known => Ok(snapshot(ticker)),
            Stock::NotLoaded => Err(SourceError::Insufficient(format!("{ticker} is not a ticker"))),
            Stock::Down => Err(SourceError::Unavailable {
                public: "The filings are not available.".into(),
                cause: "refused by secret-host.internal".into(),
            }),
        }
    }
}

fn subject(ticker: &str) -> Subject {
    Subject { ticker: ticker.into(), cik: 1, name: "Acme Industries".into() }
}

fn snapshot(ticker: &str) -> Snapshot {
    let provenance = Provenance {
        source: "sec-edgar".into(),
        origin: "primary".into(),
        form: Some("10-K".into()),
        accession: Some("0000000001-26-000001".into()),
        filing_url: Some("https://www.sec.gov/Archives/edgar/data/1/000000000126000001/".into()),
        filed: None,
        concept: Some("us-gaap:Revenues".into()),
    };
    let revenue = Fact {
        id: "C1".into(),
        label: "Revenue".into(),
        value: 1_200_000_000.into(),
        unit: Unit::Money(Currency::USD),
        currency: Some(Currency::USD),
        entity: None,
        period_start: None,
        period_end: None,
        fiscal_year: Some(2025),
        fiscal_period: Some("FY".into()),
        provenance,
        derived_from: Vec::new(),
        formula: None,
        restated: None,
    };
    Snapshot::new(subject(ticker), OffsetDateTime::UNIX_EPOCH, vec![revenue], Coverage::Narrow, vec!["a limit".into()])
        .expect("a snapshot")
}

/// What a synthesizer does.
#[derive(Clone, Debug, Default)]
pub(crate) enum Manner {
    /// Cites the one fact.
    #[default]
    Honest,
    /// States a figure that no fact backs, at a cost.
    Lying,
    /// States no figure at all.
    Silent,
    /// Errs.
    Erring,
    /// Panics.
    Panicking,
    /// Waits for a signal before it writes.
    Held(Arc<Notify>),
    /// Takes that long.
    Slow(Duration),
}

/// A synthesizer that counts its drafts.
#[derive(Debug, Default)]
pub(crate) struct Scribe {
    pub(crate) manner: Manner,
    drafts: AtomicU32,
}

/// What a lying draft costs.
pub(crate) const LIE_COST: i64 = 700;

/// A word of every lying draft, which no buyer may see.
pub(crate) const LIE: &str = "zanzibar";

impl Scribe {
    /// One of that manner.
    pub(crate) fn new(manner: Manner) -> Arc<Self> {
        Arc::new(Self { manner, drafts: AtomicU32::new(0) })
    }

    /// Drafts that were asked for.
    pub(crate) fn drafts(&self) -> u32 {
        self.drafts.load(Ordering::SeqCst)
    }
}

#[async_trait]
impl Synthesizer for Scribe {
    fn name(&self) -> &'static str {
        "scribe"
    }

    fn identity(&self) -> Option<&str> {
        None
    }

    async fn draft(&self, assignment: &Assignment<'_>) -> Result<Draft, SynthesisError> {
        let snapshot = assignment.snapshot;
        self.drafts.fetch_add(1, Ordering::SeqCst);
        let honest = "Revenue was $1.2 billion [C1].";
        let (text, cost) = match &self.manner {
            Manner::Honest => (honest, 0),
            Manner::Lying => ("The zanzibar plan brings revenue to $987.6 trillion [C1].", LIE_COST),
            Manner::Silent => ("Little is known.", 0),
            Manner::Erring => return Err(SynthesisError::Unavailable("model at secret-host.internal is down".into())),
            Manner::Panicking => panic!("a synthesizer with a bug"),
            Manner::Held(gate) => {
                gate.notified().await;
                (honest, 0)
            }
            Manner::Slow(pause) => {
                tokio::time::sleep(*pause).await;
                (honest, 0)
            }
        };
        let draft = Draft {
            title: snapshot.subject().name.clone(),
            summary: text.into(),
            sections: vec![Section { heading: "Income".into(), markdown: text.into() }],
        };
        assignment.meter.add(UsdMicros(cost), None);
        Ok(draft)
    }

    async fn review(&self, _: &Snapshot, _: &Draft, _: &Meter) -> Opinion {
        Opinion::Skipped
    }
}

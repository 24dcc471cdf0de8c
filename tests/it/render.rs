//! jim's own renderer over the snapshots of real filers: whatever it writes, the gate accepts.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use jim::clock::FixedClock;
use jim::memo::draft::Mode;
use jim::memo::gate;
use jim::memo::render;
use jim::memo::{Snapshot, Subject};
use jim::source::cache::{CacheError, Cached, FilingCache};
use jim::source::filings::{self, FilingsConfig};
use time::OffsetDateTime;

/// A folder and the sample keep nothing.
struct NoCache;

#[async_trait]
impl FilingCache for NoCache {
    async fn load(&self, _: &str) -> Result<Option<Cached>, CacheError> {
        Ok(None)
    }

    async fn save(&self, _: &str, _: Bytes, _: OffsetDateTime) -> Result<(), CacheError> {
        Ok(())
    }

    async fn forget_before(&self, _: OffsetDateTime) -> Result<(), CacheError> {
        Ok(())
    }
}

/// Names that a filer may have, and names that nobody should have.
const NAMES: [&str; 16] = [
    "3M CO",
    "AT&T Inc.",
    "1-800-FLOWERS.COM, Inc.",
    "Johnson & Johnson",
    "Twenty-First Century Fox",
    "Five Below, Inc.",
    "99 Acquisition Group Inc.",
    "1st Source Corp",
    "Phillips 66",
    "2U, Inc.",
    "*Star* [C1] _Holdings_ | $9 billion",
    "Revenue was $61 billion [C1].",
    "A\n\n# B\n\n| 5% |",
    "<!-- $5 --> &#54;0 percent",
    "\u{202e}noillib 16$\u{202c}",
    "Ⅻ ½ ⑥ billion",
];

fn renders(snapshot: &Snapshot, what: &str) {
    for mode in [Mode::Agent, Mode::Human] {
        let draft = render::draft(snapshot, mode);
        match gate::judge(snapshot.clone(), draft.clone()) {
            Ok(accepted) => assert!(accepted.report().figures_covered >= snapshot.facts().len(), "{what}"),
            Err(rejected) => panic!("{what}\n{}\n{}", rejected.feedback(), draft.markdown()),
        }
    }
}

fn renamed(snapshot: &Snapshot, name: &str) -> Snapshot {
    let subject = Subject { name: name.to_owned(), ..snapshot.subject().clone() };
    let (facts, limits) = (snapshot.facts().to_vec(), snapshot.limits().to_vec());
    Snapshot::new(subject, snapshot.as_of(), facts, snapshot.coverage(), limits).expect("the same facts")
}

async fn check(config: FilingsConfig, tickers: &[&str]) {
    let clock = Arc::new(FixedClock(OffsetDateTime::UNIX_EPOCH));
    let source = filings::open(config, Arc::new(NoCache), clock).await.expect("a source");
    for ticker in tickers {
        let snapshot = source.fetch_snapshot(ticker).await.expect("facts");
        assert!(snapshot.facts().len() > 3, "{ticker}");
        renders(&snapshot, ticker);
        for name in NAMES {
            renders(&renamed(&snapshot, name), name);
        }
    }
}

#[tokio::test]
async fn every_filer_of_the_folder_renders_to_an_accepted_draft() {
    let folder = std::env::var_os("JIM_TEST_DATA").map(|data| PathBuf::from(data).join("edgar"));
    let Some(folder) = folder.filter(|folder| folder.is_dir()) else {
        eprintln!("skipped: JIM_TEST_DATA names no folder with edgar/ in it");
        return;
    };
    check(FilingsConfig::Folder(folder), &["AAPL", "NVDA", "MSFT", "JPM", "SNOW", "LPA", "COIN"]).await;
}

#[tokio::test]
async fn the_sample_renders_to_an_accepted_draft() {
    check(FilingsConfig::Sample, &["COIN", "AAPL", "NVDA", "JPM", "LPA"]).await;
}

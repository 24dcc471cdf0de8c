//! Facts about a company from its filings with the SEC.
//!
//! Three places to read from, one way to read: `live` asks the SEC, `folder` reads documents that were saved, `sample`
//! is a small selection compiled into the program. All end in the same rule of choice (`pick`), the same arithmetic
//! (`derive`) and the same snapshot (`report`). Live data older than allowed is no data; recorded data says that it is.

mod companyfacts;
mod concepts;
mod derive;
mod folder;
mod live;
mod pick;
mod report;
mod sample;
mod text;
mod tickers;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::clock::Clock;
use crate::pipeline::port::Source;
use crate::source::Error;
use crate::source::cache::FilingCache;

/// Where the SEC serves its ticker list.
pub const FILES_BASE: &str = "https://www.sec.gov";

/// Where the SEC serves company facts.
pub const DATA_BASE: &str = "https://data.sec.gov";

/// Where filings are read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FilingsConfig {
    /// From the SEC over https.
    Live {
        /// Name and contact mail address that the SEC asks of every caller.
        user_agent: String,
        /// [`FILES_BASE`]; tests name a server of their own.
        files_base: String,
        /// [`DATA_BASE`]; tests name a server of their own.
        data_base: String,
        /// Longest time since retrieval for which a document may be used.
        max_age: Duration,
    },
    /// From a folder with `company_tickers.json` and `CIK##########*.json`; files of one filer are joined.
    Folder(PathBuf),
    /// From the selection that is compiled in.
    Sample,
}

/// Opens a source of filings. Does not need the SEC to be up.
///
/// `cache` and `clock` are used by `live` only.
pub async fn open(
    config: FilingsConfig,
    cache: Arc<dyn FilingCache>,
    clock: Arc<dyn Clock>,
) -> Result<Arc<dyn Source>, Error> {
    Ok(match config {
        FilingsConfig::Live { user_agent, files_base, data_base, max_age } => {
            Arc::new(live::Live::open(&user_agent, files_base, data_base, max_age, cache, clock).await?)
        }
        FilingsConfig::Folder(path) => Arc::new(folder::Folder::open(path).await?),
        FilingsConfig::Sample => Arc::new(sample::Sample::open()?),
    })
}

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
mod snapshots;
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

impl FilingsConfig {
    /// Reads the setting `filings.source`: `live`, `folder:PATH` or `sample`. The other two settings matter to `live`
    /// only, which asks the SEC itself.
    pub fn from_setting(source: &str, user_agent: &str, max_age: Duration) -> Result<Self, Error> {
        match (source.trim(), source.trim().strip_prefix("folder:")) {
            ("live", _) => Ok(Self::Live {
                user_agent: user_agent.to_owned(),
                files_base: FILES_BASE.to_owned(),
                data_base: DATA_BASE.to_owned(),
                max_age,
            }),
            ("sample", _) => Ok(Self::Sample),
            (_, Some(path)) if !path.is_empty() => Ok(Self::Folder(PathBuf::from(path))),
            (other, _) => Err(Error::Setting(other.to_owned())),
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_setting_names_a_source() {
        let read =
            |source: &str| FilingsConfig::from_setting(source, "Example ops@example.com", Duration::from_secs(1));
        assert_eq!(read("sample").expect("sample"), FilingsConfig::Sample);
        assert_eq!(read("folder:a/b c").expect("folder"), FilingsConfig::Folder(PathBuf::from("a/b c")));
        let FilingsConfig::Live { user_agent, files_base, data_base, .. } = read("live").expect("live") else {
            panic!("live is live");
        };
        assert_eq!(user_agent, "Example ops@example.com");
        assert_eq!((files_base.as_str(), data_base.as_str()), ("https://www.sec.gov", "https://data.sec.gov"));
        for other in ["", "folder:", "folder", "Live", "live:x", "https://data.sec.gov"] {
            assert!(matches!(read(other), Err(Error::Setting(_))), "{other:?}");
        }
    }
}

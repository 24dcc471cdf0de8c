//! Reads saved documents from a folder. The folder is indexed once; documents are read when they are asked for.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use async_trait::async_trait;

use super::companyfacts::{self, CompanyFacts};
use super::report::{self, Origin};
use super::snapshots::Snapshots;
use super::tickers::Tickers;
use crate::limits;
use crate::memo::Snapshot;
use crate::pipeline::port::{Lookup, Source, SourceError};
use crate::source::Error;

const TICKERS_FILE: &str = "company_tickers.json";

/// Digits of a filer's number in a file name.
const CIK_DIGITS: usize = 10;

/// A folder of saved documents.
pub(crate) struct Folder {
    tickers: Tickers,
    files: BTreeMap<u64, Vec<PathBuf>>,
    kept: Snapshots<Vec<Stamp>>,
}

/// Size and time of change: a document that was replaced is read again.
type Stamp = (u64, SystemTime);

impl Folder {
    /// Reads the ticker list and the names of the documents. Tickers of filers without a document are unknown.
    pub(crate) async fn open(path: PathBuf) -> Result<Self, Error> {
        let list = path.join(TICKERS_FILE);
        let body = read(&list).map_err(|cause| Error::Read { path: list.clone(), cause })?;
        let mut tickers =
            Tickers::parse(&body).map_err(|error| Error::Content { path: list, cause: error.to_string() })?;
        let files = index(&path)?;
        tickers.retain(|cik| files.contains_key(&cik));
        if tickers.len() == 0 {
            return Err(Error::Content { path, cause: "no document of any listed company is in it".to_owned() });
        }
        Ok(Self { tickers, files, kept: Snapshots::new() })
    }
}

#[async_trait]
impl Source for Folder {
    fn get_subject(&self, ticker: &str) -> Lookup {
        self.tickers.get(ticker).map_or(Lookup::Unknown, Lookup::Known)
    }

    async fn fetch_snapshot(&self, ticker: &str) -> Result<Snapshot, SourceError> {
        let subject = self
            .tickers
            .get(ticker)
            .ok_or_else(|| SourceError::Insufficient(format!("{ticker} is not among the companies on file")))?;
        let paths = self.files.get(&subject.cik).cloned().unwrap_or_default();
        let stamps = stamps(&paths).map_err(|error| unreadable(error.to_string()))?;
        if let Some(kept) = self.kept.get(ticker, |then| *then == stamps) {
            return Ok(kept);
        }
        let cik = subject.cik;
        let joined = tokio::task::spawn_blocking(move || join(cik, &paths)).await;
        let facts =
            joined.map_err(|error| unreadable(error.to_string()))?.map_err(|error| unreadable(error.to_string()))?;
        let snapshot = report::snapshot(subject, &facts, Origin::Recorded)?;
        self.kept.keep(ticker, stamps, &snapshot);
        Ok(snapshot)
    }
}

fn stamps(paths: &[PathBuf]) -> std::io::Result<Vec<Stamp>> {
    let stamp = |path: &PathBuf| std::fs::metadata(path).and_then(|data| Ok((data.len(), data.modified()?)));
    paths.iter().map(stamp).collect()
}

fn unreadable(cause: String) -> SourceError {
    SourceError::Unavailable { public: "the recorded filings cannot be read".to_owned(), cause }
}

/// File names by filer, in the order of the names.
fn index(folder: &Path) -> Result<BTreeMap<u64, Vec<PathBuf>>, Error> {
    let failed = |cause| Error::Read { path: folder.to_owned(), cause };
    let mut files: BTreeMap<u64, Vec<PathBuf>> = BTreeMap::new();
    for entry in std::fs::read_dir(folder).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if let Some(cik) = path.file_name().and_then(|name| name.to_str()).and_then(cik_of) {
            files.entry(cik).or_default().push(path);
        }
    }
    for paths in files.values_mut() {
        paths.sort();
        if paths.len() > limits::FILINGS_FILES_PER_FILER_MAX {
            let cause = format!("{} documents of one filer", paths.len());
            return Err(Error::Content { path: folder.to_owned(), cause });
        }
    }
    Ok(files)
}

/// `CIK0000320193.json` and `CIK0000320193.anything.json`; nothing else, so `submissions_*` is passed by.
fn cik_of(name: &str) -> Option<u64> {
    let (digits, rest) = name.strip_prefix("CIK")?.strip_suffix(".json")?.split_at_checked(CIK_DIGITS)?;
    let well_formed = digits.bytes().all(|byte| byte.is_ascii_digit()) && (rest.is_empty() || rest.starts_with('.'));
    well_formed.then(|| digits.parse().ok()).flatten()
}

fn join(cik: u64, paths: &[PathBuf]) -> Result<CompanyFacts, Error> {
    let mut all = CompanyFacts::empty(cik, "");
    for path in paths {
        let body = read(path).map_err(|cause| Error::Read { path: path.clone(), cause })?;
        let content = |error: companyfacts::Error| Error::Content { path: path.clone(), cause: error.to_string() };
        all.merge(CompanyFacts::parse(&body).map_err(content)?).map_err(content)?;
    }
    Ok(all)
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    use std::io::Read as _;
    let mut body = Vec::new();
    std::fs::File::open(path)?.take(limits::FILINGS_BODY_BYTES_MAX as u64 + 1).read_to_end(&mut body)?;
    if body.len() > limits::FILINGS_BODY_BYTES_MAX {
        return Err(std::io::Error::other("the document is larger than any of the SEC's"));
    }
    Ok(body)
}

#[cfg(test)]
mod tests;

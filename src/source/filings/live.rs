//! Facts straight from the SEC, kept for a while.
//!
//! A kept document is used while it is younger than `max_age`; otherwise the SEC is asked. When it cannot be had, there
//! are no facts: an older document is never handed out as if it were fresh. One filer is fetched once however many ask
//! at the same time. Requests, pace and silence after failures are `client`'s business.

mod client;

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use time::OffsetDateTime;
use tokio::sync::Mutex;

use self::client::{Client, FetchError, Pace};
use super::companyfacts::CompanyFacts;
use super::report::{self, Origin};
use super::snapshots::Snapshots;
use super::tickers::Tickers;
use crate::clock::Clock;
use crate::limits;
use crate::memo::{Snapshot, Subject};
use crate::pipeline::port::{Lookup, Source, SourceError};
use crate::source::Error;
use crate::source::cache::FilingCache;

/// Key of the ticker list in the cache.
const TICKERS_KEY: &str = "company_tickers";

/// Locks over which filers are spread, so that one filer is fetched once. Two filers that share one only wait.
const FLIGHTS: usize = 64;

/// The SEC as a source.
pub(crate) struct Live {
    client: Client,
    files_base: String,
    data_base: String,
    max_age: Duration,
    cache: Arc<dyn FilingCache>,
    clock: Arc<dyn Clock>,
    tickers: RwLock<Option<Kept>>,
    kept: Snapshots<(Subject, OffsetDateTime)>,
    tickers_flight: Mutex<()>,
    flights: [Mutex<()>; FLIGHTS],
}

/// The ticker list and when it was fetched.
#[derive(Clone)]
struct Kept {
    list: Arc<Tickers>,
    fetched_at: OffsetDateTime,
}

/// A document and when it was fetched.
struct Dated<T> {
    value: T,
    fetched_at: OffsetDateTime,
}

/// Why a document is not to be had.
enum Missing {
    /// The SEC says that there is none.
    NotThere,
    /// The SEC, or what it sent, cannot be used.
    Down(String),
}

impl Live {
    /// Checks the configuration and takes a fresh ticker list from the cache, if there is one. Sends nothing.
    pub(crate) async fn open(
        user_agent: &str,
        files_base: String,
        data_base: String,
        max_age: Duration,
        cache: Arc<dyn FilingCache>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, Error> {
        Self::with_pace(user_agent, [files_base, data_base], max_age, cache, clock, Pace::default()).await
    }

    async fn with_pace(
        user_agent: &str,
        bases: [String; 2],
        max_age: Duration,
        cache: Arc<dyn FilingCache>,
        clock: Arc<dyn Clock>,
        pace: Pace,
    ) -> Result<Self, Error> {
        let [files_base, data_base] = bases.map(|base| base.trim_end_matches('/').to_owned());
        for base in [&files_base, &data_base] {
            client::check_base(base)?;
        }
        let live = Self {
            client: Client::new(user_agent, pace)?,
            files_base,
            data_base,
            max_age,
            cache,
            clock,
            tickers: RwLock::new(None),
            kept: Snapshots::new(),
            tickers_flight: Mutex::new(()),
            flights: std::array::from_fn(|_| Mutex::new(())),
        };
        if let Some(kept) = live.load(TICKERS_KEY, Tickers::parse).await {
            live.keep_tickers(kept);
        }
        Ok(live)
    }

    fn is_fresh(&self, fetched_at: OffsetDateTime) -> bool {
        let age = self.clock.now() - fetched_at;
        age <= self.max_age && age >= -time::Duration::seconds(i64::try_from(limits::CLOCK_SKEW_S).unwrap_or(0))
    }

    fn fresh_tickers(&self) -> Option<Arc<Tickers>> {
        let kept = self.tickers.read().unwrap_or_else(PoisonError::into_inner).clone()?;
        self.is_fresh(kept.fetched_at).then_some(kept.list)
    }

    fn keep_tickers(&self, dated: Dated<Tickers>) -> Arc<Tickers> {
        let list = Arc::new(dated.value);
        let kept = Kept { list: Arc::clone(&list), fetched_at: dated.fetched_at };
        *self.tickers.write().unwrap_or_else(PoisonError::into_inner) = Some(kept);
        list
    }

    async fn tickers(&self) -> Result<Arc<Tickers>, SourceError> {
        if let Some(list) = self.fresh_tickers() {
            return Ok(list);
        }
        let _one_at_a_time = self.tickers_flight.lock().await;
        if let Some(list) = self.fresh_tickers() {
            return Ok(list);
        }
        let url = format!("{}/files/company_tickers.json", self.files_base);
        match self.document(TICKERS_KEY, &url, Tickers::parse).await {
            Ok(dated) => Ok(self.keep_tickers(dated)),
            Err(Missing::NotThere) => Err(unavailable("the ticker list is not where it was".to_owned())),
            Err(Missing::Down(cause)) => Err(unavailable(cause)),
        }
    }

    async fn facts(&self, subject: &Subject) -> Result<Dated<CompanyFacts>, SourceError> {
        let cik = subject.cik;
        let padded = format!("CIK{cik:010}");
        let key = format!("companyfacts/{padded}");
        let url = format!("{}/api/xbrl/companyfacts/{padded}.json", self.data_base);
        let flight = usize::try_from(cik % FLIGHTS as u64).unwrap_or(0);
        let _one_at_a_time = self.flights[flight].lock().await;
        let parse = move |body: &[u8]| {
            let facts = CompanyFacts::parse(body).map_err(|error| error.to_string())?;
            if facts.cik == cik { Ok(facts) } else { Err(format!("facts of filer {} instead of {cik}", facts.cik)) }
        };
        self.document(&key, &url, parse).await.map_err(|missing| match missing {
            Missing::NotThere => SourceError::Insufficient(format!("{} files no figures with the SEC", subject.ticker)),
            Missing::Down(cause) => unavailable(cause),
        })
    }

    /// A document: the kept one while it is fresh, else the SEC's. Only what could be read is kept.
    async fn document<T, E>(
        &self,
        key: &str,
        url: &str,
        parse: impl Fn(&[u8]) -> Result<T, E> + Clone + Send + 'static,
    ) -> Result<Dated<T>, Missing>
    where
        T: Send + 'static,
        E: std::fmt::Display + Send + 'static,
    {
        if let Some(kept) = self.load(key, parse.clone()).await {
            return Ok(kept);
        }
        let body = self.client.fetch(url).await.map_err(|error| match error {
            FetchError::NotFound => Missing::NotThere,
            other => Missing::Down(format!("{url}: {other}")),
        })?;
        let fetched_at = self.clock.now();
        let value = read(body.clone(), parse).await.map_err(|cause| Missing::Down(format!("{url}: {cause}")))?;
        self.save(key, body, fetched_at).await;
        Ok(Dated { value, fetched_at })
    }

    async fn load<T, E>(&self, key: &str, parse: impl Fn(&[u8]) -> Result<T, E> + Send + 'static) -> Option<Dated<T>>
    where
        T: Send + 'static,
        E: std::fmt::Display + Send + 'static,
    {
        let kept = match self.cache.load(key).await {
            Ok(kept) => kept?,
            Err(error) => {
                tracing::warn!(%error, key, "working without the filing cache");
                return None;
            }
        };
        if !self.is_fresh(kept.fetched_at) {
            return None;
        }
        match read(kept.body, parse).await {
            Ok(value) => Some(Dated { value, fetched_at: kept.fetched_at }),
            Err(cause) => {
                tracing::warn!(cause, key, "a kept document cannot be read and is fetched again");
                None
            }
        }
    }

    async fn save(&self, key: &str, body: Bytes, fetched_at: OffsetDateTime) {
        let oldest = fetched_at - self.max_age;
        let saved = match self.cache.save(key, body, fetched_at).await {
            Ok(()) => self.cache.forget_before(oldest).await,
            Err(error) => Err(error),
        };
        if let Err(error) = saved {
            tracing::warn!(%error, key, "a document could not be kept");
        }
    }
}

/// Reads a document off the async threads: ten megabytes take long enough to hold up others.
async fn read<T, E>(body: Bytes, parse: impl Fn(&[u8]) -> Result<T, E> + Send + 'static) -> Result<T, String>
where
    T: Send + 'static,
    E: std::fmt::Display + Send + 'static,
{
    match tokio::task::spawn_blocking(move || parse(&body).map_err(|error| error.to_string())).await {
        Ok(read) => read,
        Err(error) => Err(error.to_string()),
    }
}

fn unavailable(cause: String) -> SourceError {
    let public = "the SEC's filing data cannot be had at the moment, and nothing fresh enough is kept".to_owned();
    SourceError::Unavailable { public, cause }
}

#[async_trait]
impl Source for Live {
    fn get_subject(&self, ticker: &str) -> Lookup {
        match self.fresh_tickers() {
            Some(list) => list.get(ticker).map_or(Lookup::Unknown, Lookup::Known),
            None => Lookup::NotLoaded,
        }
    }

    async fn fetch_snapshot(&self, ticker: &str) -> Result<Snapshot, SourceError> {
        let subject = self.tickers().await?.get(ticker);
        let subject = subject
            .ok_or_else(|| SourceError::Insufficient(format!("{ticker} is not in the SEC's list of tickers")))?;
        if let Some(kept) = self.kept.get(ticker, |kept| kept.0 == subject && self.is_fresh(kept.1)) {
            return Ok(kept);
        }
        let facts = self.facts(&subject).await?;
        let snapshot = report::snapshot(subject.clone(), &facts.value, Origin::Fetched(facts.fetched_at))?;
        self.kept.keep(ticker, (subject, facts.fetched_at), &snapshot);
        Ok(snapshot)
    }
}

#[cfg(test)]
mod tests;

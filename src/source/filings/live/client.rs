//! Requests to the SEC as the SEC wants them: named, slow enough, and silent for a while after a refusal.
//!
//! Owns the pace (one limiter for the whole process, because the SEC counts per user), the bounds of a request, and the
//! meaning of answers. Follows the SEC's access rules: a User-Agent with name and mail address, no more than ten requests
//! a second, ten minutes of silence to lift a block. No redirects are followed and no compressed bodies are asked for, so
//! the size bound counts what is really read.

use std::sync::{LazyLock, Mutex, PoisonError};
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use governor::{DefaultDirectRateLimiter, Quota, RateLimiter};
use reqwest::header::{ACCEPT, HeaderMap, HeaderValue, RETRY_AFTER};
use reqwest::{Response, StatusCode, Url};
use tokio::time::Instant;

use crate::limits;
use crate::source::Error;

/// One for the process. A burst of one spaces requests evenly: a bucket of ten would let twenty through in a second.
static PACE: LazyLock<DefaultDirectRateLimiter> = LazyLock::new(|| {
    let per_second = std::num::NonZeroU32::new(limits::FILINGS_REQUESTS_PER_S).unwrap_or(std::num::NonZeroU32::MIN);
    RateLimiter::direct(Quota::per_second(per_second).allow_burst(std::num::NonZeroU32::MIN))
});

/// What the storage behind the API calls a missing document.
const NO_SUCH_KEY: &[u8] = b"NoSuchKey";

/// Bytes of a 404 that are read; the storage's answer has a few hundred.
const NOT_FOUND_BYTES_READ: usize = 4 * 1024;

/// Bounds of time and size; tests tighten them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    pub(crate) request_budget: Duration,
    pub(crate) backoff_min: Duration,
    pub(crate) backoff_max: Duration,
    pub(crate) blocked: Duration,
    pub(crate) body_bytes_max: usize,
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            request_budget: limits::FILINGS_REQUEST_BUDGET,
            backoff_min: limits::FILINGS_BACKOFF_MIN,
            backoff_max: limits::FILINGS_BACKOFF_MAX,
            blocked: limits::FILINGS_BLOCKED,
            body_bytes_max: limits::FILINGS_BODY_BYTES_MAX,
        }
    }
}

/// Why there is no document.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum FetchError {
    /// 404: the storage behind the API has no such document.
    #[error("not found")]
    NotFound,
    /// 403 or 429.
    #[error("refused with status {0}")]
    Refused(u16),
    /// 5xx.
    #[error("failed with status {0}")]
    Failed(u16),
    /// Any other status; redirects too.
    #[error("answered with status {0}")]
    Unexpected(u16),
    /// The body is larger than any honest one.
    #[error("the body is larger than {0} bytes")]
    TooLarge(usize),
    /// No connection, a broken one, or no answer in time.
    #[error("{0}")]
    Transport(String),
    /// We keep silent after an earlier failure.
    #[error("not asked: silent for {0} more seconds after a failure")]
    Silent(u64),
}

/// Sends requests.
pub(crate) struct Client {
    http: reqwest::Client,
    pace: Pace,
    silence: Mutex<Silence>,
}

/// Failures in a row and until when nothing is sent.
#[derive(Clone, Copy, Debug, Default)]
struct Silence {
    failures: u32,
    until: Option<Instant>,
}

/// https anywhere, http on this machine only.
pub(crate) fn check_base(base: &str) -> Result<(), Error> {
    let bad = || Error::Base(base.chars().take(limits::NAME_CHARS_MAX).collect());
    let url = Url::parse(base).map_err(|_| bad())?;
    let here = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
    let plain = url.username().is_empty() && url.password().is_none() && url.query().is_none();
    if plain && (url.scheme() == "https" || (url.scheme() == "http" && here)) { Ok(()) } else { Err(bad()) }
}

/// A name, then a mail address: more than the address alone, and characters that a header can hold.
fn check_user_agent(text: &str) -> Result<HeaderValue, Error> {
    let is_mail = |word: &str| {
        word.trim_matches(['(', ')', '<', '>', ',', ';']).split_once('@').is_some_and(|(name, host)| {
            !name.is_empty() && host.contains('.') && !host.starts_with('.') && !host.ends_with('.')
        })
    };
    let words: Vec<&str> = text.split_whitespace().collect();
    if words.len() < 2 || !words.iter().any(|word| is_mail(word)) {
        return Err(Error::UserAgent);
    }
    HeaderValue::from_str(text.trim()).map_err(|_| Error::UserAgent)
}

impl Client {
    /// Fails when the User-Agent does not say who calls.
    pub(crate) fn new(user_agent: &str, pace: Pace) -> Result<Self, Error> {
        let user_agent = check_user_agent(user_agent)?;
        // The HTTP client takes its cryptography from the process; a provider that is installed already is as good.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static("application/json"))]);
        let http = reqwest::Client::builder()
            .user_agent(user_agent)
            .default_headers(headers)
            .redirect(reqwest::redirect::Policy::none())
            .no_proxy()
            .timeout(pace.request_budget)
            .build()
            .map_err(|error| Error::Client(error.to_string()))?;
        Ok(Self { http, pace, silence: Mutex::new(Silence::default()) })
    }

    /// Fetches one document. A server's error is tried again once; a refusal never is.
    pub(crate) async fn fetch(&self, url: &str) -> Result<Bytes, FetchError> {
        let mut attempt = 1;
        loop {
            self.check_silence()?;
            PACE.until_ready().await;
            // Another request may have been refused while this one waited for its turn.
            self.check_silence()?;
            let (outcome, retry_after) = self.send(url).await;
            let again = matches!(outcome, Err(FetchError::Failed(_))) && attempt < limits::FILINGS_ATTEMPTS_MAX;
            if again {
                attempt += 1;
                tokio::time::sleep(self.pace.backoff_min).await;
                continue;
            }
            self.note(&outcome, retry_after);
            return outcome;
        }
    }

    async fn send(&self, url: &str) -> (Result<Bytes, FetchError>, Option<Duration>) {
        let response = match self.http.get(url).send().await {
            Ok(response) => response,
            Err(error) => return (Err(FetchError::Transport(cause(&error))), None),
        };
        let status = response.status();
        let retry_after = retry_after(response.headers());
        let outcome = match status {
            StatusCode::OK => self.body(response).await,
            StatusCode::NOT_FOUND => Err(not_found(response).await),
            StatusCode::FORBIDDEN | StatusCode::TOO_MANY_REQUESTS => Err(FetchError::Refused(status.as_u16())),
            status if status.is_server_error() => Err(FetchError::Failed(status.as_u16())),
            status => Err(FetchError::Unexpected(status.as_u16())),
        };
        (outcome, retry_after)
    }

    async fn body(&self, mut response: Response) -> Result<Bytes, FetchError> {
        let max = self.pace.body_bytes_max;
        if response.content_length().is_some_and(|length| length > max as u64) {
            return Err(FetchError::TooLarge(max));
        }
        let mut body = BytesMut::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| FetchError::Transport(cause(&error)))? {
            if body.len() + chunk.len() > max {
                return Err(FetchError::TooLarge(max));
            }
            body.extend_from_slice(&chunk);
        }
        Ok(body.freeze())
    }

    fn check_silence(&self) -> Result<(), FetchError> {
        let until = self.silence.lock().unwrap_or_else(PoisonError::into_inner).until;
        match until.map(|until| until.saturating_duration_since(Instant::now())) {
            Some(left) if !left.is_zero() => Err(FetchError::Silent(left.as_secs().max(1))),
            _ => Ok(()),
        }
    }

    /// Learns from an outcome for how long to keep silent.
    fn note(&self, outcome: &Result<Bytes, FetchError>, retry_after: Option<Duration>) {
        let mut silence = self.silence.lock().unwrap_or_else(PoisonError::into_inner);
        let doubled = self.pace.backoff_min.saturating_mul(1 << silence.failures.min(16));
        let pause = match outcome {
            Ok(_) | Err(FetchError::NotFound) => {
                *silence = Silence::default();
                return;
            }
            // Said about this document alone; the next one may be fine. Silence was checked before.
            Err(FetchError::TooLarge(_) | FetchError::Silent(_)) => return,
            Err(FetchError::Refused(_)) => retry_after.unwrap_or(self.pace.blocked),
            Err(FetchError::Failed(_) | FetchError::Unexpected(_) | FetchError::Transport(_)) => {
                retry_after.unwrap_or(doubled)
            }
        };
        silence.failures = silence.failures.saturating_add(1);
        let until = Instant::now() + pause.clamp(self.pace.backoff_min, self.pace.backoff_max);
        // Requests overlap: a short pause must not cut a long one that another answer asked for.
        silence.until = silence.until.max(Some(until));
    }
}

/// The storage behind the API says `NoSuchKey` of a filer without a document. Any other 404 (a moved path, a proxy's
/// page) says nothing about the filer.
async fn not_found(mut response: Response) -> FetchError {
    let mut start = BytesMut::new();
    while start.len() < NOT_FOUND_BYTES_READ
        && let Ok(Some(chunk)) = response.chunk().await
    {
        start.extend_from_slice(&chunk);
    }
    if start.windows(NO_SUCH_KEY.len()).any(|window| window == NO_SUCH_KEY) {
        FetchError::NotFound
    } else {
        FetchError::Unexpected(StatusCode::NOT_FOUND.as_u16())
    }
}

/// Seconds; the SEC does not send the date form, and a date would need a clock to be believed.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    headers.get(RETRY_AFTER)?.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}

/// The innermost reason, without the address: the outer ones only say "error sending request".
fn cause(error: &reqwest::Error) -> String {
    if error.is_timeout() {
        return "no answer in time".to_owned();
    }
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

//! A server on this machine that answers as the SEC's does, by script, and counts what it is asked.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use async_trait::async_trait;
use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use time::OffsetDateTime;
use time::macros::datetime;

use super::super::Live;
use super::super::client::Pace;
use crate::clock::Clock;
use crate::source::cache::{CacheError, Cached, FilingCache};

pub(super) const TICKERS: &str = "/files/company_tickers.json";
pub(super) const FACTS: &str = "/api/xbrl/companyfacts/CIK0000000007.json";
pub(super) const DAY: Duration = Duration::from_secs(24 * 3600);
pub(super) const AGENT: &str = "Example Research ops@example.com";

/// What the storage behind the SEC's API says of a filer that it has nothing about.
pub(super) const NO_SUCH_KEY: &str = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
    <Error><Code>NoSuchKey</Code><Message>The specified key does not exist.</Message></Error>";

/// One answer of the script.
#[derive(Clone)]
pub(super) enum Answer {
    Ok(String),
    Status(u16, &'static str),
    RetryAfter(u16, u64),
    Redirect(&'static str),
    Hang,
    /// So many bytes, announced by their length or not.
    Bytes {
        count: usize,
        announced: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) struct Hit {
    pub(super) path: String,
    pub(super) user_agent: String,
    pub(super) accept_encoding: Option<String>,
    pub(super) at: Instant,
}

#[derive(Default)]
struct Script {
    answers: HashMap<String, VecDeque<Answer>>,
    hits: Vec<Hit>,
}

/// The server with its script.
#[derive(Clone)]
pub(super) struct Sec {
    pub(super) base: String,
    script: Arc<Mutex<Script>>,
}

impl Sec {
    /// Serves the ticker list and the facts of filer 7; everything else is 404 as the storage says it.
    pub(super) async fn start() -> Self {
        let script = Arc::new(Mutex::new(Script::default()));
        let app = Router::new().fallback(answer).with_state(Arc::clone(&script));
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let base = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, app).await });
        let sec = Self { base, script };
        sec.answers(TICKERS, [Answer::Ok(tickers())]);
        sec.answers(FACTS, [Answer::Ok(facts(7))]);
        sec
    }

    /// Sets the answers of a path, in turn; the last one stays.
    pub(super) fn answers(&self, path: &str, answers: impl IntoIterator<Item = Answer>) {
        self.script.lock().expect("a lock").answers.insert(path.to_owned(), answers.into_iter().collect());
    }

    /// Requests so far.
    pub(super) fn hits(&self) -> Vec<Hit> {
        self.script.lock().expect("a lock").hits.clone()
    }

    /// How often a path was asked for.
    pub(super) fn count(&self, path: &str) -> usize {
        self.hits().iter().filter(|hit| hit.path == path).count()
    }

    /// A client of this server.
    pub(super) async fn client(&self, cache: &Arc<Memory>, clock: &Arc<HandClock>) -> Live {
        self.client_at(cache, clock, quick()).await
    }

    pub(super) async fn client_at(&self, cache: &Arc<Memory>, clock: &Arc<HandClock>, pace: Pace) -> Live {
        let bases = [self.base.clone(), format!("{}/", self.base)];
        Live::with_pace(AGENT, bases, DAY, Arc::clone(cache) as _, Arc::clone(clock) as _, pace)
            .await
            .expect("a client")
    }
}

/// Bounds short enough for a test; silence after a failure long enough to be seen.
pub(super) fn quick() -> Pace {
    Pace {
        request_budget: Duration::from_millis(400),
        backoff_min: Duration::from_millis(20),
        backoff_max: Duration::from_secs(60),
        blocked: Duration::from_secs(60),
        body_bytes_max: 64 * 1024,
    }
}

async fn answer(State(script): State<Arc<Mutex<Script>>>, request: Request) -> Response {
    let next = {
        let mut script = script.lock().expect("a lock");
        let path = request.uri().path().to_owned();
        let text = |name| request.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        script.hits.push(Hit {
            path: path.clone(),
            user_agent: text(header::USER_AGENT).unwrap_or_default(),
            accept_encoding: text(header::ACCEPT_ENCODING),
            at: Instant::now(),
        });
        script
            .answers
            .get_mut(&path)
            .and_then(|answers| if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() })
    };
    match next.unwrap_or(Answer::Status(404, NO_SUCH_KEY)) {
        Answer::Ok(body) => ([(header::CONTENT_TYPE, "application/json")], body).into_response(),
        Answer::Status(status, body) => (code(status), body).into_response(),
        Answer::RetryAfter(status, seconds) => {
            (code(status), [(header::RETRY_AFTER, seconds.to_string())], "Request Rate Threshold Exceeded")
                .into_response()
        }
        Answer::Redirect(to) => (StatusCode::FOUND, [(header::LOCATION, to)]).into_response(),
        Answer::Hang => std::future::pending().await,
        Answer::Bytes { count, announced: true } => vec![b' '; count].into_response(),
        Answer::Bytes { count, announced: false } => {
            let chunks = std::iter::repeat_n(Bytes::from(vec![b' '; 4096]), count.div_ceil(4096));
            Body::from_stream(futures_util::stream::iter(chunks.map(Ok::<_, std::io::Error>))).into_response()
        }
    }
}

fn code(status: u16) -> StatusCode {
    StatusCode::from_u16(status).expect("a status")
}

pub(super) fn tickers() -> String {
    let mut rows = vec![r#""0":{"cik_str":7,"ticker":"ONE","title":"One Corp"}"#.to_owned()];
    rows.extend((100..120).map(|cik| format!(r#""{cik}":{{"cik_str":{cik},"ticker":"T{cik}","title":"T"}}"#)));
    format!("{{{}}}", rows.join(","))
}

pub(super) fn facts(cik: u64) -> String {
    let year = |year: u32, value: u64| {
        format!(
            r#"{{"start":"{year}-01-01","end":"{year}-12-31","val":{value},"accn":"0000000007-24-000001","fy":2023,
            "fp":"FY","form":"10-K","filed":"2024-02-01"}}"#
        )
    };
    format!(
        r#"{{"cik":{cik},"entityName":"One Corp","facts":{{"us-gaap":{{"NetIncomeLoss":{{"label":"Net",
        "description":null,"units":{{"USD":[{},{}]}}}}}}}}}}"#,
        year(2022, 100),
        year(2023, 150)
    )
}

/// A clock that is set by hand.
pub(super) struct HandClock(Mutex<OffsetDateTime>);

impl HandClock {
    pub(super) fn start() -> Arc<Self> {
        Arc::new(Self(Mutex::new(datetime!(2026-03-01 12:00 UTC))))
    }

    pub(super) fn pass(&self, time: Duration) {
        *self.0.lock().expect("a lock") += time;
    }
}

impl Clock for HandClock {
    fn now(&self) -> OffsetDateTime {
        *self.0.lock().expect("a lock")
    }
}

/// A cache in memory; a broken one fails every call.
#[derive(Default)]
pub(super) struct Memory {
    pub(super) kept: Mutex<HashMap<String, Cached>>,
    pub(super) broken: bool,
}

impl Memory {
    fn check(&self) -> Result<(), CacheError> {
        if self.broken { Err(CacheError("out of order".to_owned())) } else { Ok(()) }
    }

    pub(super) fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.kept.lock().expect("a lock").keys().cloned().collect();
        keys.sort();
        keys
    }
}

#[async_trait]
impl FilingCache for Memory {
    async fn load(&self, key: &str) -> Result<Option<Cached>, CacheError> {
        self.check()?;
        Ok(self.kept.lock().expect("a lock").get(key).cloned())
    }

    async fn save(&self, key: &str, body: Bytes, fetched_at: OffsetDateTime) -> Result<(), CacheError> {
        self.check()?;
        self.kept.lock().expect("a lock").insert(key.to_owned(), Cached { body, fetched_at });
        Ok(())
    }

    async fn forget_before(&self, moment: OffsetDateTime) -> Result<(), CacheError> {
        self.check()?;
        self.kept.lock().expect("a lock").retain(|_, cached| cached.fetched_at >= moment);
        Ok(())
    }
}

//! Calls to an API: bounded in time, size and number, repeated where the API asks for it, and counted on the meter.

use std::fmt;
use std::time::Duration;

use reqwest::header::{CONTENT_TYPE, DATE, HeaderMap, HeaderName, HeaderValue, RETRY_AFTER};
use reqwest::{RequestBuilder, Response, redirect};
use serde_json::Value;
use tokio::time::{sleep, timeout};

use super::ModelTerms;
use super::wire::{ANTHROPIC_VERSION, Api, error_text};
use crate::limits::{MODEL_BODY_BYTES_MAX, MODEL_JSON_DEPTH_MAX, MODEL_PAUSE, MODEL_PAUSE_MAX, MODEL_TRIES};
use crate::money::UsdMicros;
use crate::pipeline::port::Meter;
use crate::strict_json;

/// Terms that no client can be made of.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadModel {
    /// The key holds what a header cannot.
    #[error("synth.api_key_file: the key holds characters that no header can")]
    Key,
    /// The HTTP client cannot be built.
    #[error("the HTTP client of the model cannot be built: {0}")]
    Client(String),
}

/// Why a call brought no text.
#[derive(Debug)]
pub(super) enum Failure {
    /// The model answered, and nothing in it can be used.
    Unusable(String),
    /// The API could not be had.
    Unavailable(String),
}

/// What becomes of one call.
enum Call {
    Answered(Value),
    /// It may do better later, after so long at the earliest.
    Again {
        after: Option<Duration>,
        why: String,
    },
    Failed(String),
}

/// Speaks to one model.
pub(super) struct Client {
    http: reqwest::Client,
    terms: ModelTerms,
}

impl Client {
    pub(super) fn new(terms: ModelTerms, key: Option<&str>) -> Result<Self, BadModel> {
        let mut headers = HeaderMap::from_iter([(CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        if terms.api == Api::Anthropic {
            let version = HeaderValue::from_static(ANTHROPIC_VERSION);
            headers.insert(HeaderName::from_static("anthropic-version"), version);
        }
        if let Some(key) = key {
            let (name, text) = match terms.api {
                Api::OpenAi => ("authorization", format!("Bearer {key}")),
                Api::Anthropic => ("x-api-key", key.to_owned()),
            };
            let mut value = HeaderValue::try_from(text).map_err(|_| BadModel::Key)?;
            value.set_sensitive(true);
            headers.insert(HeaderName::from_static(name), value);
        }
        // the process installs one at its start; in a test nobody did, and a second one changes nothing
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .default_headers(headers)
            // a key must not follow to wherever it is sent
            .redirect(redirect::Policy::none())
            .build()
            .map_err(|error| BadModel::Client(error.to_string()))?;
        Ok(Self { http, terms })
    }

    pub(super) fn api(&self) -> Api {
        self.terms.api
    }

    /// Asks for a completion. Each answered call is counted, whatever it holds.
    pub(super) async fn ask(&self, rules: &str, question: &str, meter: &Meter) -> Result<String, Failure> {
        let body = self.terms.api.request(&self.terms.model, rules, question).to_string();
        let url = format!("{}/{}", self.terms.url, self.terms.api.path());
        let mut pause = MODEL_PAUSE;
        for tried in 1.. {
            let (after, why) = match self.call(self.http.post(&url).body(body.clone())).await {
                Call::Answered(answer) => return self.read(&answer, meter),
                Call::Failed(why) => return Err(Failure::Unavailable(why)),
                Call::Again { after, why } => (after, why),
            };
            let wait = after.unwrap_or(pause).max(pause);
            if tried == MODEL_TRIES || wait > MODEL_PAUSE_MAX {
                return Err(Failure::Unavailable(format!("{why} (call {tried})")));
            }
            tracing::warn!(
                model = self.terms.model,
                why,
                wait_ms = wait.as_millis(),
                "a call of the model is repeated"
            );
            sleep(wait).await;
            pause = pause.saturating_mul(2);
        }
        unreachable!("the loop ends by a return")
    }

    fn read(&self, answer: &Value, meter: &Meter) -> Result<String, Failure> {
        let completion = self.terms.api.read(answer);
        let cost = completion.tokens.map_or(UsdMicros(0), |tokens| self.terms.price.of(tokens));
        meter.add(cost, completion.tokens);
        let (input, output) = completion.tokens.map_or((0, 0), |tokens| (tokens.input, tokens.output));
        tracing::info!(model = self.terms.model, input, output, cost_micros = cost.0, "a model answered");
        completion.text.map_err(Failure::Unusable)
    }

    /// Whether the API answers and knows the model, in words for the operator.
    pub(super) async fn check(&self) -> Result<String, String> {
        let url = format!("{}/{}", self.terms.url, self.terms.api.models_path());
        let named = format!("{} at {}", self.terms.model, self.terms.url);
        match self.call(self.http.get(url)).await {
            Call::Answered(list) => match list["data"].as_array() {
                Some(models) if models.iter().any(|model| model["id"] == self.terms.model.as_str()) => {
                    Ok(format!("{named} answers"))
                }
                Some(_) => Err(format!("{named}: the API answers and does not list this model")),
                None => Ok(format!("{named}: the API answers, without a list of models")),
            },
            Call::Again { why, .. } | Call::Failed(why) => Err(format!("{named}: {why}")),
        }
    }

    async fn call(&self, request: RequestBuilder) -> Call {
        match timeout(self.terms.timeout, exchange(request)).await {
            Ok(call) => call,
            Err(_) => Call::Failed(format!("no answer within {} s", self.terms.timeout.as_secs())),
        }
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Client").field("terms", &self.terms).finish_non_exhaustive()
    }
}

async fn exchange(request: RequestBuilder) -> Call {
    let response = match request.send().await {
        Ok(response) => response,
        Err(error) if error.is_connect() => return Call::Again { after: None, why: cause(&error) },
        // it may have been read, and is being answered and charged for
        Err(error) => return Call::Failed(cause(&error)),
    };
    let (status, after) = (response.status(), retry_after(response.headers()));
    let body = match read(response).await {
        Ok(body) => body,
        Err(why) => return Call::Failed(why),
    };
    let value = strict_json::parse(&body, MODEL_JSON_DEPTH_MAX);
    match (status.as_u16(), value) {
        (200..=299, Ok(value)) => Call::Answered(value),
        (200..=299, Err(error)) => Call::Failed(format!("the answer is no JSON: {error}")),
        (code @ (429 | 500..=599), value) => Call::Again { after, why: told(code, value.ok()) },
        (code, value) => Call::Failed(told(code, value.ok())),
    }
}

fn told(code: u16, body: Option<Value>) -> String {
    let text = body.map(|body| error_text(&body)).unwrap_or_default();
    format!("HTTP {code} {text}").trim_end().to_owned()
}

async fn read(mut response: Response) -> Result<Vec<u8>, String> {
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(|error| cause(&error))? {
        if body.len() + chunk.len() > MODEL_BODY_BYTES_MAX {
            return Err(format!("an answer of more than {MODEL_BODY_BYTES_MAX} bytes"));
        }
        body.extend_from_slice(&chunk);
    }
    Ok(body)
}

/// RFC 9110: seconds, or a date, which counts from the moment that the same answer names as its own.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok()).map(str::trim);
    let asked = text(RETRY_AFTER)?;
    match asked.parse() {
        Ok(seconds) => Some(Duration::from_secs(seconds)),
        Err(_) => {
            let (until, now) = (httpdate::parse_http_date(asked).ok()?, httpdate::parse_http_date(text(DATE)?).ok()?);
            // a date in the past asks for nothing
            Some(until.duration_since(now).unwrap_or_default())
        }
    }
}

/// The innermost reason, without the address.
fn cause(error: &reqwest::Error) -> String {
    let mut inner: &dyn std::error::Error = error;
    while let Some(source) = inner.source() {
        inner = source;
    }
    inner.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pause_is_read_as_seconds_and_as_a_date() {
        let with = |text: &'static str| {
            let date = HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT");
            retry_after(&HeaderMap::from_iter([(RETRY_AFTER, HeaderValue::from_static(text)), (DATE, date)]))
        };
        assert_eq!(with("7"), Some(Duration::from_secs(7)));
        assert_eq!(with("Sun, 06 Nov 1994 08:50:37 GMT"), Some(Duration::from_secs(60)));
        assert_eq!(with("Sun, 06 Nov 1994 08:49:30 GMT"), Some(Duration::ZERO));
        assert_eq!((with("soon"), with("-1")), (None, None));
    }

    #[test]
    fn a_key_is_in_no_debug_text_and_a_bad_one_is_refused() {
        let terms = ModelTerms {
            api: Api::OpenAi,
            url: "http://127.0.0.1:1".into(),
            model: "m".into(),
            timeout: Duration::from_secs(1),
            price: super::super::Price::default(),
            judge: false,
        };
        let client = Client::new(terms.clone(), Some("sk-very-secret")).expect("a client");
        assert!(!format!("{client:?} {:?}", client.http).contains("very-secret"));
        assert_eq!(Client::new(terms, Some("a\nb")).map(|_| ()), Err(BadModel::Key));
    }
}

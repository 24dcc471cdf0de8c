//! A facilitator over HTTP (x402 facilitator interface: `/verify`, `/settle`, `/supported`).
//!
//! One request, one deadline, one bounded answer. Nothing is retried and no redirect is followed: a second settle call is
//! the journal's decision, and only configuration names where payments go (not a proxy variable of the environment).

use std::error::Error as _;
use std::io;
use std::time::Duration;

use async_trait::async_trait;
use http::header::CONTENT_TYPE;
use reqwest::{Client, Method, RequestBuilder, Url, redirect, retry};

use super::answer::{Answer, Asked, clean, read_settle, read_supported, read_verify};
use crate::limits::{FACILITATOR_BODY_BYTES_MAX, FACILITATOR_IDLE, SETTLE_BUDGET, VERIFY_BUDGET};
use crate::paywall::port::{
    Facilitator, FacilitatorRequest, Judged, Kind, Member, SettleIntent, Settlement, Unreachable, not_ours,
};

/// A URL that cannot be a facilitator's.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("facilitator URL {url:?}: {why}")]
pub struct BadUrl {
    /// The URL as configured.
    pub url: String,
    /// What is wrong with it.
    pub why: String,
}

/// How long one call may take, from the first byte sent to the last byte read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// `/verify` and `/supported`.
    pub verify: Duration,
    /// `/settle`.
    pub settle: Duration,
}

/// The HTTP client of one facilitator.
#[derive(Debug)]
pub struct Remote {
    /// Also its name: origin and path.
    base: String,
    client: Client,
    budgets: Budgets,
}

/// Why there is no answer.
#[derive(Debug)]
struct Fault {
    /// The connection was refused: nothing was sent.
    refused: bool,
    text: String,
}

impl Default for Budgets {
    fn default() -> Self {
        Self { verify: VERIFY_BUDGET, settle: SETTLE_BUDGET }
    }
}

impl Remote {
    /// A client for the facilitator at `url`, `http` or `https`, with or without trailing slashes.
    pub fn new(url: &str, budgets: Budgets) -> Result<Self, BadUrl> {
        let bad = |why: &str| BadUrl { url: url.to_owned(), why: why.to_owned() };
        let parsed = Url::parse(url).map_err(|error| bad(&error.to_string()))?;
        if !matches!(parsed.scheme(), "http" | "https") {
            return Err(bad("neither http nor https"));
        }
        if !parsed.username().is_empty() || parsed.password().is_some() {
            return Err(bad("credentials in a URL end up in logs"));
        }
        if parsed.query().is_some() || parsed.fragment().is_some() {
            return Err(bad("a query or fragment, where a path is to be added"));
        }
        // the process installs one at its start; in a test nobody did, and a second one changes nothing
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy()
            .pool_idle_timeout(FACILITATOR_IDLE)
            .build()
            .map_err(|error| bad(&error.to_string()))?;
        let base = parsed.as_str().trim_end_matches('/').to_owned();
        Ok(Self { base, client, budgets })
    }

    fn request(&self, method: Method, path: &str) -> RequestBuilder {
        self.client.request(method, format!("{}/{path}", self.base))
    }

    async fn post(&self, path: &str, request: &FacilitatorRequest, budget: Duration) -> Result<Answer, Fault> {
        let call = self.request(Method::POST, path).header(CONTENT_TYPE, "application/json").body(request.body());
        exchange(call, budget).await
    }

    /// For this folder alone: settling needs an intent.
    pub(super) async fn settle_request(&self, request: &FacilitatorRequest) -> Settlement {
        match self.post("settle", request, self.budgets.settle).await {
            Ok(answer) => read_settle(&answer, &Asked::of(request)),
            Err(Fault { refused: true, text }) => Settlement::NotSent { reason: text },
            Err(Fault { refused: false, text }) => Settlement::Unknown { reason: text, transaction: None },
        }
    }
}

#[async_trait]
impl Facilitator for Remote {
    fn name(&self) -> &str {
        &self.base
    }

    fn sole(&self) -> Option<&str> {
        Some(&self.base)
    }

    fn is_simulated(&self) -> bool {
        false
    }

    /// What it lists is the business of whoever asks it.
    fn members(&self) -> Vec<Member> {
        vec![Member { name: self.base.clone(), supported: true, failing: None }]
    }

    async fn fetch_supported(&self) -> Result<Vec<Kind>, Unreachable> {
        let answer = exchange(self.request(Method::GET, "supported"), self.budgets.verify).await;
        read_supported(&answer.map_err(|fault| Unreachable(fault.text))?)
    }

    async fn verify(&self, request: &FacilitatorRequest) -> Result<Judged, Unreachable> {
        let answer = self.post("verify", request, self.budgets.verify).await;
        let verdict = read_verify(&answer.map_err(|fault| Unreachable(fault.text))?)?;
        Ok(Judged { verdict, facilitator: self.base.clone() })
    }

    async fn settle(&self, intent: &SettleIntent) -> Settlement {
        if intent.facilitator() != self.base {
            return not_ours(intent.facilitator());
        }
        self.settle_request(intent.request()).await
    }
}

async fn exchange(request: RequestBuilder, budget: Duration) -> Result<Answer, Fault> {
    let answer = tokio::time::timeout(budget, read(request)).await;
    answer
        .unwrap_or_else(|_| Err(Fault { refused: false, text: format!("no answer within {} ms", budget.as_millis()) }))
}

async fn read(request: RequestBuilder) -> Result<Answer, Fault> {
    let mut response = request.send().await.map_err(fault)?;
    let status = response.status().as_u16();
    let mut body = Vec::new();
    while let Some(chunk) = response.chunk().await.map_err(fault)? {
        if body.len() + chunk.len() > FACILITATOR_BODY_BYTES_MAX {
            let text = format!("an answer of more than {FACILITATOR_BODY_BYTES_MAX} bytes, HTTP {status}");
            return Err(Fault { refused: false, text });
        }
        body.extend_from_slice(&chunk);
    }
    Ok(Answer { status, body })
}

/// Tells a refused connection from all else by its cause: only then it is sure that nothing was sent.
fn fault(error: reqwest::Error) -> Fault {
    let mut refused = false;
    let error = error.without_url();
    let mut texts = vec![error.to_string()];
    let mut cause = error.source();
    while let Some(inner) = cause {
        texts.push(inner.to_string());
        let io = inner.downcast_ref::<io::Error>();
        refused |= error.is_connect() && io.is_some_and(|io| io.kind() == io::ErrorKind::ConnectionRefused);
        cause = inner.source();
    }
    Fault { refused, text: clean(&texts.join(": ")) }
}

#[cfg(test)]
mod tests;

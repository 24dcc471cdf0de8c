//! One JSON-RPC 2.0 client of one node (JSON-RPC specification, sections 4 and 5; transport as Ethereum nodes do it: POST).
//!
//! One call, one deadline, one bounded answer that must belong to the call. Nothing is retried here and no redirect is followed. What
//! it must not do: show the URL, whose path or query usually is the operator's key.

use std::error::Error as _;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use alloy_primitives::hex;
use alloy_sol_types::{Revert, SolError};
use reqwest::{Client, Url, redirect, retry};
use serde_json::{Map, Value, json};

use crate::evm::Network;
use crate::limits::{CHAIN_ANSWER_BYTES_MAX, CHAIN_IDLE, CHAIN_JSON_DEPTH_MAX, FOREIGN_TEXT_CHARS_MAX};
use crate::paywall::port::chain::ChainFault;
use crate::strict_json;

use super::wire::read_quantity;

/// A URL that cannot be a node's. The URL is not shown: it may hold a key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("node URL: {0}")]
pub struct BadNodeUrl(pub String);

/// The client of one node. Its `Debug` shows the origin only.
pub struct Rpc {
    url: Url,
    client: Client,
    budget: Duration,
    next_id: AtomicU64,
}

/// Why a call gave no result.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RpcFault {
    /// Nothing came, or nothing that answers this call.
    NoAnswer(String),
    /// More came than is read.
    TooLong,
    /// The node answered with an error.
    Node(NodeError),
}

/// The `error` member of an answer, cleaned.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NodeError {
    pub(super) code: i64,
    pub(super) message: String,
    /// The text of a Solidity `Error(string)`, when the node sent the data of a revert.
    pub(super) revert: Option<String>,
}

impl Rpc {
    /// A client for the node at `url`, `http` or `https`; `budget` is for one call, from the first byte sent to the last byte read.
    pub fn new(url: &str, budget: Duration) -> Result<Self, BadNodeUrl> {
        let bad = |why: &str| BadNodeUrl(why.to_owned());
        let url = Url::parse(url).map_err(|error| bad(&error.to_string()))?;
        if !matches!(url.scheme(), "http" | "https") {
            return Err(bad("neither http nor https"));
        }
        if !url.username().is_empty() || url.password().is_some() {
            return Err(bad("credentials in a URL end up in logs"));
        }
        if url.fragment().is_some() {
            return Err(bad("a fragment, which is never sent"));
        }
        // the process installs one at its start; in a test nobody did, and a second one changes nothing
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = Client::builder()
            .redirect(redirect::Policy::none())
            .retry(retry::never())
            .no_proxy()
            .pool_idle_timeout(CHAIN_IDLE)
            .build()
            .map_err(|error| bad(&error.without_url().to_string()))?;
        Ok(Self { url, client, budget, next_id: AtomicU64::new(1) })
    }

    /// Scheme, host and port of the node, for logs.
    pub fn origin(&self) -> String {
        self.url.origin().ascii_serialization()
    }

    /// Calls made so far.
    pub fn calls_made(&self) -> u64 {
        self.next_id.load(Ordering::Relaxed) - 1
    }

    /// Checks that the node serves the configured chain (`eth_chainId`). To be called before anything else is believed.
    pub async fn check_network(&self, network: Network) -> Result<(), ChainFault> {
        let id = self.call("eth_chainId", json!([])).await?;
        match read_quantity(&id) {
            Some(id) if id == network.chain_id() => Ok(()),
            Some(id) => Err(ChainFault(format!("the node serves {}, not {network}", Network::new(id)))),
            None => Err(ChainFault("the node names no chain id".to_owned())),
        }
    }

    /// Calls a method. A `null` result is `Value::Null`; an answer without a result is a fault.
    pub(super) async fn call(&self, method: &str, params: Value) -> Result<Value, RpcFault> {
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let body = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
        let answer = tokio::time::timeout(self.budget, self.exchange(&body)).await;
        let late = || RpcFault::NoAnswer(format!("no answer within {} ms", self.budget.as_millis()));
        let (status, bytes) = answer.unwrap_or_else(|_| Err(late()))?;
        self.read(method, id, status, &bytes)
    }

    async fn exchange(&self, body: &Value) -> Result<(u16, Vec<u8>), RpcFault> {
        let request = self.client.post(self.url.clone()).json(body);
        let mut response = request.send().await.map_err(|error| self.transport(error))?;
        let status = response.status().as_u16();
        let mut bytes = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| self.transport(error))? {
            if bytes.len() + chunk.len() > CHAIN_ANSWER_BYTES_MAX {
                return Err(RpcFault::TooLong);
            }
            bytes.extend_from_slice(&chunk);
        }
        Ok((status, bytes))
    }

    fn read(&self, method: &str, id: u64, status: u16, bytes: &[u8]) -> Result<Value, RpcFault> {
        let fault = |why: String| RpcFault::NoAnswer(format!("{method}: HTTP {status}, {why}"));
        let value = strict_json::parse(bytes, CHAIN_JSON_DEPTH_MAX).map_err(|error| fault(error.to_string()))?;
        let Value::Object(mut members) = value else { return Err(fault("not one answer object".to_owned())) };
        if members.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(fault("not JSON-RPC 2.0".to_owned()));
        }
        let error = members.get("error").filter(|error| !error.is_null()).map(|error| self.read_error(error));
        let own = members.get("id").and_then(Value::as_u64) == Some(id);
        // who cannot read a call answers with an error and no id (section 5)
        let unread = error.is_some() && members.get("id").is_some_and(Value::is_null);
        match (error, members.remove("result")) {
            _ if !own && !unread => Err(fault("the answer to another call".to_owned())),
            (Some(_), Some(result)) if !result.is_null() => Err(fault("an error with a result".to_owned())),
            (Some(error), _) => Err(RpcFault::Node(error)),
            (None, Some(result)) if (200..300).contains(&status) => Ok(result),
            (None, Some(_)) => Err(fault("a result all the same".to_owned())),
            (None, None) => Err(fault("neither a result nor an error".to_owned())),
        }
    }

    fn read_error(&self, error: &Value) -> NodeError {
        let none = Map::new();
        let members = error.as_object().unwrap_or(&none);
        let message = members.get("message").and_then(Value::as_str).unwrap_or("no message");
        // most nodes put the data of a revert here, some one level deeper
        let data = members.get("data").map(|data| data.get("data").unwrap_or(data));
        let revert = data.and_then(Value::as_str).and_then(decode_revert);
        let code = members.get("code").and_then(Value::as_i64).unwrap_or_default();
        NodeError { code, message: self.clean(message), revert: revert.map(|text| self.clean(&text)) }
    }

    fn transport(&self, error: reqwest::Error) -> RpcFault {
        let error = error.without_url();
        let mut texts = vec![error.to_string()];
        let mut cause = error.source();
        while let Some(inner) = cause {
            texts.push(inner.to_string());
            cause = inner.source();
        }
        RpcFault::NoAnswer(self.clean(&texts.join(": ")))
    }

    /// Printable ASCII without URLs and without what may be the key in ours, cut: fit for a log and for a row.
    fn clean(&self, text: &str) -> String {
        let secrets = [self.url.path().trim_matches('/'), self.url.query().unwrap_or_default()];
        let mut text = text.to_owned();
        for secret in secrets.into_iter().filter(|secret| !secret.is_empty()) {
            text = text.replace(secret, "...");
        }
        let words: Vec<&str> =
            text.split_whitespace().map(|word| if word.contains("://") { "(URL)" } else { word }).collect();
        words.join(" ").chars().filter(|c| (' '..='~').contains(c)).take(FOREIGN_TEXT_CHARS_MAX).collect()
    }
}

impl fmt::Debug for Rpc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Rpc").field("origin", &self.origin()).finish_non_exhaustive()
    }
}

impl fmt::Display for NodeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.revert {
            Some(reason) => write!(f, "the node answers {}: reverted: {reason}", self.code),
            None => write!(f, "the node answers {}: {}", self.code, self.message),
        }
    }
}

impl From<RpcFault> for ChainFault {
    fn from(fault: RpcFault) -> Self {
        Self(match fault {
            RpcFault::NoAnswer(why) => why,
            RpcFault::TooLong => format!("an answer of more than {CHAIN_ANSWER_BYTES_MAX} bytes"),
            RpcFault::Node(error) => error.to_string(),
        })
    }
}

fn decode_revert(data: &str) -> Option<String> {
    let bytes = hex::decode(data.strip_prefix("0x")?).ok()?;
    Revert::abi_decode(&bytes).ok().map(|revert| revert.reason)
}

#[cfg(test)]
mod tests;

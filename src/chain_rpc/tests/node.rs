//! A scripted node on loopback that answers as real ones do, and remembers what it was asked.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use tokio::net::TcpListener;

use crate::chain_rpc::Rpc;

/// What the script answers to one call.
pub(in crate::chain_rpc) enum Reply {
    Result(Value),
    Error(Value),
    /// A body in which `$ID` stands for the id of the call.
    Body(String),
    /// Anything else that HTTP can carry.
    Whole(Response),
    /// Nothing, for a minute.
    Hang,
}

pub(in crate::chain_rpc) struct Node {
    pub(in crate::chain_rpc) url: String,
    calls: Arc<Mutex<Vec<(String, Value)>>>,
}

impl Node {
    pub(in crate::chain_rpc) async fn start(script: impl Fn(&str, &Value) -> Reply + Send + Sync + 'static) -> Self {
        let calls = Arc::new(Mutex::new(Vec::new()));
        let (seen, script) = (Arc::clone(&calls), Arc::new(script));
        let handler = move |body: Bytes| {
            let (seen, script) = (Arc::clone(&seen), Arc::clone(&script));
            async move {
                let call: Value = serde_json::from_slice(&body).expect("a call in JSON");
                assert_eq!(call["jsonrpc"], "2.0");
                let (method, params) = (call["method"].as_str().expect("a method"), &call["params"]);
                assert!(params.is_array(), "{params}");
                seen.lock().expect("no panic").push((method.to_owned(), params.clone()));
                answer(script(method, params), &call["id"]).await
            }
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/v2/SECRET?token=HIDDEN", listener.local_addr().expect("an address"));
        let app = Router::new().fallback(post(handler));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, calls }
    }

    /// A client that waits as long as a busy machine needs.
    pub(in crate::chain_rpc) fn rpc(&self) -> Arc<Rpc> {
        self.rpc_within(Duration::from_secs(20))
    }

    pub(in crate::chain_rpc) fn rpc_within(&self, budget: Duration) -> Arc<Rpc> {
        Arc::new(Rpc::new(&self.url, budget).expect("a URL"))
    }

    /// The parameters of every call of a method so far.
    pub(in crate::chain_rpc) fn asked(&self, method: &str) -> Vec<Value> {
        let calls = self.calls.lock().expect("no panic");
        calls.iter().filter(|(name, _)| name == method).map(|(_, params)| params.clone()).collect()
    }

    /// How many calls were made so far.
    pub(in crate::chain_rpc) fn call_count(&self) -> usize {
        self.calls.lock().expect("no panic").len()
    }
}

async fn answer(reply: Reply, id: &Value) -> Response {
    match reply {
        Reply::Result(result) => axum::Json(json!({"jsonrpc": "2.0", "id": id, "result": result})).into_response(),
        Reply::Error(error) => axum::Json(json!({"jsonrpc": "2.0", "id": id, "error": error})).into_response(),
        Reply::Body(body) => body.replace("$ID", &id.to_string()).into_response(),
        Reply::Whole(response) => response,
        Reply::Hang => {
            tokio::time::sleep(Duration::from_secs(60)).await;
            ().into_response()
        }
    }
}

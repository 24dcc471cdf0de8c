//! A seller over HTTP that answers paid requests as scripted, and remembers every payment header that it was sent.

use std::collections::{BTreeSet, VecDeque};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use axum::routing::any;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, StatusCode};
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// One scripted answer to a paid request.
#[derive(Clone, Debug)]
pub(crate) enum Turn {
    /// A status and a JSON body; 503 and 429 ask to come back at once.
    Say(u16, Value),
    /// New terms, with or without the extension of a refusal contract.
    Terms {
        /// Whether the seller promises never to do so while an outcome is open.
        contract: bool,
    },
    /// The connection ends without an answer.
    Drop,
    /// No answer for longer than any test waits.
    Hang,
}

/// The seller.
pub(crate) struct Seller {
    addr: SocketAddr,
    script: Arc<Script>,
}

struct Script {
    window_s: u64,
    turns: Mutex<VecDeque<Turn>>,
    payments: Mutex<Vec<String>>,
}

impl Seller {
    /// One that delivers whatever is paid for, until it is told otherwise.
    pub(crate) async fn start() -> Self {
        Self::with_window(180).await
    }

    /// One whose authorizations are valid for so many seconds.
    pub(crate) async fn with_window(window_s: u64) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let script = Arc::new(Script { window_s, turns: Mutex::default(), payments: Mutex::default() });
        let router = Router::new().fallback(any(answer)).with_state(Arc::clone(&script));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { addr, script }
    }

    /// What it sells.
    pub(crate) fn url(&self) -> String {
        format!("http://{}/memo?ticker=ACME", self.addr)
    }

    /// Answers the next paid requests, one each.
    pub(crate) fn on_payment(&self, turns: impl IntoIterator<Item = Turn>) {
        self.script.turns.lock().expect("no panic").extend(turns);
    }

    /// How many paid requests came, and how many different payments they carried.
    pub(crate) fn seen(&self) -> (usize, usize) {
        let payments = self.script.payments.lock().expect("no panic");
        (payments.len(), payments.iter().collect::<BTreeSet<_>>().len())
    }

    /// Waits until so many paid requests have come.
    pub(crate) async fn wait_for(&self, count: usize) {
        for _ in 0..3_000 {
            if self.seen().0 >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no {count} paid requests");
    }
}

async fn answer(State(script): State<Arc<Script>>, headers: HeaderMap) -> Response {
    let Some(payment) = headers.get("payment-signature") else { return terms(&script, false) };
    script.payments.lock().expect("no panic").push(payment.to_str().expect("text").to_owned());
    let next = script.turns.lock().expect("no panic").pop_front();
    match next {
        None => say(200, &json!({"memo": "bought"})),
        Some(Turn::Say(status, body)) => say(status, &body),
        Some(Turn::Terms { contract }) => terms(&script, contract),
        Some(Turn::Drop) => {
            // a body that fails before its first byte makes the server cut the connection
            let broken = futures_util::stream::iter([Err::<Bytes, _>(std::io::Error::other("cut"))]);
            Response::new(Body::from_stream(broken))
        }
        Some(Turn::Hang) => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            say(200, &json!({}))
        }
    }
}

fn say(status: u16, body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    response.headers_mut().insert("retry-after", "0".parse().expect("a value"));
    response
}

fn terms(script: &Script, contract: bool) -> Response {
    let mut required = json!({
        "x402Version": 2,
        "error": "payment required",
        "resource": {"url": "http://seller.example/memo"},
        "accepts": [{
            "scheme": "exact",
            "network": "eip155:84532",
            "asset": "0x036CbD53842c5426634e7929541eC2318f3dCF7e",
            "amount": "50000",
            "payTo": "0x00000000000000000000000000000000000000aa",
            "maxTimeoutSeconds": script.window_s,
            "extra": {"name": "USDC", "version": "2"},
        }],
    });
    if contract {
        required["extensions"] = json!({"refusal-contract": {"info": {"contract_id": "sha256:00"}}});
    }
    let mut response = say(402, &json!({}));
    let header = STANDARD.encode(required.to_string()).parse().expect("a value");
    response.headers_mut().insert("payment-required", header);
    response
}

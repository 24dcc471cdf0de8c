//! A facilitator with books: an authorization moves money once, whoever asks and however often, and what it did stays done when
//! nobody hears of it.

use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// What is wrong with one answer, or with all of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Twist {
    /// Verify names somebody else as the payer, every time.
    OtherPayer,
    /// Verify says no, every time.
    Invalid,
    /// The next verify is not answered.
    CutVerify,
    /// The next settle moves the money and is not answered.
    CutSettle,
}

/// What the books say about one authorization.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Entry {
    /// When the first settle call for it arrived; from then on its outcome is open until somebody knows it.
    pub(crate) began: Option<Instant>,
    /// Settle calls.
    pub(crate) calls: u32,
    /// Whether its money has moved.
    pub(crate) moved: bool,
}

/// The books, by nonce.
pub(crate) type Entries = BTreeMap<String, Entry>;

/// Starts it, and reads its books.
#[derive(Clone)]
pub(crate) struct Facilitator {
    url: String,
    desk: Arc<Desk>,
}

#[derive(Default)]
struct Desk {
    entries: Mutex<Entries>,
    twists: Mutex<VecDeque<Twist>>,
    held: AtomicBool,
    verifies: AtomicUsize,
    settle_takes: Duration,
}

impl Facilitator {
    /// One whose settle calls take that long.
    pub(crate) async fn start(settle_takes: Duration) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        let desk = Arc::new(Desk { settle_takes, ..Desk::default() });
        let router = Router::new()
            .route("/supported", get(supported))
            .route("/{call}", post(answer))
            .with_state(Arc::clone(&desk));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, desk }
    }

    pub(crate) fn url(&self) -> String {
        self.url.clone()
    }

    /// From now on.
    pub(crate) fn twist(&self, twist: Option<Twist>) {
        let mut twists = self.desk.twists.lock().expect("no panic");
        twists.clear();
        twists.extend(twist);
    }

    /// Verify calls are held until they are let go.
    pub(crate) fn hold(&self, on: bool) {
        self.desk.held.store(on, Ordering::SeqCst);
    }

    /// Verify calls so far.
    pub(crate) fn verifies(&self) -> usize {
        self.desk.verifies.load(Ordering::SeqCst)
    }

    /// A copy of the books.
    pub(crate) fn entries(&self) -> Entries {
        self.desk.entries.lock().expect("no panic").clone()
    }

    /// Authorizations whose money has moved.
    pub(crate) fn moved(&self) -> usize {
        self.desk.entries.lock().expect("no panic").values().filter(|entry| entry.moved).count()
    }
}

impl Desk {
    /// Takes a twist of that kind; one that is for every time stays.
    fn take(&self, wanted: &[Twist]) -> Option<Twist> {
        let mut twists = self.twists.lock().expect("no panic");
        let next = *twists.front().filter(|twist| wanted.contains(twist))?;
        if matches!(next, Twist::CutVerify | Twist::CutSettle) {
            twists.pop_front();
        }
        Some(next)
    }

    async fn verify(&self, payer: Value) -> Response {
        self.verifies.fetch_add(1, Ordering::SeqCst);
        while self.held.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        match self.take(&[Twist::OtherPayer, Twist::Invalid, Twist::CutVerify]) {
            Some(Twist::CutVerify) => cut(),
            Some(Twist::OtherPayer) => reply(&json!({"isValid": true, "payer": format!("0x{}", "ab".repeat(20))})),
            Some(Twist::Invalid) => reply(&json!({"isValid": false, "invalidReason": "invalid_signature"})),
            Some(Twist::CutSettle) | None => reply(&json!({"isValid": true, "payer": payer})),
        }
    }

    async fn settle(&self, payer: Value, nonce: String) -> Response {
        let enter = |change: &dyn Fn(&mut Entry) -> bool| {
            change(self.entries.lock().expect("no panic").entry(nonce.clone()).or_default())
        };
        enter(&|entry| {
            entry.began.get_or_insert_with(Instant::now);
            entry.calls += 1;
            true
        });
        tokio::time::sleep(self.settle_takes).await;
        let moved_now = enter(&|entry| !std::mem::replace(&mut entry.moved, true));
        if self.take(&[Twist::CutSettle]).is_some() {
            return cut();
        }
        let body = match moved_now {
            // a transaction of its own for each authorization
            true => json!({"success": true, "payer": payer, "transaction": nonce, "network": "eip155:84532"}),
            false => json!({"success": false, "errorReason": "invalid_exact_evm_nonce_already_used"}),
        };
        reply(&body)
    }
}

async fn supported() -> Response {
    reply(&json!({"kinds": [{"x402Version": 2, "scheme": "exact", "network": "eip155:84532"}]}))
}

async fn answer(State(desk): State<Arc<Desk>>, Path(call): Path<String>, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).expect("a JSON body");
    let authorization = &body["paymentPayload"]["payload"]["authorization"];
    let payer = authorization["from"].clone();
    let nonce = authorization["nonce"].as_str().expect("a nonce").to_lowercase();
    // on its own: a chain does not stop because the seller's process is gone
    let work = tokio::spawn(async move {
        match call.as_str() {
            "verify" => desk.verify(payer).await,
            _ => desk.settle(payer, nonce).await,
        }
    });
    work.await.expect("no panic")
}

fn reply(body: &Value) -> Response {
    let mut response = Response::new(Body::from(body.to_string()));
    *response.status_mut() = StatusCode::OK;
    response.headers_mut().insert("connection", "close".parse().expect("a value"));
    response
}

/// The connection ends: a body that fails before its first byte.
fn cut() -> Response {
    let broken = futures_util::stream::iter([Err::<Bytes, _>(std::io::Error::other("cut"))]);
    Response::new(Body::from_stream(broken))
}

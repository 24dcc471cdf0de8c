//! A facilitator over HTTP that answers as scripted and keeps a log of its own: what reached it is counted here, not by us.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{get, post};
use http::StatusCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;

/// A transaction hash as facilitators give them.
pub(crate) const TX: &str = "0x00000000000000000000000000000000000000000000000000000000000000aa";

/// One scripted answer.
#[derive(Clone, Debug)]
pub(crate) enum Answer {
    /// A status and a JSON body.
    Json(u16, Value),
    /// A status and text that is no JSON.
    Text(u16, &'static str),
    /// The answer that belongs to a good payment, after a while.
    Late(Duration),
    /// A 200 whose body never ends: so many bytes at a time, with a pause between.
    Endless(usize, Duration),
    /// No answer: the connection ends after the request was read.
    Drop,
    /// A redirect to somewhere else.
    Redirect,
}

/// Starts and scripts it.
pub(crate) struct StubFacilitator {
    addr: SocketAddr,
    state: Arc<Script>,
    server: JoinHandle<()>,
}

#[derive(Default)]
struct Script {
    verify: Mutex<VecDeque<Answer>>,
    settle: Mutex<VecDeque<Answer>>,
    log: Mutex<Vec<(String, Value)>>,
    kinds: Mutex<Option<Value>>,
}

impl StubFacilitator {
    /// One that says yes to everything until it is told otherwise.
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        Self::serve(listener, Arc::default())
    }

    fn serve(listener: TcpListener, state: Arc<Script>) -> Self {
        let addr = listener.local_addr().expect("an address");
        let router = Router::new()
            .route("/supported", get(supported))
            .route("/elsewhere", post(async || Response::new(Body::from("{}"))))
            .route("/{call}", post(answer))
            .with_state(Arc::clone(&state));
        let server = tokio::spawn(async move {
            axum::serve(listener, router).await.expect("it serves");
        });
        Self { addr, state, server }
    }

    /// Its base URL.
    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.addr)
    }

    /// Answers the next verify calls, one each.
    pub(crate) fn on_verify(&self, answers: impl IntoIterator<Item = Answer>) {
        self.state.verify.lock().expect("no panic").extend(answers);
    }

    /// Answers the next settle calls, one each.
    pub(crate) fn on_settle(&self, answers: impl IntoIterator<Item = Answer>) {
        self.state.settle.lock().expect("no panic").extend(answers);
    }

    /// What `/supported` lists from now on.
    pub(crate) fn list_kinds(&self, kinds: Value) {
        *self.state.kinds.lock().expect("no panic") = Some(kinds);
    }

    /// Bodies of the calls of one kind, in their order.
    pub(crate) fn calls(&self, kind: &str) -> Vec<Value> {
        let log = self.state.log.lock().expect("no panic");
        log.iter().filter(|(name, _)| name == kind).map(|(_, body)| body.clone()).collect()
    }

    /// How many settle calls reached it.
    pub(crate) fn settles(&self) -> usize {
        self.calls("settle").len()
    }

    /// Waits until so many calls of a kind have reached it.
    pub(crate) async fn wait_for(&self, kind: &str, count: usize) {
        for _ in 0..1_000 {
            if self.calls(kind).len() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("no {count} calls of {kind}");
    }

    /// Stops listening: connections are refused from now on. Its script and its log stay.
    pub(crate) async fn close(&mut self) {
        self.server.abort();
        let _ = (&mut self.server).await;
    }

    /// Listens again on the same port.
    pub(crate) async fn reopen(&mut self) {
        let listener = TcpListener::bind(self.addr).await.expect("the same port");
        *self = Self::serve(listener, Arc::clone(&self.state));
    }
}

async fn supported(State(script): State<Arc<Script>>) -> Response {
    let default = json!([
        {"x402Version": 2, "scheme": "exact", "network": "eip155:84532"},
        {"x402Version": 2, "scheme": "upto", "network": "eip155:84532"},
        {"x402Version": 1, "scheme": "exact", "network": "base-sepolia"},
    ]);
    let kinds = script.kinds.lock().expect("no panic").clone().unwrap_or(default);
    reply(200, json!({"kinds": kinds}).to_string())
}

async fn answer(State(script): State<Arc<Script>>, Path(call): Path<String>, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).expect("a JSON body");
    let payload = &body["paymentPayload"]["payload"];
    let payer = ["authorization", "permit2Authorization"].map(|kind| payload[kind]["from"].clone());
    let payer = payer.into_iter().find(|from| !from.is_null());
    script.log.lock().expect("no panic").push((call.clone(), body));
    let good = match call.as_str() {
        "verify" => json!({"isValid": true, "payer": payer}),
        _ => json!({"success": true, "payer": payer, "transaction": TX, "network": "eip155:84532"}),
    };
    let queue = if call == "verify" { &script.verify } else { &script.settle };
    let next = queue.lock().expect("no panic").pop_front();
    match next {
        None => reply(200, good.to_string()),
        Some(Answer::Json(status, value)) => reply(status, value.to_string()),
        Some(Answer::Text(status, text)) => reply(status, text.to_owned()),
        Some(Answer::Late(pause)) => {
            tokio::time::sleep(pause).await;
            reply(200, good.to_string())
        }
        Some(Answer::Endless(bytes, pause)) => {
            let chunks = futures_util::stream::unfold((), move |()| async move {
                tokio::time::sleep(pause).await;
                Some((Ok::<_, std::io::Error>(Bytes::from(vec![b' '; bytes])), ()))
            });
            Response::new(Body::from_stream(chunks))
        }
        // a body that fails before its first byte makes the server cut the connection
        Some(Answer::Drop) => {
            let broken = futures_util::stream::iter([Err::<Bytes, _>(std::io::Error::other("cut"))]);
            Response::new(Body::from_stream(broken))
        }
        Some(Answer::Redirect) => {
            let mut response = reply(307, String::new());
            response.headers_mut().insert("location", "/elsewhere".parse().expect("a value"));
            response
        }
    }
}

fn reply(status: u16, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    // no connection outlives its call, so that a facilitator that is closed can be reached by nobody
    response.headers_mut().insert("connection", "close".parse().expect("a value"));
    response
}

//! A server that speaks both model APIs in their own shapes, answers as scripted, and keeps what it was asked.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::response::Response;
use axum::routing::{get, post};
use http::{HeaderMap, StatusCode};
use jim::synth::model::Api;
use serde_json::{Value, json};
use tokio::net::TcpListener;

/// Tokens that every answered call is said to have used.
pub(crate) const INPUT: i64 = 1_000;
pub(crate) const OUTPUT: i64 = 200;

/// What a model says, given the facts that it was shown.
pub(crate) type Writes = fn(&[Value]) -> String;

/// One scripted answer.
#[derive(Clone, Debug)]
pub(crate) enum Said {
    /// A finished answer with this text.
    Text(Writes),
    /// An answer that was cut off, with what there was of it.
    CutOff(&'static str),
    /// The model declines.
    Declines,
    /// An error in the API's own shape, with headers.
    Error(u16, &'static str, Vec<(&'static str, String)>),
    /// Bytes with a status, whatever they are.
    Raw(u16, &'static str),
    /// A redirect to somewhere else.
    Redirect,
    /// A body that never ends.
    Endless,
    /// No answer in any time that counts.
    Hangs,
}

/// One call as it arrived.
#[derive(Clone, Debug)]
pub(crate) struct Call {
    pub(crate) path: String,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Value,
}

impl Call {
    /// The rules and the question, in either shape.
    pub(crate) fn texts(&self) -> (String, String) {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let messages = &self.body["messages"];
        match self.body["system"].as_str() {
            Some(rules) => (rules.to_owned(), text(&messages[0]["content"])),
            None => (text(&messages[0]["content"]), text(&messages[1]["content"])),
        }
    }

    /// The facts that the model was shown.
    pub(crate) fn facts(&self) -> Vec<Value> {
        let (_, question) = self.texts();
        let block = question.split("<facts>").nth(1).and_then(|rest| rest.split("</facts>").next()).expect("facts");
        let block: Value = serde_json::from_str(block).expect("JSON");
        block["facts"].as_array().expect("a list").clone()
    }
}

/// The server.
pub(crate) struct StubModel {
    addr: SocketAddr,
    api: Api,
    state: Arc<Script>,
}

struct Script {
    api: Api,
    said: Mutex<VecDeque<Said>>,
    calls: Mutex<Vec<Call>>,
}

impl StubModel {
    /// A model that says these things in turn, and the last one again and again.
    pub(crate) async fn start(api: Api, said: impl IntoIterator<Item = Said>) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let addr = listener.local_addr().expect("an address");
        let said = Mutex::new(said.into_iter().collect());
        let state = Arc::new(Script { api, said, calls: Mutex::default() });
        let router = Router::new()
            .route("/v1/chat/completions", post(answer))
            .route("/v1/messages", post(answer))
            .route("/v1/models", get(list))
            .fallback(async || Response::new(Body::from("{\"faithful\":true}")))
            .with_state(Arc::clone(&state));
        tokio::spawn(async move { axum::serve(listener, router).await.expect("it serves") });
        Self { addr, api, state }
    }

    /// Its base URL, as a setting names it.
    pub(crate) fn url(&self) -> String {
        match self.api {
            Api::OpenAi => format!("http://{}/v1", self.addr),
            Api::Anthropic => format!("http://{}", self.addr),
        }
    }

    /// What reached it, in its order.
    pub(crate) fn calls(&self) -> Vec<Call> {
        self.state.calls.lock().expect("no panic").clone()
    }
}

async fn list(State(script): State<Arc<Script>>, headers: HeaderMap) -> Response {
    if headers.get("authorization").or_else(|| headers.get("x-api-key")).is_none() {
        return error(script.api, 401, "no key");
    }
    let body =
        json!({"object": "list", "has_more": false, "data": [{"id": "writer-1", "object": "model", "type": "model"}]});
    Response::new(Body::from(body.to_string()))
}

async fn answer(State(script): State<Arc<Script>>, uri: http::Uri, headers: HeaderMap, body: Bytes) -> Response {
    let body: Value = serde_json::from_slice(&body).expect("our requests are JSON");
    let call = Call { path: uri.path().to_owned(), headers, body };
    script.calls.lock().expect("no panic").push(call.clone());
    let said = {
        let mut said = script.said.lock().expect("no panic");
        if said.len() > 1 { said.pop_front() } else { said.front().cloned() }
    };
    match said.expect("something to say") {
        Said::Text(writes) => completion(script.api, &writes(&call.facts()), false),
        Said::CutOff(text) => completion(script.api, text, true),
        Said::Declines => declined(script.api),
        Said::Error(status, message, extra) => {
            let mut response = error(script.api, status, message);
            for (name, value) in extra {
                response.headers_mut().insert(name, value.parse().expect("a header"));
            }
            response
        }
        Said::Raw(status, text) => with_status(status, text.to_owned()),
        Said::Redirect => {
            let mut response = with_status(307, String::new());
            response.headers_mut().insert("location", "/elsewhere".parse().expect("a header"));
            response
        }
        Said::Endless => {
            let chunks = futures_util::stream::repeat_with(|| Ok::<_, std::io::Error>(Bytes::from(vec![b' '; 65_536])));
            Response::new(Body::from_stream(chunks))
        }
        Said::Hangs => {
            tokio::time::sleep(Duration::from_secs(600)).await;
            with_status(200, String::new())
        }
    }
}

fn completion(api: Api, text: &str, cut_off: bool) -> Response {
    let body = match api {
        Api::OpenAi => json!({
            "id": "chatcmpl-1", "object": "chat.completion", "created": 1_790_000_000, "model": "writer-1",
            "choices": [{"index": 0, "logprobs": null, "finish_reason": if cut_off { "length" } else { "stop" },
                "message": {"role": "assistant", "content": text, "refusal": null, "annotations": []}}],
            "usage": {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT},
        }),
        Api::Anthropic => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "model": "writer-1", "stop_sequence": null,
            "content": [{"type": "text", "text": text}], "stop_reason": if cut_off { "max_tokens" } else { "end_turn" },
            "usage": {"input_tokens": INPUT, "cache_creation_input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": OUTPUT},
        }),
    };
    with_status(200, body.to_string())
}

fn declined(api: Api) -> Response {
    let body = match api {
        Api::OpenAi => json!({
            "id": "chatcmpl-1", "object": "chat.completion", "model": "writer-1",
            "choices": [{"index": 0, "finish_reason": "stop",
                "message": {"role": "assistant", "content": null, "refusal": "I can't help with that."}}],
            "usage": {"prompt_tokens": INPUT, "completion_tokens": OUTPUT, "total_tokens": INPUT + OUTPUT},
        }),
        Api::Anthropic => json!({
            "id": "msg_1", "type": "message", "role": "assistant", "content": [], "stop_reason": "refusal",
            "usage": {"input_tokens": INPUT, "output_tokens": OUTPUT},
        }),
    };
    with_status(200, body.to_string())
}

fn error(api: Api, status: u16, message: &str) -> Response {
    let body = match api {
        Api::OpenAi => json!({"error": {"message": message, "type": "server_error", "param": null, "code": null}}),
        Api::Anthropic => {
            json!({"type": "error", "error": {"type": "api_error", "message": message}, "request_id": "req_1"})
        }
    };
    with_status(status, body.to_string())
}

fn with_status(status: u16, body: String) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::from_u16(status).expect("a status");
    response
}

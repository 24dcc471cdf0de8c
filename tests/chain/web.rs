//! A blocking HTTP client for the tests.

use std::time::Duration;

use serde_json::Value;

/// Longer than any budget of the service.
const TIMEOUT: Duration = Duration::from_secs(120);

/// A client and the runtime that drives it.
pub(crate) struct Web {
    runtime: tokio::runtime::Runtime,
    client: reqwest::Client,
}

/// A whole answer.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: reqwest::header::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Web {
    pub(crate) fn new() -> Self {
        // an error says that another part of this process has installed it already
        let _ = rustls::crypto::ring::default_provider().install_default();
        let runtime =
            tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
        let client = reqwest::Client::builder().timeout(TIMEOUT).build().expect("a client");
        Self { runtime, client }
    }

    /// GET with headers; `None` when nobody answers.
    pub(crate) fn try_get(&self, url: &str, headers: &[(&str, &str)]) -> Option<Answer> {
        let request = headers.iter().fold(self.client.get(url), |request, (name, value)| request.header(*name, *value));
        self.runtime.block_on(finish(request))
    }

    /// GET with headers.
    pub(crate) fn get(&self, url: &str, headers: &[(&str, &str)]) -> Answer {
        self.try_get(url, headers).unwrap_or_else(|| panic!("no answer from {url}"))
    }

    /// The same GET many times side by side.
    pub(crate) fn get_at_once(&self, copies: usize, url: &str, header: (&str, &str)) -> Vec<Answer> {
        let requests: Vec<_> = (0..copies).map(|_| self.client.get(url).header(header.0, header.1)).collect();
        self.runtime.block_on(async {
            let running: Vec<_> = requests.into_iter().map(|request| tokio::spawn(finish(request))).collect();
            let mut answers = Vec::new();
            for one in running {
                answers.push(one.await.expect("no panic").expect("an answer"));
            }
            answers
        })
    }

    /// POST of a JSON body; the answer's JSON.
    pub(crate) fn post(&self, url: &str, body: &Value) -> Value {
        let request = self.client.post(url).json(body);
        self.runtime.block_on(finish(request)).unwrap_or_else(|| panic!("no answer from {url}")).json()
    }
}

impl Answer {
    /// The body as JSON.
    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&self.body)))
    }

    /// A header as text.
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(|value| value.to_str().expect("a header of text"))
    }
}

async fn finish(request: reqwest::RequestBuilder) -> Option<Answer> {
    let response = request.send().await.ok()?;
    let (status, headers) = (response.status().as_u16(), response.headers().clone());
    let body = response.bytes().await.ok()?.to_vec();
    Some(Answer { status, headers, body })
}

//! A buyer that signs with test keys, and that can also send what no honest buyer sends.

use std::net::Ipv4Addr;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue, Method};
use jim::evm::{B256, SecretKey};
use jim::x402::{self, OutgoingPayment, PeerOffer, Version};
use serde_json::Value;

use super::service::{MEMO, Service};

/// Longer than any request of a test may take; a hang fails instead of blocking the run.
const REQUEST_WAIT: Duration = Duration::from_secs(60);

/// One for all tests: making one is slow. No connection is kept, since each test has a runtime of its own.
static CLIENT: LazyLock<reqwest::Client> = LazyLock::new(|| client(Ipv4Addr::LOCALHOST));

static NEXT_NONCE: AtomicU64 = AtomicU64::new(1);

/// A request.
#[derive(Clone, Debug)]
pub(crate) struct Ask {
    pub(crate) method: Method,
    pub(crate) path: String,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) headers: HeaderMap,
}

/// A response, whole.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Vec<u8>,
}

/// A buyer of one service.
#[derive(Clone)]
pub(crate) struct Buyer {
    client: reqwest::Client,
    key: SecretKey,
    base: String,
}

impl Ask {
    /// A GET.
    pub(crate) fn get(path: &str) -> Self {
        Self { method: Method::GET, path: path.into(), body: None, headers: HeaderMap::new() }
    }

    /// A POST of JSON to the path that is sold.
    pub(crate) fn post(json: &str) -> Self {
        let ask = Self { method: Method::POST, path: "/research/fundamentals".into(), ..Self::get("") };
        Self { body: Some(json.into()), ..ask }.header("content-type", "application/json")
    }

    /// The memo on the known subject.
    pub(crate) fn memo() -> Self {
        Self::get(MEMO)
    }

    /// With one more header line.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        self.headers.append(HeaderName::from_static(name), HeaderValue::from_str(value).expect("a header value"));
        self
    }

    /// With a payment.
    pub(crate) fn paid(self, payment: &OutgoingPayment) -> Self {
        self.header(payment.version.payment_header(), &payment.header_value)
    }
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.text()))
    }
}

impl Buyer {
    /// The buyer whose key is that byte, 32 times.
    pub(crate) fn new(service: &Service, key: u8) -> Self {
        let key = SecretKey::from_bytes([key; 32]).expect("a test key");
        Self { client: CLIENT.clone(), key, base: service.url("") }
    }

    /// The same buyer at another address of this machine: `127.0.0.n`.
    pub(crate) fn at(&self, n: u8) -> Self {
        Self { client: client(Ipv4Addr::new(127, 0, 0, n)), ..self.clone() }
    }

    pub(crate) fn address(&self) -> String {
        jim::evm::lower(&self.key.address())
    }

    /// Sends a request.
    pub(crate) async fn send(&self, ask: &Ask, payment: Option<&OutgoingPayment>) -> Reply {
        self.send_to(&format!("{}{}", self.base, ask.path), ask, payment).await
    }

    /// Sends a request to another address.
    pub(crate) async fn send_to(&self, url: &str, ask: &Ask, payment: Option<&OutgoingPayment>) -> Reply {
        let ask = payment.map_or_else(|| ask.clone(), |payment| ask.clone().paid(payment));
        let mut request = self.client.request(ask.method, url).headers(ask.headers);
        if let Some(body) = ask.body {
            request = request.body(body);
        }
        let response = request.send().await.expect("a response");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Reply { status, headers, body: response.bytes().await.expect("a body").to_vec() }
    }

    /// The terms of the memo, read from the half of the 402 that belongs to the version.
    pub(crate) async fn terms(&self, version: Version) -> PeerOffer {
        let reply = self.send(&Ask::memo(), None).await;
        assert_eq!(reply.status, 402, "{}", reply.text());
        offer_of(&reply, version)
    }

    /// A new payment for the memo.
    pub(crate) async fn sign(&self, version: Version) -> OutgoingPayment {
        self.sign_for(&self.terms(version).await, now_s())
    }

    /// A new payment for terms that may have been changed, at a moment.
    pub(crate) fn sign_for(&self, terms: &PeerOffer, now_s: u64) -> OutgoingPayment {
        x402::pay(terms, &self.key, next_nonce(), now_s)
    }

    /// Asks, and pays what is asked there: for a subject that the test's own source does not know.
    pub(crate) async fn buy_there(&self, ask: &Ask) -> Reply {
        let first = self.send(ask, None).await;
        assert_eq!(first.status, 402, "{}", first.text());
        self.send(ask, Some(&self.sign_for(&offer_of(&first, Version::V2), now_s()))).await
    }

    /// Signs and sends one payment in version 2.
    pub(crate) async fn buy(&self, ask: &Ask) -> (OutgoingPayment, Reply) {
        let payment = self.sign(Version::V2).await;
        let reply = self.send(ask, Some(&payment)).await;
        (payment, reply)
    }
}

fn client(from: Ipv4Addr) -> reqwest::Client {
    // the process may have one already; a second one changes nothing
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder().no_proxy().timeout(REQUEST_WAIT).pool_max_idle_per_host(0);
    builder.local_address(Some(from.into())).build().expect("a client")
}

/// The one offer of a 402.
pub(crate) fn offer_of(reply: &Reply, version: Version) -> PeerOffer {
    let read = match version {
        Version::V1 => x402::read_body(&reply.body),
        Version::V2 => x402::read_required(reply.header("payment-required").expect("terms in the header")),
    };
    let mut read = read.expect("readable terms");
    assert_eq!((read.offers.len(), read.unusable), (1, 0));
    read.offers.remove(0)
}

/// The reason that a 402 (or a 412, which has its shape) gives, the same in both halves.
pub(crate) fn reason_of(reply: &Reply) -> String {
    assert!(matches!(reply.status, 402 | 412), "{} {}", reply.status, reply.text());
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    let header = x402::read_required(reply.header("payment-required").expect("terms")).expect("readable");
    let body = x402::read_body(&reply.body).expect("readable");
    assert_eq!(header.error, body.error);
    header.error.expect("a reason")
}

/// The JSON inside a payment header, to be changed and packed again.
pub(crate) fn unpack(payment: &OutgoingPayment) -> Value {
    serde_json::from_slice(&STANDARD.decode(&payment.header_value).expect("base64")).expect("JSON")
}

/// Base64 of bytes, as a payment header is.
pub(crate) fn pack(bytes: impl AsRef<[u8]>) -> String {
    STANDARD.encode(bytes)
}

/// A nonce that no other payment of this process has.
pub(crate) fn next_nonce() -> B256 {
    let mut bytes = [7u8; 32];
    bytes[24..].copy_from_slice(&NEXT_NONCE.fetch_add(1, Ordering::Relaxed).to_be_bytes());
    B256::from(bytes)
}

/// Seconds since the epoch by the machine's clock.
pub(crate) fn now_s() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).expect("a clock after 1970").as_secs()
}

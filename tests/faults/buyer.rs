//! Signs payments and sends them, and writes down what came back.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use jim::evm::{B256, SecretKey};
use jim::x402::{self, OutgoingPayment, PeerOffer};
use serde_json::Value;
use sha2::{Digest, Sha256};

use super::history::{Charged, Exchange};

/// What is bought: the compiled-in sample has it.
const MEMO: &str = "/research/fundamentals?ticker=COIN";

/// Longer than any request may take: a hang fails.
const REQUEST_WAIT: Duration = Duration::from_secs(70);

/// A signed payment.
#[derive(Clone)]
pub(crate) struct Payment {
    /// Number of the purchase that it is for.
    pub(crate) purchase: usize,
    pub(crate) nonce: String,
    signed: OutgoingPayment,
}

/// Makes keys and nonces out of a seed, which is printed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seed(u64);

impl Seed {
    /// From `JIM_TEST_SEED`, or from the clock.
    pub(crate) fn read(test: &str) -> Self {
        let given = std::env::var("JIM_TEST_SEED").ok().and_then(|text| text.parse().ok());
        let clock = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        let seed = given.unwrap_or(clock);
        eprintln!("{test}: JIM_TEST_SEED={seed}");
        Self(seed)
    }

    /// A number that belongs to a name.
    pub(crate) fn number(self, name: &str) -> u64 {
        let word = self.word(name);
        u64::from_be_bytes(word[..8].try_into().expect("eight"))
    }

    /// The `copy`-th payment of a purchase, each purchase by a payer of its own.
    pub(crate) fn sign(self, offer: &PeerOffer, purchase: usize, copy: usize) -> Payment {
        let key = SecretKey::from_bytes(self.word(&format!("key {purchase}"))).expect("below the order of the curve");
        let nonce = B256::from(self.word(&format!("nonce {purchase} {copy}")));
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs();
        Payment { purchase, nonce: format!("{nonce:#x}"), signed: x402::pay(offer, &key, nonce, now) }
    }

    fn word(self, name: &str) -> [u8; 32] {
        Sha256::digest(format!("{} {name}", self.0).as_bytes()).into()
    }
}

/// A client that keeps no connection to a process that may be gone.
pub(crate) fn client() -> reqwest::Client {
    // the process may have one already; a second one changes nothing
    let _ = rustls::crypto::ring::default_provider().install_default();
    let builder = reqwest::Client::builder().no_proxy().timeout(REQUEST_WAIT).pool_max_idle_per_host(0);
    builder.build().expect("a client")
}

/// The terms of the memo; None when nobody answers.
pub(crate) async fn fetch_offer(client: &reqwest::Client, url: &str) -> PeerOffer {
    let response = client.get(format!("{url}{MEMO}")).send().await.expect("terms");
    assert_eq!(response.status(), 402);
    let header = response.headers().get(x402::REQUIRED_HEADER).and_then(|v| v.to_str().ok()).expect("terms");
    x402::read_required(header).expect("readable terms").offers.remove(0)
}

/// Sends a payment once; None when the connection ended without a whole answer.
pub(crate) async fn send(client: &reqwest::Client, url: &str, payment: &Payment) -> Option<Exchange> {
    let sent = Instant::now();
    let Payment { purchase, nonce, signed } = payment;
    let request = client.get(format!("{url}{MEMO}")).header(signed.version.payment_header(), &signed.header_value);
    let response = request.send().await.ok()?;
    let status = response.status().as_u16();
    let body = response.bytes().await.ok()?.to_vec();
    let (code, charged) = match status {
        200 | 402 => (String::new(), Charged::Unsaid),
        _ => read_problem(&body),
    };
    Some(Exchange { purchase: *purchase, nonce: nonce.clone(), sent, status, code, charged, body })
}

fn read_problem(body: &[u8]) -> (String, Charged) {
    let value: Value = serde_json::from_slice(body).unwrap_or_default();
    let charged = match &value["charged"] {
        Value::Bool(false) => Charged::No,
        Value::String(text) if text == "unknown" => Charged::Unknown,
        _ => Charged::Unsaid,
    };
    (value["code"].as_str().unwrap_or_default().to_owned(), charged)
}

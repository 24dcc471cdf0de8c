//! Buyers who send the same payment again until it has come to its end, wherever somebody answers.

use std::sync::{Arc, RwLock};
use std::time::{Duration, Instant};

use jim::x402::PeerOffer;

use super::buyer::{self, Payment};
use super::history::{Exchange, History};

/// How long a payment is sent again before the test fails.
const BUDGET: Duration = Duration::from_secs(90);

/// Where buyers buy.
#[derive(Clone)]
pub(crate) struct Market {
    pub(crate) client: reqwest::Client,
    pub(crate) offer: PeerOffer,
    pub(crate) history: Arc<History>,
    urls: Arc<RwLock<Vec<String>>>,
}

/// How a payment came to its end.
#[derive(Clone, Debug)]
pub(crate) struct Resolved {
    pub(crate) end: Exchange,
    pub(crate) begun: Instant,
    pub(crate) done: Instant,
    /// Answers that said "come again", and connections that ended.
    pub(crate) repeats: u32,
}

impl Market {
    /// At these addresses, whose terms are the same.
    pub(crate) async fn open(client: reqwest::Client, urls: Vec<String>) -> Self {
        let offer = buyer::fetch_offer(&client, &urls[0]).await;
        Self { client, offer, history: Arc::default(), urls: Arc::new(RwLock::new(urls)) }
    }

    /// The seller has moved.
    pub(crate) fn move_to(&self, urls: Vec<String>) {
        *self.urls.write().expect("no panic") = urls;
    }

    /// The addresses.
    pub(crate) fn urls(&self) -> Vec<String> {
        self.urls.read().expect("no panic").clone()
    }

    /// Sends a payment once and writes the answer down.
    pub(crate) async fn send(&self, url: &str, payment: &Payment) -> Option<Exchange> {
        let exchange = buyer::send(&self.client, url, payment).await?;
        self.history.add(exchange.clone());
        Some(exchange)
    }

    /// Sends it to one address after the other until it has come to its end.
    pub(crate) async fn resolve(&self, payment: &Payment, pause: Duration) -> Resolved {
        let begun = Instant::now();
        let mut repeats = 0u32;
        loop {
            let urls = self.urls();
            let turn = payment.purchase + usize::try_from(repeats).expect("few");
            let answer = self.send(&urls[turn % urls.len()], payment).await;
            match answer {
                Some(end) if end.is_final() => return Resolved { end, begun, done: Instant::now(), repeats },
                other => {
                    assert!(begun.elapsed() < BUDGET, "purchase {} never ended: {other:?}", payment.purchase);
                    repeats += 1;
                    tokio::time::sleep(pause).await;
                }
            }
        }
    }
}

/// The median and the longest of some times, in milliseconds.
pub(crate) fn middle_and_longest(mut times: Vec<Duration>) -> (u128, u128) {
    times.sort();
    let at = |index: usize| times.get(index).map_or(0, Duration::as_millis);
    (at(times.len() / 2), at(times.len().saturating_sub(1)))
}

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use axum::Router;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::{get, post};
use serde_json::json;
use tokio::net::TcpListener;

use super::*;
use crate::facilitator::Budgets;
use crate::x402::{Version, decode, facilitator_request, fixture};

const SHORT: Budgets = Budgets { verify: Duration::from_millis(500), settle: Duration::from_millis(500) };

/// A facilitator that can be made ill, and counts what reaches it.
struct Stub {
    url: String,
    ill: Arc<AtomicBool>,
    verifies: Arc<AtomicUsize>,
    settles: Arc<AtomicUsize>,
}

impl Stub {
    async fn start(network: &'static str) -> Self {
        let (ill, verifies, settles) = (Arc::default(), Arc::default(), Arc::default());
        let counted = |count: &Arc<AtomicUsize>, body: serde_json::Value| {
            let (count, ill): (_, Arc<AtomicBool>) = (Arc::clone(count), Arc::clone(&ill));
            move || async move {
                count.fetch_add(1, Ordering::SeqCst);
                let sick = ill.load(Ordering::SeqCst);
                let answer: Response =
                    if sick { StatusCode::BAD_GATEWAY.into_response() } else { axum::Json(body).into_response() };
                answer
            }
        };
        let kinds = json!({"kinds": [{"x402Version": 2, "scheme": "exact", "network": network}]});
        let tx = format!("0x{}", "ab".repeat(32));
        let app = Router::new()
            .route("/supported", get(counted(&Arc::default(), kinds)))
            .route("/verify", post(counted(&verifies, json!({"isValid": true}))))
            .route("/settle", post(counted(&settles, json!({"success": true, "transaction": tx}))));
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}", listener.local_addr().expect("an address"));
        tokio::spawn(async move { axum::serve(listener, app).await });
        Self { url, ill, verifies, settles }
    }

    fn counts(&self) -> (usize, usize) {
        (self.verifies.load(Ordering::SeqCst), self.settles.load(Ordering::SeqCst))
    }

    fn be_ill(&self, ill: bool) {
        self.ill.store(ill, Ordering::SeqCst);
    }
}

fn pool(stubs: &[&Stub]) -> Pool {
    let remotes = stubs.iter().map(|stub| Remote::new(&stub.url, SHORT).expect("a URL")).collect();
    Pool::new(remotes, Network::new(84_532)).expect("a pool")
}

fn request() -> FacilitatorRequest {
    let payment = decode(Version::V2, &fixture::payment(Version::V2, 1).header_value).expect("a payment");
    facilitator_request(&payment, &fixture::offer()).expect("a call").into()
}

async fn chosen(pool: &Pool) -> String {
    pool.verify(&request()).await.expect("a verdict").facilitator
}

#[tokio::test]
async fn the_first_that_lists_our_kind_is_chosen_and_none_before_it_was_asked() {
    let (other, first, second) =
        (Stub::start("eip155:1").await, Stub::start("eip155:84532").await, Stub::start("eip155:84532").await);
    let pool = pool(&[&other, &first, &second]);
    assert!(pool.verify(&request()).await.is_err());
    assert_eq!(pool.fetch_supported().await.map(|kinds| kinds.len()), Ok(3));
    assert_eq!(chosen(&pool).await, first.url);
    let listed: Vec<_> = pool.members().into_iter().map(|member| (member.name, member.supported)).collect();
    assert_eq!(listed, [(other.url, false), (first.url, true), (second.url, true)]);
}

#[tokio::test]
async fn one_that_fails_rests_and_comes_back() {
    let (first, second) = (Stub::start("eip155:84532").await, Stub::start("eip155:84532").await);
    let pool = pool(&[&first, &second]);
    pool.fetch_supported().await.expect("kinds");
    first.be_ill(true);
    assert!(pool.verify(&request()).await.is_err(), "no second facilitator is tried within one call");
    assert_eq!(second.counts(), (0, 0));
    assert_eq!(chosen(&pool).await, second.url);
    assert!(pool.members()[0].failing.is_some());
    // when all of them fail, the one whose rest ends first is still tried
    second.be_ill(true);
    assert!(pool.verify(&request()).await.is_err());
    first.be_ill(false);
    assert_eq!(chosen(&pool).await, first.url);
    assert_eq!(pool.members()[0].failing, None);
}

#[tokio::test]
async fn rests_grow_to_their_bound_and_a_verdict_ends_them() {
    let now = Instant::now();
    let mut health = Health::new(now);
    let rests: Vec<u64> = (0..8).map(|_| health.fail("x", now).as_secs()).collect();
    assert_eq!(rests, [1, 2, 4, 8, 16, 30, 30, 30]);
    health.answered();
    assert_eq!((health.fail("x", now), health.rest_until), (FACILITATOR_REST_MIN, Some(now + FACILITATOR_REST_MIN)));
}

#[tokio::test]
async fn a_payment_is_settled_where_it_was_verified_or_not_at_all() {
    let (first, second) = (Stub::start("eip155:84532").await, Stub::start("eip155:84532").await);
    let both = pool(&[&first, &second]);
    both.fetch_supported().await.expect("kinds");
    first.be_ill(true);
    assert!(matches!(both.settle_at(&first.url, &request()).await, Settlement::Unknown { .. }));
    assert_eq!(chosen(&both).await, second.url, "a settle call that fails counts against the next choice");
    // ill and resting, and still the only one that may settle it
    first.be_ill(false);
    assert!(matches!(both.settle_at(&first.url, &request()).await, Settlement::Settled { .. }));
    assert_eq!((first.counts().1, second.counts().1), (2, 0));
    let without = pool(&[&second]);
    without.fetch_supported().await.expect("kinds");
    let end = without.settle_at(&first.url, &request()).await;
    assert!(matches!(end, Settlement::Unknown { reason, transaction: None } if reason.contains(&first.url)));
    assert_eq!((first.counts().1, second.counts().1), (2, 0));
}

#[tokio::test]
async fn a_pool_of_none_or_of_the_same_twice_is_refused() {
    let twice = ["http://a.example/x", "http://A.example:80/x/"].map(|url| Remote::new(url, SHORT).expect("a URL"));
    assert!(Pool::new(twice.into(), Network::new(1)).is_err());
    assert!(Pool::new(Vec::new(), Network::new(1)).is_err());
    let apart = ["http://a.example/x", "http://a.example/y"].map(|url| Remote::new(url, SHORT).expect("a URL"));
    assert_eq!(Pool::new(apart.into(), Network::new(1)).expect("two").sole(), None);
}

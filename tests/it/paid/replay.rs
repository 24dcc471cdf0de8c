//! The same payment sent again: the same bytes, charged once, whenever and wherever it comes.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jim::clock::Clock;
use jim::x402::Version;
use time::{Duration, OffsetDateTime};

use crate::support::buyer::{Ask, Buyer, Reply, now_s, reason_of};
use crate::support::facilitator::{Answer, StubFacilitator};
use crate::support::rows::{Rows, assert_invariants};
use crate::support::service::Service;

/// The machine's clock, moved.
#[derive(Default)]
pub(crate) struct MovedClock(AtomicI64);

impl MovedClock {
    pub(crate) fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds, Ordering::SeqCst);
    }
}

impl Clock for MovedClock {
    fn now(&self) -> OffsetDateTime {
        OffsetDateTime::now_utc() + Duration::seconds(self.0.load(Ordering::SeqCst))
    }
}

fn assert_replayed(first: &Reply, again: &Reply) {
    assert_eq!(again.status, 200, "{}", again.text());
    assert_eq!(again.body, first.body);
    assert_eq!(again.header("idempotent-replay"), Some("true"));
    for name in ["content-type", "x-order-id", "payment-response", "x-payment-response"] {
        assert_eq!(again.header(name), first.header(name), "{name}");
    }
}

#[tokio::test]
async fn a_repeat_brings_the_same_bytes_and_settles_nothing() {
    for version in [Version::V1, Version::V2] {
        let service = Service::start().await;
        let buyer = Buyer::new(&service, 1);
        let payment = buyer.sign(version).await;
        let first = buyer.send(&Ask::memo(), Some(&payment)).await;
        let again = buyer.send(&Ask::memo(), Some(&payment)).await;
        assert_replayed(&first, &again);
        assert_eq!((service.settle_calls(), service.world.scribe.drafts()), (1, 1));
        assert_eq!(service.rows().await, Rows { served: 1, ..Rows::SOLD });
        assert_invariants(&service.world.database.pool).await;
    }
}

#[tokio::test]
async fn the_order_of_query_parameters_is_no_other_request() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V2).await;
    let first = buyer.send(&Ask::get("/research/fundamentals?ticker=ACME&mode=human"), Some(&payment)).await;
    let again = buyer.send(&Ask::get("/research/fundamentals?mode=human&ticker=ACME"), Some(&payment)).await;
    assert_replayed(&first, &again);
}

#[tokio::test]
async fn a_repeat_after_the_window_has_passed_is_still_answered() {
    let clock = Arc::new(MovedClock::default());
    let service = Service::start_with(|_, parts| parts.clock = Some(Arc::clone(&clock) as _)).await;
    let buyer = Buyer::new(&service, 1);
    let (payment, first) = buyer.buy(&Ask::memo()).await;
    clock.advance(3_600 * 24);
    let again = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_replayed(&first, &again);
    let stale = buyer.sign_for(&buyer.terms(Version::V2).await, now_s());
    let reply = buyer.send(&Ask::memo(), Some(&stale)).await;
    assert!(reason_of(&reply).contains("valid_before"), "a payment that was never taken is not taken now");
    assert_eq!(service.settle_calls(), 1);
    assert_eq!(service.rows().await, Rows { served: 1, ..Rows::SOLD });
}

#[tokio::test]
async fn a_repeat_after_a_restart_is_answered_from_the_rows() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let (payment, first) = buyer.buy(&Ask::memo()).await;
    let service = service.stop().await.open().await;
    assert!(service.app.wait_until_supported(std::time::Duration::from_secs(10)).await);
    let again = Buyer::new(&service, 1).send(&Ask::memo(), Some(&payment)).await;
    assert_replayed(&first, &again);
    assert_eq!((service.settle_calls(), service.world.scribe.drafts()), (0, 1));
    assert_eq!(service.rows().await, Rows { served: 1, ..Rows::SOLD });
}

#[tokio::test]
async fn a_repeat_in_the_other_version_is_the_same_payment() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let (payment, first) = buyer.buy(&Ask::memo()).await;
    let mut v1 = crate::support::buyer::unpack(&payment);
    v1["x402Version"] = 1.into();
    v1["scheme"] = "exact".into();
    v1["network"] = "base-sepolia".into();
    let members = v1.as_object_mut().expect("an object");
    members.remove("accepted");
    members.remove("resource");
    let ask = Ask::memo().header("x-payment", &crate::support::buyer::pack(v1.to_string()));
    let again = buyer.send(&ask, None).await;
    assert_eq!((again.status, &again.body), (200, &first.body), "{}", again.text());
    assert_eq!(service.settle_calls(), 1);
}

#[tokio::test]
async fn a_payment_that_was_given_back_and_then_ran_out_is_asked_for_anew() {
    let clock = Arc::new(MovedClock::default());
    let stub = StubFacilitator::start().await;
    let service = Service::start_with(|settings, parts| {
        settings.payments.facilitator_urls = vec![stub.url()];
        parts.clock = Some(Arc::clone(&clock) as _);
    });
    let service = service.await;
    stub.on_verify([Answer::Drop]);
    let buyer = Buyer::new(&service, 1);
    let (payment, first) = buyer.buy(&Ask::memo()).await;
    assert_eq!(first.json()["code"], "overloaded");
    clock.advance(3_600);
    let again = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert!(reason_of(&again).contains("valid_before"), "waiting longer would never help");
    assert_eq!((stub.calls("verify").len(), stub.settles()), (1, 0));
}

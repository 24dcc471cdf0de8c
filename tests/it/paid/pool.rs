//! Two facilitators: the first healthy one verifies, and whoever verified a payment is the only one that ever settles it.

use serde_json::json;

use crate::support::buyer::{Ask, Buyer};
use crate::support::facilitator::{Answer, StubFacilitator};
use crate::support::refusal::{assert_pending, assert_refusal};
use crate::support::rows::{Rows, assert_invariants};
use crate::support::service::Service;

async fn start(first: &StubFacilitator, second: &StubFacilitator) -> Service {
    let urls = vec![first.url(), second.url()];
    let service = Service::start_with(|settings, _| settings.payments.facilitator_urls = urls).await;
    for _ in 0..200 {
        if service.app.facilitators().iter().all(|member| member.supported) {
            return service;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    panic!("{:?}", service.app.facilitators());
}

#[tokio::test]
async fn a_lost_settle_answer_is_asked_for_where_it_was_lost() {
    let (first, second) = (StubFacilitator::start().await, StubFacilitator::start().await);
    let service = start(&first, &second).await;
    first.on_settle([Answer::Drop]);
    let buyer = Buyer::new(&service, 1);
    let (payment, reply) = buyer.buy(&Ask::memo()).await;
    assert_pending(&reply);
    // the first one rests now, so another payment goes to the second
    let (_, other) = Buyer::new(&service, 2).buy(&Ask::memo()).await;
    assert_eq!((other.status, first.settles(), second.settles()), (200, 1, 1));
    // and the open one still goes to the first
    let again = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!((again.status, first.settles(), second.settles()), (200, 2, 1), "{}", again.text());
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn one_that_is_closed_is_passed_over_and_shown() {
    let (mut first, second) = (StubFacilitator::start().await, StubFacilitator::start().await);
    let service = start(&first, &second).await;
    first.close().await;
    let buyer = Buyer::new(&service, 1);
    let (payment, reply) = buyer.buy(&Ask::memo()).await;
    let body = assert_refusal(&service, &reply, 503, "overloaded").await;
    assert_eq!(body["retry"]["same_payment"], true);
    let sold = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!((sold.status, second.settles()), (200, 1), "{}", sold.text());
    assert_eq!(service.rows().await, Rows { claims: 2, ..Rows::SOLD });
    let ready = service.get("/ready").await;
    let shown = json!([
        {"name": first.url(), "supports_our_kind": true, "failing": true},
        {"name": second.url(), "supports_our_kind": true, "failing": false},
    ]);
    assert_eq!((ready.status, &ready.json()["facilitators"]), (200, &shown));
}

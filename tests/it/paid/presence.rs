//! Buyers who hang up: not charged before the settle call, and answered later either way.

use std::sync::Arc;
use std::time::Duration;

use jim::x402::{OutgoingPayment, Version};
use tokio::io::AsyncWriteExt;
use tokio::net::TcpStream;
use tokio::sync::Notify;

use crate::support::buyer::{Ask, Buyer};
use crate::support::facilitator::{Answer, StubFacilitator};
use crate::support::refusal::assert_pending;
use crate::support::research::{Manner, Scribe};
use crate::support::rows::{Rows, assert_invariants};
use crate::support::service::{MEMO, Service};

/// Sends a paid request on a bare connection, to be dropped at will.
async fn knock(service: &Service, payment: &OutgoingPayment) -> TcpStream {
    let mut stream = TcpStream::connect(service.app.public_addr).await.expect("a connection");
    let request = format!(
        "GET {MEMO} HTTP/1.1\r\nhost: jim.example\r\n{}: {}\r\n\r\n",
        payment.version.payment_header(),
        payment.header_value
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    stream
}

async fn wait_until(service: &Service, what: &str, good: impl Fn(&Rows) -> bool) {
    for _ in 0..1_000 {
        if good(&service.rows().await) {
            return;
        }
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    panic!("{what}: {:?}", service.rows().await);
}

#[tokio::test]
async fn who_hangs_up_during_the_work_is_not_charged_and_may_come_back() {
    let gate = Arc::new(Notify::new());
    let scribe = Scribe::new(Manner::Held(Arc::clone(&gate)));
    let service = Service::start_with(|_, parts| parts.synthesizer = Some(Arc::clone(&scribe) as _)).await;
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V2).await;
    let stream = knock(&service, &payment).await;
    while scribe.drafts() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    drop(stream);
    tokio::time::sleep(Duration::from_millis(100)).await;
    gate.notify_one();
    wait_until(&service, "the answer is stored", |rows| rows.answers == 1).await;
    let waiting = Rows { settle_attempts: 0, settlements: 0, ledger: 0, served: 1, ..Rows::SOLD };
    assert_eq!((service.rows().await, service.settle_calls()), (waiting, 0));
    let reply = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!((service.settle_calls(), scribe.drafts()), (1, 1), "settled once, and the work was not done again");
    assert_eq!(service.rows().await, Rows { served: 1, ..Rows::SOLD });
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn who_hangs_up_during_settle_finds_the_answer_paid_once() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    stub.on_settle([Answer::Late(Duration::from_millis(300))]);
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V2).await;
    let stream = knock(&service, &payment).await;
    stub.wait_for("settle", 1).await;
    drop(stream);
    wait_until(&service, "the settlement is recorded", |rows| rows.settlements == 1).await;
    let reply = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!((stub.settles(), service.world.scribe.drafts()), (1, 1));
    assert_eq!(service.rows().await, Rows { served: 1, ..Rows::SOLD });
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn a_copy_that_comes_while_settle_runs_waits_for_its_outcome() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    stub.on_settle([Answer::Late(Duration::from_millis(400)), Answer::Late(Duration::from_secs(6))]);
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V2).await;
    let first = knock(&service, &payment).await;
    stub.wait_for("settle", 1).await;
    let copy = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!((copy.status, copy.header("idempotent-replay")), (200, Some("true")));
    drop(first);
    // when it takes longer than is worth waiting for, the copy is told that the outcome is open
    let slow = Buyer::new(&service, 2);
    let payment = slow.sign(Version::V2).await;
    let held = knock(&service, &payment).await;
    stub.wait_for("settle", 2).await;
    let copy = slow.send(&Ask::memo(), Some(&payment)).await;
    assert_pending(&copy);
    drop(held);
    assert_eq!(stub.settles(), 2);
}

#[tokio::test]
async fn a_stop_waits_for_paid_work() {
    let scribe = Scribe::new(Manner::Slow(Duration::from_millis(400)));
    let service = Service::start_with(|_, parts| parts.synthesizer = Some(Arc::clone(&scribe) as _)).await;
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V2).await;
    let sending = tokio::spawn(async move { buyer.send(&Ask::memo(), Some(&payment)).await });
    while scribe.drafts() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    let world = service.stop().await;
    let reply = sending.await.expect("no panic");
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(Rows::load(&world.database.pool).await, Rows::SOLD);
}

//! Many copies at once: one run, one settle call, one answer.

use jim::x402::Version;

use crate::support::buyer::{Ask, Buyer};
use crate::support::facilitator::StubFacilitator;
use crate::support::research::{Manner, Scribe};
use crate::support::rows::assert_invariants;
use crate::support::service::Service;

const COPIES: usize = 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn copies_of_one_payment_bring_one_run_one_settle_and_one_answer() {
    for round in 0..3 {
        let stub = StubFacilitator::start().await;
        let scribe = Scribe::new(Manner::Slow(std::time::Duration::from_millis(40 * round)));
        let service = Service::start_with(|settings, parts| {
            settings.payments.facilitator_urls = vec![stub.url()];
            parts.synthesizer = Some(std::sync::Arc::clone(&scribe) as _);
        });
        let service = service.await;
        let buyer = Buyer::new(&service, 1);
        let payment = buyer.sign(Version::V2).await;
        let copies: Vec<_> = (0..COPIES)
            .map(|_| {
                let (buyer, payment) = (buyer.clone(), payment.clone());
                tokio::spawn(async move { buyer.send(&Ask::memo(), Some(&payment)).await })
            })
            .collect();
        let mut bodies = Vec::new();
        for copy in copies {
            let reply = copy.await.expect("no panic");
            match reply.status {
                200 => bodies.push(reply.body),
                409 => assert_eq!(reply.json()["code"], "payment_in_progress"),
                other => panic!("{other}: {}", reply.text()),
            }
        }
        assert!(!bodies.is_empty(), "nobody got the answer");
        bodies.dedup();
        assert_eq!(bodies.len(), 1, "two answers to one payment");
        assert_eq!((scribe.drafts(), stub.settles(), stub.calls("verify").len()), (1, 1, 1));
        let rows = service.rows().await;
        assert_eq!(
            (rows.payments, rows.claims, rows.answers, rows.settlements, rows.runs, rows.ledger),
            (1, 1, 1, 1, 1, 1)
        );
        assert_invariants(&service.world.database.pool).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_authorizations_of_one_purchase_at_once_are_charged_once() {
    let scribe = Scribe::new(Manner::Slow(std::time::Duration::from_millis(150)));
    let service = Service::start_with(|_, parts| parts.synthesizer = Some(std::sync::Arc::clone(&scribe) as _)).await;
    let buyer = Buyer::new(&service, 1);
    let mut copies = Vec::new();
    for _ in 0..4 {
        let payment = buyer.sign(Version::V2).await;
        copies.push((buyer.clone(), payment));
    }
    let sent = copies
        .into_iter()
        .map(|(buyer, payment)| tokio::spawn(async move { buyer.send(&Ask::memo(), Some(&payment)).await.status }));
    let mut statuses = Vec::new();
    for task in sent.collect::<Vec<_>>() {
        statuses.push(task.await.expect("no panic"));
    }
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409, 409]);
    assert_eq!((service.settle_calls(), scribe.drafts()), (1, 1));
}

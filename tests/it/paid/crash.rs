//! A process that dies at the worst moment: what it leaves behind, and what its successor makes of it.

use std::time::Duration;

use jim::x402::{OutgoingPayment, Version};
use serde_json::json;

use crate::support::buyer::{Ask, Buyer};
use crate::support::facilitator::{Answer, StubFacilitator};
use crate::support::research::{Manner, Scribe};
use crate::support::rows::{Rows, assert_invariants, column};
use crate::support::service::{Service, World};

/// A process that is killed while settle runs: its successor does not settle by itself, and the same payment resolves it.
#[test]
fn a_process_that_dies_in_mid_settle_leaves_an_unknown_outcome() {
    let here = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let there = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let (stub, world) = here.block_on(async {
        let stub = StubFacilitator::start().await;
        stub.on_settle([Answer::Late(Duration::from_secs(30))]);
        let world = World::prepare(|settings, _| settings.payments.facilitator_urls = vec![stub.url()]).await;
        (stub, world)
    });
    let service = there.block_on(world.open());
    let killed = here.block_on(async {
        assert!(service.app.wait_until_supported(Duration::from_secs(10)).await);
        let buyer = Buyer::new(&service, 1);
        let payment = buyer.sign(Version::V2).await;
        let sending = spawn_send_quietly(&buyer, &payment);
        stub.wait_for("settle", 1).await;
        (stub, service, payment, sending)
    });
    there.shutdown_background();
    here.block_on(async move {
        let (stub, service, payment, sending) = killed;
        let Service { app, world } = service;
        sending.abort();
        drop(app);
        sqlx::query("update instances set beat_at = '-infinity'").execute(&world.database.pool).await.expect("dead");
        let service = world.open().await;
        assert!(service.app.wait_until_supported(Duration::from_secs(10)).await);
        let open = Rows { settlements: 0, ledger: 0, ..Rows::SOLD };
        assert_eq!((service.rows().await, stub.settles()), (open, 1), "a start settles nothing");
        stub.on_settle([Answer::Json(200, json!({"success": false, "errorReason": "nonce_already_used"}))]);
        let reply = Buyer::new(&service, 1).send(&Ask::memo(), Some(&payment)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(settlements(&service).await, ["f -"]);
        assert_eq!((stub.settles(), service.world.scribe.drafts()), (2, 1));
    });
}

/// A process that is killed while it works: its claim is free for the same payment, which is worked on and charged once.
#[test]
fn a_process_that_dies_at_work_leaves_a_claim_that_can_be_taken_over() {
    let here = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let there = tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime");
    let slow = Scribe::new(Manner::Slow(Duration::from_secs(30)));
    let world = here.block_on(World::prepare(|_, parts| parts.synthesizer = Some(std::sync::Arc::clone(&slow) as _)));
    let service = there.block_on(world.open());
    let payment = here.block_on(async {
        assert!(service.app.wait_until_supported(Duration::from_secs(10)).await);
        let buyer = Buyer::new(&service, 1);
        let payment = buyer.sign(Version::V2).await;
        spawn_send_quietly(&buyer, &payment);
        while slow.drafts() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        payment
    });
    there.shutdown_background();
    here.block_on(async move {
        let Service { app, mut world } = service;
        drop(app);
        sqlx::query("update instances set beat_at = '-infinity'").execute(&world.database.pool).await.expect("dead");
        world.change(|_, parts| parts.synthesizer = Some(Scribe::new(Manner::Honest)));
        let service = world.open().await;
        assert!(service.app.wait_until_supported(Duration::from_secs(10)).await);
        let reply = Buyer::new(&service, 1).send(&Ask::memo(), Some(&payment)).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!((service.rows().await, service.settle_calls()), (Rows { claims: 2, ..Rows::SOLD }, 1));
        assert_invariants(&service.world.database.pool).await;
    });
}

async fn settlements(service: &Service) -> Vec<String> {
    let select = "select concat_ws(' ', proven, coalesce(transaction, '-')) from settlements";
    column(&service.world.database.pool, select).await
}

/// Sends a request whose answer never comes.
fn spawn_send_quietly(buyer: &Buyer, payment: &OutgoingPayment) -> tokio::task::JoinHandle<()> {
    let (buyer, payment) = (buyer.clone(), payment.clone());
    tokio::spawn(async move {
        buyer.send(&Ask::memo(), Some(&payment)).await;
    })
}

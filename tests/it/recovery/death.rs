//! What a process that died leaves, where no chain is read: its moves are written, and nothing else is done.

use std::time::Duration;

use jim::x402::Version;

use super::until;
use crate::support::buyer::{Ask, Buyer};
use crate::support::facilitator::{Answer, StubFacilitator};
use crate::support::research::{Manner, Scribe};
use crate::support::rows::{Rows, assert_invariants, column};
use crate::support::service::{Service, World};

const STATES: &str = "select to_state from payment_events order by payment_id, seq";

/// Two runtimes, since one that is shut down dies as a process does: in the middle of whatever it was at.
fn runtimes() -> [tokio::runtime::Runtime; 2] {
    [(); 2].map(|()| tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime"))
}

#[test]
fn what_died_in_mid_settle_is_written_before_the_listener_opens_and_nothing_is_settled() {
    let [here, there] = runtimes();
    let (stub, world) = here.block_on(async {
        let stub = StubFacilitator::start().await;
        stub.on_settle([Answer::Late(Duration::from_secs(30))]);
        let world = World::prepare(|settings, _| settings.payments.facilitator_urls = vec![stub.url()]).await;
        (stub, world)
    });
    let service = there.block_on(world.open());
    let mut sending = None;
    here.block_on(async {
        assert!(service.app.wait_until_supported(Duration::from_secs(10)).await);
        let buyer = Buyer::new(&service, 1);
        let payment = buyer.sign(Version::V2).await;
        sending = Some(tokio::spawn(async move { buyer.send(&Ask::memo(), Some(&payment)).await }));
        stub.wait_for("settle", 1).await;
    });
    there.shutdown_background();
    here.block_on(async move {
        sending.expect("it was sent").abort();
        let Service { app, world } = service;
        drop(app);
        let pool = world.database.pool.clone();
        sqlx::query("update instances set beat_at = '-infinity'").execute(&pool).await.expect("dead");
        assert_eq!(column(&pool, STATES).await, ["claimed", "settling"]);
        let service = world.open().await;
        assert_eq!(column(&pool, STATES).await, ["claimed", "settling", "unknown"], "written on start");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let open = Rows { settlements: 0, ledger: 0, ..Rows::SOLD };
        assert_eq!((service.rows().await, stub.settles()), (open, 1), "no chain: only what died is written");
        assert_invariants(&pool).await;
    });
}

/// Another replica is there all the time: it writes the move without a restart.
#[test]
fn what_died_at_work_is_written_by_a_replica_that_runs() {
    let [here, there] = runtimes();
    let slow = Scribe::new(Manner::Slow(Duration::from_secs(30)));
    let (stub, world) = here.block_on(async {
        let stub = StubFacilitator::start().await;
        let world = World::prepare(|settings, parts| {
            settings.payments.facilitator_urls = vec![stub.url()];
            parts.synthesizer = Some(std::sync::Arc::clone(&slow) as _);
        })
        .await;
        (stub, world)
    });
    let service = there.block_on(world.open());
    let url = service.world.database.url();
    let other = here.block_on(Service::start_with(|settings, parts| {
        settings.payments.facilitator_urls = vec![stub.url()];
        settings.database_url = Some(url);
        parts.recovery_pause = Some(super::PAUSE);
    }));
    here.block_on(async {
        assert!(service.app.wait_until_supported(Duration::from_secs(10)).await);
        let buyer = Buyer::new(&service, 1);
        let payment = buyer.sign(Version::V2).await;
        tokio::spawn(async move { buyer.send(&Ask::memo(), Some(&payment)).await });
        while slow.drafts() == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    });
    there.shutdown_background();
    here.block_on(async move {
        let Service { app, world } = service;
        drop(app);
        let pool = world.database.pool.clone();
        // nobody helps: the heart of the dead one has stopped
        until(&pool, STATES, &["claimed", "abandoned"]).await;
        let actors = column(&pool, "select actor || ': ' || evidence from payment_events where seq = 2").await;
        assert_eq!((actors, stub.settles()), (vec!["claim: its owner is dead".to_owned()], 0));
        assert_invariants(&pool).await;
        drop(other);
    });
}

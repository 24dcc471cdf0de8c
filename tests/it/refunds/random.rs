//! Random histories of one refund: it is never paid twice, and once the faults stop it is paid and confirmed.

use jim::evm::U256;
use proptest::prelude::{Just, Strategy, prop_oneof};
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use super::bench::Bench;
use super::node::Act;

/// Names the seed of a run that is to be repeated.
const SEED: &str = "JIM_TEST_REFUND_SEED";

/// Rounds after the last fault: one that fails on what still waits, one that sends, one that confirms.
const ROUNDS: usize = 4;

#[derive(Clone, Debug)]
enum Event {
    /// A round whose broadcast, if any, goes like this.
    Round(Act),
    /// A round in which the process dies, before or after the broadcast.
    Crash(Act),
    /// What waits is mined.
    Mine,
    /// Signatures end.
    Expire,
    /// The database is as before anything was done.
    Restore,
    /// Somebody else's process takes part.
    Second,
}

fn event() -> impl Strategy<Value = Event> {
    prop_oneof![
        Just(Event::Round(Act::Mine)),
        Just(Event::Round(Act::Wait)),
        Just(Event::Round(Act::Lose)),
        Just(Event::Round(Act::Refuse)),
        Just(Event::Round(Act::TakeAndFail)),
        Just(Event::Crash(Act::DieBefore)),
        Just(Event::Crash(Act::DieAfter)),
        Just(Event::Mine),
        Just(Event::Expire),
        Just(Event::Restore),
        Just(Event::Second),
    ]
}

/// One history; the state of the refund is told only by the chain.
async fn live(bench: &Bench, events: &[Event]) {
    let debt = bench.owe(1, 50_000).await;
    let before = bench.node.paid_to(debt.to).len();
    let paid = || bench.node.paid_to(debt.to).len() - before;
    let mut worker = bench.worker().await;
    let second = bench.worker().await;
    for event in events {
        bench.hurry().await;
        match event {
            Event::Round(act) => {
                bench.node.script([act.clone()]);
                worker.run().await;
            }
            Event::Crash(act) => {
                bench.node.script([act.clone()]);
                worker.try_to_die().await;
                worker = bench.worker().await;
            }
            Event::Mine => bench.node.mine(),
            Event::Expire => bench.node.advance(3_700),
            Event::Restore => bench.restore().await,
            Event::Second => {
                bench.node.script([]);
                tokio::join!(worker.run(), second.run());
            }
        }
        assert!(paid() <= 1, "paid twice");
        let is_confirmed = bench.row(debt).await.state == "confirmed";
        assert!(paid() == 1 || !is_confirmed, "called sent, and nothing was");
    }
    bench.node.script([]);
    for _ in 0..ROUNDS {
        bench.node.mine();
        bench.hurry().await;
        worker.run().await;
    }
    assert_eq!(paid(), 1);
    assert!(bench.node.paid_to(debt.to).iter().all(|value| *value == U256::from(50_000)));
    assert_eq!(bench.row(debt).await.state, "confirmed");
    crate::support::rows::assert_invariants(&bench.database.pool).await;
    worker.end().await;
    second.end().await;
}

#[test]
fn whatever_happens_it_is_paid_once_and_in_the_end_confirmed() {
    let seed: u64 = match std::env::var(SEED) {
        Ok(text) => text.parse().expect("a number"),
        Err(_) => rand_seed(),
    };
    eprintln!("refunds: {SEED}={seed}");
    let cases = std::env::var("PROPTEST_CASES").ok().and_then(|text| text.parse().ok()).unwrap_or(64);
    let config = Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_le_bytes());
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().expect("a runtime");
    let bench = runtime.block_on(Bench::start());
    let events = proptest::collection::vec(event(), 1..12);
    let held = runner.run(&events, |events| {
        runtime.block_on(live(&bench, &events));
        Ok(())
    });
    match held {
        Ok(()) => {}
        Err(TestError::Fail(why, events)) => panic!("{SEED}={seed}: {why}\n{events:?}"),
        Err(error) => panic!("{SEED}={seed}: {error}"),
    }
    runtime.block_on(async { drop(bench) });
}

fn rand_seed() -> u64 {
    u64::from(std::process::id()) ^ crate::support::buyer::now_s().rotate_left(24)
}

//! Money that is owed back is paid back once, whatever dies, lies or is restored meanwhile, and is called sent only when the chain
//! shows it.

mod bench;
mod node;
mod random;
mod service;

use std::sync::Arc;

use jim::evm::{Address, Network};
use jim::paywall::refunds::Terms;
use tokio::sync::Notify;

use bench::{Bench, TREASURY};
use node::{Act, NETWORK, token};

#[tokio::test]
async fn a_refund_is_signed_sent_and_confirmed_by_what_the_chain_shows() {
    let bench = Bench::start().await;
    let debt = bench.owe(1, 50_000).await;
    bench.assert_pending(debt, "owed").await;
    let worker = bench.worker().await;
    assert_eq!(worker.run().await, 1);
    let sent = bench.row(debt).await;
    assert_eq!((sent.state.as_str(), sent.status.as_str()), ("broadcast", "pending"), "a hash is no proof");
    assert_eq!(worker.run().await, 0, "it is not due yet");
    bench.hurry().await;
    assert_eq!(worker.run().await, 1);
    assert_eq!(bench.steps().await, ["signed", "broadcast", "confirmed"]);
    bench.assert_returned(debt, 50_000).await;
    bench.hurry().await;
    assert_eq!((worker.run().await, bench.node.heard().len()), (0, 1), "what is confirmed is never touched again");
}

#[tokio::test]
async fn amounts_go_back_to_the_unit() {
    let bench = Bench::start().await;
    let mut debts = Vec::new();
    for (payer, amount) in [(1, 1), (2, 999_999_999_999), (3, 7), (4, 50_001)] {
        debts.push((bench.owe(payer, amount).await, amount));
    }
    let worker = bench.worker().await;
    assert_eq!(worker.run().await, 4);
    bench.hurry().await;
    assert_eq!(worker.run().await, 4);
    for (debt, amount) in debts {
        bench.assert_returned(debt, amount).await;
    }
}

#[tokio::test]
async fn a_hash_that_is_never_mined_is_not_sent_and_is_sent_again() {
    let bench = Bench::start().await;
    let debt = bench.owe(1, 50_000).await;
    let worker = bench.worker().await;
    bench.node.script([Act::Lose, Act::Lose]);
    for _ in 0..2 {
        worker.run().await;
        bench.assert_pending(debt, "broadcast").await;
        bench.hurry().await;
    }
    worker.run().await;
    bench.hurry().await;
    worker.run().await;
    let heard = bench.node.heard();
    assert_eq!(heard.len(), 3);
    assert!(heard.iter().all(|one| *one == heard[0]), "the same signature is sent again");
    assert_eq!(bench.steps().await, ["signed", "broadcast", "broadcast", "broadcast", "confirmed"]);
    bench.assert_returned(debt, 50_000).await;
}

#[tokio::test]
async fn an_error_that_was_mined_all_the_same_is_paid_once() {
    let bench = Bench::start().await;
    let debt = bench.owe(1, 50_000).await;
    let worker = bench.worker().await;
    bench.node.script([Act::TakeAndFail]);
    worker.run().await;
    bench.assert_pending(debt, "failed").await;
    assert_eq!(bench.row(debt).await.detail.as_deref(), Some("chain: time-out"));
    bench.node.mine();
    bench.hurry().await;
    worker.run().await;
    bench.assert_returned(debt, 50_000).await;
    assert_eq!(bench.node.heard().len(), 1);
}

#[tokio::test]
async fn workers_of_two_processes_share_the_work_and_pay_once() {
    let bench = Bench::start().await;
    let mut debts = Vec::new();
    for payer in 1..=8 {
        debts.push(bench.owe(payer, 50_000).await);
    }
    let (one, two) = (bench.worker().await, bench.worker().await);
    for _ in 0..2 {
        let (a, b) = tokio::join!(one.run(), two.run());
        assert_eq!(a + b, 8);
        bench.hurry().await;
    }
    for debt in debts {
        bench.assert_returned(debt, 50_000).await;
    }
    assert_eq!(bench.node.heard().len(), 8);
}

#[tokio::test]
async fn a_worker_that_lost_its_lease_writes_nothing() {
    let bench = Bench::start().await;
    let debt = bench.owe(1, 50_000).await;
    let (slow, quick, gate) = (bench.worker().await, bench.worker().await, Arc::new(Notify::new()));
    bench.node.script([Act::Hold(Arc::clone(&gate))]);
    let desk = Arc::clone(&slow.desk);
    let stuck = tokio::spawn(async move { desk.run_once().await });
    while bench.node.heard().is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(quick.run().await, 0, "the lease holds");
    bench.hurry().await;
    assert_eq!(quick.run().await, 1);
    bench.hurry().await;
    quick.run().await;
    bench.assert_returned(debt, 50_000).await;
    gate.notify_one();
    stuck.await.expect("no panic").expect("no error");
    assert_eq!(bench.steps().await, ["signed", "broadcast", "confirmed"]);
    bench.assert_returned(debt, 50_000).await;
}

#[tokio::test]
async fn a_crash_around_the_broadcast_pays_once() {
    for (act, heard) in [(Act::DieBefore, 2), (Act::DieAfter, 1)] {
        let bench = Bench::start().await;
        let debt = bench.owe(1, 50_000).await;
        bench.node.script([act]);
        bench.worker().await.die().await;
        assert_eq!(bench.steps().await, ["signed"]);
        let next = bench.worker().await;
        assert_eq!(next.run().await, 1, "a dead worker's lease is over at once");
        bench.hurry().await;
        next.run().await;
        bench.assert_returned(debt, 50_000).await;
        let sent = bench.node.heard();
        assert_eq!(sent.len(), heard);
        assert!(sent.iter().all(|one| *one == sent[0]), "never signed anew while it holds");
    }
}

#[tokio::test]
async fn a_restored_database_learns_of_the_payout_from_the_chain() {
    let bench = Bench::start().await;
    let debt = bench.owe(1, 50_000).await;
    let worker = bench.worker().await;
    worker.run().await;
    bench.hurry().await;
    worker.run().await;
    bench.assert_returned(debt, 50_000).await;
    bench.restore().await;
    assert_eq!(bench.row(debt).await.state, "owed");
    worker.run().await;
    assert_eq!(bench.steps().await, ["confirmed"]);
    assert_eq!(bench.node.heard().len(), 1);
    bench.assert_returned(debt, 50_000).await;
}

#[tokio::test]
async fn a_payout_older_than_its_rows_is_found() {
    let bench = Bench::start().await;
    let debt = bench.owe_since(1, 50_000, 10 * 86_400).await;
    bench.node.put(bench.payout_key(debt).await, debt.to, 50_000, 5 * 86_400);
    bench.worker().await.run().await;
    assert_eq!(bench.node.heard(), []);
    bench.assert_returned(debt, 50_000).await;
}

#[tokio::test]
async fn a_signature_that_is_over_is_signed_anew_under_the_same_nonce() {
    let bench = Bench::start().await;
    let debt = bench.owe(1, 50_000).await;
    let worker = bench.worker().await;
    bench.node.script([Act::Wait]);
    worker.run().await;
    bench.node.advance(3_600);
    bench.node.mine();
    bench.assert_pending(debt, "broadcast").await;
    bench.hurry().await;
    worker.run().await;
    bench.hurry().await;
    worker.run().await;
    let heard = bench.node.heard();
    assert_eq!(heard.len(), 2);
    assert_eq!(heard[0].0.nonce, heard[1].0.nonce);
    assert!(heard[1].0.valid_before > heard[0].0.valid_before);
    assert_eq!(bench.steps().await, ["signed", "broadcast", "signed", "broadcast", "confirmed"]);
    bench.assert_returned(debt, 50_000).await;
}

#[tokio::test]
async fn eight_failures_park_it_and_it_is_tried_again_all_the_same() {
    let bench = Bench::start().await;
    let debt = bench.owe(1, 50_000).await;
    let worker = bench.worker().await;
    bench.node.script(std::iter::repeat_n(Act::Refuse, 9));
    for turn in 1..=9 {
        assert_eq!(worker.run().await, 1);
        bench.assert_pending(debt, if turn < 8 { "failed" } else { "parked" }).await;
        bench.hurry().await;
    }
    let waits =
        "select round(extract(epoch from next_at - at))::text from refund_steps where kind = 'failed' order by step";
    assert_eq!(bench.column(waits).await.len(), 7);
    assert_eq!(bench.row(debt).await.detail.as_deref(), Some("chain: insufficient funds for gas"));
    worker.run().await;
    bench.hurry().await;
    worker.run().await;
    bench.assert_returned(debt, 50_000).await;
}

#[tokio::test]
async fn tries_are_further_apart_each_time() {
    let bench = Bench::start().await;
    bench.owe(1, 50_000).await;
    let worker = bench.worker().await;
    bench.node.script(std::iter::repeat_n(Act::Refuse, 8));
    let mut waits = Vec::new();
    for _ in 0..8 {
        worker.run().await;
        let newest =
            "select round(extract(epoch from next_at - at))::text from refund_steps order by step desc limit 1";
        waits.extend(bench.column(newest).await);
        assert_eq!(worker.run().await, 0, "not before its time");
        bench.hurry().await;
    }
    assert_eq!(waits, ["5", "10", "20", "40", "80", "160", "320", "86400"]);
}

#[tokio::test]
async fn a_node_that_is_away_is_no_fault_of_a_refund_and_one_without_logs_is() {
    let bench = Bench::start().await;
    let debt = bench.owe(1, 50_000).await;
    let worker = bench.worker().await;
    bench.node.set_down(true);
    for _ in 0..20 {
        worker.run().await;
        bench.assert_pending(debt, "owed").await;
        bench.hurry().await;
    }
    bench.node.set_down(false);
    bench.node.set_blind(true);
    worker.run().await;
    bench.assert_pending(debt, "failed").await;
    assert_eq!(bench.node.heard(), [], "nothing is sent blindly");
    bench.node.set_blind(false);
    for _ in 0..2 {
        bench.hurry().await;
        worker.run().await;
    }
    bench.assert_returned(debt, 50_000).await;
}

#[tokio::test]
async fn what_an_operator_pays_is_confirmed_and_nothing_is_sent() {
    let bench = Bench::start().await;
    let debt = bench.owe(1, 50_000).await;
    let worker = bench.worker_with(TREASURY, false).await;
    for _ in 0..3 {
        worker.run().await;
        bench.assert_pending(debt, "owed").await;
        bench.hurry().await;
    }
    assert_eq!((bench.node.heard().len(), bench.steps().await.len()), (0, 0));
    bench.node.put(bench.payout_key(debt).await, debt.to, 50_000, 0);
    worker.run().await;
    bench.assert_returned(debt, 50_000).await;
    assert_eq!(bench.node.heard(), []);
}

#[tokio::test]
async fn a_nonce_that_was_spent_on_something_else_is_parked_and_never_sent() {
    let other = Address::with_last_byte(0x55);
    for (to, value) in [(Some(other), 50_000), (None, 49_999)] {
        let bench = Bench::start().await;
        let debt = bench.owe(1, 50_000).await;
        bench.node.put(bench.payout_key(debt).await, to.unwrap_or(debt.to), value, 0);
        bench.worker().await.run().await;
        assert_eq!((bench.row(debt).await.state.as_str(), bench.node.heard().len()), ("parked", 0));
    }
    let bench = Bench::start().await;
    let debt = bench.owe(1, 50_000).await;
    bench.node.cancel(bench.payout_key(debt).await);
    bench.worker().await.run().await;
    bench.assert_pending(debt, "parked").await;
    assert_eq!(bench.node.heard(), []);
}

#[tokio::test]
async fn a_refund_of_another_deployment_is_parked() {
    for (network, asset) in [(Network::new(8_453), token()), (NETWORK, Address::with_last_byte(3))] {
        let bench = Bench::start().await;
        let debt = bench.owe(1, 50_000).await;
        let worker = bench.worker_of(TREASURY, Terms { network, asset, auto: true }).await;
        worker.run().await;
        bench.assert_pending(debt, "parked").await;
        assert_eq!(bench.node.heard(), []);
    }
}

#[tokio::test]
async fn another_key_signs_only_when_the_first_one_can_pay_no_more() {
    for is_mined in [true, false] {
        let bench = Bench::start().await;
        let debt = bench.owe(1, 50_000).await;
        bench.node.script([Act::Wait]);
        bench.worker().await.run().await;
        let rotated = bench.worker_with(0x78, true).await;
        bench.hurry().await;
        rotated.run().await;
        assert_eq!(bench.node.heard().len(), 1, "the token would pay both");
        bench.assert_pending(debt, "broadcast").await;
        if !is_mined {
            bench.node.advance(3_700);
        }
        bench.node.mine();
        for _ in 0..2 {
            bench.hurry().await;
            rotated.run().await;
        }
        bench.assert_returned(debt, 50_000).await;
        assert_eq!(bench.node.heard().len(), if is_mined { 1 } else { 2 });
    }
}

//! Evidence that goes away with its block, and comes again.

use jim::store::journal::{Evidence, Journal};

use super::{Case, until};
use crate::support::facilitator::Answer;
use crate::support::rows::column;

const STATES: &str = "select to_state from payment_events order by seq";

#[tokio::test]
async fn a_transfer_that_a_reorganisation_took_is_unknown_until_it_is_there_again_and_counts_once() {
    let case = Case::start().await;
    let (bought, _) = case.buy(Answer::Drop).await;
    case.land(&bought);
    case.wait_for("settled").await;
    // another block of the same height, without it
    case.chain.drop_last_block();
    case.chain.mine();
    case.wait_for("unknown").await;
    assert_eq!(case.ledger().await, ["revenue 1 50000", "reversal 1 50000"]);
    assert_eq!(case.order_state().await, "unknown");
    case.land(&bought);
    case.wait_for("settled").await;
    assert_eq!(case.ledger().await, ["revenue 1 50000", "reversal 1 50000", "revenue 2 50000"]);
    assert_eq!(case.evidence().await, ["transfer", "lost", "transfer"]);
    let walk = ["claimed", "settling", "unknown", "settled", "unknown", "settled"];
    assert_eq!(column(case.pool(), STATES).await, walk);
    let margin = case.service.operate("/api/ledger/margin").await;
    assert_eq!(margin["summary"]["revenue_micros"], 50_000);
    assert_eq!(case.repeat(&bought).await.status, 200);
    case.close(1).await;
}

/// The same transaction at the same height and place, in another block.
#[tokio::test]
async fn a_transfer_that_moved_to_a_sibling_of_its_block_counts_once() {
    let case = Case::start().await;
    let (bought, _) = case.buy(Answer::Drop).await;
    case.land(&bought);
    case.wait_for("settled").await;
    case.chain.reorganise();
    case.chain.mine();
    until(case.pool(), "select kind from chain_evidence order by evidence_id", &["transfer", "lost", "transfer"]).await;
    case.wait_for("settled").await;
    assert_eq!(case.ledger().await, ["revenue 1 50000", "reversal 1 50000", "revenue 2 50000"]);
    case.close(1).await;
}

/// The chain went to another branch and came back to the first.
#[tokio::test]
async fn evidence_that_comes_back_in_the_very_same_block_counts_again() {
    let case = Case::start().await;
    let (bought, _) = case.buy(Answer::Drop).await;
    case.land(&bought);
    case.wait_for("settled").await;
    let service = case.service.stop().await;
    let pool = &service.database.pool;
    let journal = Journal::open(pool.clone(), true).await.expect("a journal");
    let row: (uuid::Uuid, i64, i64, String, String, i32, String, String, String) = sqlx::query_as(
        "select payment_id, evidence_id, block, block_hash, tx_hash, log_index, from_addr, to_addr, value::text from chain_evidence",
    )
    .fetch_one(pool)
    .await
    .expect("one row");
    let (payment_id, of, block, block_hash, tx, log_index, from, to, value) = row;
    let seen = Evidence::Transfer {
        block: u64::try_from(block).expect("small"),
        block_hash,
        tx,
        log_index: u64::try_from(log_index).expect("small"),
        from,
        to,
        value,
    };
    let mut states = Vec::new();
    for evidence in [&seen, &Evidence::Lost { of, block: 9 }, &Evidence::Lost { of, block: 9 }, &seen, &seen] {
        states.push(journal.store_evidence(payment_id, evidence).await.expect("stored").name());
    }
    assert_eq!(states, ["settled", "unknown", "unknown", "settled", "settled"]);
    assert_eq!(column(pool, "select kind from ledger order by entry_id").await, ["revenue", "reversal", "revenue"]);
    assert_eq!(column(pool, "select kind from chain_evidence order by 1").await, ["lost", "transfer", "transfer"]);
    crate::support::rows::assert_invariants(pool).await;
}

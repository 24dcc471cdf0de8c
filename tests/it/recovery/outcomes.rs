//! What the chain says about payments that nobody asks about any more.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use jim::evm::{Address, B256};
use jim::paywall::port::chain::{AuthorizationKey, Block, Chain, ChainFault, Landing, PermitKey, Use};

use super::{Case, PAUSE, PRICE, denied, run, settled, until, wait_for};
use crate::support::buyer::{Ask, Buyer, now_s, reason_of};
use crate::support::facilitator::{Answer, StubFacilitator};
use crate::support::research::{Shelves, Stock};
use crate::support::rows::{Rows, assert_invariants, column};
use crate::support::service::Service;

#[tokio::test]
async fn a_lost_settle_answer_is_found_on_chain_and_the_buyer_may_come_when_he_likes() {
    let case = Case::start().await;
    let (bought, reply) = case.buy(Answer::Drop).await;
    assert_eq!((reply.status, case.order_state().await.as_str()), (503, "unknown"));
    assert!(case.ledger().await.is_empty() && case.evidence().await.is_empty());
    case.land(&bought);
    case.wait_for("settled").await;
    assert_eq!((case.ledger().await, case.evidence().await), (vec!["revenue 1 50000".into()], vec!["transfer".into()]));
    assert_eq!(case.order_state().await, "delivered");
    let reply = case.repeat(&bought).await;
    let stored = column(case.pool(), "select convert_from(body, 'UTF8') from answers").await;
    assert_eq!((reply.status, vec![reply.text()]), (200, stored));
    let repeated = Rows { settle_results: 1, served: 2, ..Rows::SOLD };
    assert_eq!(case.service.rows().await, repeated);
    case.close(1).await;
}

#[tokio::test]
async fn a_payment_that_its_payer_cancelled_is_dead_and_was_never_charged() {
    let case = Case::start().await;
    let (bought, reply) = case.buy(Answer::Drop).await;
    assert_eq!(reply.status, 503);
    case.chain.cancel(bought.key);
    case.chain.mine();
    case.wait_for("dead").await;
    assert!(reason_of(&case.repeat(&bought).await).contains("never charged"));
    assert_eq!((case.ledger().await.len(), case.evidence().await), (0, vec!["cancelled".into()]));
    assert_eq!(case.order_state().await, "refused");
    case.close(1).await;
}

#[tokio::test]
async fn a_payment_that_is_unused_after_its_window_is_dead() {
    let case = Case::start().await;
    let (bought, reply) = case.buy(Answer::Drop).await;
    assert_eq!(reply.status, 503);
    case.chain.mine_at(bought.ends_at_s + 60);
    tokio::time::sleep(Duration::from_secs(5)).await;
    assert_eq!(case.evidence().await.len(), 0, "within the margin nothing is final");
    case.chain.mine_at(bought.ends_at_s + 61);
    case.wait_for("dead").await;
    assert_eq!((case.ledger().await.len(), case.evidence().await), (0, vec!["unused_after_expiry".into()]));
    assert!(reason_of(&case.repeat(&bought).await).contains("never charged"));
    case.close(1).await;
}

#[tokio::test]
async fn a_denied_payment_that_is_transferred_all_the_same_goes_back() {
    let case = Case::start().await;
    let (bought, reply) = case.buy(denied()).await;
    assert_eq!(reply.status, 402);
    case.land(&bought);
    case.wait_for("refund_owed").await;
    let refund = "select concat_ws(' ', reason, amount, transferred, amount_micros, to_addr) from refunds";
    let payer = Buyer::new(&case.service, 1).address();
    assert_eq!(column(case.pool(), refund).await, [format!("late {PRICE} {PRICE} 50000 {payer}")]);
    assert!(case.ledger().await.is_empty());
    case.close(1).await;
}

/// The facilitator has the signature of a payment that we refused; so has everybody whom it shows it to.
#[tokio::test]
async fn a_refused_payment_that_a_third_party_submits_goes_back_and_the_others_are_proven_unused() {
    let case = Case::start().await;
    let mut world = case.service.stop().await;
    world.change(|_, parts| parts.source = Some(Arc::new(Shelves(Stock::Down))));
    let case = Case { service: world.open().await, ..case };
    assert!(case.service.app.wait_until_supported(Duration::from_secs(10)).await);
    let mut all = Vec::new();
    for key in [1, 2] {
        let (payment, reply) = Buyer::new(&case.service, key).buy(&Ask::memo()).await;
        assert_eq!(reply.json()["code"], "data_unavailable");
        all.push(super::Bought::of(payment, case.service.app.pay_to));
    }
    case.land(&all[1]);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(case.evidence().await.is_empty(), "as long as its window is open nothing is final");
    case.chain.mine_at(all[0].ends_at_s + 100);
    run(case.pool(), "update payments set valid_before = extract(epoch from now())::bigint - 100").await;
    // the window is in the past now, the chain's block beyond it
    let states = "select state from payment_states order by payment_id";
    until(case.pool(), states, &["refused", "refund_owed"]).await;
    let found = "select e.kind from chain_evidence e join payments using (payment_id) order by payment_id";
    until(case.pool(), found, &["unused_after_expiry", "transfer"]).await;
    assert_eq!(column(case.pool(), "select reason from refunds").await, ["late"]);
    case.close(0).await;
}

#[tokio::test]
async fn a_facilitator_that_lied_costs_the_seller_and_not_the_buyer() {
    let case = Case::start().await;
    let (bought, sold) = case.buy(settled()).await;
    assert_eq!(sold.status, 200);
    case.chain.mine_at(bought.ends_at_s + 100);
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert!(case.evidence().await.is_empty(), "proof is not due yet");
    make_due(&case).await;
    until(case.pool(), "select kind from chain_evidence", &["missing"]).await;
    assert_eq!(case.ledger().await, ["revenue 1 50000", "reversal 1 50000"]);
    assert_eq!(case.order_state().await, "delivered");
    let reply = case.repeat(&bought).await;
    assert_eq!((reply.status, reply.body), (200, sold.body));
    let margin = case.service.operate("/api/ledger/margin").await;
    assert_eq!(margin["summary"]["revenue_micros"], 0);
    case.close(1).await;
}

#[tokio::test]
async fn a_charge_that_is_on_chain_is_proven_once_and_a_cancelled_one_taken_back() {
    let case = Case::start().await;
    let (bought, sold) = case.buy(settled()).await;
    assert_eq!(sold.status, 200);
    case.land(&bought);
    make_due(&case).await;
    until(case.pool(), "select kind from chain_evidence", &["transfer"]).await;
    assert_eq!(case.ledger().await, ["revenue 1 50000"]);
    case.close(1).await;

    let case = Case::start().await;
    let (bought, _) = case.buy(settled()).await;
    case.chain.cancel(bought.key);
    case.chain.mine();
    make_due(&case).await;
    until(case.pool(), "select kind from chain_evidence", &["cancelled"]).await;
    assert_eq!(case.ledger().await, ["revenue 1 50000", "reversal 1 50000"]);
    assert_eq!(case.order_state().await, "delivered");
    case.close(1).await;
}

/// The charge was long ago.
async fn make_due(case: &Case) {
    let ago = "update settlements set settled_at = now() - interval '16 minutes'; \
               update ledger set at = now() - interval '16 minutes'";
    run(case.pool(), ago).await;
}

#[tokio::test]
async fn while_the_node_is_down_nothing_changes_and_then_it_is_found() {
    let case = Case::start().await;
    case.chain.set_down(true);
    let (bought, reply) = case.buy(Answer::Drop).await;
    assert_eq!(reply.status, 503);
    case.land(&bought);
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!((case.order_state().await.as_str(), case.evidence().await.len()), ("unknown", 0));
    assert_eq!(Buyer::new(&case.service, 2).buy(&Ask::memo()).await.1.status, 200, "sales go on");
    case.chain.set_down(false);
    until(case.pool(), "select distinct state from payment_states", &["settled"]).await;
    case.close(2).await;
}

/// A node whose answers contradict each other: used, but no log of it; a head in the far future.
struct Nonsense;

#[async_trait]
impl Chain for Nonsense {
    async fn load_head(&self) -> Result<Block, ChainFault> {
        Ok(Block { number: u64::MAX, time_s: u64::MAX })
    }

    async fn find_use(&self, _: &AuthorizationKey, _: u64) -> Result<Option<Use>, ChainFault> {
        Ok(None)
    }

    async fn find_permit(&self, _: &PermitKey, _: u64) -> Result<Option<Use>, ChainFault> {
        unreachable!("no permit is looked for here")
    }

    async fn is_nonce_used(&self, _: &AuthorizationKey) -> Result<bool, ChainFault> {
        Ok(true)
    }

    async fn load_landings(&self, _: Address, _: B256) -> Result<Option<Vec<Landing>>, ChainFault> {
        Err(ChainFault("what?".into()))
    }

    async fn find_landings(&self, _: Address, _: Address, _: u64, _: u64) -> Result<Vec<Landing>, ChainFault> {
        Err(ChainFault("what?".into()))
    }
}

#[tokio::test]
async fn a_node_that_contradicts_itself_proves_nothing() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_with(|settings, parts| {
        settings.payments.facilitator_urls = vec![stub.url()];
        parts.chain = Some(Arc::new(Nonsense));
        parts.recovery_pause = Some(PAUSE);
    })
    .await;
    let pool = &service.world.database.pool;
    stub.on_settle([settled(), Answer::Drop, denied()]);
    for (key, status) in [(1, 200), (2, 503), (3, 402)] {
        assert_eq!(Buyer::new(&service, key).buy(&Ask::memo()).await.1.status, status);
    }
    run(pool, "update settlements set settled_at = now() - interval '16 minutes'").await;
    run(pool, "update ledger set at = now() - interval '16 minutes'").await;
    tokio::time::sleep(Duration::from_secs(6)).await;
    let states = column(pool, "select state from payment_states order by payment_id").await;
    assert_eq!(states, ["settled", "unknown", "denied"]);
    assert!(column(pool, "select kind from chain_evidence").await.is_empty());
    assert_eq!(column(pool, "select kind from ledger").await, ["revenue"]);
    assert_invariants(pool).await;
}

/// Money that came under a nonce of the buyer's, but not the price.
#[tokio::test]
async fn another_amount_under_the_same_nonce_is_no_payment_and_goes_back() {
    let case = Case::start().await;
    let (bought, reply) = case.buy(Answer::Drop).await;
    assert_eq!(reply.status, 503);
    case.chain.transfer(bought.key, bought.to, PRICE - 1);
    case.chain.mine_at(now_s());
    wait_for(case.pool(), "refund_owed").await;
    assert_eq!(column(case.pool(), "select amount::text from refunds").await, ["49999"]);
    case.close(1).await;
}

//! Recovery: what becomes of payments whose end no request saw, with a chain in memory and a facilitator that is scripted.

mod audit;
mod death;
mod outcomes;
mod payments;
mod reorg;
mod replicas;
mod stop;
mod sweep;

use std::sync::Arc;
use std::time::{Duration, Instant};

use jim::evm::{Address, parse_address, parse_word};
use jim::paywall::port::chain::AuthorizationKey;
use jim::x402::{OutgoingPayment, Version};
use sqlx::PgPool;

use crate::support::buyer::{Ask, Buyer, Reply, unpack};
use crate::support::chain::FakeChain;
use crate::support::facilitator::{Answer, StubFacilitator};
use crate::support::rows::{assert_invariants, column};
use crate::support::service::Service;

/// Price of the memo in atomic units.
const PRICE: u128 = 50_000;

/// Pause between two rounds: tests do not want to wait five seconds.
const PAUSE: Duration = Duration::from_millis(200);

/// How long something that must happen may take: one payment is looked at every few seconds.
const PATIENCE: Duration = Duration::from_secs(30);

/// A service that reads a chain.
struct Case {
    service: Service,
    stub: StubFacilitator,
    chain: Arc<FakeChain>,
}

impl Case {
    async fn start() -> Self {
        let (stub, chain) = (StubFacilitator::start().await, FakeChain::new());
        let service = Service::start_with(|settings, parts| {
            settings.payments.facilitator_urls = vec![stub.url()];
            parts.chain = Some(Arc::clone(&chain) as _);
            parts.recovery_pause = Some(PAUSE);
        })
        .await;
        Self { service, stub, chain }
    }

    fn pool(&self) -> &PgPool {
        &self.service.world.database.pool
    }

    /// Buys the memo; settle is answered like that.
    async fn buy(&self, answer: Answer) -> (Bought, Reply) {
        self.stub.on_settle([answer]);
        let (payment, reply) = Buyer::new(&self.service, 1).buy(&Ask::memo()).await;
        (Bought::of(payment, self.service.app.pay_to), reply)
    }

    /// The same payment once more.
    async fn repeat(&self, bought: &Bought) -> Reply {
        Buyer::new(&self.service, 1).send(&Ask::memo(), Some(&bought.payment)).await
    }

    /// The transfer of a payment, in a block.
    fn land(&self, bought: &Bought) {
        self.chain.transfer(bought.key, bought.to, PRICE);
        self.chain.mine();
    }

    async fn wait_for(&self, state: &str) {
        wait_for(self.pool(), state).await;
    }

    /// Entries of the ledger, in order.
    async fn ledger(&self) -> Vec<String> {
        column(self.pool(), "select concat_ws(' ', kind, round, amount_micros) from ledger order by entry_id").await
    }

    /// Kinds of evidence, in order.
    async fn evidence(&self) -> Vec<String> {
        column(self.pool(), "select kind from chain_evidence order by evidence_id").await
    }

    async fn order_state(&self) -> String {
        let [order_id] = column(self.pool(), "select order_id from orders").await.try_into().expect("one order");
        let reply = self.service.get(&format!("/api/orders/{order_id}")).await;
        reply.json()["state"].as_str().expect("a state").to_owned()
    }

    /// What holds at the end of each case: nothing but the request itself has settled anything.
    async fn close(self, settles: usize) {
        assert_eq!(self.stub.settles(), settles, "recovery never settles");
        assert_invariants(self.pool()).await;
    }
}

/// A payment, and how a chain knows it.
struct Bought {
    payment: OutgoingPayment,
    key: AuthorizationKey,
    to: Address,
    /// End of its window, unix seconds.
    ends_at_s: u64,
}

impl Bought {
    fn of(payment: OutgoingPayment, to: Address) -> Self {
        assert_eq!(payment.version, Version::V2);
        let document = unpack(&payment);
        let signed = &document["payload"]["authorization"];
        let text = |member: &str| signed[member].as_str().expect("text").to_owned();
        let key = AuthorizationKey {
            asset: parse_address(document["accepted"]["asset"].as_str().expect("text")).expect("an address"),
            authorizer: parse_address(&text("from")).expect("an address"),
            nonce: parse_word(&text("nonce")).expect("a word"),
        };
        Self { payment, key, to, ends_at_s: text("validBefore").parse().expect("seconds") }
    }
}

/// Waits until the only payment is in a state.
async fn wait_for(pool: &PgPool, state: &str) {
    until(pool, "select state from payment_states", &[state]).await;
}

/// Waits until a query finds exactly that.
async fn until(pool: &PgPool, select: &'static str, expected: &[&str]) {
    let begun = Instant::now();
    loop {
        let found = column(pool, select).await;
        if found == expected {
            return;
        }
        assert!(begun.elapsed() < PATIENCE, "{found:?} instead of {expected:?}: {select}");
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn run(pool: &PgPool, statements: &'static str) {
    sqlx::raw_sql(statements).execute(pool).await.expect("the statements run");
}

fn denied() -> Answer {
    Answer::Json(200, serde_json::json!({"success": false, "errorReason": "insufficient_funds"}))
}

fn settled() -> Answer {
    Answer::Late(Duration::ZERO)
}

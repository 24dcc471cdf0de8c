//! A database with money that is owed back, and desks that pay it. Every row is written by the journal's own functions.

use std::sync::Arc;

use jim::clock::SystemClock;
use jim::evm::{Address, B256, SecretKey, lower, parse_word};
use jim::machine::{Rail, State};
use jim::money::UsdMicros;
use jim::paywall::port::chain::AuthorizationKey;
use jim::paywall::refunds::{RefundDesk, Terms};
use jim::store::journal::{Claim, Evidence, Journal, NewPayment};
use jim::store::refunds::list::{self, Row};
use uuid::Uuid;

use super::node::{Cashier, NETWORK, Node, token};
use crate::support::buyer::{next_nonce, now_s};
use crate::support::database::{TestDatabase, fresh_database};
use crate::support::rows::assert_invariants;

/// Key byte of the treasury.
pub(crate) const TREASURY: u8 = 0x77;

/// A database, a node, and a journal that owes.
pub(crate) struct Bench {
    pub(crate) database: TestDatabase,
    pub(crate) node: Arc<Node>,
    journal: Journal,
}

/// A worker as a process of its own.
pub(crate) struct Worker {
    pub(crate) desk: Arc<RefundDesk>,
    journal: Journal,
}

/// One refund that is owed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Debt {
    pub(crate) payment_id: Uuid,
    pub(crate) to: Address,
}

impl Bench {
    pub(crate) async fn start() -> Self {
        let database = fresh_database().await;
        let journal = Journal::open(database.pool.clone(), true).await.expect("a journal");
        Self { database, node: Node::new(), journal }
    }

    /// Owes an amount to a payer of its own: a payment that was given back, and whose transfer came all the same.
    pub(crate) async fn owe(&self, payer: u8, amount: u64) -> Debt {
        self.owe_since(payer, amount, 0).await
    }

    /// The same for money that landed so many seconds ago.
    pub(crate) async fn owe_since(&self, payer: u8, amount: u64, age_s: u64) -> Debt {
        let to = SecretKey::from_bytes([payer; 32]).expect("a test key").address();
        let (nonce, pay_to) = (next_nonce(), Address::with_last_byte(9));
        let payment = new_payment(to, nonce, pay_to, amount);
        let Claim::Won { held, .. } = self.journal.claim(&payment).await.expect("a claim") else { panic!("not won") };
        self.journal.give_back(held, "a test").await.expect("given back");
        let key = AuthorizationKey { asset: token(), authorizer: to, nonce };
        self.node.put(key, pay_to, amount, age_s);
        let evidence = Evidence::Transfer {
            block: 1,
            block_hash: format!("{:#x}", B256::with_last_byte(1)),
            tx: format!("{nonce:#x}"),
            log_index: 1,
            from: lower(&to),
            to: lower(&pay_to),
            value: amount.to_string(),
        };
        let state = self.journal.store_evidence(held.payment_id, &evidence).await.expect("stored");
        assert_eq!(state, State::RefundOwed);
        Debt { payment_id: held.payment_id, to }
    }

    /// A worker that may send.
    pub(crate) async fn worker(&self) -> Worker {
        self.worker_with(TREASURY, true).await
    }

    /// A worker with another key, or that may not send.
    pub(crate) async fn worker_with(&self, key: u8, auto: bool) -> Worker {
        self.worker_of(key, Terms { network: NETWORK, asset: token(), auto }).await
    }

    /// A worker of another deployment.
    pub(crate) async fn worker_of(&self, key: u8, terms: Terms) -> Worker {
        let journal = Journal::open(self.database.pool.clone(), true).await.expect("a journal");
        let treasury = Cashier::new(&self.node, key);
        let node = Arc::clone(&self.node) as _;
        let desk = RefundDesk::new(journal.clone(), node, treasury, Arc::new(SystemClock), terms);
        Worker { desk: Arc::new(desk), journal }
    }

    /// The refund as its rows show it.
    pub(crate) async fn row(&self, debt: Debt) -> Row {
        list::find_of_payment(&self.database.pool, debt.payment_id).await.expect("rows").expect("a refund")
    }

    /// Kinds of the steps of all refunds, in their order.
    pub(crate) async fn steps(&self) -> Vec<String> {
        self.column("select kind from refund_steps order by refund_id, step").await
    }

    pub(crate) async fn column(&self, select: &'static str) -> Vec<String> {
        crate::support::rows::column(&self.database.pool, select).await
    }

    pub(crate) async fn run_sql(&self, statements: &'static str) {
        sqlx::raw_sql(statements).execute(&self.database.pool).await.expect("the statements run");
    }

    /// Everything that waits for a time is due now.
    pub(crate) async fn hurry(&self) {
        self.run_sql(
            "update refund_steps set next_at = least(next_at, now()); \
             update refund_leases set lease_until = least(lease_until, now());",
        )
        .await;
    }

    /// The database as it was before anything was done about its refunds.
    pub(crate) async fn restore(&self) {
        self.run_sql(
            "delete from refund_steps; delete from refund_leases; delete from ledger where kind = 'refund'; \
             delete from payment_events where to_state = 'refunded';",
        )
        .await;
    }

    /// Nonce of the payout of a refund, as the treasury's.
    pub(crate) async fn payout_key(&self, debt: Debt) -> AuthorizationKey {
        let nonce = parse_word(&self.row(debt).await.refund_nonce).expect("a word");
        let authorizer = SecretKey::from_bytes([TREASURY; 32]).expect("a test key").address();
        AuthorizationKey { asset: token(), authorizer, nonce }
    }

    /// Paid back once, to the unit, confirmed and booked, and nothing is broken.
    pub(crate) async fn assert_returned(&self, debt: Debt, amount: u64) {
        let row = self.row(debt).await;
        assert_eq!((row.state.as_str(), row.status.as_str()), ("confirmed", "sent"), "{row:?}");
        assert_eq!(self.node.paid_to(debt.to), [jim::evm::U256::from(amount)]);
        assert_eq!(row.amount, amount.to_string());
        assert_eq!(self.journal.load_state(debt.payment_id).await.expect("a state"), State::Refunded);
        let booked: Vec<i64> =
            sqlx::query_scalar("select amount_micros from ledger where payment_id = $1 and kind = 'refund'")
                .bind(debt.payment_id)
                .fetch_all(&self.database.pool)
                .await
                .expect("the ledger");
        assert_eq!(booked, [row.amount_micros]);
        assert_invariants(&self.database.pool).await;
    }

    /// Nothing was paid, and the payer is told that it is on its way.
    pub(crate) async fn assert_pending(&self, debt: Debt, state: &str) {
        let row = self.row(debt).await;
        assert_eq!((row.state.as_str(), row.status.as_str()), (state, "pending"), "{row:?}");
        assert_eq!(self.node.paid_to(debt.to), Vec::<jim::evm::U256>::new());
        assert_invariants(&self.database.pool).await;
    }
}

impl Worker {
    /// One round; how many refunds were looked at.
    pub(crate) async fn run(&self) -> usize {
        self.desk.run_once().await.expect("the database answers")
    }

    /// One round in which the process dies; the process is dead after it.
    pub(crate) async fn die(self) {
        let desk = Arc::clone(&self.desk);
        tokio::spawn(async move { desk.run_once().await }).await.expect_err("it dies");
        self.end().await;
    }
}

impl Worker {
    /// One round that dies if it comes to a broadcast; the process is dead after it.
    pub(crate) async fn try_to_die(self) {
        let desk = Arc::clone(&self.desk);
        let _ = tokio::spawn(async move { desk.run_once().await }).await;
        self.end().await;
    }

    /// The end of a process: nobody hears its heart.
    pub(crate) async fn end(self) {
        self.journal.retire().await.expect("the last beat");
    }
}

fn new_payment(payer: Address, nonce: B256, pay_to: Address, amount: u64) -> NewPayment {
    let word = format!("{nonce:x}");
    NewPayment {
        auth_key: format!("{NETWORK}/eip3009/{}/{}/{nonce:#x}", lower(&token()), lower(&payer)),
        rail: Rail::Exact,
        x402_version: 2,
        network: NETWORK.to_string(),
        asset: lower(&token()),
        payer: lower(&payer),
        pay_to: lower(&pay_to),
        auth_nonce: format!("{nonce:#x}"),
        payload_sha256: word.clone(),
        request_fp: word,
        product: "research:fundamentals".into(),
        contract_id: "c".into(),
        amount: amount.to_string(),
        amount_micros: UsdMicros(i64::try_from(amount).expect("small")),
        valid_after: "0".into(),
        valid_before: (now_s() + 300).to_string(),
    }
}

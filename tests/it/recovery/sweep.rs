//! Money that came without a request: under an offer of ours, under one that may still be used, and under nothing.

use std::path::PathBuf;
use std::sync::Arc;

use jim::config::Rails;
use jim::evm::{Address, B256, parse_address};
use jim::money::Atomic;
use jim::paywall::port::chain::AuthorizationKey;
use jim::signer::load_or_create_bytes;
use jim::x402::{Offer, OfferSecret};

use super::{PAUSE, until};
use crate::support::buyer::now_s;
use crate::support::chain::FakeChain;
use crate::support::rows::{Rows, assert_invariants, column};
use crate::support::service::Service;

const ASSET: &str = "0x036cbd53842c5426634e7929541ec2318f3dcf7e";
const CURSOR: &str = "select block::text from cursors where name like 'landings/%'";
const FOREIGN: &str = "select concat_ws(' ', value, block) from unidentified_transfers order by block, log_index";

struct Shore {
    service: Service,
    chain: Arc<FakeChain>,
    secret: OfferSecret,
    next: u8,
}

impl Shore {
    async fn start() -> Self {
        let (chain, mut keys) = (FakeChain::new(), PathBuf::new());
        let service = Service::start_with(|settings, parts| {
            settings.payments.rails = Rails { client_broadcast: true, ..Rails::default() };
            keys.clone_from(&settings.keys_dir);
            parts.chain = Some(Arc::clone(&chain) as _);
            parts.recovery_pause = Some(PAUSE);
        })
        .await;
        let secret = OfferSecret::from_bytes(load_or_create_bytes(&keys.join("offer.key")).expect("the secret"));
        let shore = Self { service, chain, secret, next: 0 };
        // the first run begins at the head
        until(shore.pool(), CURSOR, &["1"]).await;
        shore
    }

    fn pool(&self) -> &sqlx::PgPool {
        &self.service.world.database.pool
    }

    fn asset() -> Address {
        parse_address(ASSET).expect("an address")
    }

    /// An offer of ours, made so many seconds ago.
    fn offered(&mut self, seconds_ago: u64) -> B256 {
        self.next += 1;
        let offer = Offer {
            network: "eip155:84532".parse().expect("a network"),
            asset: Self::asset(),
            amount: Atomic(50_000),
            pay_to: self.service.app.pay_to,
            max_timeout_s: 0,
            token_name: String::new(),
            token_version: String::new(),
            resource_url: String::new(),
            description: String::new(),
            mime_type: String::new(),
            service_name: None,
            tags: Vec::new(),
            output_schema: None,
            permit2: Default::default(),
        };
        let random = [self.next; 8];
        self.secret.issue("research:fundamentals", &offer, now_s() - seconds_ago, random).expect("an offer")
    }

    /// A transfer to us under a nonce, in a block of its own.
    fn land(&self, nonce: B256, value: u128) -> u64 {
        let key = AuthorizationKey { asset: Self::asset(), authorizer: Address::repeat_byte(0xbb), nonce };
        self.chain.transfer(key, self.service.app.pay_to, value);
        self.chain.mine()
    }
}

#[tokio::test]
async fn money_under_an_offer_that_is_over_goes_back_once_and_foreign_money_is_shown() {
    let mut shore = Shore::start().await;
    let over = shore.offered(10_000);
    shore.land(over, 50_000);
    shore.land(B256::repeat_byte(3), 777);
    let empty = shore.offered(10_000);
    shore.land(empty, 0);
    until(shore.pool(), CURSOR, &["4"]).await;
    let payment = "select concat_ws(' ', state, rail, payer, pay_to, auth_nonce, product, amount, amount_micros) from payment_states";
    let (payer, payee) = (jim::evm::lower(&Address::repeat_byte(0xbb)), jim::evm::lower(&shore.service.app.pay_to));
    let expected = format!("refund_owed client-broadcast {payer} {payee} {over:#x} research:fundamentals 50000 50000");
    assert_eq!(column(shore.pool(), payment).await, [expected]);
    let refund = "select concat_ws(' ', reason, amount, to_addr, due_by > now() + interval '23 hours') from refunds";
    assert_eq!(column(shore.pool(), refund).await, [format!("orphan 50000 {payer} t")]);
    assert_eq!(column(shore.pool(), "select kind from chain_evidence").await, ["transfer"]);
    assert_eq!(column(shore.pool(), FOREIGN).await, ["777 3", "0 4"]);
    assert_eq!(shore.service.rows().await, Rows { payments: 1, ..Rows::default() });
    let listed = shore.service.operate("/api/payments").await;
    assert_eq!((&listed["unidentified"], &listed["rows"][0]["rail"]), (&2.into(), &"client-broadcast".into()));
    assert_eq!(listed["rows"][0]["evidence"], serde_json::json!(["transfer"]));
    // read again from the beginning, as after a restore: nothing is owed twice
    sqlx::raw_sql("update cursors set block = 1 where name like 'landings/%'")
        .execute(shore.pool())
        .await
        .expect("back");
    until(shore.pool(), CURSOR, &["4"]).await;
    assert_eq!(column(shore.pool(), "select count(*)::text from refunds").await, ["1"]);
    assert_eq!(column(shore.pool(), FOREIGN).await.len(), 2);
    assert_invariants(shore.pool()).await;
}

#[tokio::test]
async fn the_sweep_waits_before_an_offer_that_a_request_may_still_use() {
    let mut shore = Shore::start().await;
    let open = shore.offered(0);
    shore.land(B256::repeat_byte(4), 1);
    shore.land(open, 50_000);
    shore.land(B256::repeat_byte(5), 2);
    until(shore.pool(), FOREIGN, &["1 2", "2 4"]).await;
    until(shore.pool(), CURSOR, &["2"]).await;
    assert_eq!(shore.service.rows().await, Rows::default());
    // in its grace it is not given up
    let graced = shore.offered(700);
    shore.land(graced, 50_000);
    tokio::time::sleep(PAUSE * 5).await;
    assert_eq!((column(shore.pool(), CURSOR).await, shore.service.rows().await), (vec!["2".into()], Rows::default()));
    let over = shore.offered(721);
    shore.land(over, 50_000);
    until(shore.pool(), "select auth_nonce from payments", &[&format!("{over:#x}")]).await;
    assert_invariants(shore.pool()).await;
}

#[tokio::test]
async fn a_node_that_fails_moves_no_cursor() {
    let mut shore = Shore::start().await;
    shore.chain.set_down(true);
    let over = shore.offered(10_000);
    shore.land(over, 50_000);
    tokio::time::sleep(PAUSE * 5).await;
    assert_eq!((column(shore.pool(), CURSOR).await, shore.service.rows().await), (vec!["1".into()], Rows::default()));
    shore.chain.set_down(false);
    until(shore.pool(), "select state from payment_states", &["refund_owed"]).await;
    assert_invariants(shore.pool()).await;
}

/// Transfers of the ordinary rail have their payments: they are no strangers to the sweep.
#[tokio::test]
async fn a_transfer_of_the_ordinary_rail_is_not_foreign() {
    use crate::support::buyer::{Ask, Buyer, unpack};
    let shore = Shore::start().await;
    let asked = shore.service.get(crate::support::service::MEMO).await;
    let mut read = jim::x402::read_required(asked.header("payment-required").expect("terms")).expect("readable");
    let buyer = Buyer::new(&shore.service, 1);
    let payment = buyer.sign_for(&read.offers.remove(0), now_s());
    assert_eq!(buyer.send(&Ask::memo(), Some(&payment)).await.status, 200);
    let nonce = unpack(&payment)["payload"]["authorization"]["nonce"].as_str().expect("text").to_owned();
    let key = AuthorizationKey {
        asset: Shore::asset(),
        authorizer: parse_address(&buyer.address()).expect("an address"),
        nonce: jim::evm::parse_word(&nonce).expect("a word"),
    };
    shore.chain.transfer(key, shore.service.app.pay_to, 50_000);
    shore.chain.mine();
    until(shore.pool(), CURSOR, &["2"]).await;
    assert!(column(shore.pool(), FOREIGN).await.is_empty());
    assert_eq!(shore.service.rows().await, Rows::SOLD);
    assert_invariants(shore.pool()).await;
}

/// A landed payment whose request died: the money is owed back, and nothing is worked again.
#[tokio::test]
async fn landed_money_whose_request_died_goes_back() {
    let shore = Shore::start().await;
    let statements = "insert into payments values ('00000000-0000-7000-8000-0000000000aa', 'k', 'client-broadcast', 2, 'eip155:84532', \
         '0x036cbd53842c5426634e7929541ec2318f3dcf7e', '0xbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb', \
         '0xcccccccccccccccccccccccccccccccccccccccc', '0x' || repeat('0', 64), repeat('0', 64), repeat('0', 64), 'p', 'c', 50000, \
         50000, 0, 1); \
         insert into chain_evidence (payment_id, kind, block, block_hash, tx_hash, log_index, from_addr, to_addr, value) \
         select payment_id, 'transfer', 1, '0x' || repeat('1', 64), '0x' || repeat('2', 64), 1, payer, pay_to, 60000 from payments; \
         insert into claims select payment_id, 1, (select instance_id from instances limit 1), now(), now() + interval '1 hour' \
         from payments; \
         select move_payment(payment_id, 'landed', 'claim', 1) from payments";
    super::run(shore.pool(), statements).await;
    tokio::time::sleep(PAUSE * 5).await;
    let states = "select state from payment_states";
    assert_eq!(column(shore.pool(), states).await, ["landed"], "its request works on it");
    super::run(shore.pool(), "update claims set lease_until = now() - interval '1 second'").await;
    until(shore.pool(), states, &["refund_owed"]).await;
    let refund = "select concat_ws(' ', reason, amount, to_addr) from refunds";
    let expected = "failed 60000 0xbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    assert_eq!(column(shore.pool(), refund).await, [expected]);
    assert_invariants(shore.pool()).await;
}

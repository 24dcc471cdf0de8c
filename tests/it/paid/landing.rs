//! Payments that the buyer has broadcast, against a chain in memory: recorded before anything is refused, charged or owed back
//! once, and never settled by a facilitator.

mod again;
mod refused;

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jim::app::Parts;
use jim::config::{Rails, Settings};
use jim::evm::{Address, B256, SecretKey, lower, parse_address, parse_word};
use jim::paywall::port::chain::AuthorizationKey;
use jim::x402::{Receipt, Version};
use serde_json::{Value, json};

use crate::support::buyer::{Ask, Buyer, Reply, now_s};
use crate::support::chain::FakeChain;
use crate::support::research::{Manner, Scribe};
use crate::support::rows::{Rows, assert_invariants, column};
use crate::support::service::Service;

/// A delivered landed payment: everything but what a settle call leaves.
const LANDED: Rows = Rows { settle_attempts: 0, served: 1, ..Rows::SOLD };

/// A service with both rails, its chain and its keys folder.
struct Till {
    service: Service,
    chain: Arc<FakeChain>,
    keys: PathBuf,
}

/// What a 402 offers by client broadcast.
#[derive(Clone)]
struct Terms {
    accepted: Value,
    resource: Value,
}

impl Till {
    async fn open() -> Self {
        Self::with(|_, _| {}).await
    }

    async fn with(change: impl FnOnce(&mut Settings, &mut Parts)) -> Self {
        let (chain, mut keys) = (FakeChain::new(), PathBuf::new());
        let service = Service::start_with(|settings, parts| {
            settings.payments.rails = Rails { client_broadcast: true, ..Rails::default() };
            settings.payments.auto_refunds = true;
            parts.chain = Some(Arc::clone(&chain) as _);
            keys.clone_from(&settings.keys_dir);
            change(settings, parts);
        })
        .await;
        Self { service, chain, keys }
    }

    async fn with_manner(manner: Manner) -> Self {
        Self::with(|_, parts| parts.synthesizer = Some(Scribe::new(manner))).await
    }

    /// The second entry of a 402.
    async fn terms(&self) -> Terms {
        let reply = Buyer::new(&self.service, 1).send(&Ask::get("/research/fundamentals"), None).await;
        let header = reply.header("payment-required").expect("terms");
        let terms: Value = serde_json::from_slice(&STANDARD.decode(header).expect("base64")).expect("JSON");
        Terms { accepted: terms["accepts"][1].clone(), resource: terms["resource"].clone() }
    }

    /// Pays for terms as they say, in a new block.
    fn pay(&self, buyer: u8, terms: &Terms) -> B256 {
        self.pay_amount(buyer, terms, terms.price())
    }

    fn pay_amount(&self, buyer: u8, terms: &Terms, amount: u128) -> B256 {
        let tx = self.chain.transfer(terms.key(buyer), terms.payee(), amount);
        self.chain.mine();
        tx
    }

    /// A landed payment of that buyer for the memo, and its header.
    async fn paid(&self, buyer: u8) -> (B256, String) {
        let terms = self.terms().await;
        let tx = self.pay(buyer, &terms);
        (tx, terms.header(tx))
    }

    async fn send(&self, ask: Ask, header: &str) -> Reply {
        let ask = ask.header(Version::V2.payment_header(), header);
        Buyer::new(&self.service, 9).send(&ask, None).await
    }

    async fn column(&self, select: &'static str) -> Vec<String> {
        column(&self.service.world.database.pool, select).await
    }

    /// The one event history, states joined.
    async fn history(&self) -> Vec<String> {
        self.column(
            "select string_agg(to_state, ' ' order by seq) from payment_events group by payment_id order by min(at_us)",
        )
        .await
    }

    async fn refunds(&self) -> Vec<String> {
        self.column("select concat_ws(' ', reason, refusal_code, amount, to_addr) from refunds order by created_at")
            .await
    }

    async fn revenue(&self) -> Vec<String> {
        self.column("select concat_ws(' ', kind, amount_micros) from ledger order by entry_id").await
    }

    /// What must hold after every step, whatever it was.
    async fn check(&self) {
        assert_invariants(&self.service.world.database.pool).await;
        let rows = self.service.rows().await;
        assert_eq!((rows.settle_attempts, self.service.settle_calls()), (0, 0), "no settle call is made on this rail");
    }
}

impl Terms {
    fn price(&self) -> u128 {
        self.accepted["amount"].as_str().expect("text").parse().expect("a number")
    }

    fn payee(&self) -> Address {
        parse_address(self.accepted["payTo"].as_str().expect("text")).expect("an address")
    }

    fn nonce(&self) -> B256 {
        parse_word(self.accepted["extra"]["nonce"].as_str().expect("text")).expect("a word")
    }

    fn key(&self, buyer: u8) -> AuthorizationKey {
        let asset = parse_address(self.accepted["asset"].as_str().expect("text")).expect("an address");
        AuthorizationKey { asset, authorizer: address(buyer), nonce: self.nonce() }
    }

    /// The same terms under another nonce.
    fn under(mut self, nonce: &B256) -> Self {
        self.accepted["extra"]["nonce"] = json!(format!("{nonce:#x}"));
        self
    }

    fn header(&self, tx: B256) -> String {
        let document = json!({
            "x402Version": 2, "resource": self.resource, "accepted": self.accepted, "payload": {"txHash": format!("{tx:#x}")},
        });
        STANDARD.encode(document.to_string())
    }
}

fn address(buyer: u8) -> Address {
    SecretKey::from_bytes([buyer; 32]).expect("a test key").address()
}

#[tokio::test]
async fn a_landed_payment_is_delivered_and_charged_without_a_settle_call() {
    let till = Till::open().await;
    let (tx, header) = till.paid(1).await;
    let reply = till.send(Ask::memo(), &header).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    let receipt =
        Receipt::decode(reply.header("payment-response").expect("a receipt"), Address::ZERO).expect("readable");
    assert!(receipt.success);
    assert_eq!((receipt.transaction, receipt.payer), (format!("{tx:#x}"), address(1)));
    assert_eq!(reply.header("idempotent-replay"), None);
    assert_eq!(till.service.rows().await, LANDED);
    assert_eq!(till.history().await, ["landed settled"]);
    assert_eq!(till.revenue().await, ["revenue 50000"]);
    assert_eq!(till.refunds().await, Vec::<String>::new());
    let proven = till.column("select concat_ws(' ', attempt, proven, transaction, e.kind) from settlements s join chain_evidence e using (evidence_id)").await;
    assert_eq!(proven, [format!("t {tx:#x} transfer")]);
    let order_id = reply.header("x-order-id").expect("an order");
    assert_eq!(reply.json()["order_id"], order_id);
    let order = till.service.get(&format!("/api/orders/{order_id}")).await.json();
    assert_eq!((&order["state"], &order["charged"]), (&json!("delivered"), &json!(true)));
    assert_eq!(order["payment"], json!({"id": order["payment"]["id"], "state": "settled", "tx": format!("{tx:#x}")}));
    till.check().await;
}

#[tokio::test]
async fn the_rail_works_while_no_facilitator_is_there() {
    let till = Till::with(|settings, _| settings.payments.facilitator_urls = Vec::new()).await;
    let (_, header) = till.paid(1).await;
    let ask = Ask::post(r#"{"ticker":"ACME"}"#);
    assert_eq!(till.send(ask, &header).await.status, 200);
    till.check().await;
}

#[tokio::test]
async fn what_came_above_the_price_is_owed_back_and_the_memo_delivered() {
    let till = Till::open().await;
    let terms = till.terms().await;
    let tx = till.pay_amount(1, &terms, terms.price() + 123);
    let reply = till.send(Ask::memo(), &terms.header(tx)).await;
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(till.refunds().await, [format!("overpaid 123 {}", lower(&address(1)))]);
    assert_eq!(
        (till.history().await, till.revenue().await),
        (vec!["landed settled".into()], vec!["revenue 50000".into()])
    );
    let order =
        till.service.get(&format!("/api/orders/{}", reply.header("x-order-id").expect("an order"))).await.json();
    assert_eq!((&order["state"], &order["refund"]["amount"]), (&json!("delivered"), &json!("123")));
    till.check().await;
}

#[tokio::test]
async fn a_transfer_that_no_block_counts_yet_is_not_recorded_and_counts_later() {
    let till = Till::open().await;
    let terms = till.terms().await;
    let tx = till.chain.transfer(terms.key(1), terms.payee(), terms.price());
    for is_mined in [false, true] {
        if is_mined {
            // one block is not enough for this operator
            till.chain.set_confirmations(1);
            till.chain.mine();
        }
        let reply = till.send(Ask::memo(), &terms.header(tx)).await;
        let body = crate::support::refusal::assert_pending(&reply);
        assert_eq!(body["payment"]["tx"], format!("{tx:#x}"));
        assert_eq!(till.service.rows().await, Rows::default());
    }
    till.chain.mine();
    assert_eq!(till.send(Ask::memo(), &terms.header(tx)).await.status, 200);
    assert_eq!(till.service.rows().await, LANDED);
    till.check().await;
}

#[tokio::test]
async fn a_node_that_is_down_takes_nothing_and_loses_nothing() {
    let till = Till::open().await;
    let (_, header) = till.paid(1).await;
    till.chain.set_down(true);
    let reply = till.send(Ask::memo(), &header).await;
    crate::support::refusal::assert_refusal(&till.service, &reply, 503, "overloaded").await;
    assert_eq!(till.service.rows().await, Rows::default());
    till.chain.set_down(false);
    let sold = till.send(Ask::memo(), &header).await;
    assert_eq!(sold.status, 200);
    // what is recorded needs no chain
    till.chain.set_down(true);
    assert_eq!(till.send(Ask::memo(), &header).await.body, sold.body);
    till.check().await;
}

#[tokio::test]
async fn money_that_is_not_ours_is_answered_with_terms_and_not_recorded() {
    let till = Till::open().await;
    let terms = till.terms().await;
    let key = terms.key(1);
    let elsewhere = till.chain.transfer(key, address(5), terms.price());
    let other_token = AuthorizationKey { asset: address(6), nonce: B256::repeat_byte(6), ..key };
    let other_token = till.chain.transfer(other_token, terms.payee(), terms.price());
    let forged = terms.clone().under(&B256::repeat_byte(7));
    let by_forged = till.chain.transfer(forged.key(1), terms.payee(), terms.price());
    let nothing = till.chain.transfers([]);
    till.chain.mine();
    for (header, reason) in [
        (terms.header(elsewhere), "another address was paid"),
        (terms.header(other_token), "moved nothing of the token"),
        (forged.header(by_forged), "not the nonce of an offer"),
        (terms.header(by_forged), "not the nonce that accepted names"),
        (terms.header(nothing), "moved nothing of the token"),
    ] {
        let reply = till.send(Ask::memo(), &header).await;
        assert_eq!(reply.status, 402, "{}", reply.text());
        assert!(reply.json()["error"].as_str().is_some_and(|error| error.contains(reason)), "{}", reply.text());
        assert!(reply.header("payment-required").is_some());
    }
    assert_eq!((till.service.rows().await, till.service.world.scribe.drafts()), (Rows::default(), 0));
    till.check().await;
}

#[tokio::test]
async fn the_manifest_promises_the_refund_where_the_rail_is_on() {
    let till = Till::open().await;
    let manifest = till.service.get("/api/meta/refusal-contract").await.json();
    assert_eq!(manifest["rails"], json!(["exact", "client-broadcast"]));
    let refund = &manifest["refund"];
    assert_eq!((&refund["mode"], &refund["to"]), (&json!("auto"), &json!("payer_of_transfer")));
    assert_eq!(refund["status_url"], "http://jim.example/api/orders/{order_id}");
    assert_eq!(refund["due_seconds"], 86_400);
    let off = Service::start().await.get("/api/meta/refusal-contract").await.json();
    assert_eq!((&off["rails"], off.get("refund")), (&json!(["exact"]), None));
    assert!(till.terms().await.accepted["extra"]["nonce"].is_string() && now_s() > 0);
}

//! Refusals after the money has landed: one row that owes all of it back, said in the body, whatever the reason.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jim::evm::{Address, B256, checksummed, lower};
use jim::money::Atomic;
use jim::signer::load_or_create_bytes;
use jim::x402::{Offer, OfferSecret, Version};
use serde_json::{Value, json};

use super::{Terms, Till, address};
use crate::support::buyer::{Ask, Reply, now_s};
use crate::support::research::{Manner, Scribe, Shelves, Stock};
use crate::support::rows::Rows;

/// A landed payment that was refused.
const OWED: Rows = Rows { settlements: 0, ledger: 0, ..super::LANDED };

/// Asserts that a landed payment of `amount` by buyer 1 was refused and is owed back; returns the body.
async fn assert_owed(till: &Till, reply: &Reply, status: u16, code: &str, amount: u128, tx: B256) -> Value {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert!(reply.header("payment-required").is_none() && reply.header("payment-response").is_none());
    let body = reply.json();
    assert_eq!((&body["code"], &body["charged"]), (&json!(code), &json!(false)), "{body}");
    assert_eq!(body["receipt"]["payload"]["code"], code);
    assert_eq!((&body["payment"]["state"], &body["payment"]["tx"]), (&json!("landed"), &json!(format!("{tx:#x}"))));
    let refund = &body["refund"];
    assert_eq!((&refund["status"], &refund["amount"]), (&json!("pending"), &json!(amount.to_string())));
    assert_eq!(refund["to"], lower(&address(1)));
    assert_eq!(body["retry"]["same_payment"], false);
    let reason = if code == "execution_failed" { "failed" } else { "refused" };
    assert_eq!(till.refunds().await, [format!("{reason} {code} {amount} {}", lower(&address(1)))]);
    assert_eq!(till.history().await, ["landed refund_owed"]);
    assert_eq!(till.service.rows().await, OWED);
    let stored = till.column("select concat_ws(' ', refund_id, to_char(due_by at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')) from refunds").await;
    assert_eq!(stored, [format!("{} {}", text(&refund["id"]), text(&refund["due_by"]))]);
    let path = text(&refund["status_url"]).strip_prefix("http://jim.example").expect("our own address").to_owned();
    let order = till.service.get(&path).await.json();
    assert_eq!((&order["state"], &order["charged"]), (&json!("refunded"), &json!(false)));
    assert_eq!((&order["payment"], &order["refund"]), (&body["payment"], refund));
    till.check().await;
    body
}

fn text(value: &Value) -> String {
    value.as_str().expect("text").to_owned()
}

async fn refuse_paid(till: &Till, ask: Ask, status: u16, code: &str) -> Value {
    let terms = till.terms().await;
    let tx = till.pay(1, &terms);
    let reply = till.send(ask.clone(), &terms.header(tx)).await;
    let body = assert_owed(till, &reply, status, code, terms.price(), tx).await;
    let again = till.send(ask, &terms.header(tx)).await;
    assert_eq!((again.status, again.body), (reply.status, reply.body), "the same refusal again");
    assert_eq!(till.column("select count(*)::text from refunds").await, ["1"]);
    till.check().await;
    body
}

#[tokio::test]
async fn a_loop_in_the_call_chain() {
    let till = Till::open().await;
    let ask = Ask::memo().header("x-jim-call-chain", &checksummed(&till.service.app.pay_to));
    let body = refuse_paid(&till, ask, 409, "call_chain_loop").await;
    assert!(body["call_chain"]["hops"].is_array());
    assert_eq!(till.service.world.scribe.drafts(), 0);
}

#[tokio::test]
async fn input_that_is_wrong_or_not_there() {
    let till = Till::open().await;
    refuse_paid(&till, Ask::get("/research/fundamentals?ticker=NOBODY"), 422, "insufficient_subject").await;
    let till = Till::open().await;
    refuse_paid(&till, Ask::get("/research/fundamentals"), 422, "insufficient_subject").await;
}

#[tokio::test]
async fn a_subject_that_the_operator_does_not_sell() {
    let till = Till::with(|settings, _| settings.denied_subjects = ["ACME".to_owned()].into()).await;
    refuse_paid(&till, Ask::memo(), 409, "policy_refusal").await;
}

#[tokio::test]
async fn a_payer_who_is_declined() {
    let till = Till::with(|settings, _| settings.denied_payers = [address(1)].into()).await;
    refuse_paid(&till, Ask::memo(), 403, "payer_declined").await;
}

#[tokio::test]
async fn more_requests_than_are_allowed() {
    // the terms take the one request of the address
    let till = Till::with(|settings, _| settings.rate_per_minute = 1).await;
    let terms = till.terms().await;
    let tx = till.pay(1, &terms);
    let reply = till.send(Ask::memo(), &terms.header(tx)).await;
    assert!(reply.header("retry-after").is_some());
    assert_eq!(reply.status, 429, "{}", reply.text());
    assert_eq!(reply.json()["refund"]["status"], "pending");
    assert_eq!((till.service.rows().await, till.history().await), (OWED, vec!["landed refund_owed".to_owned()]));
    till.check().await;
}

#[tokio::test]
async fn a_memo_that_the_gate_rejects() {
    let till = Till::with_manner(Manner::Lying).await;
    let body = refuse_paid(&till, Ask::memo(), 502, "research_rejected").await;
    assert_eq!(body["sourcing"]["passed"], false);
}

#[tokio::test]
async fn a_feed_that_is_down() {
    let till = Till::with(|_, parts| parts.source = Some(std::sync::Arc::new(Shelves(Stock::Down)))).await;
    refuse_paid(&till, Ask::memo(), 503, "data_unavailable").await;
}

#[tokio::test]
async fn a_handler_that_panics() {
    let till = Till::with(|_, parts| parts.synthesizer = Some(Scribe::new(Manner::Panicking))).await;
    refuse_paid(&till, Ask::memo(), 502, "execution_failed").await;
}

#[tokio::test]
async fn too_little() {
    let till = Till::open().await;
    let terms = till.terms().await;
    let tx = till.pay_amount(1, &terms, terms.price() - 1);
    let reply = till.send(Ask::memo(), &terms.header(tx)).await;
    let body = assert_owed(&till, &reply, 409, "payment_reused", terms.price() - 1, tx).await;
    assert!(text(&body["detail"]).contains("the price is 50000"), "{body}");
}

#[tokio::test]
async fn terms_that_we_did_not_offer() {
    let till = Till::open().await;
    let mut terms = till.terms().await;
    let tx = till.pay(1, &terms);
    terms.accepted["amount"] = json!("1");
    let reply = till.send(Ask::memo(), &terms.header(tx)).await;
    assert_owed(&till, &reply, 409, "payment_reused", 50_000, tx).await;
}

#[tokio::test]
async fn an_offer_that_has_ended() {
    let till = Till::open().await;
    let terms = issued(&till, now_s() - 3_600).await;
    let tx = till.pay(1, &terms);
    let reply = till.send(Ask::memo(), &terms.header(tx)).await;
    let body = assert_owed(&till, &reply, 409, "payment_reused", terms.price(), tx).await;
    assert!(text(&body["detail"]).contains("ended"), "{body}");
}

#[tokio::test]
async fn an_offer_that_ended_a_moment_ago_counts_when_the_money_was_here_in_time() {
    for (mined_at, status) in [(now_s() - 60, 200), (now_s(), 409)] {
        let till = Till::open().await;
        let terms = issued(&till, now_s() - 630).await;
        let tx = till.chain.transfer(terms.key(1), terms.payee(), terms.price());
        till.chain.mine_at(mined_at);
        let reply = till.send(Ask::memo(), &terms.header(tx)).await;
        assert_eq!(reply.status, status, "{}", reply.text());
        till.check().await;
    }
}

/// Terms whose nonce was made at another time.
async fn issued(till: &Till, at_s: u64) -> Terms {
    let terms = till.terms().await;
    let secret = OfferSecret::from_bytes(load_or_create_bytes(&till.keys.join("offer.key")).expect("the secret"));
    let offer = Offer {
        network: text(&terms.accepted["network"]).parse().expect("a network"),
        asset: terms.key(1).asset,
        amount: Atomic(terms.price()),
        pay_to: terms.payee(),
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
    let nonce = secret.issue("research:fundamentals", &offer, at_s, [3; 8]).expect("a nonce");
    terms.under(&nonce)
}

#[tokio::test]
async fn what_needs_no_money_to_be_seen_comes_before_the_money() {
    let till = Till::open().await;
    let (_, header) = till.paid(1).await;
    let mut broken = serde_json::from_slice::<Value>(&STANDARD.decode(&header).expect("base64")).expect("JSON");
    broken["payload"]["txHash"] = json!("0x12");
    assert_eq!(till.send(Ask::memo(), &STANDARD.encode(broken.to_string())).await.status, 400);
    let both = Ask::memo().header(Version::V2.payment_header(), &header);
    assert_eq!(till.send(both, &header).await.status, 400);
    assert_eq!(till.send(Ask::post("{"), &header).await.status, 400);
    assert_eq!((till.service.rows().await, till.chain.reads()), (Rows::default(), 0));
    assert_ne!(Address::ZERO, till.service.app.pay_to);
}

#[tokio::test]
async fn money_that_went_back_is_no_loss() {
    let till = Till::open().await;
    refuse_paid(&till, Ask::get("/research/fundamentals?ticker=NOBODY"), 422, "insufficient_subject").await;
    let confirm = "select journal_refund_confirmed(refund_id, to_addr, '0x' || repeat('ab', 32)) from refunds";
    sqlx::query(confirm).execute(&till.service.world.database.pool).await.expect("confirmed");
    assert_eq!(till.history().await, ["landed refund_owed refunded"]);
    let summary = till.service.operate("/api/ledger/margin").await["summary"].clone();
    let of = |member: &str| summary[member].as_i64().expect("a number");
    assert_eq!((of("revenue_micros"), of("refund_micros"), of("margin_micros")), (0, 50_000, 0));
    let order_id = till.column("select order_id from orders").await.remove(0);
    let order = till.service.get(&format!("/api/orders/{order_id}")).await.json();
    assert_eq!(
        (&order["refund"]["status"], &order["refund"]["tx"]),
        (&json!("sent"), &json!(format!("0x{}", "ab".repeat(32))))
    );
    till.check().await;
}

//! Refunds in the whole service: its own desk pays them, the operator sees them, and the payment that they belong to tells its payer.

use std::sync::Arc;
use std::time::Duration;

use jim::evm::{B256, lower};
use jim::machine::State;
use jim::store::journal::{Evidence, Journal};
use serde_json::Value;
use uuid::Uuid;

use super::bench::TREASURY;
use super::node::{Cashier, Node};
use crate::support::buyer::{Ask, Buyer};
use crate::support::facilitator::{Answer, StubFacilitator};
use crate::support::refusal::assert_refusal;
use crate::support::research::{Shelves, Stock};
use crate::support::rows::{assert_invariants, column};
use crate::support::service::Service;

/// A service with a desk; `auto` as the operator says.
async fn start(node: &Arc<Node>, stub: &StubFacilitator, auto: bool, stock: Stock) -> Service {
    let chain = Arc::clone(node) as _;
    let treasury = Cashier::new(node, TREASURY) as _;
    Service::start_with(|settings, parts| {
        settings.payments.facilitator_urls = vec![stub.url()];
        settings.payments.auto_refunds = auto;
        parts.chain = Some(chain);
        parts.treasury = Some(treasury);
        parts.source = Some(Arc::new(Shelves(stock)));
    })
    .await
}

/// A third party submits what the buyer of the newest payment has signed.
async fn submit(service: &Service) -> (Uuid, State) {
    let pool = &service.world.database.pool;
    let payment_id: Uuid = sqlx::query_scalar("select payment_id from payments order by created_at desc limit 1")
        .fetch_one(pool)
        .await
        .expect("a payment");
    let journal = Journal::open(pool.clone(), true).await.expect("a journal");
    let signed = journal.load_authorization(payment_id).await.expect("a payment");
    let transfer = Evidence::Transfer {
        block: 2,
        block_hash: format!("{:#x}", B256::with_last_byte(2)),
        tx: signed.nonce.clone(),
        log_index: 1,
        from: signed.payer,
        to: signed.pay_to,
        value: signed.amount,
    };
    (payment_id, journal.store_evidence(payment_id, &transfer).await.expect("stored"))
}

async fn refunds(service: &Service) -> Value {
    service.operate("/api/refunds").await
}

/// Waits until the service's own desk has confirmed everything.
async fn wait_until_confirmed(service: &Service) {
    for _ in 0..200 {
        let hurry = "update refund_steps set next_at = least(next_at, now()) where kind = 'broadcast'";
        sqlx::query(hurry).execute(&service.world.database.pool).await.expect("hurried");
        if refunds(service).await["summary"]["owed_micros"] == 0 {
            return;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    panic!("not confirmed: {}", refunds(service).await);
}

#[tokio::test]
async fn money_that_came_in_for_a_failed_verify_is_told_and_sent_back() {
    let (node, stub) = (Node::new(), StubFacilitator::start().await);
    let service = start(&node, &stub, true, Stock::default()).await;
    let buyer = Buyer::new(&service, 1);
    stub.on_verify([Answer::Json(200, serde_json::json!({"isValid": false, "invalidReason": "insufficient_funds"}))]);
    let (payment, first) = buyer.buy(&Ask::memo()).await;
    assert_eq!(first.status, 402);
    let (payment_id, state) = submit(&service).await;
    assert_eq!(state, State::RefundOwed);
    let told = buyer.send(&Ask::memo(), Some(&payment)).await;
    let body = assert_refusal(&service, &told, 502, "execution_failed").await;
    assert_eq!(body["payment"]["state"], "landed");
    let refund = &body["refund"];
    assert_eq!((&refund["amount"], &refund["to"]), (&"50000".into(), &buyer.address().into()), "{refund}");
    assert!(refund["due_by"].is_string() && refund["id"].is_string(), "{refund}");
    wait_until_confirmed(&service).await;
    let told = buyer.send(&Ask::memo(), Some(&payment)).await;
    let refund = assert_refusal(&service, &told, 502, "execution_failed").await["refund"].clone();
    assert_eq!(refund["status"], "sent");
    assert!(refund["tx"].as_str().is_some_and(|tx| tx.len() == 66), "{refund}");
    let listed = refunds(&service).await;
    let row = &listed["rows"][0];
    assert_eq!((&row["state"], &row["payment_id"]), (&"confirmed".into(), &payment_id.to_string().into()));
    assert_eq!((&row["tx"], &row["to"], &row["reason"]), (&refund["tx"], &refund["to"], &"late".into()));
    assert_eq!(node.paid_to(buyer.address().parse().expect("an address")).len(), 1);
    assert_eq!(stub.settles(), 0);
    assert_invariants(&service.world.database.pool).await;
    service.stop().await;
}

#[tokio::test]
async fn a_stored_refusal_keeps_its_bytes_when_its_money_goes_back() {
    let (node, stub) = (Node::new(), StubFacilitator::start().await);
    let service = start(&node, &stub, true, Stock::Down).await;
    let buyer = Buyer::new(&service, 1);
    let (payment, first) = buyer.buy(&Ask::memo()).await;
    assert_eq!(first.json()["code"], "data_unavailable");
    submit(&service).await;
    for _ in 0..2 {
        let again = buyer.send(&Ask::memo(), Some(&payment)).await;
        assert_eq!((again.status, &again.body), (first.status, &first.body));
        wait_until_confirmed(&service).await;
    }
    let books = "select kind || ' ' || amount_micros from ledger";
    assert_eq!(column(&service.world.database.pool, books).await, ["refund 50000"]);
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn without_auto_refunds_stay_listed_and_pages_follow_each_other() {
    let (node, stub) = (Node::new(), StubFacilitator::start().await);
    let service = start(&node, &stub, false, Stock::Down).await;
    for key in 1..=3 {
        Buyer::new(&service, key).buy(&Ask::memo()).await;
        submit(&service).await;
    }
    tokio::time::sleep(jim::limits::REFUND_PAUSE + Duration::from_secs(1)).await;
    let all = refunds(&service).await;
    let summary = serde_json::json!({"owed": 3, "pending": 0, "confirmed": 0, "parked": 0, "owed_micros": 150_000});
    assert_eq!((&all["summary"], &all["next"]), (&summary, &Value::Null));
    assert_eq!(node.heard(), []);
    let first = service.operate("/api/refunds?limit=2").await;
    let next = first["next"].as_str().expect("another page");
    let second = service.operate(&format!("/api/refunds?limit=2&after={next}")).await;
    let seen = [first["rows"].as_array().expect("rows").clone(), second["rows"].as_array().expect("rows").clone()];
    assert_eq!(Value::Array(seen.concat()), all["rows"]);
    for (filter, count) in [("owed", 3), ("confirmed", 0)] {
        let rows = service.operate(&format!("/api/refunds?state={filter}")).await["rows"].clone();
        assert_eq!(rows.as_array().map(Vec::len), Some(count));
    }
    let to = lower(&"0x0000000000000000000000000000000000000000".parse().expect("an address"));
    assert!(all["rows"].as_array().expect("rows").iter().all(|row| row["to"] != to && row["status"] == "pending"));
    let bare = format!("http://{}/api/refunds", service.app.operator_addr);
    assert_eq!(Buyer::new(&service, 1).send_to(&bare, &Ask::get(""), None).await.status, 401);
}

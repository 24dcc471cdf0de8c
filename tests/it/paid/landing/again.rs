//! The same transfer again, for the same request and for others; two transfers for one purchase; owners that die.

use std::sync::Arc;
use std::time::Duration;

use jim::evm::lower;
use jim::x402::Version;
use serde_json::json;
use tokio::sync::Notify;

use super::{LANDED, Till, address};
use crate::support::buyer::{Ask, Buyer};
use crate::support::refusal::assert_refusal;
use crate::support::research::{Manner, Scribe};
use crate::support::rows::Rows;

#[tokio::test]
async fn the_same_payment_brings_the_same_bytes() {
    let till = Till::open().await;
    let (_, header) = till.paid(1).await;
    let first = till.send(Ask::memo(), &header).await;
    let reads = till.chain.reads();
    let second = till.send(Ask::memo(), &header).await;
    assert_eq!((first.status, second.status), (200, 200));
    assert_eq!(second.body, first.body);
    assert_eq!(second.header("idempotent-replay"), Some("true"));
    for name in ["payment-response", "x-order-id"] {
        assert_eq!(second.header(name), first.header(name));
    }
    assert_eq!((till.chain.reads(), till.service.world.scribe.drafts()), (reads, 1));
    assert_eq!(till.service.rows().await, Rows { served: 2, ..LANDED });
    till.check().await;
}

#[tokio::test]
async fn for_another_request_it_is_spent() {
    let till = Till::open().await;
    let (_, header) = till.paid(1).await;
    assert_eq!(till.send(Ask::memo(), &header).await.status, 200);
    let reply = till.send(Ask::get("/research/fundamentals?ticker=BETA"), &header).await;
    let body = assert_refusal(&till.service, &reply, 409, "payment_reused").await;
    assert_eq!((&body["payment"]["state"], body.get("refund")), (&json!("settled"), None));
    assert_eq!(till.service.rows().await, Rows { served: 2, ..LANDED });
    till.check().await;
}

#[tokio::test]
async fn copies_at_one_moment_are_worked_on_once() {
    let till = Till::with_manner(Manner::Slow(Duration::from_millis(300))).await;
    let (_, header) = till.paid(1).await;
    let (a, b, c) = tokio::join!(
        till.send(Ask::memo(), &header),
        till.send(Ask::memo(), &header),
        till.send(Ask::get("/research/fundamentals?ticker=BETA"), &header)
    );
    let mut statuses = [a.status, b.status, c.status];
    statuses.sort_unstable();
    assert_eq!(statuses, [200, 409, 409], "{} {} {}", a.text(), b.text(), c.text());
    assert_eq!(till.service.rows().await, Rows { served: 3, ..LANDED });
    assert_eq!(till.history().await, ["landed settled"]);
    till.check().await;
}

#[tokio::test]
async fn while_it_is_worked_on_a_copy_is_told_to_wait() {
    let gate = Arc::new(Notify::new());
    let till = Till::with_manner(Manner::Held(Arc::clone(&gate))).await;
    let (_, header) = till.paid(1).await;
    let first = till.send(Ask::memo(), &header);
    let second = async {
        while till.service.rows().await.payments == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let reply = till.send(Ask::memo(), &header).await;
        let body = assert_refusal(&till.service, &reply, 409, "payment_in_progress").await;
        assert_eq!(body["payment"]["state"], "landed");
        gate.notify_one();
    };
    let (first, ()) = tokio::join!(first, second);
    assert_eq!(first.status, 200);
    till.check().await;
}

#[tokio::test]
async fn a_second_transfer_for_one_purchase_goes_back() {
    let till = Till::open().await;
    let (_, first) = till.paid(1).await;
    let sold = till.send(Ask::memo(), &first).await;
    let (tx, second) = till.paid(1).await;
    let reply = till.send(Ask::memo(), &second).await;
    assert_eq!(reply.status, 409, "{}", reply.text());
    let body = reply.json();
    assert_eq!((&body["code"], &body["charged"]), (&json!("payment_in_progress"), &json!(false)));
    assert_eq!(body["retry"], json!({"safe": false, "same_payment": false}));
    assert_eq!((&body["payment"]["tx"], &body["refund"]["amount"]), (&json!(format!("{tx:#x}")), &json!("50000")));
    assert_eq!(till.refunds().await, [format!("refused payment_in_progress 50000 {}", lower(&address(1)))]);
    assert_eq!(till.history().await, ["landed settled", "landed refund_owed"]);
    assert_eq!(till.send(Ask::memo(), &second).await.body, reply.body);
    assert_eq!(till.send(Ask::memo(), &first).await.body, sold.body);
    assert_eq!(till.revenue().await, ["revenue 50000"]);
    // another payer is another purchase
    let (_, other) = till.paid(2).await;
    assert_eq!(till.send(Ask::memo(), &other).await.status, 200);
    till.check().await;
}

#[tokio::test]
async fn an_authorization_for_a_purchase_that_landed_is_answered_for_nothing() {
    let till = Till::open().await;
    let (_, header) = till.paid(1).await;
    let sold = till.send(Ask::memo(), &header).await;
    let buyer = Buyer::new(&till.service, 1);
    let asked = buyer.send(&Ask::memo(), None).await;
    let mut read = jim::x402::read_required(asked.header("payment-required").expect("terms")).expect("readable");
    let payment = buyer.sign_for(&read.offers.remove(0), crate::support::buyer::now_s());
    let reply = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_eq!((reply.status, &reply.body), (200, &sold.body), "{}", reply.text());
    assert_eq!((till.history().await, till.revenue().await.len()), (vec!["landed settled".into(), "free".into()], 1));
    till.check().await;
}

#[tokio::test]
async fn one_transaction_may_hold_several_payments() {
    let till = Till::open().await;
    let (a, b) = (till.terms().await, till.terms().await);
    let price = a.price();
    let tx = till.chain.transfers([(a.key(1), a.payee(), price), (b.key(2), b.payee(), price)]);
    till.chain.mine();
    let mut unnamed = a.clone();
    unnamed.accepted["extra"].as_object_mut().expect("an object").remove("nonce");
    let reply = till.send(Ask::memo(), &unnamed.header(tx)).await;
    assert_eq!(reply.status, 402, "{}", reply.text());
    for terms in [&a, &b] {
        assert_eq!(till.send(Ask::memo(), &terms.header(tx)).await.status, 200);
    }
    assert_eq!(till.column("select payer from payments order by created_at").await, [1, 2].map(|n| lower(&address(n))));
    till.check().await;
}

#[tokio::test]
async fn a_payment_whose_owner_died_goes_back_and_is_never_worked_on_again() {
    let till = Till::open().await;
    let (_, header) = till.paid(1).await;
    let slow = Scribe::new(Manner::Slow(Duration::from_secs(30)));
    let till = {
        let Till { service, chain, keys } = till;
        let mut world = service.stop().await;
        world.change(|_, parts| parts.synthesizer = Some(Arc::clone(&slow) as _));
        Till { service: world.open().await, chain, keys }
    };
    let buyer = Buyer::new(&till.service, 9);
    let ask = Ask::memo().header(Version::V2.payment_header(), &header);
    let sending = tokio::spawn(async move { buyer.send(&ask, None).await });
    while slow.drafts() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // what a heart that stops leaves behind, without waiting for it
    let lapsed = "update claims set lease_until = now() - interval '1 second'";
    sqlx::query(lapsed).execute(&till.service.world.database.pool).await.expect("lapsed");
    let reply = till.send(Ask::memo(), &header).await;
    assert_eq!((reply.status, reply.json()["code"].as_str()), (502, Some("execution_failed")), "{}", reply.text());
    assert_eq!(till.refunds().await, [format!("failed execution_failed 50000 {}", lower(&address(1)))]);
    assert_eq!(till.send(Ask::memo(), &header).await.body, reply.body);
    assert_eq!((slow.drafts(), till.history().await), (1, vec!["landed refund_owed".to_owned()]));
    till.check().await;
    sending.abort();
}

#[tokio::test]
async fn an_owner_that_comes_back_too_late_delivers_nothing() {
    let gate = Arc::new(Notify::new());
    let till = Till::with_manner(Manner::Held(Arc::clone(&gate))).await;
    let (_, header) = till.paid(1).await;
    let first = till.send(Ask::memo(), &header);
    let second = async {
        while till.service.rows().await.payments == 0 {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let lapsed = "update claims set lease_until = now() - interval '1 second'";
        sqlx::query(lapsed).execute(&till.service.world.database.pool).await.expect("lapsed");
        let reply = till.send(Ask::memo(), &header).await;
        gate.notify_one();
        reply
    };
    let (first, second) = tokio::join!(first, second);
    assert_eq!((first.status, second.status), (502, 502), "{}", first.text());
    assert_eq!(first.body, second.body, "one decision");
    assert_eq!(till.history().await, ["landed refund_owed"]);
    assert_eq!(till.service.rows().await, Rows { settlements: 0, ledger: 0, ..LANDED });
    till.check().await;
}

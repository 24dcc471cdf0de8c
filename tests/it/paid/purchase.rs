//! One purchase, several authorizations: clients that sign anew on every retry are charged once.

use std::sync::Arc;
use std::time::Duration;

use jim::x402::Version;
use serde_json::json;
use tokio::sync::Notify;

use crate::support::buyer::{Ask, Buyer};
use crate::support::facilitator::{Answer, StubFacilitator};
use crate::support::refusal::assert_pending;
use crate::support::research::{Manner, Scribe};
use crate::support::rows::{Rows, assert_invariants, column};
use crate::support::service::{MEMO, Service};

/// A client of its own, so that its connection can be dropped alone.
fn client() -> reqwest::Client {
    reqwest::Client::builder().timeout(Duration::from_secs(60)).build().expect("a client")
}

async fn states(service: &Service) -> Vec<String> {
    column(&service.world.database.pool, "select state from payment_states order by created_at, payment_id").await
}

#[tokio::test]
async fn a_second_authorization_within_the_window_gets_the_first_answer_for_nothing() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let (first, sold) = buyer.buy(&Ask::memo()).await;
    let (second, again) = buyer.buy(&Ask::memo()).await;
    assert_ne!(first.header_value, second.header_value);
    assert_eq!((again.status, &again.body), (200, &sold.body), "{}", again.text());
    assert_eq!(again.header("idempotent-replay"), Some("true"));
    assert_eq!(again.header("payment-response"), sold.header("payment-response"), "the receipt of the one charge");
    // and so it stays, however often either comes again
    for payment in [&first, &second, &second] {
        assert_eq!(buyer.send(&Ask::memo(), Some(payment)).await.body, sold.body);
    }
    assert_eq!((service.settle_calls(), service.world.scribe.drafts()), (1, 1));
    assert_eq!(service.rows().await, Rows { payments: 2, served: 4, ..Rows::SOLD });
    assert_eq!(states(&service).await, ["settled", "free"]);
    // another question is another purchase
    let other = Ask::get(&format!("{MEMO}&mode=human"));
    assert_eq!(buyer.buy(&other).await.1.status, 200);
    assert_eq!(service.settle_calls(), 2);
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn after_the_window_a_second_authorization_buys_anew() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    assert_eq!(buyer.buy(&Ask::memo()).await.1.status, 200);
    sqlx::query("update settlements set settled_at = settled_at - interval '121 seconds'")
        .execute(&service.world.database.pool)
        .await
        .expect("moved");
    assert_eq!(buyer.buy(&Ask::memo()).await.1.status, 200);
    assert_eq!((service.settle_calls(), service.world.scribe.drafts()), (2, 2));
    assert_eq!(states(&service).await, ["settled", "settled"]);
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn a_second_authorization_finds_out_what_became_of_the_first() {
    let stub = StubFacilitator::start().await;
    let service = Service::start_at(&stub).await;
    let lost = Answer::Json(200, json!({"success": false, "errorReason": "unexpected_settle_error"}));
    stub.on_settle([Answer::Drop, lost.clone(), lost]);
    let buyer = Buyer::new(&service, 1);
    let (first, reply) = buyer.buy(&Ask::memo()).await;
    assert_pending(&reply);
    // while nobody knows, a new signature is neither verified nor settled, and never told that it was refused
    for _ in 0..2 {
        let (_, held) = buyer.buy(&Ask::memo()).await;
        let body = assert_pending(&held);
        assert_eq!(
            body["payment"]["id"].as_str(),
            Some(&*column(&service.world.database.pool, "select payment_id::text from payments").await[0])
        );
    }
    assert_eq!((stub.calls("verify").len(), stub.settles()), (1, 3), "the first payload was presented again each time");
    let nonces: Vec<_> =
        stub.calls("settle").iter().map(|c| c["paymentPayload"]["payload"]["authorization"]["nonce"].clone()).collect();
    assert!(nonces.iter().all(|nonce| *nonce == nonces[0]), "{nonces:?}");
    // once it went through, the new one is answered from it
    let (second, sold) = buyer.buy(&Ask::memo()).await;
    assert_eq!(sold.status, 200, "{}", sold.text());
    assert_eq!(buyer.send(&Ask::memo(), Some(&first)).await.body, sold.body);
    assert_eq!(buyer.send(&Ask::memo(), Some(&second)).await.body, sold.body);
    assert_eq!((stub.calls("verify").len(), stub.settles()), (1, 4));
    assert_eq!(states(&service).await, ["settled", "free"]);
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn an_answer_that_was_never_sent_to_settle_is_paid_by_the_next_authorization() {
    let gate = Arc::new(Notify::new());
    let scribe = Scribe::new(Manner::Held(Arc::clone(&gate)));
    let service = Service::start_with(|_, parts| parts.synthesizer = Some(Arc::clone(&scribe) as _)).await;
    let buyer = Buyer::new(&service, 1);
    let first = buyer.sign(Version::V2).await;
    let url = service.url(MEMO);
    let request = client().get(&url).header(first.version.payment_header(), &first.header_value);
    let sending = tokio::spawn(request.send());
    while scribe.drafts() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    sending.abort();
    tokio::time::sleep(Duration::from_millis(100)).await;
    gate.notify_one();
    while service.rows().await.answers == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(states(&service).await, ["ready"]);
    let (second, sold) = buyer.buy(&Ask::memo()).await;
    assert_eq!(sold.status, 200, "{}", sold.text());
    assert_eq!((service.settle_calls(), scribe.drafts()), (1, 1), "the work was not done again");
    assert_eq!(states(&service).await, ["superseded", "settled"]);
    let order = sold.json()["order_id"].as_str().expect("an id").to_owned();
    let shown = service.get(&format!("/api/orders/{order}")).await.json();
    assert_eq!((&shown["state"], &shown["charged"]), (&json!("delivered"), &json!(true)), "{shown}");
    for payment in [&first, &second] {
        let again = buyer.send(&Ask::memo(), Some(payment)).await;
        assert_eq!((again.status, &again.body), (200, &sold.body), "{}", again.text());
    }
    assert_eq!(service.settle_calls(), 1, "the first authorization is never settled");
    let margin = service.operate("/api/ledger/margin").await;
    assert_eq!(
        (&margin["summary"]["settled"], &margin["summary"]["revenue_micros"]),
        (&json!(1), &json!(50_000)),
        "{margin}"
    );
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn authorizations_of_one_purchase_side_by_side_are_charged_once() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let mut payments = Vec::new();
    for _ in 0..8 {
        payments.push(buyer.sign(Version::V2).await);
    }
    let sending = payments.iter().map(|payment| {
        let (url, payment) = (service.url(MEMO), payment.clone());
        tokio::spawn(async move {
            let request = client().get(url).header(payment.version.payment_header(), &payment.header_value);
            request.send().await.expect("a response").status().as_u16()
        })
    });
    let mut sold = 0;
    for reply in sending.collect::<Vec<_>>() {
        let status = reply.await.expect("no panic");
        assert!(matches!(status, 200 | 409 | 503), "{status}");
        sold += u32::from(status == 200);
    }
    assert!(sold > 0);
    for payment in &payments {
        assert_eq!(buyer.send(&Ask::memo(), Some(payment)).await.status, 200);
    }
    assert_eq!((service.settle_calls(), service.world.scribe.drafts()), (1, 1));
    assert_eq!(service.rows().await.ledger, 1);
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn a_superseded_authorization_shares_the_doubt_about_the_one_that_pays_for_it() {
    let gate = Arc::new(Notify::new());
    let scribe = Scribe::new(Manner::Held(Arc::clone(&gate)));
    let stub = StubFacilitator::start().await;
    let service = Service::start_with(|settings, parts| {
        settings.payments.facilitator_urls = vec![stub.url()];
        parts.synthesizer = Some(Arc::clone(&scribe) as _);
    });
    let service = service.await;
    let buyer = Buyer::new(&service, 1);
    let first = buyer.sign(Version::V2).await;
    let request = client().get(service.url(MEMO)).header(first.version.payment_header(), &first.header_value);
    let sending = tokio::spawn(request.send());
    while scribe.drafts() == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    sending.abort();
    tokio::time::sleep(Duration::from_millis(100)).await;
    gate.notify_one();
    while service.rows().await.answers == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    // the second takes the answer over, and its settle answer is lost; so is that of the call that is made again for the first
    stub.on_settle([Answer::Drop, Answer::Drop]);
    assert_pending(&buyer.buy(&Ask::memo()).await.1);
    let told = assert_pending(&buyer.send(&Ask::memo(), Some(&first)).await);
    let payments =
        column(&service.world.database.pool, "select payment_id::text from payments order by created_at").await;
    assert_eq!(told["payment"]["id"].as_str(), Some(payments[1].as_str()), "the one that pays");
    // and once that is settled, both have the answer
    let sold = buyer.send(&Ask::memo(), Some(&first)).await;
    assert_eq!(sold.status, 200, "{}", sold.text());
    assert_eq!(states(&service).await, ["superseded", "settled"]);
    assert_eq!((stub.settles(), scribe.drafts()), (3, 1));
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn what_cannot_be_an_order_is_none() {
    let service = Service::start().await;
    for id in ["%00", "%ff", "x", "ABCDEF00ABCDEF00ABCDEF00ABCDEF00", "0123456789abcdef0123456789abcdef"] {
        let reply = service.get(&format!("/api/orders/{id}")).await;
        assert_eq!((reply.status, reply.header("content-type")), (404, Some("application/problem+json")), "{id}");
        assert_eq!(reply.json()["charged"], false);
    }
}

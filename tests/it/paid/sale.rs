//! A sale: both versions, both methods, all forms; what the buyer gets and what stays in the database.

use jim::evm::{U256, parse_address};
use jim::x402::{Receipt, Version};
use serde_json::json;

use crate::support::buyer::{Ask, Buyer, Reply};
use crate::support::rows::{Rows, assert_invariants, column};
use crate::support::service::{MEMO, Service};

/// Headers of every delivered answer, receipt included.
fn assert_sold(service: &Service, buyer: &Buyer, version: Version, reply: &Reply) {
    assert_eq!(reply.status, 200, "{}", reply.text());
    assert_eq!(reply.header("cache-control"), Some("private, no-store"));
    assert_eq!(reply.header("idempotent-replay"), None);
    assert_eq!(reply.header("x-order-id").map(str::len), Some(32));
    let other = if version == Version::V1 { Version::V2 } else { Version::V1 };
    assert_eq!(reply.header(other.receipt_header()), None);
    let payer = parse_address(&buyer.address()).expect("an address");
    let text = reply.header(version.receipt_header()).expect("a receipt");
    let receipt = Receipt::decode(text, jim::evm::Address::ZERO).expect("readable");
    assert!(receipt.success && receipt.payer == payer && receipt.transaction.len() == 66, "{receipt:?}");
    assert_eq!(receipt.network.to_string(), "eip155:84532");
    assert_eq!(service.settle_calls(), 1);
}

#[tokio::test]
async fn a_get_is_sold_in_version_2_and_leaves_exactly_its_rows() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let (payment, reply) = buyer.buy(&Ask::memo()).await;
    assert_sold(&service, &buyer, Version::V2, &reply);
    let body = reply.json();
    assert_eq!((&body["product"], &body["status"]), (&"research:fundamentals".into(), &"ok".into()));
    assert_eq!(body["subject"]["ticker"], "ACME");
    assert_eq!(
        body["sourcing"],
        json!({"passed": true, "figures_checked": 2, "figures_covered": 2, "attempts": 1, "judge": "skipped"})
    );
    assert_eq!(body["facts"][0]["accession"], "0000000001-26-000001");
    assert_eq!(body["citations"], json!(["C1"]));
    assert_eq!(body["order_id"].as_str(), reply.header("x-order-id"));
    assert_eq!(service.rows().await, Rows::SOLD);
    assert_stored(&service, &buyer, &reply).await;
    let nonce = column(&service.world.database.pool, "select auth_nonce from payments").await;
    assert_eq!(nonce, [format!("{:#x}", payment.authorization.nonce())]);
    let paid_to = service.app.simulated.as_ref().expect("simulated").load_balance(&service.app.pay_to).await;
    assert_eq!(paid_to, Ok(U256::from(50_000)));
}

/// The rows of a sale hold what was said and done, and nothing is booked but its price.
async fn assert_stored(service: &Service, buyer: &Buyer, reply: &Reply) {
    let pool = &service.world.database.pool;
    let payment = column(
        pool,
        "select concat_ws(' ', state, payer, amount, amount_micros, product, network, x402_version) from payment_states",
    );
    let expected = format!("settled {} 50000 50000 research:fundamentals eip155:84532 2", buyer.address());
    assert_eq!(payment.await, [expected]);
    let body: Vec<u8> = sqlx::query_scalar("select body from answers").fetch_one(pool).await.expect("an answer");
    assert_eq!(body, reply.body, "the bytes that left are the bytes that are stored");
    let settled = column(pool, "select concat_ws(' ', attempt, proven) from settlements");
    assert_eq!(settled.await, ["1 t"]);
    let run = "select concat_ws(' ', subject, mode, payer_class, synthesizer, gate_verdict, attempts, figures_checked, refusal_code, inference_cost_micros) from runs";
    assert_eq!(column(pool, run).await, ["ACME agent test scribe accepted 1 2 0"]);
    let ledger = "select concat_ws(' ', kind, amount_micros) from ledger";
    assert_eq!(column(pool, ledger).await, ["revenue 50000"]);
    assert_invariants(pool).await;
}

#[tokio::test]
async fn a_get_is_sold_in_version_1() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let payment = buyer.sign(Version::V1).await;
    let reply = buyer.send(&Ask::memo(), Some(&payment)).await;
    assert_sold(&service, &buyer, Version::V1, &reply);
    assert_eq!(service.rows().await, Rows::SOLD);
    let version = column(&service.world.database.pool, "select x402_version::text from payments").await;
    assert_eq!(version, ["1"]);
}

#[tokio::test]
async fn a_post_is_sold_in_both_versions() {
    for version in [Version::V1, Version::V2] {
        let service = Service::start().await;
        let buyer = Buyer::new(&service, 1);
        let payment = buyer.sign(version).await;
        let ask = Ask::post(r#"{"ticker": "acme", "mode": "human"}"#);
        let reply = buyer.send(&ask, Some(&payment)).await;
        assert_sold(&service, &buyer, version, &reply);
        assert_eq!(reply.json()["mode"], "human");
        assert_eq!(service.rows().await, Rows::SOLD);
    }
}

#[tokio::test]
async fn all_forms_are_sold_and_carry_sources_and_order() {
    let service = Service::start().await;
    for (key, form, media) in [
        (1, "json", "application/json"),
        (2, "md", "text/markdown; charset=utf-8"),
        (3, "html", "text/html; charset=utf-8"),
    ] {
        let ask = Ask::get(&format!("{MEMO}&format={form}"));
        let (_, reply) = Buyer::new(&service, key).buy(&ask).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        assert_eq!(reply.header("content-type"), Some(media));
        let text = reply.text();
        let order = reply.header("x-order-id").expect("an order");
        for word in ["Acme Industries", "$1.2 billion", "0000000001-26-000001", "a limit", order] {
            assert!(text.contains(word), "{word} is missing in {form}: {text}");
        }
    }
    assert_eq!(service.settle_calls(), 3);
    assert_invariants(&service.world.database.pool).await;
}

#[tokio::test]
async fn an_order_is_shown_to_whoever_knows_its_id() {
    let service = Service::start().await;
    let (_, reply) = Buyer::new(&service, 1).buy(&Ask::memo()).await;
    let order = reply.header("x-order-id").expect("an order");
    let shown = service.get(&format!("/api/orders/{order}")).await;
    assert_eq!((shown.status, shown.header("cache-control")), (200, Some("no-store")));
    let body = shown.json();
    assert_eq!(
        (&body["state"], &body["charged"], &body["payment"]["state"]),
        (&"delivered".into(), &true.into(), &"settled".into())
    );
    assert_eq!(body["payment"]["tx"].as_str().map(str::len), Some(66));
    assert!(!shown.text().contains("billion"), "the memo is not shown here");
    assert_eq!(service.get("/api/orders/00000000000000000000000000000000").await.status, 404);
    assert_eq!(service.rows().await, Rows::SOLD, "looking writes nothing");
}

#[tokio::test]
async fn two_forms_of_one_subject_are_two_purchases() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let (_, one) = buyer.buy(&Ask::memo()).await;
    let (_, two) = buyer.buy(&Ask::get(&format!("{MEMO}&format=md"))).await;
    assert_eq!((one.status, two.status), (200, 200));
    let numbers = column(&service.world.database.pool, "select order_no::text from orders order by order_no").await;
    assert_eq!(numbers, ["1", "2"], "orders are numbered without a gap");
    assert_eq!((service.settle_calls(), service.world.scribe.drafts()), (2, 2));
}

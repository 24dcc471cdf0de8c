//! The operator's listener: shut without his token, and a ledger that equals the rows.

use std::sync::Arc;

use serde_json::Value;

use crate::support::buyer::{Ask, Buyer};
use crate::support::facilitator::{Answer, StubFacilitator};
use crate::support::refusal::assert_free;
use crate::support::research::{Shelves, Stock};
use crate::support::rows::column;
use crate::support::service::{MEMO, Service};

const LEDGER: &str = "/api/ledger/margin";

#[tokio::test]
async fn without_the_token_nothing_is_shown() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let url = format!("http://{}{LEDGER}", service.app.operator_addr);
    let token = service.token();
    for given in [
        None,
        Some("Bearer wrong".to_owned()),
        Some(format!("Basic {token}")),
        Some(format!("Bearer {token}x")),
        Some("Bearer ".to_owned()),
    ] {
        let ask = Ask::get("");
        let ask = given.map_or(ask.clone(), |value| ask.header("authorization", value.trim_end()));
        let reply = buyer.send_to(&url, &ask, None).await;
        assert_free(&reply, 401);
        assert!(reply.header("www-authenticate").is_some_and(|text| text.starts_with("Bearer")));
    }
    let good = Ask::get("").header("authorization", &format!("Bearer {token}"));
    let reply = buyer.send_to(&url, &good, None).await;
    assert_eq!((reply.status, reply.header("cache-control")), (200, Some("no-store")));
}

#[tokio::test]
async fn each_listener_has_its_own_routes_only() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let authorized = Ask::get(LEDGER).header("authorization", &format!("Bearer {}", service.token()));
    assert_free(&buyer.send(&authorized, None).await, 404);
    for path in [MEMO, "/llms.txt", "/api/v1/services", "/health"] {
        let url = format!("http://{}{path}", service.app.operator_addr);
        assert_free(&buyer.send_to(&url, &authorized, None).await, 404);
    }
}

/// Two sales, a refusal, an unknown outcome and a denial.
async fn start_with_history(stub: &StubFacilitator) -> Service {
    let service = Service::start_at(stub).await;
    for key in [1, 2] {
        assert_eq!(Buyer::new(&service, key).buy(&Ask::memo()).await.1.status, 200);
    }
    stub.on_settle([
        Answer::Drop,
        Answer::Json(200, serde_json::json!({"success": false, "errorReason": "insufficient_funds"})),
    ]);
    assert_eq!(Buyer::new(&service, 3).buy(&Ask::memo()).await.1.status, 503);
    assert_eq!(Buyer::new(&service, 4).buy(&Ask::memo()).await.1.status, 402);
    let mut world = service.stop().await;
    world.change(|_, parts| parts.source = Some(Arc::new(Shelves(Stock::Down))));
    let service = world.open().await;
    assert!(service.app.wait_until_supported(std::time::Duration::from_secs(10)).await);
    assert_eq!(Buyer::new(&service, 5).buy(&Ask::memo()).await.1.json()["code"], "data_unavailable");
    service
}

fn sum(rows: &[Value], member: &str) -> i64 {
    rows.iter().map(|row| row[member].as_i64().expect("a number")).sum()
}

#[tokio::test]
async fn the_sums_are_those_of_the_rows_and_revenue_is_only_what_was_settled() {
    let stub = StubFacilitator::start().await;
    let service = start_with_history(&stub).await;
    let ledger = service.operate(LEDGER).await;
    let (summary, rows) = (&ledger["summary"], ledger["rows"].as_array().expect("rows"));
    assert_eq!((summary["runs"].as_u64(), rows.len()), (Some(5), 5));
    for member in ["revenue_micros", "refund_micros", "data_cost_micros", "inference_cost_micros", "margin_micros"] {
        assert_eq!(summary[member].as_i64(), Some(sum(rows, member)), "{member}");
    }
    assert_eq!(summary["revenue_micros"], 100_000);
    assert_eq!((&summary["settled"], &summary["delivered"], &summary["unknown"]), (&2.into(), &2.into(), &1.into()));
    assert_eq!(summary["refused"], serde_json::json!({"data_unavailable": 1, "settlement_denied": 1}));
    for row in rows {
        assert_eq!(row["charged"] == true, row["settle_state"] == "settled", "{row}");
        assert_eq!(row["revenue_micros"].as_i64() > Some(0), row["charged"] == true, "{row}");
        assert_eq!(row["payer_class"], "organic", "a real facilitator moves strangers' money");
    }
    let settled = column(
        &service.world.database.pool,
        "select sum(p.amount_micros)::text from settlements join payments p using (payment_id)",
    );
    assert_eq!(settled.await, [summary["revenue_micros"].to_string()]);
}

#[tokio::test]
async fn filters_choose_rows_and_sums_alike() {
    let stub = StubFacilitator::start().await;
    let service = start_with_history(&stub).await;
    for (filter, expected) in [
        ("state=settled", 2),
        ("state=unknown", 1),
        ("state=denied", 1),
        ("state=refused", 1),
        ("product=research:fundamentals", 5),
        ("product=research:other", 0),
        ("payer_class=organic", 5),
        ("payer_class=test", 0),
        ("from=2020-01-01T00:00:00Z", 5),
        ("to=2020-01-01T00:00:00Z", 0),
        ("state=settled&payer_class=organic", 2),
    ] {
        let ledger = service.operate(&format!("{LEDGER}?{filter}")).await;
        assert_eq!(ledger["summary"]["runs"], expected, "{filter}");
        assert_eq!(ledger["rows"].as_array().map(Vec::len), Some(expected), "{filter}");
    }
    let buyer = Buyer::new(&service, 1);
    for wrong in ["from=yesterday", "limit=x", "after=1", "unknown=1"] {
        let url = format!("http://{}{LEDGER}?{wrong}", service.app.operator_addr);
        let ask = Ask::get("").header("authorization", &format!("Bearer {}", service.token()));
        assert_free(&buyer.send_to(&url, &ask, None).await, 400);
    }
}

#[tokio::test]
async fn pages_follow_each_other_without_a_gap() {
    let stub = StubFacilitator::start().await;
    let service = start_with_history(&stub).await;
    let all = service.operate(LEDGER).await;
    assert_eq!(all["next"], Value::Null);
    let (mut seen, mut after) = (Vec::new(), String::new());
    for _ in 0..5 {
        let page = service.operate(&format!("{LEDGER}?limit=2{after}")).await;
        assert_eq!(page["summary"], all["summary"], "sums are over the whole filter, not over the page");
        seen.extend(page["rows"].as_array().expect("rows").clone());
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(Value::Array(seen), all["rows"]);
}

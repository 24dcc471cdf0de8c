//! The operator's list of payments.

use serde_json::{Value, json};

use super::{Case, denied, settled};
use crate::support::buyer::{Ask, Buyer};
use crate::support::facilitator::{Answer, TX};
use crate::support::refusal::assert_free;
use crate::support::rows::column;

const LIST: &str = "/api/payments";

#[tokio::test]
async fn each_payment_is_listed_with_what_is_known_of_it() {
    let case = Case::start().await;
    case.stub.on_settle([settled(), denied()]);
    for (key, status) in [(1, 200), (2, 402)] {
        assert_eq!(Buyer::new(&case.service, key).buy(&Ask::memo()).await.1.status, status);
    }
    let bad = Answer::Json(200, json!({"isValid": false, "invalidReason": "insufficient_funds"}));
    case.stub.on_verify([bad]);
    assert_eq!(Buyer::new(&case.service, 3).buy(&Ask::memo()).await.1.status, 402);
    let listed = case.service.operate(LIST).await;
    let rows = listed["rows"].as_array().expect("rows");
    let short = |row: &Value| json!([row["state"], row["order_no"], row["transaction"], row["evidence"]]);
    let found: Vec<Value> = rows.iter().map(short).collect();
    let expected = json!([["refused", null, null, []], ["denied", 2, null, []], ["settled", 1, TX, []]]);
    assert_eq!(Value::Array(found), expected);
    assert_eq!((&listed["next"], &listed["unidentified"]), (&Value::Null, &0.into()));
    let row = &rows[2];
    let members: Vec<&String> = row.as_object().expect("an object").keys().collect();
    assert_eq!(members.len(), 10, "{members:?}");
    assert_eq!((&row["rail"], &row["amount"]), (&"exact".into(), &"50000".into()));
    assert_eq!(row["payer"], Buyer::new(&case.service, 1).address());
    assert_eq!(row["facilitator"], case.stub.url());
    let stored = column(case.pool(), "select payment_id::text from payments order by payment_id desc").await;
    let ids: Vec<&str> = rows.iter().filter_map(|row| row["payment_id"].as_str()).collect();
    assert_eq!(ids, stored);

    for (filter, count) in [
        ("state=settled", 1),
        ("state=unknown", 0),
        ("from=2020-01-01T00:00:00Z", 3),
        ("to=2020-01-01T00:00:00Z", 0),
        ("state=denied&from=2020-01-01T00:00:00Z", 1),
    ] {
        let listed = case.service.operate(&format!("{LIST}?{filter}")).await;
        assert_eq!(listed["rows"].as_array().map(Vec::len), Some(count), "{filter}");
    }
    let first = case.service.operate(&format!("{LIST}?limit=2")).await;
    let next = first["next"].as_str().expect("another page");
    let second = case.service.operate(&format!("{LIST}?limit=2&page={next}")).await;
    let both = [&first["rows"], &second["rows"]].into_iter().flat_map(|rows| rows.as_array().expect("rows").clone());
    assert_eq!(Value::Array(both.collect()), listed["rows"]);
    let buyer = Buyer::new(&case.service, 1);
    for wrong in ["state=paid", "from=yesterday", "page=1", "unknown=1"] {
        let url = format!("http://{}{LIST}?{wrong}", case.service.app.operator_addr);
        let ask = Ask::get("").header("authorization", &format!("Bearer {}", case.service.token()));
        assert_free(&buyer.send_to(&url, &ask, None).await, 400);
    }
    let url = format!("http://{}{LIST}", case.service.app.operator_addr);
    assert_free(&buyer.send_to(&url, &Ask::get(""), None).await, 401);
}

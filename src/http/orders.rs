//! What became of an order. The id is the capability to ask; the memo itself is not shown here.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::{Shop, problem};
use crate::paywall::admission::shown_state;
use crate::store::journal::PaymentState;

/// State of an order.
pub(super) async fn show(State(shop): State<Arc<Shop>>, Path(order_id): Path<String>) -> Response {
    let order = match shop.paywall.journal().load_order(&order_id).await {
        Ok(Some(order)) => order,
        Ok(None) => return problem::plain(StatusCode::NOT_FOUND, "No order has this id."),
        Err(error) => {
            tracing::error!(%error, "an order could not be read");
            return problem::plain(StatusCode::SERVICE_UNAVAILABLE, "The order cannot be read at this moment.");
        }
    };
    let (state, charged) = words(order.state);
    let mut payment = json!({"id": order.payment_id, "state": shown_state(order.state)});
    if let (Some(transaction), Value::Object(payment)) = (order.transaction, &mut payment) {
        payment.insert("tx".into(), transaction.into());
    }
    let body = json!({
        "order_id": order_id,
        "state": state,
        "charged": charged,
        "payment": payment,
        "proof": {"order_id": order_id, "contract_id": shop.paywall.contract().id()},
    });
    let mut response = Json(body).into_response();
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// The state in words, and whether it is charged; `"unknown"` as long as nobody knows.
fn words(state: PaymentState) -> (&'static str, Value) {
    match state {
        PaymentState::Claimed | PaymentState::Abandoned | PaymentState::Ready => ("working", false.into()),
        PaymentState::Settling | PaymentState::Unknown => ("unknown", "unknown".into()),
        PaymentState::Refused | PaymentState::Denied => ("refused", false.into()),
        PaymentState::Settled => ("delivered", true.into()),
    }
}

//! What became of an order. The id is the capability to ask; the memo itself is not shown here.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::{Shop, problem};
use crate::machine;
use crate::paywall::repeat::shown_state;
use crate::store::refunds::list;

/// State of an order.
pub(super) async fn show(State(shop): State<Arc<Shop>>, path: Result<Path<String>, PathRejection>) -> Response {
    let order_id = match path {
        Ok(Path(id)) if is_order_id(&id) => id,
        // what cannot be an id is no order, and no question for the database
        Ok(_) | Err(_) => return problem::plain(StatusCode::NOT_FOUND, "No order has this id."),
    };
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
    let refund = match list::find_of_payment(&shop.pool, order.payment_id).await {
        Ok(refund) => refund,
        Err(error) => {
            tracing::error!(%error, "the refund of an order could not be read");
            return problem::plain(StatusCode::SERVICE_UNAVAILABLE, "The order cannot be read at this moment.");
        }
    };
    let mut body = json!({
        "order_id": order_id,
        "state": state,
        "charged": charged,
        "payment": payment,
        "proof": {"order_id": order_id, "contract_id": shop.paywall.contract().id()},
    });
    if let Some(refund) = refund {
        let status_url = format!("{}/api/orders/{order_id}", shop.public_url);
        body["refund"] = refund.shown(Some(status_url));
    }
    let mut response = Json(body).into_response();
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

/// 128 bits in lower-case hex.
fn is_order_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

/// The state in words, and whether it is charged; `"unknown"` as long as nobody knows.
fn words(state: machine::State) -> (&'static str, Value) {
    match state {
        machine::State::Claimed | machine::State::Abandoned | machine::State::Ready | machine::State::Landed => {
            ("working", false.into())
        }
        machine::State::Settling | machine::State::Unknown => ("unknown", "unknown".into()),
        machine::State::Refused | machine::State::Denied | machine::State::Superseded | machine::State::Dead => {
            ("refused", false.into())
        }
        machine::State::Settled | machine::State::Free => ("delivered", true.into()),
        machine::State::RefundOwed | machine::State::Refunded => ("refunded", false.into()),
    }
}

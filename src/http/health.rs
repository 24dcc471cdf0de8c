//! Whether the process is up, and whether it can sell.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};
use serde_json::json;

use super::Shop;
use crate::paywall::port::Member;
use crate::store;

/// The process is up.
pub(super) async fn up() -> Response {
    uncached(StatusCode::OK, json!({"status": "up"}))
}

/// Everything that a sale needs is there: the database, the signing key, and a facilitator that settles our kind.
pub(super) async fn ready(State(shop): State<Arc<Shop>>) -> Response {
    let database = store::ping(&shop.pool).await;
    let supported = shop.paywall.is_supported();
    let keys = shop.paywall.contract().has_its_key();
    let (facilitator, simulated) = shop.paywall.facilitator();
    // why a call failed stays in the log: it may name what only the operator should see
    let shown = |m: Member| json!({"name": m.name, "supports_our_kind": m.supported, "failing": m.failing.is_some()});
    let facilitators: Vec<_> = shop.paywall.facilitators().into_iter().map(shown).collect();
    let ready = database && keys && supported;
    let status = if ready { StatusCode::OK } else { StatusCode::SERVICE_UNAVAILABLE };
    let body = json!({
        "status": if ready { "ready" } else { "not ready" },
        "checks": {
            "database": database,
            "keys": keys,
            "facilitator_supports_our_kind": supported,
        },
        "facilitator": {"name": facilitator, "simulated": simulated},
        "facilitators": facilitators,
    });
    uncached(status, body)
}

fn uncached(status: StatusCode, body: serde_json::Value) -> Response {
    let mut response = (status, Json(body)).into_response();
    response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

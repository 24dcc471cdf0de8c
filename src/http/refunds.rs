//! The operator's list of refunds: what is owed back, what was done about it, and what the chain has confirmed.

use std::sync::Arc;

use axum::Json;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};
use http::header::CACHE_CONTROL;
use http::{HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::json;
use uuid::Uuid;

use super::{Shop, problem};
use crate::limits;
use crate::store::refunds::list::{self, Filter};

/// Which refunds, and which page of them.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    state: Option<String>,
    after: Option<Uuid>,
    limit: Option<i64>,
}

/// `{summary, rows, next}`: counts over all refunds, and one page of them, newest first.
pub(super) async fn list(State(shop): State<Arc<Shop>>, ask: Result<Query<Ask>, QueryRejection>) -> Response {
    let Query(Ask { state, after, limit }) = match ask {
        Ok(ask) => ask,
        Err(error) => return problem::plain(StatusCode::BAD_REQUEST, &error.body_text()),
    };
    if let Some(odd) = state.as_deref().filter(|state| !list::STATES.contains(state)) {
        let detail = format!("No refund is ever {odd:?}; the states are {}.", list::STATES.join(", "));
        return problem::plain(StatusCode::BAD_REQUEST, &detail);
    }
    let limit = limit.unwrap_or(100).clamp(1, limits::LEDGER_PAGE_MAX);
    let loaded = async {
        let summary = list::load_summary(&shop.pool).await?;
        let rows = list::load_rows(&shop.pool, &Filter { state }, after, limit).await?;
        Ok::<_, crate::store::Error>((summary, rows))
    };
    match loaded.await {
        Ok((summary, rows)) => {
            let full = i64::try_from(rows.len()).is_ok_and(|n| n == limit);
            let next = rows.last().filter(|_| full).map(|row| row.refund_id);
            let mut response = Json(json!({"summary": summary, "rows": rows, "next": next})).into_response();
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Err(error) => {
            tracing::error!(%error, "the refunds could not be read");
            problem::plain(StatusCode::SERVICE_UNAVAILABLE, "The refunds cannot be read at this moment.")
        }
    }
}

//! The operator's view: the margin ledger and the payments. Behind a bearer token, on a listener of its own.

use std::sync::Arc;

use axum::Json;
use axum::extract::{Query, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::header::{AUTHORIZATION, CACHE_CONTROL, WWW_AUTHENTICATE};
use http::{HeaderValue, StatusCode};
use serde::Deserialize;
use serde_json::json;
use subtle::ConstantTimeEq;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use super::{Shop, problem};
use crate::canonical;
use crate::limits;
use crate::machine::State as PaymentState;
use crate::store::margin::{self, Filter};
use crate::store::payments;

/// SHA-256 of the operator's token: what is kept in memory and compared.
#[derive(Clone, Debug)]
pub struct TokenDigest([u8; 32]);

impl TokenDigest {
    /// The digest of a token.
    pub fn of(token: &str) -> Self {
        Self(canonical::sha256(token.as_bytes()))
    }
}

/// Lets a request through that carries the token; compared in constant time.
pub(super) async fn authorize(State(token): State<TokenDigest>, request: Request, next: Next) -> Response {
    let given =
        request.headers().get(AUTHORIZATION).and_then(|v| v.to_str().ok()).and_then(|v| v.strip_prefix("Bearer "));
    let good = given.is_some_and(|t| canonical::sha256(t.as_bytes()).ct_eq(&token.0).into());
    if good {
        return next.run(request).await;
    }
    let mut response = problem::plain(StatusCode::UNAUTHORIZED, "Send the operator token as a bearer token.");
    response.headers_mut().insert(WWW_AUTHENTICATE, HeaderValue::from_static("Bearer realm=\"jim operator\""));
    response
}

/// Filters of the ledger.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Ask {
    product: Option<String>,
    payer_class: Option<String>,
    state: Option<String>,
    from: Option<String>,
    to: Option<String>,
    after: Option<Uuid>,
    limit: Option<i64>,
}

/// `{summary, rows, next}`: sums over all runs of the filter, and one page of them, newest first.
pub(super) async fn margin(
    State(shop): State<Arc<Shop>>,
    ask: Result<Query<Ask>, axum::extract::rejection::QueryRejection>,
) -> Response {
    let Query(ask) = match ask {
        Ok(ask) => ask,
        Err(error) => return problem::plain(StatusCode::BAD_REQUEST, &error.body_text()),
    };
    let (from, to) = match (instant(ask.from.as_deref()), instant(ask.to.as_deref())) {
        (Ok(from), Ok(to)) => (from, to),
        _ => {
            return problem::plain(StatusCode::BAD_REQUEST, "from and to are RFC 3339 times, as 2026-11-30T00:00:00Z.");
        }
    };
    let filter = Filter { product: ask.product, payer_class: ask.payer_class, state: ask.state, from, to };
    let limit = ask.limit.unwrap_or(100).clamp(1, limits::LEDGER_PAGE_MAX);
    let loaded = async {
        let summary = margin::load_summary(&shop.pool, &filter).await?;
        let rows = margin::load_rows(&shop.pool, &filter, ask.after, limit).await?;
        Ok::<_, crate::store::Error>((summary, rows))
    };
    match loaded.await {
        Ok((summary, rows)) => {
            let full = i64::try_from(rows.len()).is_ok_and(|n| n == limit);
            let next = rows.last().filter(|_| full).map(|row| row.run_id);
            let mut response = Json(json!({"summary": summary, "rows": rows, "next": next})).into_response();
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Err(error) => {
            tracing::error!(%error, "the ledger could not be read");
            problem::plain(StatusCode::SERVICE_UNAVAILABLE, "The ledger cannot be read at this moment.")
        }
    }
}

/// Filters of the payments.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AskPayments {
    state: Option<String>,
    from: Option<String>,
    to: Option<String>,
    page: Option<Uuid>,
    limit: Option<i64>,
}

/// `{rows, next, unidentified}`: one page of payments, newest first; `next` is the `page` that follows it. `unidentified` counts
/// transfers that belong to no payment.
pub(super) async fn list_payments(
    State(shop): State<Arc<Shop>>,
    ask: Result<Query<AskPayments>, axum::extract::rejection::QueryRejection>,
) -> Response {
    let Query(ask) = match ask {
        Ok(ask) => ask,
        Err(error) => return problem::plain(StatusCode::BAD_REQUEST, &error.body_text()),
    };
    let (from, to) = match (instant(ask.from.as_deref()), instant(ask.to.as_deref())) {
        (Ok(from), Ok(to)) => (from, to),
        _ => {
            return problem::plain(StatusCode::BAD_REQUEST, "from and to are RFC 3339 times, as 2026-11-30T00:00:00Z.");
        }
    };
    if ask.state.as_deref().is_some_and(|name| PaymentState::from_name(name).is_none()) {
        let names = PaymentState::ALL.map(PaymentState::name).join(", ");
        return problem::plain(StatusCode::BAD_REQUEST, &format!("state is one of {names}."));
    }
    let filter = payments::Filter { state: ask.state, from, to, before: ask.page };
    let limit = ask.limit.unwrap_or(100).clamp(1, limits::PAYMENTS_PAGE_MAX);
    let loaded = async {
        let rows = payments::load_page(&shop.pool, &filter, limit).await?;
        Ok::<_, crate::store::Error>((rows, payments::count_unidentified(&shop.pool).await?))
    };
    match loaded.await {
        Ok((rows, unidentified)) => {
            let full = i64::try_from(rows.len()).is_ok_and(|n| n == limit);
            let next = rows.last().filter(|_| full).map(|row| row.payment_id);
            let mut response = Json(json!({"rows": rows, "next": next, "unidentified": unidentified})).into_response();
            response.headers_mut().insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
            response
        }
        Err(error) => {
            tracing::error!(%error, "the payments could not be read");
            problem::plain(StatusCode::SERVICE_UNAVAILABLE, "The payments cannot be read at this moment.")
        }
    }
}

fn instant(text: Option<&str>) -> Result<Option<OffsetDateTime>, time::error::Parse> {
    text.map(|t| OffsetDateTime::parse(t, &Rfc3339)).transpose()
}

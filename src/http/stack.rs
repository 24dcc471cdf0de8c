//! The layers around every route, outermost first, each with its reason.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use axum::Router;
use axum::extract::Request;
use axum::middleware::{self, Next};
use axum::response::Response;
use http::{Extensions, HeaderName, HeaderValue, Method, StatusCode};
use tower_http::catch_panic::CatchPanicLayer;
use tower_http::cors::{Any, CorsLayer};
use tracing::Instrument;
use uuid::Uuid;

use super::problem;
use crate::limits;

/// The header that names a request, in every response.
const REQUEST_ID_HEADER: HeaderName = HeaderName::from_static("x-request-id");

/// How long a browser may keep a preflight.
const PREFLIGHT_AGE: Duration = Duration::from_secs(3_600);

/// The id of one request; ours, never the caller's, so that logs cannot be forged.
#[derive(Clone, Debug)]
pub(super) struct RequestId(Arc<str>);

impl RequestId {
    /// The id that the outermost layer gave.
    pub(super) fn of(extensions: &Extensions) -> String {
        extensions.get::<Self>().map(|id| id.0.to_string()).unwrap_or_default()
    }
}

/// Puts the layers around a router. The last one added is the outermost.
pub fn around(router: Router) -> Router {
    router
        // a handler that panics outside the paid layer still answers with a body, and without its text
        .layer(CatchPanicLayer::custom(|_| {
            problem::plain(StatusCode::INTERNAL_SERVER_ERROR, "The service failed on this request.")
        }))
        // what is too long to be honest is refused before anything reads it
        .layer(middleware::from_fn(header_limit))
        // outermost: every response is named and logged, those of the layers below included
        .layer(middleware::from_fn(trace))
}

/// Cross-origin rules of the public routes: a page in a browser may buy and must be able to read the payment headers.
pub(super) fn cors() -> CorsLayer {
    let named = |names: &[&'static str]| names.iter().map(|name| HeaderName::from_static(name)).collect::<Vec<_>>();
    CorsLayer::new()
        .allow_origin(Any)
        .allow_methods([Method::GET, Method::POST, Method::HEAD])
        .allow_headers(named(&["content-type", "payment-signature", "x-payment", "x-jim-call-chain"]))
        .expose_headers(named(&[
            "payment-required",
            "payment-response",
            "x-payment-response",
            "retry-after",
            "x-request-id",
            "x-order-id",
            "idempotent-replay",
        ]))
        .max_age(PREFLIGHT_AGE)
}

async fn header_limit(request: Request, next: Next) -> Response {
    let bytes: usize = request.headers().iter().map(|(name, value)| name.as_str().len() + value.len() + 4).sum();
    if bytes > limits::HEADER_BYTES_MAX {
        let detail = format!("The header block is longer than {} bytes.", limits::HEADER_BYTES_MAX);
        return problem::plain(StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE, &detail);
    }
    next.run(request).await
}

/// Unique among all processes by its first half, and in this one by its second. Not random throughout: the unpaid 402 is the
/// commonest request, and a random number would be a good part of its cost.
fn next_id() -> Arc<str> {
    static PROCESS: LazyLock<u64> = LazyLock::new(|| Uuid::new_v4().as_u64_pair().0);
    static COUNT: AtomicU64 = AtomicU64::new(0);
    format!("{:016x}{:016x}", *PROCESS, COUNT.fetch_add(1, Ordering::Relaxed)).into()
}

/// One line a request: id, method, path, status, time. No query, no header, no body.
async fn trace(mut request: Request, next: Next) -> Response {
    let id = next_id();
    request.extensions_mut().insert(RequestId(Arc::clone(&id)));
    let span = tracing::debug_span!("request", id = %id);
    let (method, path) = (request.method().clone(), request.uri().path().to_owned());
    let begun = Instant::now();
    let mut response = next.run(request).instrument(span.clone()).await;
    if let Ok(value) = HeaderValue::try_from(&*id) {
        response.headers_mut().insert(REQUEST_ID_HEADER, value);
    }
    let micros = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
    span.in_scope(
        || tracing::debug!(%method, path, status = response.status().as_u16(), duration_us = micros, "answered"),
    );
    response
}

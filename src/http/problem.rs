//! Errors, refusals and outcomes as responses (RFC 9457). The one place that makes a body out of an error.

use axum::body::Body;
use axum::response::Response;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, RETRY_AFTER, VARY};
use http::{HeaderValue, StatusCode};
use serde_json::json;

use super::Shop;
use super::shelf::Shelf;
use crate::evm::{Address, parse_address};
use crate::paywall::contract::Circumstances;
use crate::paywall::{Delivery, Outcome, Refused};
use crate::refusal::{Refusal, unknown_outcome};
use crate::x402::{REQUIRED_HEADER, Receipt, Version};

/// Says that the answer was delivered before and nothing was charged now.
const REPLAY_HEADER: &str = "idempotent-replay";

/// The order behind an answer.
pub(super) const ORDER_HEADER: &str = "x-order-id";

/// A plain error outside the refusal matrix: wrong route, method, size, type. Never charged.
pub(super) fn plain(status: StatusCode, detail: &str) -> Response {
    let title = status.canonical_reason().unwrap_or("Error");
    let body = json!({
        "type": "about:blank",
        "title": title,
        "status": status.as_u16(),
        "detail": detail,
        "error": detail,
        "charged": false,
    });
    problem(status, body.to_string().into_bytes(), None)
}

/// A refusal of a request whose payment, if it had one, was not looked at or not taken.
pub(super) fn refusal(shop: &Shop, refusal: &Refusal, about: &Circumstances) -> Response {
    let body = shop.paywall.contract().refusal_body(refusal, about, shop.clock.now());
    refused(Refused::new(refusal, body))
}

/// The 402 of a route, without a reaction to a payment.
pub(super) fn challenge(shop: &Shop, shelf: &Shelf) -> Response {
    payment_required(shelf.challenge(shop.clock.unix_s()))
}

/// The 402 of a route that says why a payment was not taken.
pub(super) fn unpaid(shop: &Shop, shelf: &Shelf, error: &str) -> Response {
    payment_required(shelf.challenge_because(error, shop.clock.unix_s()))
}

/// How a request with a payment ended.
pub(super) fn outcome(shop: &Shop, shelf: &Shelf, version: Version, outcome: Outcome) -> Response {
    match outcome {
        Outcome::Delivered(delivery) => delivered(shelf, version, delivery),
        Outcome::Refused(refused_) => refused(refused_),
        Outcome::Unpaid { error } => unpaid(shop, shelf, &error),
        Outcome::Unapproved { error } => {
            let mut response = unpaid(shop, shelf, &error);
            *response.status_mut() = StatusCode::PRECONDITION_FAILED;
            response
        }
        Outcome::Pending { payment_id, transaction } => {
            let body = shop.paywall.contract().pending_body(payment_id, transaction.as_deref());
            let status = StatusCode::from_u16(unknown_outcome::STATUS).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
            problem(status, body, Some(unknown_outcome::AFTER_S))
        }
    }
}

fn delivered(shelf: &Shelf, version: Version, delivery: Delivery) -> Response {
    let receipt = Receipt {
        success: true,
        error_reason: None,
        payer: parse_address(&delivery.payer).unwrap_or(Address::ZERO),
        transaction: delivery.transaction.unwrap_or_default(),
        network: shelf.offer.network,
        amount: Some(delivery.charged),
    };
    let mut response = Response::new(Body::from(delivery.body));
    let headers = response.headers_mut();
    insert(headers, CONTENT_TYPE.as_str(), &delivery.content_type);
    // a shared cache must not hand a paid answer to somebody who has not paid
    insert(headers, CACHE_CONTROL.as_str(), "private, no-store");
    insert(headers, VARY.as_str(), "payment-signature, x-payment");
    insert(headers, version.receipt_header(), &receipt.encode(version));
    insert(headers, ORDER_HEADER, &delivery.order_id);
    if delivery.replay {
        insert(headers, REPLAY_HEADER, "true");
    }
    response
}

fn refused(refused: Refused) -> Response {
    let status = StatusCode::from_u16(refused.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    problem(status, refused.body, refused.retry_after_s)
}

fn payment_required((header, body): (HeaderValue, bytes::Bytes)) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = StatusCode::PAYMENT_REQUIRED;
    let headers = response.headers_mut();
    headers.insert(REQUIRED_HEADER, header);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

fn problem(status: StatusCode, body: Vec<u8>, retry_after_s: Option<u32>) -> Response {
    let mut response = Response::new(Body::from(body));
    *response.status_mut() = status;
    let headers = response.headers_mut();
    headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
    headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(seconds) = retry_after_s {
        headers.insert(RETRY_AFTER, HeaderValue::from(seconds));
    }
    response
}

/// Inserts a header whose value we made; one that is no header value is left out rather than a panic.
fn insert(headers: &mut http::HeaderMap, name: &str, value: &str) {
    if let (Ok(name), Ok(value)) = (http::HeaderName::try_from(name), HeaderValue::try_from(value)) {
        headers.insert(name, value);
    }
}

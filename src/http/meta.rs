//! The published documents: made once at start from the catalogue and the refusal matrix, then served as they are.

use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use bytes::Bytes;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, ETAG, IF_NONE_MATCH};
use http::{HeaderMap, HeaderValue, StatusCode};
use serde_json::{Value, json};

use super::shelf::Shelf;
use super::{Shop, document, openapi};
use crate::canonical;
use crate::evm::checksummed;
use crate::limits;

/// One document with its validator.
#[derive(Clone)]
pub(super) struct Document {
    content_type: &'static str,
    etag: HeaderValue,
    body: Bytes,
}

/// All documents by path.
pub(super) struct Documents(Vec<(&'static str, Document)>);

impl Documents {
    /// Renders them all.
    pub(super) fn render(shop: &Shop) -> Self {
        let json = |value: &Value| Document::new("application/json", value.to_string().into_bytes());
        let markdown = |text: String| Document::new("text/markdown; charset=utf-8", text.into_bytes());
        let manifest = Document::new("application/json", shop.paywall.contract().manifest().to_vec());
        let resources = json(&resources(shop));
        Self(vec![
            ("/api/meta/refusal-contract", manifest.clone()),
            ("/.well-known/refusal-contract.json", manifest),
            ("/api/v1/services", json(&services(shop))),
            ("/openapi.json", json(&openapi::document(shop))),
            ("/.well-known/x402", resources.clone()),
            ("/.well-known/x402.json", resources),
            ("/llms.txt", Document::new("text/plain; charset=utf-8", document::llms(shop).into_bytes())),
            ("/verification.md", markdown(document::verification(shop))),
        ])
    }

    /// Path and document.
    pub(super) fn paths(self) -> impl Iterator<Item = (&'static str, Document)> {
        self.0.into_iter()
    }
}

impl Document {
    fn new(content_type: &'static str, body: Vec<u8>) -> Self {
        let etag = format!("\"{}\"", &canonical::sha256_hex(&body)[..32]);
        let etag = HeaderValue::try_from(etag).unwrap_or_else(|_| HeaderValue::from_static("\"\""));
        Self { content_type, etag, body: Bytes::from(body) }
    }
}

/// A document, or 304 when the caller has it already.
pub(super) async fn show(State(document): State<Document>, headers: HeaderMap) -> Response {
    let known = headers.get_all(IF_NONE_MATCH).iter().any(|value| {
        value.to_str().is_ok_and(|list| {
            list.split(',').map(|tag| tag.trim().trim_start_matches("W/")).any(|tag| tag == "*" || document.etag == tag)
        })
    });
    let mut response = Response::new(if known { Body::empty() } else { Body::from(document.body) });
    if known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(ETAG, document.etag);
    headers.insert(CONTENT_TYPE, HeaderValue::from_static(document.content_type));
    if let Ok(age) = HeaderValue::try_from(format!("public, max-age={}", limits::DOCUMENT_AGE_S)) {
        headers.insert(CACHE_CONTROL, age);
    }
    response
}

/// The catalogue.
fn services(shop: &Shop) -> Value {
    let contract = shop.paywall.contract();
    let services: Vec<Value> = shop.shelves.iter().map(|shelf| service(shelf)).collect();
    json!({
        "version": "1.0",
        "currency": "USD",
        "price_truth": "The amount in the accepts of the 402 is what is charged; it equals price_atomic here.",
        "refusal_contract": contract.url(),
        "contract_id": contract.id(),
        "total": services.len(),
        "services": services,
        "links": {
            "openapi": format!("{}/openapi.json", shop.public_url),
            "llms": format!("{}/llms.txt", shop.public_url),
            "verification": format!("{}/verification.md", shop.public_url),
        },
    })
}

fn service(shelf: &Shelf) -> Value {
    let (product, offer) = (&shelf.product, &shelf.offer);
    let codes: Vec<&str> = product.kind.refusal_codes().iter().map(|code| code.name()).collect();
    json!({
        "id": product.id,
        "name": product.name,
        "description": product.description,
        "path": product.path,
        "url": offer.resource_url,
        "methods": ["GET", "POST"],
        "price_usd": product.price.to_string(),
        "price_atomic": offer.amount.to_string(),
        "unit": "call",
        "settlement": "x402",
        "scheme": "exact",
        "network": offer.network.to_string(),
        "asset": checksummed(&offer.asset),
        "asset_decimals": shelf.asset_decimals,
        "pay_to": checksummed(&offer.pay_to),
        "input_schema": product.kind.input_schema(),
        "output_schema": product.kind.output_schema(),
        "example": product.kind.example(),
        "refusal_codes": codes,
        "tags": product.tags,
    })
}

/// The paid URLs, for indexes.
fn resources(shop: &Shop) -> Value {
    let resources: Vec<&str> = shop.shelves.iter().map(|shelf| shelf.offer.resource_url.as_str()).collect();
    json!({
        "version": 1,
        "resources": resources,
        "instructions": format!("{}/llms.txt", shop.public_url),
    })
}

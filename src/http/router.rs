//! The contents page: every route, by who calls it.

use std::sync::Arc;

use axum::Router;
use axum::middleware;
use axum::routing::{MethodRouter, get};
use http::StatusCode;

use super::paid::{self, Counter};
use super::{Shop, health, meta, operator, orders, problem, refunds, research, stack};
use crate::catalog::Kind;

/// Routes of the public listener.
pub fn public(shop: &Arc<Shop>) -> Router {
    let mut router = Router::new();

    // buyers: what is sold
    for shelf in &shop.shelves {
        let counter = Counter { shop: Arc::clone(shop), shelf: Arc::clone(shelf) };
        let handler: MethodRouter<Counter> = match shelf.product.kind {
            Kind::Fundamentals => get(research::fundamentals).post(research::fundamentals),
        };
        let sold = handler.route_layer(middleware::from_fn_with_state(counter.clone(), paid::sell)).with_state(counter);
        router = router.route(&shelf.product.path, sold);
    }

    // buyers: what became of an order
    let orders = Router::new().route("/api/orders/{order_id}", get(orders::show));

    // everybody: the documents
    let documents = meta::Documents::render(shop);
    let mut published = Router::new();
    for (path, document) in documents.paths() {
        published = published.route(path, get(meta::show).with_state(document));
    }

    // machines that watch us
    let watch = Router::new().route("/health", get(health::up)).route("/ready", get(health::ready));

    let router = router
        .merge(published)
        .merge(orders.merge(watch).with_state(Arc::clone(shop)))
        .fallback(|| async { problem::plain(StatusCode::NOT_FOUND, "No such route; see /openapi.json.") })
        .method_not_allowed_fallback(|| async {
            problem::plain(StatusCode::METHOD_NOT_ALLOWED, "This route has other methods; see Allow.")
        })
        .layer(stack::cors());
    stack::around(router)
}

/// Routes of the operator's listener: a bearer token on all of them, and no cross-origin rules.
pub fn operator(shop: &Arc<Shop>, token: operator::TokenDigest) -> Router {
    let router = Router::new()
        .route("/api/ledger/margin", get(operator::margin))
        .route("/api/refunds", get(refunds::list))
        .route("/api/payments", get(operator::list_payments))
        .route_layer(middleware::from_fn_with_state(token, operator::authorize))
        .fallback(|| async { problem::plain(StatusCode::NOT_FOUND, "No such operator route.") })
        .method_not_allowed_fallback(|| async {
            problem::plain(StatusCode::METHOD_NOT_ALLOWED, "This route has other methods; see Allow.")
        })
        .with_state(Arc::clone(shop));
    stack::around(router)
}

pub use operator::TokenDigest;

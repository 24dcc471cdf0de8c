//! The OpenAPI document of the public routes, made from the catalogue and the refusal matrix.

use std::collections::BTreeMap;

use serde_json::{Value, json};
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{OperationBuilder, ParameterBuilder, ParameterIn, PathItemBuilder};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::Schema;
use utoipa::openapi::{
    ContentBuilder, HttpMethod, InfoBuilder, OpenApiBuilder, PathsBuilder, RefOr, Required, ResponseBuilder,
    ServerBuilder,
};

use super::Shop;
use super::shelf::Shelf;
use crate::refusal::{RefusalCode, unknown_outcome};

/// The free operations: path, what it answers, media type.
const FREE: [(&str, &str, &str); 9] = [
    ("/api/orders/{order_id}", "State of an order; the id is the capability to read it.", "application/json"),
    ("/api/v1/services", "The catalogue with prices.", "application/json"),
    ("/api/meta/refusal-contract", "The signed refusal contract.", "application/json"),
    ("/.well-known/refusal-contract.json", "The signed refusal contract.", "application/json"),
    ("/.well-known/x402", "The paid URLs.", "application/json"),
    ("/llms.txt", "How an agent buys here.", "text/plain"),
    ("/verification.md", "How to verify what is promised.", "text/markdown"),
    ("/health", "Whether the process is up.", "application/json"),
    ("/ready", "Whether it can sell.", "application/json"),
];

/// The document as JSON.
pub(super) fn document(shop: &Shop) -> Value {
    let mut paths = PathsBuilder::new();
    for shelf in &shop.shelves {
        let item = PathItemBuilder::new()
            .operation(HttpMethod::Get, paid_operation(shelf, true))
            .operation(HttpMethod::Post, paid_operation(shelf, false));
        paths = paths.path(&shelf.product.path, item.build());
    }
    for (path, summary, media) in FREE {
        paths = paths.path(
            path,
            PathItemBuilder::new().operation(HttpMethod::Get, free_operation(path, summary, media)).build(),
        );
    }
    let info = InfoBuilder::new()
        .title("jim")
        .version(env!("CARGO_PKG_VERSION"))
        .description(Some("Cited financial research for software agents, paid per request over x402."))
        .extensions(Some(extensions([(
            "x-guidance",
            json!("Ask without a payment to see the terms, sign exactly that amount, ask again. A refusal is never charged; after a 503 send the same payment again."),
        )])));
    let api = OpenApiBuilder::new()
        .info(info.build())
        .servers(Some([ServerBuilder::new().url(&shop.public_url).build()]))
        .paths(paths.build())
        .build();
    let mut value = serde_json::to_value(api).unwrap_or_else(|_| json!({}));
    if let Value::Object(root) = &mut value {
        root.insert("x-agentcash-guidance".into(), json!({"llmsTxtUrl": format!("{}/llms.txt", shop.public_url)}));
    }
    value
}

fn paid_operation(shelf: &Shelf, by_query: bool) -> utoipa::openapi::path::Operation {
    let product = &shelf.product;
    let schema = product.kind.input_schema();
    let mut operation = OperationBuilder::new()
        .operation_id(Some(format!("{}_{}", if by_query { "get" } else { "post" }, product.id.replace(':', "_"))))
        .summary(Some(product.name.clone()))
        .description(Some(product.description.clone()))
        .securities(Some([]))
        .extensions(Some(extensions([(
            "x-payment-info",
            json!({
                "price": {"mode": "fixed", "currency": "USD", "amount": product.price.to_string()},
                "protocols": [{"x402": {}}],
                "amount_atomic": shelf.offer.amount.to_string(),
                "network": shelf.offer.network.to_string(),
                "accepts": shelf.offer.methods().map(|method| shelf.offer.requirements_by(method)).collect::<Vec<_>>(),
            }),
        )])));
    if by_query {
        let required = schema["required"].as_array().cloned().unwrap_or_default();
        for (name, property) in schema["properties"].as_object().into_iter().flatten() {
            let needed = if required.contains(&json!(name)) { Required::True } else { Required::False };
            operation = operation.parameter(
                ParameterBuilder::new()
                    .name(name)
                    .parameter_in(ParameterIn::Query)
                    .required(needed)
                    .description(property["description"].as_str())
                    .schema(schema_of(property))
                    .build(),
            );
        }
    } else {
        let content = ContentBuilder::new().schema(schema_of(&schema)).example(Some(product.kind.example())).build();
        let body =
            RequestBodyBuilder::new().content("application/json", content).required(Some(Required::True)).build();
        operation = operation.request_body(Some(body));
    }
    operation = operation
        .response("200", response("The memo, settled.", &[("application/json", product.kind.output_schema())]));
    if shelf.offer.permit2.any() {
        let text =
            "Not charged: permit2_allowance_required. The `error` says what to approve; then sign a new payment.";
        operation = operation.response("412", response(text, &[]));
    }
    for (status, text, schemas) in refusals(product.kind.refusal_codes()) {
        let schemas: Vec<_> = schemas.iter().map(|(media, schema)| (*media, schema.clone())).collect();
        operation = operation.response(status.to_string(), response(&text, &schemas));
    }
    operation.build()
}

/// Status, what it means, and the schema of its body by media type.
type Declined = (u16, String, Vec<(&'static str, Value)>);

/// One response per status: the terms, each refusal, and the errors outside the matrix.
fn refusals(codes: &[RefusalCode]) -> Vec<Declined> {
    let mut by_status: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in codes {
        by_status.entry(code.status()).or_default().push(code.name());
    }
    by_status.entry(unknown_outcome::STATUS).or_default().push(unknown_outcome::NAME);
    for status in [405, 408, 413, 415, 431] {
        by_status.entry(status).or_default();
    }
    let mut out = vec![(
        402,
        "The terms: PAYMENT-REQUIRED header (version 2) and body (version 1). Not charged.".to_owned(),
        vec![("application/json", json!({"type": "object", "required": ["x402Version", "accepts"]}))],
    )];
    for (status, names) in by_status {
        let text = if names.is_empty() {
            "Not charged.".to_owned()
        } else {
            format!("One of: {}. Not charged, or unknown for settlement_pending.", names.join(", "))
        };
        out.push((status, text, vec![("application/problem+json", problem_schema(&names))]));
    }
    out
}

fn problem_schema(names: &[&str]) -> Value {
    let mut properties = json!({
        "type": {"type": "string"}, "title": {"type": "string"}, "status": {"type": "integer"},
        "detail": {"type": "string"}, "error": {"type": "string"},
        "charged": {"enum": [false]},
        "hint": {"type": "string"},
        "retry": {"type": "object"}, "payment": {"type": "object"}, "receipt": {"type": "object"}
    });
    if names.contains(&unknown_outcome::NAME) {
        properties["charged"] = json!({"enum": [false, "unknown"]});
    }
    if !names.is_empty() {
        properties["code"] = json!({"type": "string"});
    }
    json!({"type": "object", "required": ["title", "status", "charged"], "properties": properties})
}

fn free_operation(path: &str, summary: &str, media: &str) -> utoipa::openapi::path::Operation {
    let mut operation = OperationBuilder::new().summary(Some(summary)).securities(Some([]));
    if path.contains("{order_id}") {
        let schema = schema_of(&json!({"type": "string", "pattern": "^[0-9a-f]{32}$"}));
        operation = operation
            .parameter(
                ParameterBuilder::new()
                    .name("order_id")
                    .parameter_in(ParameterIn::Path)
                    .required(Required::True)
                    .schema(schema)
                    .build(),
            )
            .response("404", response("No such order.", &[("application/problem+json", problem_schema(&[]))]));
    }
    if path == "/ready" {
        operation = operation
            .response("503", response("It cannot sell now.", &[(media_type(media), json!({"type": "object"}))]));
    }
    let schema = if media == "application/json" { json!({"type": "object"}) } else { json!({"type": "string"}) };
    operation.response("200", response(summary, &[(media_type(media), schema)])).build()
}

fn media_type(media: &str) -> &'static str {
    match media {
        "text/plain" => "text/plain",
        "text/markdown" => "text/markdown",
        _ => "application/json",
    }
}

fn response(text: &str, schemas: &[(&'static str, Value)]) -> utoipa::openapi::Response {
    schemas
        .iter()
        .fold(ResponseBuilder::new().description(text), |response, (media, schema)| {
            response.content(*media, ContentBuilder::new().schema(schema_of(schema)).build())
        })
        .build()
}

/// JSON Schema as the library's type; what it cannot read becomes the schema that admits everything.
fn schema_of(schema: &Value) -> Option<RefOr<Schema>> {
    serde_json::from_value(schema.clone()).ok()
}

fn extensions<const N: usize>(pairs: [(&str, Value); N]) -> Extensions {
    pairs.into_iter().fold(Extensions::builder(), |all, (name, value)| all.add(name, value)).build()
}

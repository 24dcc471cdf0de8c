//! Price truth: every place that names a price names the same one, for every product.

use jim::x402::Version;
use serde_json::Value;

use crate::support::buyer::{Ask, Buyer, offer_of};
use crate::support::rows::Rows;
use crate::support::service::{PUBLIC_URL, Service};

/// Dollars in decimal text as atomic units of a token with 6 decimals, by moving the point.
fn atomic(usd: &str) -> String {
    let (whole, part) = usd.split_once('.').unwrap_or((usd, ""));
    let digits = format!("{whole}{part:0<6}");
    digits.trim_start_matches('0').to_owned()
}

async fn products(service: &Service) -> Vec<Value> {
    let catalogue = service.get("/api/v1/services").await.json();
    let services = catalogue["services"].as_array().expect("products").clone();
    assert_eq!(catalogue["total"], services.len());
    assert!(!services.is_empty());
    services
}

#[tokio::test]
async fn every_place_names_the_same_price_and_payee() {
    let service = Service::start().await;
    let openapi = service.get("/openapi.json").await.json();
    for product in products(&service).await {
        let path = product["path"].as_str().expect("a path");
        assert_eq!(product["price_atomic"], atomic(product["price_usd"].as_str().expect("a price")));
        assert_eq!((&product["asset_decimals"], &product["settlement"]), (&6.into(), &"x402".into()));
        for ask in [Ask::get(path), Ask { path: path.into(), ..Ask::post("{}") }] {
            let reply = Buyer::new(&service, 1).send(&ask, None).await;
            for version in [Version::V1, Version::V2] {
                let offer = offer_of(&reply, version);
                assert_eq!(offer.amount.to_string(), product["price_atomic"]);
                assert_eq!(offer.network.to_string(), product["network"]);
                assert_eq!(jim::evm::checksummed(&offer.pay_to), product["pay_to"]);
                assert_eq!(jim::evm::checksummed(&offer.asset), product["asset"]);
            }
        }
        for method in ["get", "post"] {
            let info = &openapi["paths"][path][method]["x-payment-info"];
            assert_eq!(info["amount_atomic"], product["price_atomic"]);
            assert_eq!(info["price"]["amount"], product["price_usd"]);
            assert_eq!(info["network"], product["network"]);
        }
    }
    assert_eq!(service.rows().await, Rows::default());
}

#[tokio::test]
async fn what_is_asked_is_what_is_charged_and_booked() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    let simulated = service.app.simulated.as_ref().expect("simulated");
    let (payment, reply) = buyer.buy(&Ask::memo()).await;
    assert_eq!(reply.status, 200);
    let price = products(&service).await.remove(0)["price_atomic"].clone();
    let payee = simulated.load_balance(&service.app.pay_to).await.expect("a balance");
    assert_eq!(
        (payee.to_string(), payment.authorization.value().to_string()),
        (price.as_str().expect("text").to_owned(), price.as_str().expect("text").to_owned())
    );
}

#[tokio::test]
async fn every_paid_operation_lists_the_terms_and_every_refusal() {
    let service = Service::start().await;
    let openapi = service.get("/openapi.json").await.json();
    assert_eq!(openapi["openapi"].as_str().map(|v| &v[..2]), Some("3."));
    for product in products(&service).await {
        let path = product["path"].as_str().expect("a path");
        let manifest = service.get("/api/meta/refusal-contract").await.json();
        for method in ["get", "post"] {
            let responses = openapi["paths"][path][method]["responses"].as_object().expect("responses");
            assert!(responses.contains_key("200") && responses.contains_key("402"), "{method}");
            for row in manifest["refusals"].as_array().expect("rows") {
                let status = row["http"].to_string();
                assert!(responses.contains_key(&status), "{status} of {} for {method} {path}", row["code"]);
                assert!(product["refusal_codes"].as_array().expect("codes").contains(&row["code"]), "{}", row["code"]);
            }
            for status in ["400", "405", "408", "413", "415", "431", "503"] {
                assert!(responses.contains_key(status), "{status} for {method} {path}");
            }
        }
    }
}

#[tokio::test]
async fn the_index_of_paid_urls_is_the_catalogues() {
    let service = Service::start().await;
    let index = service.get("/.well-known/x402").await.json();
    let urls: Vec<Value> = products(&service).await.iter().map(|product| product["url"].clone()).collect();
    assert_eq!(index["resources"], Value::Array(urls.clone()));
    for url in urls {
        let path = url.as_str().expect("text").strip_prefix(PUBLIC_URL).expect("ours").to_owned();
        assert_eq!(service.get(&path).await.status, 402);
    }
}

//! The published documents: signed, consistent with each other, and the same over a restart.

use jim::refusal::RefusalCode;
use jim::refusal::document::markdown_section;
use serde_json::Value;
use sha2::{Digest, Sha256};

use crate::support::buyer::{Ask, Buyer};
use crate::support::refusal::assert_signed;
use crate::support::service::Service;

const DOCUMENTS: [&str; 8] = [
    "/api/meta/refusal-contract",
    "/.well-known/refusal-contract.json",
    "/api/v1/services",
    "/openapi.json",
    "/.well-known/x402",
    "/.well-known/x402.json",
    "/llms.txt",
    "/verification.md",
];

fn sha256_hex(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The manifest without some of its members.
fn without(manifest: &Value, members: &[&str]) -> Value {
    let mut left = manifest.clone();
    for member in members {
        left.as_object_mut().expect("an object").remove(*member);
    }
    left
}

#[tokio::test]
async fn the_contract_is_addressed_by_its_content_and_signed() {
    let service = Service::start().await;
    let reply = service.get("/api/meta/refusal-contract").await;
    assert_eq!((reply.status, reply.header("content-type")), (200, Some("application/json")));
    assert_eq!(service.get("/.well-known/refusal-contract.json").await.body, reply.body);
    let manifest = reply.json();
    let content =
        serde_json_canonicalizer::to_vec(&without(&manifest, &["contract_id", "signature"])).expect("canonical");
    let id = sha256_hex(&content);
    assert!(manifest["contract_id"].as_str().expect("an id").ends_with(&id), "{} is not {id}", manifest["contract_id"]);
    assert_signed(&manifest, &without(&manifest, &["signature"]), &manifest["signature"]);
    let codes: Vec<_> = manifest["refusals"].as_array().expect("rows").iter().map(|row| row["code"].clone()).collect();
    let all: Vec<Value> = RefusalCode::ALL.iter().map(|code| code.name().into()).collect();
    assert_eq!(codes, all);
    // the 402 names the same contract
    let terms = service.get("/research/fundamentals").await;
    let header = jim::x402::read_required(terms.header("payment-required").expect("terms")).expect("readable");
    assert_eq!(header.extensions["refusal-contract"]["info"]["contract_id"], manifest["contract_id"]);
}

#[tokio::test]
async fn a_restart_changes_no_document() {
    let service = Service::start().await;
    let mut before = Vec::new();
    for path in DOCUMENTS {
        before.push(service.get(path).await.body);
    }
    let service = service.stop().await.open().await;
    tokio::time::sleep(std::time::Duration::from_millis(1_100)).await;
    let service = service.stop().await.open().await;
    for (path, before) in DOCUMENTS.iter().zip(before) {
        assert_eq!(service.get(path).await.body, before, "{path}");
    }
}

#[tokio::test]
async fn the_matrix_stands_in_both_texts_byte_for_byte() {
    let service = Service::start().await;
    let section = markdown_section();
    for path in ["/llms.txt", "/verification.md"] {
        let text = service.get(path).await.text();
        assert_eq!(text.matches(&section).count(), 1, "{path}");
    }
    for code in RefusalCode::ALL {
        assert!(section.contains(&format!("| `{}` | {} | never |", code.name(), code.status())));
    }
}

#[tokio::test]
async fn documents_have_validators_and_are_not_sent_twice() {
    let service = Service::start().await;
    let buyer = Buyer::new(&service, 1);
    for path in DOCUMENTS {
        let full = buyer.send(&Ask::get(path), None).await;
        let tag = full.header("etag").expect("a validator").to_owned();
        assert!(full.header("cache-control").is_some_and(|text| text.starts_with("public, max-age=")));
        for known in [tag.clone(), format!("W/{tag}"), format!("\"other\", {tag}"), "*".to_owned()] {
            let reply = buyer.send(&Ask::get(path).header("if-none-match", &known), None).await;
            assert_eq!((reply.status, reply.body.len(), reply.header("etag")), (304, 0, Some(tag.as_str())), "{path}");
        }
        let other = buyer.send(&Ask::get(path).header("if-none-match", "\"other\""), None).await;
        assert_eq!((other.status, &other.body), (200, &full.body));
    }
}

#[tokio::test]
async fn every_link_in_the_texts_leads_somewhere() {
    let service = Service::start().await;
    for path in ["/llms.txt", "/verification.md"] {
        let text = service.get(path).await.text();
        let links: Vec<_> =
            text.split("](http://jim.example").skip(1).filter_map(|rest| rest.split(')').next()).collect();
        assert!(!links.is_empty());
        for link in links {
            let status = service.get(link).await.status;
            assert!(status == 200 || status == 402, "{link} in {path}: {status}");
        }
    }
}

#[tokio::test]
async fn health_and_readiness_are_told_apart() {
    let service = Service::start().await;
    let health = service.get("/health").await;
    assert_eq!((health.status, health.header("cache-control")), (200, Some("no-store")));
    let ready = service.get("/ready").await;
    assert_eq!((ready.status, ready.json()["facilitator"]["simulated"].as_bool()), (200, Some(true)));
}

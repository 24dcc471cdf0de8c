//! What every refusal must be, whatever its code: complete, signed, and free.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ed25519_dalek::pkcs8::DecodePublicKey;
use ed25519_dalek::{Signature, Verifier, VerifyingKey};
use serde_json::Value;

use super::buyer::Reply;
use super::service::Service;

/// Asserts the status, the body's members and the signed receipt of a refusal; returns the body.
pub(crate) async fn assert_refusal(service: &Service, reply: &Reply, status: u16, code: &str) -> Value {
    let body = assert_free(reply, status);
    assert_eq!(body["code"], code, "{body}");
    let manifest = service.get("/api/meta/refusal-contract").await.json();
    let rows = manifest["refusals"].as_array().expect("rows");
    let row = rows.iter().find(|row| row["code"] == code).expect("a published row");
    assert_eq!((&row["http"], &row["charge"]), (&status.into(), &"never".into()));
    assert_eq!(body["retry"]["safe"], row["retry"]["safe"]);
    assert_eq!(body["retry"]["same_payment"], row["retry"]["same_payment"]);
    assert_eq!(body["hint"], row["hint"]);
    assert_eq!(body["type"], format!("http://jim.example/api/meta/refusal-contract#{code}"));
    assert_eq!(body["contract_id"], manifest["contract_id"]);
    let after = reply.header("retry-after").map(|text| text.parse::<u64>().expect("seconds"));
    assert_eq!(body["retry"]["after_s"].as_u64(), after, "{body}");
    let receipt = &body["receipt"];
    assert_eq!((&receipt["payload"]["code"], &receipt["payload"]["charged"]), (&code.into(), &false.into()));
    assert_eq!(receipt["payload"]["contract_id"], manifest["contract_id"]);
    assert_eq!(receipt["key_id"], manifest["key_id"]);
    assert_signed(&manifest, &receipt["payload"], &receipt["signature"]);
    body
}

/// Asserts what every error says: a problem body, not charged, not to be kept.
pub(crate) fn assert_free(reply: &Reply, status: u16) -> Value {
    assert_eq!(reply.status, status, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert!(reply.header("payment-required").is_none() && reply.header("payment-response").is_none());
    assert!(reply.header("x-request-id").is_some());
    let body = reply.json();
    assert_eq!(body["charged"], false, "{body}");
    assert_eq!(body["status"], status);
    for member in ["type", "title", "detail", "error"] {
        assert!(body[member].as_str().is_some_and(|text| !text.is_empty()), "{member} in {body}");
    }
    body
}

/// Asserts an unknown outcome: never a refusal, never a challenge to pay again.
pub(crate) fn assert_pending(reply: &Reply) -> Value {
    assert_eq!(reply.status, 503, "{}", reply.text());
    assert_eq!(reply.header("content-type"), Some("application/problem+json"));
    assert_eq!(reply.header("cache-control"), Some("no-store"));
    assert!(reply.header("payment-required").is_none());
    assert!(reply.header("retry-after").is_some());
    let body = reply.json();
    assert_eq!((&body["code"], &body["charged"]), (&"settlement_pending".into(), &"unknown".into()));
    assert_eq!((&body["retry"]["safe"], &body["retry"]["same_payment"]), (&true.into(), &true.into()));
    assert_eq!(body["payment"]["state"], "unknown");
    body
}

/// Asserts an Ed25519 signature by the manifest's key over the canonical JSON of a value. The canonical form is made by an
/// independent program.
pub(crate) fn assert_signed(manifest: &Value, payload: &Value, signature: &Value) {
    let key = VerifyingKey::from_public_key_pem(manifest["public_key"].as_str().expect("a key")).expect("a PEM key");
    let signature = STANDARD.decode(signature.as_str().expect("a signature")).expect("base64");
    let signature = Signature::from_slice(&signature).expect("64 bytes");
    let canonical = serde_json_canonicalizer::to_vec(payload).expect("canonical JSON");
    key.verify(&canonical, &signature).expect("the signature holds");
}

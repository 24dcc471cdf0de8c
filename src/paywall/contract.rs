//! The refusal contract in force, and what is signed under it: the manifest and the receipt of every refusal.

use serde_json::{Map, Value, json};
use sqlx::PgPool;
use time::OffsetDateTime;
use time::format_description::well_known::Rfc3339;
use uuid::Uuid;

use crate::canonical;
use crate::refusal::document::{Deployment, manifest_content};
use crate::refusal::{Refusal, unknown_outcome};
use crate::signer::Signer;
use crate::store::{self, contract};

/// The contract in force.
#[derive(Debug)]
pub struct Contract {
    id: String,
    url: String,
    manifest: Vec<u8>,
    signer: Signer,
}

/// What a receipt says about the request that was refused.
#[derive(Clone, Debug, Default)]
pub struct Circumstances {
    /// The order, when verify had succeeded.
    pub order_id: Option<String>,
    /// `auth_key` of the payment, when one was presented.
    pub payment_key: Option<String>,
    /// Digest of the request; empty before the request was read.
    pub request_fp: String,
}

impl Contract {
    /// Makes the manifest of a deployment, with the dates that the database keeps for its content.
    pub async fn publish(
        pool: &PgPool,
        deployment: &Deployment,
        url: String,
        signer: Signer,
        now: OffsetDateTime,
    ) -> Result<Self, store::Error> {
        let content = manifest_content(deployment);
        let dated = |effective: &contract::Effective| {
            let mut manifest = content.clone();
            manifest.insert("effective_from".into(), timestamp(effective.from).into());
            manifest.insert("previous".into(), effective.previous.clone().into());
            manifest
        };
        let content_id = canonical::address(&Value::Object(content.clone()));
        let effective =
            contract::publish(pool, &content_id, now, |e| canonical::address(&Value::Object(dated(e)))).await?;
        let mut manifest = dated(&effective);
        let id = canonical::address(&Value::Object(manifest.clone()));
        manifest.insert("contract_id".into(), id.clone().into());
        let signature = signer.sign(&Value::Object(manifest.clone()));
        manifest.insert("signature".into(), signature.into());
        Ok(Self { id, url, manifest: Value::Object(manifest).to_string().into_bytes(), signer })
    }

    /// Address of its canonical JSON without id and signature.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// True while the key that signs under it is on disk, unchanged and private.
    pub fn has_its_key(&self) -> bool {
        self.signer.is_intact()
    }

    /// Where it is published.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// The signed manifest.
    pub fn manifest(&self) -> &[u8] {
        &self.manifest
    }

    /// The extension that each 402 carries.
    pub fn extension(&self) -> Value {
        json!({
            "info": {"contract_id": self.id, "url": self.url},
            "schema": {
                "$schema": "https://json-schema.org/draft/2020-12/schema",
                "type": "object",
                "required": ["contract_id", "url"],
                "properties": {"contract_id": {"type": "string"}, "url": {"type": "string", "format": "uri"}}
            }
        })
    }

    /// The body of a refusal with its signed receipt.
    pub fn refusal_body(&self, refusal: &Refusal, about: &Circumstances, at: OffsetDateTime) -> Vec<u8> {
        let mut payload = Map::new();
        payload.insert("contract_id".into(), self.id.clone().into());
        if let Some(order_id) = &about.order_id {
            payload.insert("order_id".into(), order_id.clone().into());
        }
        if let Some(key) = &about.payment_key {
            payload.insert("payment_key".into(), key.clone().into());
        }
        payload.insert("request_fp".into(), about.request_fp.clone().into());
        payload.insert("code".into(), refusal.code.name().into());
        payload.insert("charged".into(), false.into());
        payload.insert("at".into(), timestamp(at).into());
        let mut body = refusal.body(&self.url);
        if let Some(order_id) = &about.order_id {
            body.insert("instance".into(), format!("/api/orders/{order_id}").into());
        }
        body.insert("contract_id".into(), self.id.clone().into());
        body.insert("receipt".into(), self.signer.receipt(Value::Object(payload)));
        Value::Object(body).to_string().into_bytes()
    }

    /// The body of an unknown outcome: no refusal, and no promise that nothing was charged.
    pub fn pending_body(&self, payment_id: Uuid, transaction: Option<&str>) -> Vec<u8> {
        let mut payment = json!({"state": "unknown"});
        // nil where the rows could not be read: then there is no name to tell
        if !payment_id.is_nil() {
            payment["id"] = payment_id.to_string().into();
        }
        if let (Some(transaction), Value::Object(payment)) = (transaction, &mut payment) {
            payment.insert("tx".into(), transaction.into());
        }
        let detail = "The settle call did not end with a usable answer; the payment may or may not have been charged.";
        self.unknown_body(&payment, detail)
    }

    /// The body for a transfer that is in no block that counts: it may be there soon, or never.
    pub fn unseen_body(&self, transaction: &str) -> Vec<u8> {
        let detail =
            "The transaction is in no block that counts yet, or unknown to the chain; nothing is recorded of it.";
        self.unknown_body(&json!({"state": "unknown", "tx": transaction}), detail)
    }

    fn unknown_body(&self, payment: &Value, detail: &str) -> Vec<u8> {
        json!({
            "type": format!("{}#{}", self.url, unknown_outcome::NAME),
            "title": unknown_outcome::TITLE,
            "status": unknown_outcome::STATUS,
            "detail": detail,
            "error": detail,
            "code": unknown_outcome::NAME,
            "charged": "unknown",
            "hint": unknown_outcome::HINT,
            "retry": {"safe": true, "same_payment": true, "after_s": unknown_outcome::AFTER_S},
            "payment": payment,
            "contract_id": self.id,
        })
        .to_string()
        .into_bytes()
    }
}

/// RFC 3339 in UTC, to the second.
fn timestamp(at: OffsetDateTime) -> String {
    at.replace_nanosecond(0).unwrap_or(at).format(&Rfc3339).unwrap_or_default()
}

//! Every document made from the matrix: the manifest and the sections of llms.txt and verification.md.

use serde_json::{Map, Value, json};

use super::{RefusalCode, unknown_outcome};
use crate::limits::REFUND_DUE;
use crate::machine::Rail;
use crate::x402::Permit2Rails;

/// Version of the contract that this code publishes; a buyer of version 1.0 of the seed can read it.
pub const CONTRACT_VERSION: &str = "2.0";

/// The published order of checks: the first one that fails answers.
pub const ORDER_OF_CHECKS: [&str; 11] = [
    "method (405)",
    "body size (413) and type (415; not JSON 400)",
    "rate by address (429 rate_limited)",
    "call chain (409)",
    "input with policy and, where the list is in memory, the unknown ticker (422 insufficient_subject, 409 policy_refusal)",
    "payment header (400 payment_malformed)",
    "terms, window and signature of the payment (402 with the reason)",
    "payer list and rate by payer (403 payer_declined, 429 rate_limited)",
    "overload (503 overloaded)",
    "claim of the payment (409 payment_reused, payment_in_progress; stored answers and refusals are replayed)",
    "verify (402 with the reason, 412 permit2_allowance_required, 503 overloaded)",
];

/// What the manifest needs to know of the deployment.
#[derive(Clone, Debug)]
pub struct Deployment {
    /// Paths of the routes that are sold.
    pub paid_routes: Vec<String>,
    /// Name of the key that signs.
    pub key_id: String,
    /// Its public key, SPKI PEM.
    pub public_key: String,
    /// How an unknown outcome is resolved.
    pub outcome_evidence: &'static str,
    /// What may be paid by Permit2.
    pub permit2: Permit2Rails,
    /// What becomes of money that a buyer has broadcast; None where that rail is switched off.
    pub refund: Option<RefundPromise>,
}

/// What is promised where the buyer moves the money before the request.
#[derive(Clone, Debug)]
pub struct RefundPromise {
    /// Refunds are sent without an operator's hand.
    pub is_automatic: bool,
    /// Where a refund is shown, with `{order_id}` in it.
    pub status_url: String,
}

/// The content of the manifest: everything but its dates, its id and its signature.
pub fn manifest_content(deployment: &Deployment) -> Map<String, Value> {
    let rows: Vec<Value> =
        RefusalCode::ALL.into_iter().map(|code| manifest_row(code, &deployment.paid_routes)).collect();
    let content = json!({
        "version": "1.0",
        "contract_version": CONTRACT_VERSION,
        "policy": "no-charge-on-refusal",
        "refusals": rows,
        "degraded": {
            "field": "degraded",
            "marker": "data_status",
            "statuses": ["fresh", "stale", "unavailable"],
            "stale_since": "ISO-8601",
            "charge_policy": "A paid request on unavailable or stale data is refused (data_unavailable) and never charged; only free answers may carry degraded markers."
        },
        "price_truth": "The amount in the accepts of the 402 is what is charged; it equals price_atomic of the product in /api/v1/services.",
        "disclosure": "A decision taken for the caller carries {decided_by, appeal, basis}.",
        "unknown_outcome": {
            "code": unknown_outcome::NAME,
            "http": unknown_outcome::STATUS,
            "charged": "unknown",
            "same_payment": true,
            "after_s": unknown_outcome::AFTER_S,
            "hint": unknown_outcome::HINT,
            "resolved_by": deployment.outcome_evidence,
        },
        "rails": rails(deployment),
        "order_of_checks": ORDER_OF_CHECKS,
        "receipt": {
            "signs": "canonical JSON (RFC 8785) of payload",
            "payload": ["contract_id", "order_id?", "payment_key?", "request_fp", "code", "charged", "at"],
            "algorithm": "Ed25519, base64"
        },
        "key_id": deployment.key_id,
        "public_key": deployment.public_key,
    });
    let Value::Object(mut content) = content else { return Map::new() };
    if let Some(promise) = &deployment.refund {
        content.insert("refund".into(), refund(promise));
    }
    content
}

fn rails(deployment: &Deployment) -> Vec<&'static str> {
    let exact = deployment.permit2.exact.then_some(Rail::ExactPermit2);
    let upto = deployment.permit2.upto.map(|_| Rail::Upto);
    let last = deployment.refund.as_ref().map(|_| Rail::ClientBroadcast);
    std::iter::once(Rail::Exact).chain(exact).chain(upto).chain(last).map(Rail::name).collect()
}

fn refund(promise: &RefundPromise) -> Value {
    json!({
        "mode": if promise.is_automatic { "auto" } else { "operator" },
        "due_seconds": REFUND_DUE.as_secs(),
        "to": "payer_of_transfer",
        "status_url": promise.status_url,
        "rail": Rail::ClientBroadcast.name(),
        "when": "A transfer that was broadcast is recorded before anything of its request is refused; a refusal after that returns all of it, an answer returns what came above the price.",
    })
}

/// The matrix as a Markdown section; llms.txt and verification.md carry exactly these bytes.
pub fn markdown_section() -> String {
    let mut out = String::from(
        "## Honest Refusal Contract\n\nA refusal is never charged: every one says `charged:false`, and no settle call is made for it.\n\n\
         | code | HTTP | charge | when | same payment again |\n|---|---|---|---|---|\n",
    );
    for code in RefusalCode::ALL {
        let row = code.row();
        let again = if row.same_payment { "yes" } else { "no" };
        out.push_str(&format!("| `{}` | {} | never | {} | {again} |\n", row.name, row.status, row.reason));
    }
    out.push_str(&format!(
        "\nNot a refusal: `{}` ({}), `charged:\"unknown\"`. {}\n",
        unknown_outcome::NAME,
        unknown_outcome::STATUS,
        unknown_outcome::HINT
    ));
    out
}

fn manifest_row(code: RefusalCode, routes: &[String]) -> Value {
    let row = code.row();
    json!({
        "code": row.name,
        "http": row.status,
        "charge": "never",
        "reason": row.reason,
        "hint": row.hint,
        "recovery": row.recovery.name(),
        "retry": {"safe": row.retry_safe, "same_payment": row.same_payment},
        "routes": routes,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_code_stands_once_in_every_document() {
        let deployment = Deployment {
            paid_routes: vec!["/research/fundamentals".into()],
            key_id: "k".into(),
            public_key: "p".into(),
            outcome_evidence: "e",
            permit2: Permit2Rails::default(),
            refund: None,
        };
        let manifest = Value::Object(manifest_content(&deployment));
        let section = markdown_section();
        for code in RefusalCode::ALL {
            let rows = manifest["refusals"].as_array().expect("rows");
            let row: Vec<_> = rows.iter().filter(|r| r["code"] == code.name()).collect();
            assert_eq!(row.len(), 1);
            assert_eq!((row[0]["http"].as_u64(), &row[0]["charge"]), (Some(code.status().into()), &json!("never")));
            assert_eq!(section.matches(&format!("`{}` | {} |", code.name(), code.status())).count(), 1);
        }
        assert_eq!(manifest["refusals"].as_array().map(Vec::len), Some(RefusalCode::ALL.len()));
        assert_eq!((&manifest["rails"], manifest.get("refund")), (&json!(["exact"]), None));
        let status_url = "https://jim.example/api/orders/{order_id}".to_owned();
        let permits = Permit2Rails { exact: true, upto: Some(crate::evm::Address::repeat_byte(1)) };
        let manifest = Value::Object(manifest_content(&Deployment { permit2: permits, ..deployment.clone() }));
        assert_eq!(manifest["rails"], json!(["exact", "exact-permit2", "upto"]));
        let both = Deployment { refund: Some(RefundPromise { is_automatic: true, status_url }), ..deployment };
        let manifest = Value::Object(manifest_content(&both));
        assert_eq!(manifest["rails"], json!(["exact", "client-broadcast"]));
        let (refund, day) = (&manifest["refund"], 24 * 3_600);
        assert_eq!((&refund["mode"], &refund["due_seconds"]), (&json!("auto"), &json!(day)));
        assert_eq!(refund["to"], "payer_of_transfer");
    }
}

//! A process that was only slow: its claim lapsed, the purchase went to another authorization, and then it wakes up.

use jim::machine::Rail;
use jim::money::UsdMicros;
use jim::store::journal::{Claim, Decision, DecisionKind, Journal, NewPayment};

use super::support::database::fresh_database;

#[tokio::test]
async fn a_process_that_wakes_up_late_cannot_settle_a_purchase_that_went_to_another() {
    let database = fresh_database().await;
    let slow = Journal::open(database.pool.clone(), false).await.expect("open");
    let quick = Journal::open(database.pool.clone(), false).await.expect("open");
    let Claim::Won { held, .. } = slow.claim(&payment("aa")).await.expect("a claim") else { panic!("not won") };
    sqlx::query("update instances set beat_at = '-infinity' where instance_id = $1")
        .bind(slow.instance())
        .execute(&database.pool)
        .await
        .expect("silent");
    let Claim::Won { held: other, .. } = quick.claim(&payment("bb")).await.expect("a claim") else { panic!("not won") };
    slow.beat().await.expect("awake");
    let decision = Decision {
        kind: DecisionKind::Answer,
        status: 200,
        content_type: "text/plain".to_owned(),
        body: b"memo".to_vec(),
    };
    let digest = "d1".repeat(32);
    let late = slow.decide(held, &decision, Some(&"1a".repeat(16)), None, "f", Some(&digest)).await;
    assert!(!late.expect("an answer"), "both would be settled");
    let mine = quick.decide(other, &decision, Some(&"2b".repeat(16)), None, "f", Some(&digest)).await;
    assert!(mine.expect("an answer"), "who holds the purchase settles it");
    let breaches = jim::store::invariants::find_breaches(&database.pool).await.expect("the queries run");
    assert!(breaches.is_empty(), "{breaches:#?}");
}

fn payment(nonce: &str) -> NewPayment {
    NewPayment {
        auth_key: format!("key {nonce}"),
        rail: Rail::Exact,
        x402_version: 2,
        network: "eip155:84532".to_owned(),
        asset: format!("0x{}", "a5".repeat(20)),
        payer: format!("0x{}", "b0".repeat(20)),
        pay_to: format!("0x{}", "5e".repeat(20)),
        auth_nonce: format!("0x{}", nonce.repeat(32)),
        payload_sha256: nonce.repeat(32),
        request_fp: "f0".repeat(32),
        product: "fundamentals".to_owned(),
        contract_id: "contract".to_owned(),
        amount: "50000".to_owned(),
        amount_micros: UsdMicros(50_000),
        valid_after: "0".to_owned(),
        valid_before: "4000000000".to_owned(),
    }
}

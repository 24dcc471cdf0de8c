//! What the database itself refuses, whoever writes to it: no charge for a refusal, no second answer, no revenue from nothing.

use sqlx::{AssertSqlSafe, PgPool};

use crate::support::buyer::{Ask, Buyer};
use crate::support::database::{TestDatabase, fresh_database};
use crate::support::service::Service;

const INSTANCE: &str = "00000000-0000-0000-0000-000000000001";
const PAYMENT: &str = "00000000-0000-0000-0000-0000000000aa";

/// A claimed payment, with what a decision of that kind writes.
async fn decided(kind: &str) -> TestDatabase {
    let database = fresh_database().await;
    let (word, wei) = ("0".repeat(64), "0".repeat(40));
    let (status, code) = match kind {
        "answer" => (200, "null"),
        "verify_failed" => (402, "null"),
        _ => (502, "'execution_failed'"),
    };
    run(
        &database.pool,
        format!(
            "insert into instances (instance_id) values ('{INSTANCE}');
         insert into payments values ('{PAYMENT}', 'k', 'exact', 2, 'eip155:84532', '0x{wei}', '0x{wei}', '0x{wei}',
             '0x{word}', '{word}', '{word}', 'p', 'c', 1, 1, 0, 1);
         insert into claims values ('{PAYMENT}', 1, '{INSTANCE}', now(), now());
         insert into answers (payment_id, kind, epoch, status, content_type, body, body_sha256, refusal_code)
             values ('{PAYMENT}', '{kind}', 1, {status}, 'text/plain', '', '{word}', {code});"
        ),
    )
    .await
    .expect("a decided payment");
    database
}

async fn run(pool: &PgPool, statements: String) -> Result<(), String> {
    sqlx::raw_sql(AssertSqlSafe(statements)).execute(pool).await.map(|_| ()).map_err(|error| error.to_string())
}

fn attempt(number: i32) -> String {
    let digest = "0".repeat(64);
    format!(
        "insert into settle_attempts (payment_id, attempt, owner, lease_until, request_sha256) values ('{PAYMENT}', {number}, '{INSTANCE}', now(), '{digest}');"
    )
}

fn result(number: i32, class: &str, transaction: &str) -> String {
    format!(
        "insert into settle_results (payment_id, attempt, class, transaction) values ('{PAYMENT}', {number}, '{class}', {transaction});"
    )
}

/// Asserts that statements fail by the constraint of that name.
async fn assert_refused(pool: &PgPool, statements: String, constraint: &str) {
    let error = run(pool, statements.clone()).await.expect_err(&statements);
    assert!(error.contains(constraint), "{error}");
}

#[tokio::test]
async fn a_refusal_cannot_be_settled() {
    for kind in ["refusal", "verify_failed"] {
        let database = decided(kind).await;
        assert_refused(&database.pool, attempt(1), "settle_attempts_payment_id_answer_kind_fkey").await;
        let digest = "0".repeat(64);
        let lied = format!(
            "insert into settle_attempts (payment_id, attempt, answer_kind, owner, lease_until, request_sha256) values ('{PAYMENT}', 1, '{kind}', '{INSTANCE}', now(), '{digest}')"
        );
        assert_refused(&database.pool, lied, "settle_attempts_check").await;
    }
}

#[tokio::test]
async fn an_answer_and_a_refusal_exclude_each_other() {
    for (first, second, status, code) in [
        ("refusal", "answer", 200, "null"),
        ("answer", "refusal", 502, "'execution_failed'"),
        ("answer", "answer", 200, "null"),
    ] {
        let database = decided(first).await;
        let digest = "0".repeat(64);
        let statement = format!(
            "insert into answers (payment_id, kind, epoch, status, content_type, body, body_sha256, refusal_code) values ('{PAYMENT}', '{second}', 1, {status}, 'text/plain', 'x', '{digest}', {code})"
        );
        assert_refused(&database.pool, statement, "answers_pkey").await;
    }
}

#[tokio::test]
async fn nothing_is_decided_or_settled_without_what_goes_before() {
    let database = decided("answer").await;
    assert_refused(&database.pool, result(1, "settled", "'0x1'"), "settle_results_payment_id_attempt_fkey").await;
    let settlement = format!(
        "insert into settlements (payment_id, attempt, transaction, proven) values ('{PAYMENT}', 1, '0x1', true)"
    );
    assert_refused(&database.pool, settlement, "settlements_payment_id_attempt_fkey").await;
    run(&database.pool, attempt(1)).await.expect("an answer may be settled");
    assert_refused(&database.pool, attempt(1), "settle_attempts_pkey").await;
}

#[tokio::test]
async fn revenue_needs_a_settlement_and_is_booked_once() {
    let database = decided("answer").await;
    let book = |for_whom: &str| {
        format!(
            "insert into ledger (payment_id, kind, settled_for, amount_micros) values ('{PAYMENT}', 'revenue', {for_whom}, 1);"
        )
    };
    assert_refused(&database.pool, book("null"), "ledger_check").await;
    assert_refused(&database.pool, book(&format!("'{PAYMENT}'")), "ledger_settled_for_fkey").await;
    let settle = format!(
        "{}insert into settlements (payment_id, attempt, transaction, proven) values ('{PAYMENT}', 1, '0x1', true);",
        attempt(1)
    );
    run(&database.pool, settle + &book(&format!("'{PAYMENT}'"))).await.expect("settled revenue");
    assert_refused(&database.pool, book(&format!("'{PAYMENT}'")), "ledger_pkey").await;
    let again = format!(
        "insert into settlements (payment_id, attempt, transaction, proven) values ('{PAYMENT}', 1, '0x1', true)"
    );
    assert_refused(&database.pool, again, "settlements_pkey").await;
}

#[tokio::test]
async fn only_a_first_attempt_can_be_denied_and_a_charge_names_its_transaction() {
    let database = decided("answer").await;
    run(&database.pool, attempt(1) + &attempt(2)).await.expect("two attempts");
    assert_refused(&database.pool, result(2, "denied", "null"), "settle_results_check").await;
    assert_refused(&database.pool, result(1, "denied", "'0x1'"), "settle_results_check").await;
    assert_refused(&database.pool, result(1, "settled", "null"), "settle_results_check").await;
    let unproven = format!(
        "{}insert into settlements (payment_id, attempt, transaction, proven) values ('{PAYMENT}', 1, '0x1', false)",
        result(1, "unknown", "null")
    );
    assert_refused(&database.pool, unproven, "settlements_check").await;
    run(&database.pool, result(1, "denied", "null")).await.expect("a first attempt may be denied");
}

#[tokio::test]
async fn an_authorization_and_its_epochs_exist_once() {
    let database = decided("answer").await;
    let twice = "insert into payments select gen_random_uuid(), auth_key, rail, x402_version, network, asset, payer, pay_to, auth_nonce, payload_sha256, request_fp, product, contract_id, amount, amount_micros, valid_after, valid_before from payments".to_owned();
    assert_refused(&database.pool, twice, "payments_auth_key_key").await;
    let claim = format!("insert into claims values ('{PAYMENT}', 1, '{INSTANCE}', now(), now())");
    assert_refused(&database.pool, claim, "claims_pkey").await;
}

#[tokio::test]
async fn a_real_sale_cannot_be_sold_again_by_hand() {
    let service = Service::start().await;
    assert_eq!(Buyer::new(&service, 1).buy(&Ask::memo()).await.1.status, 200);
    let pool = &service.world.database.pool;
    let attempt: i32 = sqlx::query_scalar("select journal_intend(payment_id, (select instance_id from instances limit 1), 5, repeat('0', 64), '{}') from payments")
        .fetch_one(pool)
        .await
        .expect("an answer");
    assert_eq!(attempt, 0, "a settled payment gets no second intent");
    let state: String =
        sqlx::query_scalar("select journal_record(payment_id, 1, 'denied', 'x', null, false) from payments")
            .fetch_one(pool)
            .await
            .expect("a state");
    assert_eq!(state, "settled", "what was recorded stays");
}

/// One event of the payment, as a statement.
fn event(seq: i32, from: &str, to: &str, prev: &str) -> String {
    format!(
        "insert into payment_events (payment_id, seq, rail, from_state, to_state, actor, epoch, at_us, prev_hash)
             values ('{PAYMENT}', {seq}, 'exact', '{from}', '{to}', 'claim', 1, 1, {prev});"
    )
}

#[tokio::test]
async fn a_move_starts_where_the_one_before_ended_and_stands_in_the_table() {
    let database = decided("answer").await;
    let zero = "decode(repeat('00', 32), 'hex')";
    let last = format!("(select hash from payment_events where payment_id = '{PAYMENT}' order by seq desc limit 1)");
    assert_refused(&database.pool, event(1, "none", "settled", zero), "payment_events_move").await;
    assert_refused(&database.pool, event(1, "claimed", "ready", zero), "payment_events_check").await;
    run(&database.pool, event(1, "none", "claimed", zero)).await.expect("a first move");
    let continues = "payment_events_payment_id_prev_seq_from_state_prev_hash_fkey";
    assert_refused(&database.pool, event(2, "ready", "settling", &last), continues).await;
    assert_refused(&database.pool, event(2, "claimed", "ready", zero), continues).await;
    assert_refused(&database.pool, event(3, "claimed", "ready", &last), continues).await;
    run(&database.pool, event(2, "claimed", "refused", &last)).await.expect("a second move");
    assert_refused(&database.pool, event(2, "claimed", "ready", &last), "payment_events_pkey").await;
    let settling = event(3, "refused", "settling", &last);
    assert_refused(&database.pool, settling, "payment_events_move").await;
}

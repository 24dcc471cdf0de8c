//! `jim doctor --invariants` as a process: a healthy database, and one that was broken by hand for each invariant.

use sqlx::AssertSqlSafe;
use tempfile::TempDir;
use tokio::process::Command;

use super::{Case, denied, settled};
use crate::support::buyer::{Ask, Buyer};
use crate::support::database::TestDatabase;
use crate::support::facilitator::Answer;

/// Exit status and report.
async fn doctor(database: &TestDatabase) -> (i32, String) {
    let data = TempDir::new().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_jim"));
    command.args(["doctor", "--invariants", "--no-download", "--database-url", &database.url(), "--data-dir"]);
    let output = command.arg(data.path()).output().await.expect("it runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    (output.status.code().unwrap_or(-1), text)
}

/// Invariants that the report says are broken.
fn broken(report: &str) -> Vec<&str> {
    report.lines().filter_map(|line| line.strip_prefix("FAIL ")?.split_whitespace().next()).collect()
}

/// A sale, a denial and an unknown outcome, with evidence.
async fn history() -> Case {
    let case = Case::start().await;
    case.stub.on_settle([settled(), denied(), Answer::Drop]);
    for (key, status) in [(1, 200), (2, 402), (3, 503)] {
        assert_eq!(Buyer::new(&case.service, key).buy(&Ask::memo()).await.1.status, status);
    }
    case
}

const SETTLED: &str = "(select payment_id from payment_states where state = 'settled' order by payment_id limit 1)";
const DENIED: &str = "(select payment_id from payment_states where state = 'denied')";
const UNKNOWN: &str = "(select payment_id from payment_states where state = 'unknown')";

/// How to break each one. Keys and foreign keys that forbid it are switched off for the session.
fn breaches() -> Vec<(&'static str, String)> {
    let evidence = |id: &str, value: &str, at: &str| {
        format!(
            "insert into chain_evidence (payment_id, kind, block, block_hash, tx_hash, log_index, from_addr, to_addr, value, observed_at) \
             select payment_id, 'transfer', 1, '0x' || repeat('1', 64), '0x' || repeat('2', 64), 1, payer, pay_to, {value}, {at} \
             from payments where payment_id = {id};"
        )
    };
    let refund = format!(
        "insert into refunds (refund_id, payment_id, evidence_id, network, asset, to_addr, transferred, amount, amount_micros, reason, \
         refund_nonce, due_by) select gen_random_uuid(), payment_id, 1, network, asset, payer, 1, 2, 1, 'late', \
         '0x' || repeat('3', 64), now() from payments where payment_id = {DENIED};"
    );
    vec![
        ("V1", format!("delete from answers where payment_id = {UNKNOWN};")),
        (
            "V2",
            format!(
                "alter table payment_events drop constraint payment_events_move; select move_payment({DENIED}, 'refused', 'decide', 1);"
            ),
        ),
        ("V3", evidence(DENIED, "50000", "now() - interval '16 minutes'")),
        ("V4", format!("update answers set body = 'another memo' where payment_id = {SETTLED};")),
        (
            "V5",
            format!(
                "update payments set payer = (select payer from payments where payment_id = {SETTLED}) where payment_id = {UNKNOWN}; \
                 do $$ declare id uuid := {UNKNOWN}; begin perform move_payment(id, 'settled', 'settle', 1); \
                 perform book_charge(id, 1, '0x1', null); end $$;"
            ),
        ),
        ("V6", format!("alter table refunds drop constraint refunds_check; {refund}")),
        ("V7", format!("update payments set valid_before = 1 where payment_id = {UNKNOWN};")),
        ("V8", format!("insert into served (payment_id, status, code) values ({UNKNOWN}, 402, 'denied');")),
        ("V9", format!("delete from ledger where payment_id = {SETTLED};")),
        ("V10", format!("update payment_events set evidence = 'forged' where payment_id = {SETTLED} and seq = 1;")),
        ("V11", format!("insert into served (payment_id, status) values ({DENIED}, 200);")),
        ("N1", "delete from orders where order_no = 1;".into()),
        ("N2", format!("select move_payment({DENIED}, 'refund_owed', 'refund', 1);")),
        ("N3", format!("update payments set rail = 'upto' where payment_id = {SETTLED};")),
    ]
}

#[tokio::test]
async fn a_healthy_database_is_all_right_and_each_breach_is_named() {
    let case = history().await;
    let world = case.service.stop().await;
    let (status, report) = doctor(&world.database).await;
    assert_eq!((status, broken(&report)), (0, Vec::new()), "{report}");
    assert_eq!(report.lines().filter(|line| line.starts_with("ok ")).count(), 14, "{report}");
    let all = breaches();
    assert_eq!(all.len(), 14);
    for (id, statements) in all {
        let broken_one = world.database.copy().await;
        let text = format!("set session_replication_role = replica; {statements}");
        sqlx::raw_sql(AssertSqlSafe(text)).execute(&mut broken_one.session().await).await.expect(id);
        let (status, report) = doctor(&broken_one).await;
        assert_eq!(status, 1, "{id}: {report}");
        assert!(broken(&report).contains(&id), "{id}: {report}");
        assert!(report.lines().any(|line| line.starts_with("       ")), "{id} shows no row: {report}");
    }
}

#[tokio::test]
async fn of_many_rows_twenty_are_shown_and_a_database_that_is_away_is_no_pass() {
    let case = Case::start().await;
    let world = case.service.stop().await;
    let many = "insert into payments select gen_random_uuid(), n::text, 'exact', 2, 'eip155:84532', '0x' || repeat('0', 40), \
        '0x' || repeat('0', 40), '0x' || repeat('0', 40), '0x' || repeat('0', 64), repeat('0', 64), repeat('0', 64), 'p', 'c', 1, 1, \
        0, 1 from generate_series(1, 25) n";
    super::run(&world.database.pool, many).await;
    let (status, report) = doctor(&world.database).await;
    assert_eq!((status, broken(&report)), (1, vec!["V10"]), "{report}");
    assert!(report.contains("25 breaches: a history with a gap") && report.contains("and 5 more"), "{report}");
    assert_eq!(report.lines().filter(|line| line.ends_with(" none")).count(), 20, "{report}");

    let mut command = Command::new(env!("CARGO_BIN_EXE_jim"));
    let data = TempDir::new().expect("a folder");
    command
        .args(["doctor", "--invariants", "--database-url", "postgres://127.0.0.1:1/none", "--data-dir"])
        .arg(data.path());
    let output = command.output().await.expect("it runs");
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stdout).starts_with("FAIL database"));
}

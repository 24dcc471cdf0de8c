//! The three views at the end: buyers, the facilitator's books, the rows.

use std::collections::BTreeSet;

use sqlx::PgPool;

use super::books::Entries;
use super::history::History;

/// What the rows call sold.
const SETTLED: &str = "select auth_nonce from payment_states where state = 'settled'";

/// Everything that does not agree; empty when all do.
pub(crate) async fn find_faults(pool: &PgPool, history: &History, books: &Entries) -> Vec<String> {
    let breaches = jim::store::invariants::find_breaches(pool).await.expect("the queries run");
    let mut faults: Vec<String> = breaches.iter().map(|b| format!("{}: {}: {}", b.id, b.what, b.row)).collect();
    faults.extend(history.find_lies(books));
    // I2, I3: what the books have moved is what the rows have sold
    let settled: Vec<String> = sqlx::query_scalar(SETTLED).fetch_all(pool).await.expect("rows");
    let rows: BTreeSet<&str> = settled.iter().map(String::as_str).collect();
    let moved: BTreeSet<&str> = books.iter().filter(|(_, e)| e.moved).map(|(nonce, _)| nonce.as_str()).collect();
    faults.extend(moved.difference(&rows).map(|nonce| format!("I2: money moved for {nonce}, which is not sold")));
    faults.extend(rows.difference(&moved).map(|nonce| format!("I7: {nonce} is sold, and no money moved")));
    // I7: revenue once for each of them
    let (entries, revenue, price): (i64, i64, i64) = sqlx::query_as(
        "select count(*), coalesce(sum(amount_micros), 0)::bigint, (select coalesce(max(amount_micros), 0) from payments) \
         from ledger where kind = 'revenue'",
    )
    .fetch_one(pool)
    .await
    .expect("a row");
    let sold = i64::try_from(moved.len()).expect("few");
    if (entries, revenue) != (sold, sold * price) {
        faults.push(format!("I7: {entries} entries of revenue, {revenue} in all, for {sold} transfers of {price}"));
    }
    faults
}

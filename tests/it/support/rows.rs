//! What is left behind in the database: how many rows each table of the journal has, and single values.

use sqlx::{AssertSqlSafe, PgPool};

/// Rows of each table. Tests state all of them; a table that is not named has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) payments: i64,
    pub(crate) claims: i64,
    pub(crate) releases: i64,
    pub(crate) orders: i64,
    pub(crate) answers: i64,
    pub(crate) settle_attempts: i64,
    pub(crate) settle_results: i64,
    pub(crate) settlements: i64,
    pub(crate) runs: i64,
    pub(crate) ledger: i64,
    pub(crate) served: i64,
}

impl Rows {
    /// A sale that was settled at once.
    pub(crate) const SOLD: Self = Self {
        payments: 1,
        claims: 1,
        releases: 0,
        orders: 1,
        answers: 1,
        settle_attempts: 1,
        settle_results: 1,
        settlements: 1,
        runs: 1,
        ledger: 1,
        served: 1,
    };

    /// A refusal after verify: everything but what settling leaves.
    pub(crate) const REFUSED: Self =
        Self { settle_attempts: 0, settle_results: 0, settlements: 0, ledger: 0, ..Self::SOLD };

    /// Counts them.
    pub(crate) async fn load(pool: &PgPool) -> Self {
        let count = async |table: &str| -> i64 {
            let text = format!("select count(*) from {table}");
            sqlx::query_scalar(AssertSqlSafe(text)).fetch_one(pool).await.expect("a count")
        };
        Self {
            payments: count("payments").await,
            claims: count("claims").await,
            releases: count("releases").await,
            orders: count("orders").await,
            answers: count("answers").await,
            settle_attempts: count("settle_attempts").await,
            settle_results: count("settle_results").await,
            settlements: count("settlements").await,
            runs: count("runs").await,
            ledger: count("ledger").await,
            served: count("served").await,
        }
    }
}

/// One column of all rows of a query, as text in its order; null is the empty text.
pub(crate) async fn column(pool: &PgPool, select: &'static str) -> Vec<String> {
    let rows: Vec<Option<String>> = sqlx::query_scalar(select).fetch_all(pool).await.expect("rows");
    rows.into_iter().map(Option::unwrap_or_default).collect()
}

/// The invariants that hold for every database at every moment (payments.md section 8): each query finds nothing.
pub(crate) async fn assert_invariants(pool: &PgPool) {
    for (name, query) in [
        (
            "a settle attempt without an answer",
            "select count(*) from settle_attempts a left join answers w on w.payment_id = a.payment_id and w.kind = 'answer' where w.payment_id is null",
        ),
        (
            "a refusal with a settle attempt",
            "select count(*) from answers w join settle_attempts a using (payment_id) where w.kind <> 'answer'",
        ),
        (
            "revenue without a settlement",
            "select count(*) from ledger l left join settlements s using (payment_id) where l.kind = 'revenue' and s.payment_id is null",
        ),
        (
            "a settlement without revenue",
            "select count(*) from settlements s left join ledger l on l.payment_id = s.payment_id and l.kind = 'revenue' where l.payment_id is null",
        ),
        (
            "an answer handed out without a settlement",
            "select count(*) from served v left join settlements s using (payment_id) where v.status = 200 and v.code is null and s.payment_id is null",
        ),
        (
            "a challenge to pay again while the outcome is unknown",
            "select count(*) from served v where v.status = 402 and payment_state(v.payment_id) in ('settling', 'unknown', 'settled')",
        ),
    ] {
        let found: i64 = sqlx::query_scalar(query).fetch_one(pool).await.expect("a count");
        assert_eq!(found, 0, "{name}");
    }
}

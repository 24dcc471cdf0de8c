//! What is left behind in the database: how many rows each table of the journal has, and single values.

use sqlx::{AssertSqlSafe, PgPool};

/// Rows of each table. Tests state all of them; a table that is not named has none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Rows {
    pub(crate) payments: i64,
    pub(crate) claims: i64,
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
    /// A sale that was settled at once: its settlement says how the call ended and that the answer left.
    pub(crate) const SOLD: Self = Self {
        payments: 1,
        claims: 1,
        orders: 1,
        answers: 1,
        settle_attempts: 1,
        settle_results: 0,
        settlements: 1,
        runs: 1,
        ledger: 1,
        served: 0,
    };

    /// A refusal after verify: everything but what settling leaves.
    pub(crate) const REFUSED: Self = Self { settle_attempts: 0, settlements: 0, ledger: 0, served: 1, ..Self::SOLD };

    /// Counts them.
    pub(crate) async fn load(pool: &PgPool) -> Self {
        let count = async |table: &str| -> i64 {
            let text = format!("select count(*) from {table}");
            sqlx::query_scalar(AssertSqlSafe(text)).fetch_one(pool).await.expect("a count")
        };
        Self {
            payments: count("payments").await,
            claims: count("claims").await,
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

/// The invariants that hold for every database at every moment.
pub(crate) async fn assert_invariants(pool: &PgPool) {
    let breaches = jim::store::invariants::find_breaches(pool).await.expect("the queries run");
    assert!(breaches.is_empty(), "{breaches:#?}");
}

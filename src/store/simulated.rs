//! SQL of the simulated chain: balances and executed transfers (`migrations/0003_simulated_chain.sql`).

use sqlx::PgPool;

/// One authorization as the simulated chain executes it. Addresses are lower case, amounts atomic units.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// CAIP-2.
    pub network: String,
    /// The token.
    pub asset: String,
    /// Who pays.
    pub authorizer: String,
    /// The authorization's nonce.
    pub nonce: [u8; 32],
    /// Who is paid.
    pub payee: String,
    /// How much, in decimal digits.
    pub value: String,
    /// Hash of the transaction.
    pub tx_hash: [u8; 32],
}

/// How an execution ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Executed {
    /// The money moved.
    Moved,
    /// The nonce was used before; nothing moved.
    NonceUsed,
    /// The payer has too little; nothing moved.
    Insufficient,
}

/// What a transfer would meet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// The nonce was used before.
    pub nonce_used: bool,
    /// The payer has enough.
    pub funded: bool,
}

/// Executes a transfer, all of it or nothing. A payer without a balance first gets `grant` atomic units.
///
/// The commit does not wait for the disk: in one database the later, waiting commit that records a settlement flushes
/// this one too, and a transfer that is lost with everything after it may be executed again.
pub async fn execute(pool: &PgPool, transfer: &Transfer, grant: u64) -> Result<Executed, sqlx::Error> {
    let mut tx = pool.begin().await?;
    sqlx::query("SET LOCAL synchronous_commit TO off").execute(&mut *tx).await?;
    // on either key: of two that run at once, the later may meet the hash of the transaction before the nonce
    let inserted = sqlx::query(
        "INSERT INTO sim_transfers (network, asset, authorizer, nonce, payee, value, tx_hash)
         VALUES ($1, $2, $3, $4, $5, $6::text::numeric, $7)
         ON CONFLICT DO NOTHING",
    )
    .bind(&transfer.network)
    .bind(&transfer.asset)
    .bind(&transfer.authorizer)
    .bind(transfer.nonce.as_slice())
    .bind(&transfer.payee)
    .bind(&transfer.value)
    .bind(transfer.tx_hash.as_slice())
    .execute(&mut *tx)
    .await?;
    if inserted.rows_affected() == 0 {
        tx.rollback().await?;
        return Ok(Executed::NonceUsed);
    }
    let moved = move_balance(&mut tx, transfer, grant).await?;
    if !moved {
        tx.rollback().await?;
        return Ok(Executed::Insufficient);
    }
    tx.commit().await?;
    Ok(Executed::Moved)
}

/// What a transfer would meet now; nothing is written.
pub async fn load_outlook(pool: &PgPool, transfer: &Transfer, grant: u64) -> Result<Outlook, sqlx::Error> {
    let (nonce_used, funded) = sqlx::query_as(
        "SELECT EXISTS (SELECT 1 FROM sim_transfers
                        WHERE network = $1 AND asset = $2 AND authorizer = $3 AND nonce = $4),
                coalesce((SELECT amount FROM sim_balances WHERE network = $1 AND asset = $2 AND holder = $3), $6)
                    >= $5::text::numeric",
    )
    .bind(&transfer.network)
    .bind(&transfer.asset)
    .bind(&transfer.authorizer)
    .bind(transfer.nonce.as_slice())
    .bind(&transfer.value)
    .bind(i64::try_from(grant).unwrap_or(i64::MAX))
    .fetch_one(pool)
    .await?;
    Ok(Outlook { nonce_used, funded })
}

/// The balance of a holder in decimal digits; `None` when it never paid nor was paid.
pub async fn load_balance(
    pool: &PgPool,
    network: &str,
    asset: &str,
    holder: &str,
) -> Result<Option<String>, sqlx::Error> {
    sqlx::query_scalar("SELECT amount::text FROM sim_balances WHERE network = $1 AND asset = $2 AND holder = $3")
        .bind(network)
        .bind(asset)
        .bind(holder)
        .fetch_optional(pool)
        .await
}

/// Moves the value when the payer has it. Both rows are made and locked in the order of their holders, so that two
/// transfers in opposite directions cannot wait for each other.
async fn move_balance(
    tx: &mut sqlx::Transaction<'_, sqlx::Postgres>,
    transfer: &Transfer,
    grant: u64,
) -> Result<bool, sqlx::Error> {
    sqlx::query(
        "INSERT INTO sim_balances (network, asset, holder, amount)
         SELECT $1, $2, holder, max(amount) FROM (VALUES ($3, $5), ($4, 0)) AS new (holder, amount)
         GROUP BY holder ORDER BY holder
         ON CONFLICT (network, asset, holder) DO NOTHING",
    )
    .bind(&transfer.network)
    .bind(&transfer.asset)
    .bind(&transfer.authorizer)
    .bind(&transfer.payee)
    .bind(i64::try_from(grant).unwrap_or(i64::MAX))
    .execute(&mut **tx)
    .await?;
    sqlx::query(
        "SELECT 1 FROM sim_balances WHERE network = $1 AND asset = $2 AND holder IN ($3, $4) ORDER BY holder FOR UPDATE",
    )
    .bind(&transfer.network)
    .bind(&transfer.asset)
    .bind(&transfer.authorizer)
    .bind(&transfer.payee)
    .execute(&mut **tx)
    .await?;
    let debited = sqlx::query(
        "UPDATE sim_balances SET amount = amount - $4::text::numeric
         WHERE network = $1 AND asset = $2 AND holder = $3 AND amount >= $4::text::numeric",
    )
    .bind(&transfer.network)
    .bind(&transfer.asset)
    .bind(&transfer.authorizer)
    .bind(&transfer.value)
    .execute(&mut **tx)
    .await?;
    if debited.rows_affected() == 0 {
        return Ok(false);
    }
    sqlx::query(
        "UPDATE sim_balances SET amount = amount + $4::text::numeric
         WHERE network = $1 AND asset = $2 AND holder = $3",
    )
    .bind(&transfer.network)
    .bind(&transfer.asset)
    .bind(&transfer.payee)
    .bind(&transfer.value)
    .execute(&mut **tx)
    .await?;
    Ok(true)
}

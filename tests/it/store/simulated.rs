//! The simulated chain: money moves once per nonce, and nobody spends what is not there.

use jim::store::simulated::{Executed, Transfer, execute, load_balance, load_outlook};
use sqlx::PgPool;

use crate::support::buyer::{Ask, Buyer, reason_of};
use crate::support::database::fresh_database;
use crate::support::rows::Rows;
use crate::support::service::Service;

/// What a new payer starts with in these tests.
const GRANT: u64 = 1_000;

fn transfer(from: &str, to: &str, nonce: u8, value: u64) -> Transfer {
    Transfer {
        network: "n".to_owned(),
        asset: "t".to_owned(),
        authorizer: from.to_owned(),
        nonce: [nonce; 32],
        payee: to.to_owned(),
        value: value.to_string(),
        tx_hash: [nonce; 32],
    }
}

async fn balance(pool: &PgPool, holder: &str) -> Option<String> {
    load_balance(pool, "n", "t", holder).await.expect("a balance")
}

#[tokio::test]
async fn money_moves_once_per_nonce() {
    let database = fresh_database().await;
    let pool = &database.pool;
    let first = transfer("0xaa", "0xbb", 1, 300);
    let outlook = load_outlook(pool, &first, GRANT).await.expect("an outlook");
    assert_eq!((outlook.nonce_used, outlook.funded), (false, true));
    assert_eq!(balance(pool, "0xaa").await, None, "looking makes no row");
    assert_eq!(execute(pool, &first, GRANT).await.expect("executed"), Executed::Moved);
    assert_eq!(execute(pool, &first, GRANT).await.expect("executed"), Executed::NonceUsed);
    assert!(load_outlook(pool, &first, GRANT).await.expect("an outlook").nonce_used);
    assert_eq!(
        (balance(pool, "0xaa").await.as_deref(), balance(pool, "0xbb").await.as_deref()),
        (Some("700"), Some("300"))
    );
    // a nonce belongs to its authorizer
    let other = Transfer { tx_hash: [9; 32], ..transfer("0xcc", "0xbb", 1, 1) };
    assert_eq!(execute(pool, &other, GRANT).await.expect("executed"), Executed::Moved);
}

#[tokio::test]
async fn nobody_spends_what_is_not_there() {
    let database = fresh_database().await;
    let pool = &database.pool;
    let dear = transfer("0xaa", "0xbb", 1, GRANT + 1);
    for _ in 0..2 {
        assert!(!load_outlook(pool, &dear, GRANT).await.expect("an outlook").funded);
        assert_eq!(
            execute(pool, &dear, GRANT).await.expect("executed"),
            Executed::Insufficient,
            "and the nonce is unused"
        );
    }
    assert_eq!(execute(pool, &transfer("0xaa", "0xbb", 1, GRANT), GRANT).await.expect("executed"), Executed::Moved);
    assert_eq!(execute(pool, &transfer("0xaa", "0xbb", 2, 1), GRANT).await.expect("executed"), Executed::Insufficient);
    assert_eq!(balance(pool, "0xaa").await.as_deref(), Some("0"), "a grant is given once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn parallel_settles_of_one_nonce_move_money_once() {
    let database = fresh_database().await;
    let tasks: Vec<_> = (0..24u8)
        .map(|i| {
            let pool = database.pool.clone();
            tokio::spawn(
                async move { execute(&pool, &transfer("0xaa", "0xbb", i / 4, 10), GRANT).await.expect("no error") },
            )
        })
        .collect();
    let mut moved = 0;
    for task in tasks {
        match task.await.expect("no panic") {
            Executed::Moved => moved += 1,
            Executed::NonceUsed => {}
            Executed::Insufficient => panic!("there is enough"),
        }
    }
    assert_eq!(moved, 6);
    assert_eq!(balance(&database.pool, "0xbb").await.as_deref(), Some("60"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn transfers_in_opposite_directions_do_not_block_each_other() {
    let database = fresh_database().await;
    let tasks: Vec<_> = (0..40u8)
        .map(|n| {
            let one = if n % 2 == 0 { transfer("0xaa", "0xbb", n, 1) } else { transfer("0xbb", "0xaa", n, 1) };
            let pool = database.pool.clone();
            tokio::spawn(async move { execute(&pool, &one, GRANT).await })
        })
        .collect();
    for task in tasks {
        // b may be made by a payment to it, with nothing to spend yet
        let done = task.await.expect("no panic").expect("no deadlock");
        assert!(matches!(done, Executed::Moved | Executed::Insufficient));
    }
    let to_itself = execute(&database.pool, &transfer("0xaa", "0xaa", 77, 1), GRANT).await.expect("no error");
    assert_eq!(to_itself, Executed::Moved);
}

#[tokio::test]
async fn a_poor_payer_and_a_used_nonce_fail_verify_with_their_reason() {
    let service = Service::start().await;
    let pool = &service.world.database.pool;
    let poor = Buyer::new(&service, 1);
    let token = "0x036cbd53842c5426634e7929541ec2318f3dcf7e";
    sqlx::query("insert into sim_balances values ('eip155:84532', $1, $2, 49999)")
        .bind(token)
        .bind(poor.address())
        .execute(pool)
        .await
        .expect("a poor payer");
    assert_eq!(reason_of(&poor.buy(&Ask::memo()).await.1), "invalid_exact_evm_insufficient_balance");
    let spent = Buyer::new(&service, 2);
    let payment = spent.sign(jim::x402::Version::V2).await;
    sqlx::query("insert into sim_transfers values ('eip155:84532', $1, $2, $3, '0x', 1, $3)")
        .bind(token)
        .bind(spent.address())
        .bind(payment.authorization.nonce().as_slice())
        .execute(pool)
        .await
        .expect("a used nonce");
    let reply = spent.send(&Ask::memo(), Some(&payment)).await;
    assert!(reason_of(&reply).contains("nonce"), "{}", reason_of(&reply));
    assert_eq!((service.settle_calls(), service.world.scribe.drafts()), (0, 0));
    assert_eq!(service.rows().await, Rows { payments: 2, claims: 2, answers: 2, served: 2, ..Rows::default() });
}

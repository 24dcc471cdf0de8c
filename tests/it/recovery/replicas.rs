//! Several processes on one database: one of them recovers.

use std::time::Duration;

use super::{Case, PAUSE, until};
use crate::support::facilitator::Answer;
use crate::support::rows::column;
use crate::support::service::Service;

/// Sessions that hold the lock of recovery in this database.
const HOLDERS: &str = "select l.pid::text from pg_locks l join pg_database d on d.oid = l.database \
                       where d.datname = current_database() and l.locktype = 'advisory' and l.granted and l.objid = 1768751113";

async fn one_holder(case: &Case) -> String {
    for _ in 0..600 {
        let holders = column(case.pool(), HOLDERS).await;
        assert!(holders.len() < 2, "{holders:?}");
        if let [holder] = &holders[..] {
            return holder.clone();
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    panic!("nobody recovers");
}

#[tokio::test]
async fn one_of_two_replicas_recovers_and_the_other_takes_over_when_it_is_gone() {
    let case = Case::start().await;
    let first = one_holder(&case).await;
    let url = case.service.world.database.url();
    let other = Service::start_with(|settings, parts| {
        settings.payments.facilitator_urls = vec![case.stub.url()];
        settings.database_url = Some(url);
        parts.chain = Some(std::sync::Arc::clone(&case.chain) as _);
        parts.recovery_pause = Some(PAUSE);
    })
    .await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(one_holder(&case).await, first, "who has it keeps it");
    // its session breaks: one of the two has it again, in another session
    sqlx::raw_sql(sqlx::AssertSqlSafe(format!("select pg_terminate_backend({first})")))
        .execute(case.pool())
        .await
        .expect("ended");
    let second = one_holder(&case).await;
    assert_ne!(second, first);
    // one process ends; the work goes on in the other
    let (bought, reply) = case.buy(Answer::Drop).await;
    assert_eq!(reply.status, 503);
    let Case { service, stub, chain } = case;
    let world = service.stop().await;
    let pool = world.database.pool.clone();
    chain.transfer(bought.key, bought.to, super::PRICE);
    chain.mine();
    until(&pool, "select state from payment_states", &["settled"]).await;
    assert_eq!((column(&pool, HOLDERS).await.len(), stub.settles()), (1, 1));
    crate::support::rows::assert_invariants(&pool).await;
    drop(other);
}

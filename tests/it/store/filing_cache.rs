//! The filing cache: bytes come back as they were kept, and the later retrieval stays.

use bytes::Bytes;
use jim::source::cache::{Cached, FilingCache};
use jim::store::filing_cache::{PgFilingCache, delete_before};
use time::{Duration, OffsetDateTime};

use crate::support::database::fresh_database;

fn at(second: i64) -> OffsetDateTime {
    OffsetDateTime::from_unix_timestamp(1_700_000_000 + second).expect("a time")
}

fn document(text: &'static str, second: i64) -> Cached {
    Cached { body: Bytes::from_static(text.as_bytes()), fetched_at: at(second) }
}

#[tokio::test]
async fn the_later_retrieval_stays_whichever_is_written_last() {
    let database = fresh_database().await;
    let cache = PgFilingCache::new(database.pool.clone());
    assert_eq!(cache.load("k").await, Ok(None));
    for (text, second, kept) in [("b", 10, ("b", 10)), ("a", 5, ("b", 10)), ("b2", 10, ("b", 10)), ("c", 11, ("c", 11))]
    {
        cache.save("k", Bytes::from_static(text.as_bytes()), at(second)).await.expect("saved");
        assert_eq!(cache.load("k").await, Ok(Some(document(kept.0, kept.1))), "after {text}");
    }
    assert_eq!(cache.load("other").await, Ok(None));
}

#[tokio::test]
async fn bytes_come_back_as_they_were_sent() {
    let database = fresh_database().await;
    let cache = PgFilingCache::new(database.pool.clone());
    let all: Vec<u8> = (0..=255).cycle().take(300_000).collect();
    cache.save("companyfacts/CIK0000000001", all.clone().into(), at(0)).await.expect("saved");
    let back = cache.load("companyfacts/CIK0000000001").await.expect("loaded").expect("there");
    assert_eq!(back.body, all);
}

#[tokio::test]
async fn what_is_too_old_is_dropped_and_nothing_else() {
    let database = fresh_database().await;
    let cache = PgFilingCache::new(database.pool.clone());
    for second in 0..4 {
        cache.save(&format!("k{second}"), Bytes::from_static(b"x"), at(second)).await.expect("saved");
    }
    assert_eq!(delete_before(&database.pool, at(2)).await.expect("deleted"), 2);
    cache.forget_before(at(2) + Duration::milliseconds(1)).await.expect("forgotten");
    for (key, kept) in [("k0", false), ("k1", false), ("k2", false), ("k3", true)] {
        assert_eq!(cache.load(key).await.expect("loaded").is_some(), kept, "{key}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn two_that_fetch_at_once_do_not_disturb_each_other() {
    let database = fresh_database().await;
    let writers: Vec<_> = (0..20)
        .map(|second| {
            let cache = PgFilingCache::new(database.pool.clone());
            tokio::spawn(async move { cache.save("k", Bytes::from(second.to_string()), at(second)).await })
        })
        .collect();
    for writer in writers {
        writer.await.expect("no panic").expect("saved");
    }
    let cache = PgFilingCache::new(database.pool.clone());
    assert_eq!(cache.load("k").await, Ok(Some(document("19", 19))));
}

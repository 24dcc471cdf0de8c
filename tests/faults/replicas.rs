//! Three processes on one database: each payment raced over all of them, each purchase signed twice, one of them killed in the middle.

use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tempfile::TempDir;

use super::books::Facilitator;
use super::buyer::{self, Seed};
use super::check::find_faults;
use super::market::{Market, middle_and_longest};
use super::process::{Jim, Site};
use super::support::database::fresh_database;

/// Purchases, each by a payer of its own, each signed twice.
const PURCHASES: usize = 64;

/// Pause of a buyer before he sends again.
const PAUSE: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn three_replicas_sell_each_purchase_once_though_one_is_killed() {
    let _turn = super::TURN.lock().await;
    let seed = Seed::read("replicas");
    let database = fresh_database().await;
    let facilitator = Facilitator::start(Duration::from_millis(100)).await;
    let folder = TempDir::new().expect("a folder");
    let site = Site {
        folder: folder.path().to_owned(),
        database_url: Some(database.url()),
        facilitator_url: Some(facilitator.url()),
    };
    let client = buyer::client();
    let mut replicas: Vec<Jim> = Vec::new();
    for name in ["one", "two", "three"] {
        replicas.push(site.start(&client, name, &[]).await);
    }
    let market = Market::open(client, replicas.iter().map(|jim| jim.url.clone()).collect()).await;
    let mut buyers = Vec::new();
    for purchase in 0..PURCHASES {
        for copy in 0..2 {
            let (market, payment) = (market.clone(), seed.sign(&market.offer, purchase, copy));
            buyers.push(tokio::spawn(async move {
                let urls = market.urls();
                join_all(urls.iter().map(|url| market.send(url, &payment))).await;
                market.resolve(&payment, PAUSE).await
            }));
        }
    }
    // somewhere in the middle: when that many have been charged
    let moment = 8 + usize::try_from(seed.number("moment") % 32).expect("small");
    while facilitator.moved() < moment {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let dead = usize::try_from(seed.number("replica") % 3).expect("small");
    replicas[dead].kill().await;
    let killed = Instant::now();
    let left = replicas.iter().enumerate().filter(|(at, _)| *at != dead).map(|(_, jim)| jim.url.clone());
    market.move_to(left.collect());
    let ends: Vec<_> = join_all(buyers).await.into_iter().map(|buyer| buyer.expect("no panic")).collect();
    let books = facilitator.entries();
    let unsold = ends.iter().filter(|resolved| resolved.end.status != 200).count();
    let after: Vec<Duration> = ends.iter().filter(|r| r.done > killed).map(|r| r.done.duration_since(killed)).collect();
    let late = after.len();
    let (middle, longest) = middle_and_longest(after);
    let calls: u32 = books.values().map(|entry| entry.calls).sum();
    eprintln!(
        "replicas: {} purchases, {} payments, one of 3 killed at charge {moment}: {} charged with {calls} settle calls, unsold {unsold}; \
         {late} payments ended after the kill, p50 {middle} ms, max {longest} ms",
        PURCHASES,
        ends.len(),
        facilitator.moved()
    );
    let mut faults = find_faults(&database.pool, &market.history, &books).await;
    if facilitator.moved() != PURCHASES {
        faults.push(format!("{} charges for {PURCHASES} purchases", facilitator.moved()));
    }
    assert!(faults.is_empty() && unsold == 0, "{unsold} unsold; {faults:#?}");
}

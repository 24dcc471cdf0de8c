//! SIGTERM under load: a paid request that is under way ends, and one that came too late is resumed by the same payment.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use tempfile::TempDir;

use super::books::Facilitator;
use super::buyer::{self, Seed};
use super::check::find_faults;
use super::market::Market;
use super::process::Site;
use super::support::database::fresh_database;

/// Buyers who buy one memo after the other.
const BUYERS: usize = 16;

/// How often the process is stopped.
const STOPS: u32 = 3;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stop_under_load_drops_no_paid_request() {
    let _turn = super::TURN.lock().await;
    let seed = Seed::read("graceful");
    let database = fresh_database().await;
    let facilitator = Facilitator::start(Duration::from_millis(150)).await;
    let folder = TempDir::new().expect("a folder");
    let site = Site {
        folder: folder.path().to_owned(),
        database_url: Some(database.url()),
        facilitator_url: Some(facilitator.url()),
    };
    let client = buyer::client();
    let mut jim = site.start(&client, "jim", &[]).await;
    let market = Market::open(client.clone(), vec![jim.url.clone()]).await;
    let over = Arc::new(AtomicBool::new(false));
    let buyers: Vec<_> = (0..BUYERS)
        .map(|number| {
            let (market, over) = (market.clone(), Arc::clone(&over));
            tokio::spawn(async move {
                let mut ends = Vec::new();
                while !over.load(Ordering::SeqCst) {
                    let payment = seed.sign(&market.offer, number + BUYERS * ends.len(), 0);
                    ends.push(market.resolve(&payment, Duration::from_millis(20)).await);
                }
                ends
            })
        })
        .collect();
    let mut stops = Vec::new();
    for _ in 0..STOPS {
        tokio::time::sleep(Duration::from_millis(1_500 + seed.number("stop") % 300)).await;
        let begun = Instant::now();
        let status = jim.stop().await;
        assert!(status.success(), "{status}\n{}", jim.tail());
        stops.push((begun, begun.elapsed()));
        jim = site.start(&client, "next", &[]).await;
        market.move_to(vec![jim.url.clone()]);
    }
    tokio::time::sleep(Duration::from_millis(500)).await;
    over.store(true, Ordering::SeqCst);
    let ends: Vec<_> = join_all(buyers).await.into_iter().flat_map(|buyer| buyer.expect("no panic")).collect();
    let across = |begun: Instant, done: Instant| stops.iter().any(|(stop, _)| begun < *stop && done > *stop);
    let under_way: Vec<_> = ends.iter().filter(|r| across(r.begun, r.done)).collect();
    let at_once = under_way.iter().filter(|r| r.repeats == 0).count();
    let dropped = ends.iter().filter(|r| r.end.status != 200).count();
    let longest = stops.iter().map(|(_, took)| took.as_millis()).max().unwrap_or(0);
    eprintln!(
        "graceful: {} sales over {STOPS} stops; {} under way at a stop, {at_once} of them ended by it and {} by a repeat; dropped \
         {dropped}; longest stop {longest} ms",
        ends.len(),
        under_way.len(),
        under_way.len() - at_once
    );
    let faults = find_faults(&database.pool, &market.history, &facilitator.entries()).await;
    assert!(faults.is_empty() && dropped == 0, "{dropped} dropped; {faults:#?}");
    assert!(at_once > 0, "nothing was under way");
    assert_eq!(facilitator.moved(), ends.len());
}

//! The private cluster is killed under load, all its processes at once: jim starts it again, and no sale is lost or made twice.

use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use futures_util::future::join_all;
use jim::postgres::{Cluster, DATABASE, Options};
use rustix::process::{Pid, Signal, kill_process};
use sqlx::postgres::PgPoolOptions;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::books::Facilitator;
use super::buyer::{self, Seed};
use super::check::find_faults;
use super::market::Market;
use super::process::Site;

/// Buyers who buy one memo after the other.
const BUYERS: usize = 32;

/// Pause of a buyer before he sends again.
const PAUSE: Duration = Duration::from_millis(100);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_database_that_is_killed_comes_back_and_loses_no_sale() {
    let _turn = super::TURN.lock().await;
    let seed = Seed::read("database");
    let long = std::env::var("JIM_TEST_LONG").is_ok_and(|on| on == "1");
    let (kills, apart) = if long { (10, Duration::from_secs(28)) } else { (2, Duration::from_secs(9)) };
    let folder = open_folder();
    let facilitator = Facilitator::start(Duration::from_millis(20)).await;
    let site = Site { folder: folder.path().to_owned(), database_url: None, facilitator_url: Some(facilitator.url()) };
    let client = buyer::client();
    let mut jim = site.start(&client, "jim", &[]).await;
    let market = Market::open(client, vec![jim.url.clone()]).await;
    let options =
        Options { data_dir: folder.path().to_owned(), postgres_bin: None, allow_download: false, durable: true };
    let cluster = Cluster::start(options, CancellationToken::new()).await.expect("joined");
    assert!(!cluster.owns(), "it is the service's own");
    let over = Arc::new(AtomicBool::new(false));
    let next = Arc::new(AtomicUsize::new(0));
    let buyers: Vec<_> = (0..BUYERS)
        .map(|_| {
            let (market, over, next) = (market.clone(), Arc::clone(&over), Arc::clone(&next));
            tokio::spawn(async move {
                let mut ends = Vec::new();
                while !over.load(Ordering::SeqCst) {
                    let payment = seed.sign(&market.offer, next.fetch_add(1, Ordering::SeqCst), 0);
                    ends.push(market.resolve(&payment, PAUSE).await);
                }
                ends
            })
        })
        .collect();
    let mut killed = Vec::new();
    for number in 0..kills {
        let early = Duration::from_millis(seed.number(&format!("kill {number}")) % 2_000);
        tokio::time::sleep(apart - early).await;
        killed.push(Instant::now());
        let processes = kill_all(&cluster.describe().data_dir);
        assert!(processes > 1, "only {processes} processes were there");
    }
    tokio::time::sleep(apart).await;
    over.store(true, Ordering::SeqCst);
    let ends: Vec<_> = join_all(buyers).await.into_iter().flat_map(|buyer| buyer.expect("no panic")).collect();
    // back is when a purchase that began after the kill is delivered
    let recovery: Vec<f64> = killed
        .iter()
        .map(|kill| {
            let back = ends.iter().filter(|r| r.begun > *kill && r.end.status == 200).map(|r| r.done).min();
            back.map_or(f64::NAN, |back| back.duration_since(*kill).as_secs_f64())
        })
        .collect();
    let told = market.history.exchanges();
    let errors = told.iter().filter(|x| x.status != 200).count();
    let unsold = ends.iter().filter(|r| r.end.status != 200).count();
    let recovered: Vec<String> = recovery.iter().map(|s| format!("{s:.1}")).collect();
    eprintln!(
        "database: {} sales by {BUYERS} buyers, {kills} kills of the whole cluster; seconds to the first new sale: {}; {errors} of {} \
         answers said \"come again\"; unsold {unsold}",
        ends.len(),
        recovered.join(" "),
        told.len()
    );
    let pool = PgPoolOptions::new().connect_with(cluster.connect_options(DATABASE)).await.expect("a pool");
    let faults = find_faults(&pool, &market.history, &facilitator.entries()).await;
    pool.close().await;
    assert!(faults.is_empty() && unsold == 0, "{unsold} unsold; {faults:#?}\n{}", jim.tail());
    assert_eq!(facilitator.moved(), ends.len(), "each purchase was charged once");
    assert!(recovery.iter().all(|s| *s < 30.0), "{recovery:?}");
    assert!(jim.stop().await.success(), "{}", jim.tail());
}

/// A folder that the server's user may pass through, when the test runs as root.
fn open_folder() -> TempDir {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::Builder::new().prefix("jim-faults-").tempdir().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("opened");
    folder
}

/// Kills the postmaster and all its children at one moment; how many that were.
fn kill_all(cluster: &Path) -> usize {
    let text = fs::read_to_string(cluster.join("postmaster.pid")).expect("a pid file");
    let postmaster: i32 = text.lines().next().and_then(|line| line.trim().parse().ok()).expect("a process id");
    let children = fs::read_dir("/proc").expect("processes").flatten().filter_map(|entry| {
        let id: i32 = entry.file_name().to_str()?.parse().ok()?;
        let stat = fs::read_to_string(entry.path().join("stat")).ok()?;
        // the name in brackets may hold spaces; the parent is the second field after it
        let parent: i32 = stat.rsplit_once(") ")?.1.split(' ').nth(1)?.parse().ok()?;
        (parent == postmaster).then_some(id)
    });
    let all: Vec<i32> = std::iter::once(postmaster).chain(children).collect();
    for id in &all {
        if let Some(pid) = Pid::from_raw(*id) {
            // one that ended by itself meanwhile is what is wanted
            let _ = kill_process(pid, Signal::KILL);
        }
    }
    all.len()
}

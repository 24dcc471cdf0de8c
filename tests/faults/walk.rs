//! Every fault point, with `kill -9` and with a panic: the buyer repeats the same payment, and all views agree at the end.
//!
//! A first run of each scenario without a fault says which points it reaches, and how often; then each of them is armed once. Time
//! does what time would do in a few seconds: a dead process's heartbeat stops at once, and a lease that a panic left behind is
//! counted and then ended.

use std::any::Any;
use std::collections::{BTreeMap, BTreeSet};
use std::panic::AssertUnwindSafe;
use std::path::Path;
use std::time::{Duration, Instant};

use futures_util::{FutureExt, StreamExt};
use sqlx::PgPool;
use tempfile::TempDir;

use super::books::{Entries, Entry, Facilitator, Twist};
use super::buyer::{self, Payment, Seed};
use super::check::find_faults;
use super::history::Exchange;
use super::market::{Market, middle_and_longest};
use super::process::{Jim, Site};
use super::support::database::{TestDatabase, fresh_database};

/// Pause of a buyer before he sends again: shorter than he is asked for, to be quick.
const PAUSE: Duration = Duration::from_millis(20);

/// How long one case may take until its payment has come to its end.
const CASE_WAIT: Duration = Duration::from_secs(40);

/// Cases at one time.
const AT_ONCE: usize = 4;

/// What happens besides the fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Scenario {
    Sale,
    OtherPayer,
    VerifyFails,
    VerifyCut,
    SettleCut,
    HungUp,
    SignedAgain,
    Simulated,
}

/// Each scenario with the points between which it differs from the others; what comes before and after is walked in those.
const SCENARIOS: [(Scenario, &str, &str); 8] = [
    (Scenario::Sale, "before-claim", "after-record"),
    (Scenario::OtherPayer, "before-decide", "after-decide"),
    (Scenario::VerifyFails, "before-decide", "after-decide"),
    (Scenario::VerifyCut, "before-give-back", "before-decide"),
    (Scenario::SettleCut, "before-record", "after-record"),
    (Scenario::HungUp, "before-decide", "before-settle"),
    (Scenario::SignedAgain, "before-take-over", "before-settle"),
    (Scenario::Simulated, "before-execute", "after-settle"),
];

/// One case that was walked.
struct Walked {
    scenario: Scenario,
    fault: String,
    end: String,
    restarts: u32,
    leases_ended: u64,
    unresolved_for: Duration,
}

/// One world: a database, a facilitator, and the process that runs now.
struct World {
    database: TestDatabase,
    facilitator: Facilitator,
    _folder: TempDir,
    site: Site,
    market: Market,
    jim: Jim,
    fault: String,
    restarts: u32,
    leases_ended: u64,
    /// The payments of the purchase, as they were signed.
    signed: Vec<Payment>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_fault_point_by_kill_and_by_panic() {
    let _turn = super::TURN.lock().await;
    let seed = Seed::read("walk");
    let begun = Instant::now();
    let mut cases = Vec::new();
    for (scenario, from, to) in SCENARIOS {
        let points = list_points(scenario, seed).await;
        let first = points.iter().position(|(point, _)| point == from);
        let first = first.unwrap_or_else(|| panic!("{scenario:?} never reaches {from}: {points:?}"));
        let last = points.iter().rposition(|(point, _)| point == to);
        let last = last.unwrap_or_else(|| panic!("{scenario:?} never reaches {to}: {points:?}"));
        for (point, nth) in points.into_iter().take(last + 1).skip(first) {
            cases.extend(["kill", "panic"].map(|action| (scenario, format!("{point}={action}@{nth}"))));
        }
    }
    let all = cases.len();
    let running = futures_util::stream::iter(cases).map(|(scenario, fault)| async move {
        let name = format!("{scenario:?} {fault}");
        // one that panics does not hide the others
        let walked = AssertUnwindSafe(run_case(scenario, fault, seed)).catch_unwind().await;
        walked.unwrap_or_else(|panic| Err(format!("{name}: {}", text_of(panic.as_ref()))))
    });
    let walked: Vec<Result<Walked, String>> = running.buffered(AT_ONCE).collect().await;
    let (good, bad): (Vec<_>, Vec<_>) = walked.into_iter().partition(Result::is_ok);
    let good: Vec<Walked> = good.into_iter().flatten().collect();
    for w in &good {
        let (times, ms) = (w.leases_ended, w.unresolved_for.as_millis());
        eprintln!(
            "{:12} {:30} {:22} restarts {} leases ended {times} {ms} ms",
            format!("{:?}", w.scenario),
            w.fault,
            w.end,
            w.restarts
        );
    }
    let (middle, longest) = middle_and_longest(good.iter().map(|w| w.unresolved_for).collect());
    let points: BTreeSet<&str> = good.iter().filter_map(|w| w.fault.split('=').next()).collect();
    let leases = good.iter().filter(|w| w.leases_ended > 0).count();
    eprintln!(
        "walk: {} of {all} cases hold over {} points; time to resolve p50 {middle} ms, max {longest} ms; {leases} waited for a lease; \
         {:.0} s in all",
        good.len(),
        points.len(),
        begun.elapsed().as_secs_f64()
    );
    let bad: Vec<String> = bad.into_iter().filter_map(Result::err).collect();
    assert!(bad.is_empty(), "{} cases broke:\n{}", bad.len(), bad.join("\n"));
}

/// The points that a scenario reaches, in their order, each with how often it was reached by then.
async fn list_points(scenario: Scenario, seed: Seed) -> Vec<(String, usize)> {
    let folder = TempDir::new().expect("a folder");
    let log = folder.path().join("points");
    let mut world = World::begin(scenario, String::new(), &[("JIM_TEST_FAULT_LOG", log.to_str().expect("text"))]).await;
    let (end, _) = world.play(scenario, seed).await;
    check_end(scenario, &end).expect("it ends as it should without a fault");
    read_points(&log)
}

fn text_of(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().cloned();
    text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned())).unwrap_or_default()
}

fn read_points(log: &Path) -> Vec<(String, usize)> {
    let text = std::fs::read_to_string(log).expect("points are logged: the program has the feature fault-points");
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let mut count = |point| {
        let nth = counts.entry(point).or_default();
        *nth += 1;
        *nth
    };
    text.lines().map(|point| (point.to_owned(), count(point))).collect()
}

async fn run_case(scenario: Scenario, fault: String, seed: Seed) -> Result<Walked, String> {
    let mut world = World::begin(scenario, fault.clone(), &[("JIM_TEST_FAULT", &fault)]).await;
    let name = format!("{scenario:?} {fault}");
    let (end, unresolved_for) = world.play(scenario, seed).await;
    let mut faults = Vec::new();
    faults.extend(check_end(scenario, &end).err());
    let point = fault.split('=').next().unwrap_or_default();
    match fault.contains("=kill") {
        true if world.restarts != 1 => faults.push(format!("{} restarts", world.restarts)),
        false if world.restarts != 0 => faults.push("a panic ended the process".to_owned()),
        false if !world.jim.has_logged(&format!("fault point {point}")) => faults.push("it was not reached".to_owned()),
        true | false => {}
    }
    faults.extend(world.check_after(&end, seed).await);
    if !faults.is_empty() {
        let told: Vec<String> = world.market.history.exchanges().iter().map(show).collect();
        return Err(format!("{name}: {}\n  told: {}\n{}", faults.join("; "), told.join(", "), world.jim.tail()));
    }
    let end = format!("{} {}", end.status, if end.code.is_empty() { "-" } else { &end.code });
    let World { restarts, leases_ended, .. } = world;
    Ok(Walked { scenario, fault, end, restarts, leases_ended, unresolved_for })
}

fn show(x: &Exchange) -> String {
    format!("{} {} {:?}", x.status, x.code, x.charged)
}

fn check_end(scenario: Scenario, end: &Exchange) -> Result<(), String> {
    let wanted = match scenario {
        Scenario::OtherPayer => end.status == 502 || end.status == 500,
        Scenario::VerifyFails => end.status == 402,
        _ => end.status == 200,
    };
    if wanted { Ok(()) } else { Err(format!("ended with {}: {}", show(end), String::from_utf8_lossy(&end.body))) }
}

impl World {
    async fn begin(scenario: Scenario, fault: String, variables: &[(&str, &str)]) -> Self {
        let database = fresh_database().await;
        let facilitator = Facilitator::start(Duration::from_millis(1)).await;
        let folder = TempDir::new().expect("a folder");
        let simulated = scenario == Scenario::Simulated;
        let site = Site {
            folder: folder.path().to_owned(),
            database_url: Some(database.url()),
            facilitator_url: (!simulated).then(|| facilitator.url()),
        };
        let client = buyer::client();
        let jim = site.start(&client, "jim", variables).await;
        let market = Market::open(client, vec![jim.url.clone()]).await;
        Self {
            database,
            facilitator,
            _folder: folder,
            site,
            market,
            jim,
            fault,
            restarts: 0,
            leases_ended: 0,
            signed: Vec::new(),
        }
    }

    /// Plays a scenario to the end of its payment; how long that took since the first sign of trouble.
    async fn play(&mut self, scenario: Scenario, seed: Seed) -> (Exchange, Duration) {
        let first = seed.sign(&self.market.offer, 1, 1);
        self.signed.push(first.clone());
        match scenario {
            Scenario::Sale | Scenario::Simulated => self.resolve(&first).await,
            Scenario::OtherPayer => self.resolve_with(Twist::OtherPayer, &first).await,
            Scenario::VerifyFails => self.resolve_with(Twist::Invalid, &first).await,
            Scenario::VerifyCut => self.resolve_with(Twist::CutVerify, &first).await,
            Scenario::SettleCut => self.resolve_with(Twist::CutSettle, &first).await,
            Scenario::HungUp => {
                self.hang_up(&first).await;
                self.resolve(&first).await
            }
            Scenario::SignedAgain => {
                self.hang_up(&first).await;
                let second = seed.sign(&self.market.offer, 1, 2);
                self.signed.push(second.clone());
                self.resolve(&second).await
            }
        }
    }

    async fn resolve_with(&mut self, twist: Twist, payment: &Payment) -> (Exchange, Duration) {
        self.facilitator.twist(Some(twist));
        self.resolve(payment).await
    }

    /// Sends a payment whose buyer hangs up while it is verified, and waits until the answer is stored or the process has failed.
    async fn hang_up(&mut self, payment: &Payment) {
        self.facilitator.hold(true);
        let (market, copy, url) = (self.market.clone(), payment.clone(), self.jim.url.clone());
        let sending = tokio::spawn(async move { buyer::send(&market.client, &url, &copy).await });
        while self.facilitator.verifies() == 0 {
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        sending.abort();
        let _ = sending.await;
        // the server reads the end of the connection
        tokio::time::sleep(Duration::from_millis(50)).await;
        self.facilitator.hold(false);
        let until = Instant::now() + Duration::from_secs(2);
        while Instant::now() < until && !self.jim.is_gone() && !self.jim.has_logged("fault point") {
            if count(&self.database.pool, "select count(*) from payment_states where state = 'ready'").await > 0 {
                // the point after the decision is reached a moment later
                tokio::time::sleep(Duration::from_millis(20)).await;
                return;
            }
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn resolve(&mut self, payment: &Payment) -> (Exchange, Duration) {
        let begun = Instant::now();
        let mut trouble = None;
        loop {
            let url = self.jim.url.clone();
            let answer = self.market.send(&url, payment).await;
            if let Some(end) = answer.as_ref().filter(|end| end.is_final()) {
                return (end.clone(), trouble.map_or(Duration::ZERO, |at: Instant| at.elapsed()));
            }
            trouble.get_or_insert_with(Instant::now);
            assert!(begun.elapsed() < CASE_WAIT, "{} never ended: {answer:?}\n{}", self.fault, self.jim.tail());
            self.mend().await;
            tokio::time::sleep(PAUSE).await;
        }
    }

    /// What a supervisor and time do: a process that is gone is started again, its heartbeat has stopped, and leases lapse.
    async fn mend(&mut self) {
        let pool = &self.database.pool;
        if self.jim.is_gone() {
            sqlx::query("update instances set beat_at = '-infinity'").execute(pool).await.expect("dead");
            self.jim = self.site.start(&self.market.client, "next", &[]).await;
            self.market.move_to(vec![self.jim.url.clone()]);
            self.restarts += 1;
        } else if self.fault.contains("=panic") && self.jim.has_logged("fault point") {
            let claims = "update claims set lease_until = now() where lease_until > now() and payment_id in \
                          (select payment_id from payment_states where state = 'claimed')";
            let attempts = "update settle_attempts set lease_until = now() where lease_until > now() and payment_id in \
                            (select payment_id from payment_states where state = 'settling')";
            for update in [claims, attempts] {
                self.leases_ended += sqlx::query(update).execute(pool).await.expect("an update").rows_affected();
            }
        }
    }

    /// The same payment once more, a purchase of somebody else, and all three views.
    async fn check_after(&mut self, end: &Exchange, seed: Seed) -> Vec<String> {
        let mut faults = Vec::new();
        let url = self.jim.url.clone();
        // the other authorization of a purchase that was signed twice is answered from the same memo
        for payment in self.signed.iter().rev() {
            let again = self.market.send(&url, payment).await;
            let again = again.map(|x| (x.status, x.body));
            let same = again
                .as_ref()
                .is_some_and(|(status, body)| *status == end.status && (end.status != 200 || *body == end.body));
            if !same {
                let again = again.map(|(status, body)| format!("{status} {}", String::from_utf8_lossy(&body)));
                faults.push(format!("G2: {}, sent again, got {again:?}", payment.nonce));
            }
        }
        self.facilitator.twist(None);
        match self.market.send(&url, &seed.sign(&self.market.offer, 2, 1)).await {
            Some(fresh) if fresh.status == 200 => {}
            other => faults.push(format!("I9: a fresh purchase got {:?}", other.as_ref().map(show))),
        }
        let books = match self.site.facilitator_url {
            Some(_) => self.facilitator.entries(),
            None => simulated_entries(&self.database.pool).await,
        };
        faults.extend(find_faults(&self.database.pool, &self.market.history, &books).await);
        let open = "select count(*) from payment_states where state in ('claimed', 'settling', 'unknown')";
        if count(&self.database.pool, open).await > 0 {
            faults.push("I2: a payment is still open".to_owned());
        }
        faults
    }
}

async fn count(pool: &PgPool, query: &'static str) -> i64 {
    sqlx::query_scalar(query).fetch_one(pool).await.expect("a count")
}

/// The books of the facilitator in process, which are rows of their own.
async fn simulated_entries(pool: &PgPool) -> Entries {
    let nonces: Vec<String> = sqlx::query_scalar("select '0x' || encode(nonce, 'hex') from sim_transfers")
        .fetch_all(pool)
        .await
        .expect("rows");
    nonces.into_iter().map(|nonce| (nonce, Entry { began: None, calls: 1, moved: true })).collect()
}

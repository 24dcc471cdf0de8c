//! The service as buyers meet it: 402s and paid answers a second, what they cost, and how long a start takes.
//!
//! `cargo bench --bench service -- [unpaid] [paid] [start]`. Everything is on loopback and shares this machine: read ratios
//! within a round, and processor time a request, rather than rates. Nothing is asserted about time. Rounds are interleaved,
//! so that all sellers meet the same neighbours. `BENCH_CONNECTIONS` (`32`; a list such as `1,8,32,128`), `BENCH_ROUNDS` (3),
//! `BENCH_CELL_S` (3), `BENCH_PEERS=1` to build the x402-axum seller, `BENCH_ALONE=1` to leave the peers out, `X402_KIT_CACHE`
//! for npm packages.

#![expect(clippy::print_stdout, reason = "a benchmark reports on its standard output")]

mod load;
mod payments;
mod process;
mod report;
mod sellers;
mod stub;
mod wire;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use load::Requests;
use report::Cell;
use sellers::Seller;

/// Load before the first round that is not counted: connections, caches and a JIT warm up.
const WARM_UP: Duration = Duration::from_secs(1);

/// Starts of each kind that are timed.
const STARTS: usize = 3;

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| !arg.starts_with('-')).collect();
    let wanted = |measure: &str| args.is_empty() || args.iter().any(|arg| measure == arg);
    let logs = tempfile::tempdir().expect("a folder for logs");
    println!("load average {:.2}", process::load_average());
    if wanted("start") {
        time_starts(logs.path());
    }
    if !wanted("unpaid") && !wanted("paid") {
        return;
    }
    let facilitator = stub::start();
    let sellers = open(facilitator, logs.path());
    let mut cells = Vec::new();
    for round in 0..=number_of("BENCH_ROUNDS", 3) {
        for connections in connections() {
            for seller in &sellers {
                if wanted("unpaid") {
                    cells.extend(unpaid(seller, connections, round));
                }
                if wanted("paid") {
                    cells.extend(paid(seller, connections, round));
                }
            }
        }
    }
    cells.sort_by_key(|cell| std::cmp::Reverse(cell.measure));
    report::table(&cells);
}

fn open(facilitator: SocketAddr, logs: &Path) -> Vec<Seller> {
    let mut sellers = vec![Seller::jim(facilitator, logs)];
    if std::env::var_os("BENCH_ALONE").is_none() {
        sellers.extend(Seller::express(facilitator, logs));
        sellers.extend(Seller::x402_axum(facilitator, logs));
    }
    sellers
}

/// Requests without a payment. Round 0 warms up.
fn unpaid(seller: &Seller, connections: usize, round: usize) -> Option<Cell> {
    let requests = Requests::Same(Arc::new(wire::get(seller.target, "")));
    measure(("unpaid", connections, round), seller, &requests, 402)
}

/// Requests that each carry a payment of their own, signed before the cell.
fn paid(seller: &Seller, connections: usize, round: usize) -> Option<Cell> {
    let length = if round == 0 { WARM_UP } else { cell_length() };
    let count = seller.payments_per_s * usize::try_from(length.as_secs()).unwrap_or(1);
    let requests = Requests::Each(Arc::new(payments::sign(seller.address, seller.target, count)));
    measure(("paid", connections, round), seller, &requests, 200)
}

fn measure(
    (name, connections, round): (&'static str, usize, usize),
    seller: &Seller,
    requests: &Requests,
    wanted: u16,
) -> Option<Cell> {
    if round == 0 {
        load::run(seller.address, connections, requests, WARM_UP);
        return None;
    }
    let before = seller.usage();
    let answers = load::run(seller.address, connections, requests, cell_length());
    Some(Cell::new((name, connections, seller.name, round), &answers, wanted, (before, seller.usage())))
}

/// How many connections are kept, one cell for each.
fn connections() -> Vec<usize> {
    let list = std::env::var("BENCH_CONNECTIONS").unwrap_or_else(|_| "32".to_owned());
    list.split(',').map(|number| number.trim().parse().expect("BENCH_CONNECTIONS is a list of numbers")).collect()
}

fn time_starts(logs: &Path) {
    let (mut fresh, mut again, mut resident) = (Vec::new(), Vec::new(), Vec::new());
    for round in 1..=STARTS {
        let folder = sellers::data_folder();
        for (kind, times) in [("fresh", &mut fresh), ("existing", &mut again)] {
            let start = sellers::time_start(folder.path(), logs);
            let (seconds, mib) = (start.first_answer.as_secs_f64(), start.resident_kib as f64 / 1024.0);
            let line = serde_json::json!({
                "measure": "start", "folder": kind, "round": round, "first_answer_s": seconds, "idle_rss_mib": mib,
                "load": process::load_average(),
            });
            println!("{line}");
            times.push(seconds);
            resident.push(mib);
        }
    }
    println!(
        "start to first answer: fresh folder {:.2} s, existing folder {:.2} s; idle {:.1} MiB (medians)",
        report::median(fresh),
        report::median(again),
        report::median(resident),
    );
}

fn cell_length() -> Duration {
    Duration::from_secs(number_of("BENCH_CELL_S", 3) as u64)
}

fn number_of(name: &str, fallback: usize) -> usize {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(fallback)
}

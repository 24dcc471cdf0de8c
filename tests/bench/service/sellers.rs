//! The sellers: jim, and where they are installed two others that keep nothing on disk and check no signature.

use std::fs;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use super::process::{self, Cpu, Running, free_port, is_installed};
use super::wire;

/// How long a seller may take to answer for the first time.
const READY_WAIT: Duration = Duration::from_secs(180);

/// Time between two looks whether somebody listens already.
const LOOK_EVERY: Duration = Duration::from_millis(2);

/// Where our buyers' money goes: nobody's test address.
const PAY_TO: &str = "0x3C44CdDdB6a900fa2b585dd299e03d12FA4293BC";

/// A running seller. The process is the first field: it must have ended before its folder goes.
pub(crate) struct Seller {
    process: Running,
    /// Short name for the table.
    pub(crate) name: &'static str,
    /// Where it listens.
    pub(crate) address: SocketAddr,
    /// Path and query of the route that it sells.
    pub(crate) target: &'static str,
    /// Payments a second that are signed for one cell: more than it can serve.
    pub(crate) payments_per_s: usize,
    folder: Option<TempDir>,
}

impl Seller {
    /// jim with its journal on, recorded filings, and no bound on the rate.
    pub(crate) fn jim(facilitator: SocketAddr, logs: &Path) -> Self {
        let folder = data_folder();
        let (process, address) = serve(folder.path(), Some(facilitator), logs);
        let mut jim = Self {
            process,
            name: "jim",
            address,
            target: "/research/fundamentals?ticker=COIN",
            payments_per_s: 6_000,
            folder: Some(folder),
        };
        jim.wait_for("/ready", 200);
        jim
    }

    /// The kit's seller on @x402/express; None, with a notice, when it cannot run here.
    pub(crate) fn express(facilitator: SocketAddr, logs: &Path) -> Option<Self> {
        if !is_installed("node") {
            println!("notice: no node on this machine, @x402/express is left out");
            return None;
        }
        let kit = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/chain/kit");
        let cache = std::env::var_os("X402_KIT_CACHE")
            .map_or_else(|| Path::new(env!("CARGO_TARGET_TMPDIR")).join("x402-kit"), PathBuf::from);
        let install =
            Command::new("bash").arg(kit.join("devnet.sh")).arg("install").env("X402_KIT_CACHE", &cache).output();
        if !install.is_ok_and(|out| out.status.success()) {
            println!("notice: the kit's npm packages cannot be installed, @x402/express is left out");
            return None;
        }
        let mut command = Command::new("node");
        command.arg(kit.join("seller-express.cjs")).env("NODE_PATH", cache.join("node_modules")).env("NO_UPTO", "1");
        Some(Self::peer("express", command, facilitator, 2_000, logs))
    }

    /// The seller on x402-axum in `peers/`; None, with a notice, unless it was built.
    pub(crate) fn x402_axum(facilitator: SocketAddr, logs: &Path) -> Option<Self> {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("peers");
        let manifest = "tests/bench/peers/x402-axum/Cargo.toml";
        if std::env::var_os("BENCH_PEERS").is_some() {
            let mut build = Command::new(env!("CARGO"));
            build.args(["build", "--release", "--manifest-path"]);
            build.arg(Path::new(env!("CARGO_MANIFEST_DIR")).join(manifest)).env("CARGO_TARGET_DIR", &folder);
            if !build.status().is_ok_and(|status| status.success()) {
                println!("notice: {manifest} does not build");
            }
        }
        let program = folder.join("release/peer-x402-axum");
        if !program.exists() {
            println!("notice: x402-axum is left out; BENCH_PEERS=1 builds it (some minutes)");
            return None;
        }
        Some(Self::peer("x402-axum", Command::new(program), facilitator, 20_000, logs))
    }

    fn peer(
        name: &'static str,
        mut command: Command,
        facilitator: SocketAddr,
        payments_per_s: usize,
        logs: &Path,
    ) -> Self {
        let port = free_port();
        command.env("PORT", port.to_string()).env("FACILITATOR_URL", format!("http://{facilitator}"));
        let process = Running::start(name, logs, &mut command);
        let address = SocketAddr::from(([127, 0, 0, 1], port));
        let mut peer = Self { process, name, address, target: "/memo", payments_per_s, folder: None };
        peer.wait_for("/memo", 402);
        peer
    }

    fn wait_for(&mut self, target: &str, wanted: u16) {
        let until = Instant::now() + READY_WAIT;
        while wire::ask(self.address, &wire::get(target, "")).map_or(0, |(status, _)| status) != wanted {
            self.process.assert_alive();
            assert!(Instant::now() < until, "{} does not answer {wanted} on {target}", self.name);
            thread::sleep(LOOK_EVERY);
        }
    }

    /// What it has used until now.
    pub(crate) fn usage(&self) -> Usage {
        let commits = self.folder.as_ref().map_or(0, |folder| process::commits(folder.path()));
        Usage { cpu: self.process.cpu(), commits }
    }
}

/// What a seller has used.
pub(crate) struct Usage {
    /// Processor time.
    pub(crate) cpu: Cpu,
    /// Commits of its database; none where nothing is kept.
    pub(crate) commits: u64,
}

/// A start that was timed.
pub(crate) struct Start {
    /// Until the first answer.
    pub(crate) first_answer: Duration,
    /// Resident memory of the idle process after a second, in KiB.
    pub(crate) resident_kib: u64,
}

/// Starts `jim serve` over a data folder with everything at its default, asks it once, lets it idle, and ends it.
pub(crate) fn time_start(folder: &Path, logs: &Path) -> Start {
    let begun = Instant::now();
    let (mut process, address) = serve(folder, None, logs);
    let request = wire::get("/health", "");
    // the listener is bound before the database starts: from then on the request waits in its queue
    while wire::ask(address, &request).map_or(0, |(status, _)| status) != 200 {
        process.assert_alive();
        assert!(begun.elapsed() < READY_WAIT, "no answer in {READY_WAIT:?}");
        thread::sleep(LOOK_EVERY);
    }
    let first_answer = begun.elapsed();
    thread::sleep(Duration::from_secs(1));
    Start { first_answer, resident_kib: process.resident_kib() }
}

/// A folder that a root's jim may use: it runs Postgres as another user, who must be able to walk in.
pub(crate) fn data_folder() -> TempDir {
    let folder = TempDir::new().expect("a folder");
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
    folder
}

fn serve(folder: &Path, facilitator: Option<SocketAddr>, logs: &Path) -> (Running, SocketAddr) {
    let address = SocketAddr::from(([127, 0, 0, 1], free_port()));
    let mut command = Command::new(env!("CARGO_BIN_EXE_jim"));
    command
        .arg("serve")
        .env("JIM_LISTEN", address.to_string())
        .env("JIM_OPERATOR_LISTEN", format!("127.0.0.1:{}", free_port()))
        .env("JIM_DATA_DIR", folder.join("data"))
        .env("JIM_FILINGS__SOURCE", "sample")
        .env("JIM_LIMITS__RATE_PER_MINUTE", "0");
    if let Some(facilitator) = facilitator {
        command
            .env("JIM_PAYMENTS__FACILITATOR_URL", format!("http://{facilitator}"))
            .env("JIM_PAYMENTS__PAY_TO", PAY_TO);
    }
    (Running::start("jim", logs, &mut command), address)
}

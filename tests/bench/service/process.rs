//! Child processes that end with their owner, and what the kernel says about their use of the machine.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use sqlx::ConnectOptions;
use sqlx::postgres::PgConnectOptions;

/// How long a child may take to end by itself: jim drains and stops its cluster.
const END_WAIT: Duration = Duration::from_secs(30);

/// Time between two looks at a child that is ending.
const LOOK_EVERY: Duration = Duration::from_millis(5);

/// Microseconds of one tick in `/proc/PID/stat`: Linux shows user space 100 ticks a second on every machine.
const TICK_US: u64 = 10_000;

/// A child process. Dropping it asks it to end, and kills it when it does not.
pub(crate) struct Running {
    name: &'static str,
    child: Child,
    log: PathBuf,
}

/// Processor time used so far, in microseconds.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Cpu {
    /// Of the process itself.
    pub(crate) own_us: u64,
    /// Of its children, theirs, and those that have ended: for jim the database cluster.
    pub(crate) below_us: u64,
}

impl Running {
    /// Starts a command with its output in a file of `folder`.
    pub(crate) fn start(name: &'static str, folder: &Path, command: &mut Command) -> Self {
        let log = folder.join(format!("{name}.log"));
        let out = File::create(&log).expect("a log file");
        let err = out.try_clone().expect("the same file");
        let child = command.stdin(Stdio::null()).stdout(out).stderr(err).spawn();
        let child = child.unwrap_or_else(|error| panic!("{name} does not start: {error}"));
        Self { name, child, log }
    }

    /// Panics with the end of its log when the process has ended.
    pub(crate) fn assert_alive(&mut self) {
        if let Some(status) = self.child.try_wait().expect("a status") {
            let text = fs::read_to_string(&self.log).unwrap_or_default();
            let lines: Vec<&str> = text.lines().collect();
            panic!("{} ended with {status}:\n{}", self.name, lines[lines.len().saturating_sub(20)..].join("\n"));
        }
    }

    /// Processor time used until now.
    pub(crate) fn cpu(&self) -> Cpu {
        let all = every_process();
        let root = self.child.id();
        let mut below_us = 0;
        let mut parents = vec![root];
        while let Some(parent) = parents.pop() {
            for stat in all.iter().filter(|stat| stat.parent == parent) {
                below_us += (stat.own + stat.ended) * TICK_US;
                parents.push(stat.id);
            }
        }
        let own = all.iter().find(|stat| stat.id == root).map_or(0, |stat| stat.own);
        Cpu { own_us: own * TICK_US, below_us }
    }

    /// Resident memory of the process itself, in KiB.
    pub(crate) fn resident_kib(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap_or_default();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        line.and_then(|rest| rest.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) {
            let _ = kill_process(pid, Signal::TERM);
        }
        let until = Instant::now() + END_WAIT;
        while Instant::now() < until {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            thread::sleep(LOOK_EVERY);
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What one line of `/proc/PID/stat` says: ticks of user and system time together.
struct Stat {
    id: u32,
    parent: u32,
    own: u64,
    ended: u64,
}

fn every_process() -> Vec<Stat> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok()).filter_map(stat_of).collect()
}

fn stat_of(id: u32) -> Option<Stat> {
    let text = fs::read_to_string(format!("/proc/{id}/stat")).ok()?;
    // the second field is the name in brackets, which may hold spaces
    let rest: Vec<&str> = text.rsplit_once(") ")?.1.split(' ').collect();
    let number = |at: usize| rest.get(at)?.parse::<u64>().ok();
    Some(Stat {
        id,
        parent: u32::try_from(number(1)?).ok()?,
        own: number(11)? + number(12)?,
        ended: number(13)? + number(14)?,
    })
}

/// Commits of the private cluster in a data folder, as its own statistics count them.
pub(crate) fn commits(data_folder: &Path) -> u64 {
    let pid_file = fs::read_to_string(data_folder.join("data/postgres/postmaster.pid")).expect("a running cluster");
    let line = |at: usize| pid_file.lines().nth(at).expect("a whole pid file").trim();
    let options =
        PgConnectOptions::new().socket(line(4)).port(line(3).parse().expect("a port")).username("jim").database("jim");
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    let counted: i64 = runtime.block_on(async {
        let mut connection = options.connect().await.expect("the cluster answers");
        // backends hand their counts in once a second
        tokio::time::sleep(Duration::from_millis(1_200)).await;
        let text = "select xact_commit from pg_stat_database where datname = current_database()";
        sqlx::query_scalar(text).fetch_one(&mut connection).await.expect("a count")
    });
    u64::try_from(counted).unwrap_or(0)
}

/// The load average of the last minute.
pub(crate) fn load_average() -> f64 {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').next().and_then(|first| first.parse().ok()).unwrap_or(f64::NAN)
}

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// True when a program is there and answers.
pub(crate) fn is_installed(program: &str) -> bool {
    Command::new(program).arg("--version").stdin(Stdio::null()).output().is_ok_and(|out| out.status.success())
}

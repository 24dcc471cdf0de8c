//! Child processes that end with their owner, free ports, and waiting for a thing to be there.

use std::fs::{self, File};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// How long a child may take to end by itself: jim drains and stops its cluster.
const END_WAIT: Duration = Duration::from_secs(20);

/// Time between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A child process. Dropping it asks it to end, and kills it when it does not.
pub(crate) struct Running {
    name: &'static str,
    child: Child,
    log: PathBuf,
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

    /// Panics with the log when the process has ended already.
    pub(crate) fn assert_alive(&mut self) {
        if let Some(status) = self.child.try_wait().expect("a status") {
            panic!("{} ended with {status}:\n{}", self.name, self.tail());
        }
    }

    /// Whether it has ended.
    pub(crate) fn has_ended(&mut self) -> bool {
        self.child.try_wait().expect("a status").is_some()
    }

    /// The name and the last lines of the log.
    pub(crate) fn tail(&self) -> String {
        let text = fs::read_to_string(&self.log).unwrap_or_default();
        let lines: Vec<&str> = text.lines().collect();
        format!("--- {}\n{}", self.name, lines[lines.len().saturating_sub(20)..].join("\n"))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Ok(pid) = i32::try_from(self.child.id())
            && let Some(pid) = rustix::process::Pid::from_raw(pid)
        {
            let _ = rustix::process::kill_process(pid, rustix::process::Signal::TERM);
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

/// A port that nobody listens on.
pub(crate) fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}

/// True when a program is there and answers.
pub(crate) fn is_installed(program: &str) -> bool {
    let quiet = Command::new(program).arg("--version").stdin(Stdio::null()).output();
    quiet.is_ok_and(|out| out.status.success())
}

/// Looks until something is there; panics after `limit`.
pub(crate) fn wait_for<T>(what: &str, limit: Duration, mut look: impl FnMut() -> Option<T>) -> T {
    let until = Instant::now() + limit;
    loop {
        if let Some(found) = look() {
            return found;
        }
        assert!(Instant::now() < until, "waited {limit:?} for {what}");
        thread::sleep(LOOK_EVERY);
    }
}

/// Runs a command to its end and gives its standard output; panics with everything it said when it fails.
pub(crate) fn output(what: &str, command: &mut Command) -> String {
    let out = command.stdin(Stdio::null()).output().unwrap_or_else(|error| panic!("{what}: {error}"));
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{what}: {}\n{text}\n{}", out.status, String::from_utf8_lossy(&out.stderr));
    text
}

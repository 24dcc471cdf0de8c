//! `jim serve` as a process of its own, with settings from variables only.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{ExitStatus, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process};
use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};

/// How long a start may take: a first start makes a database cluster.
const START_WAIT: Duration = Duration::from_secs(60);

/// What replicas and successors have in common.
#[derive(Clone, Debug)]
pub(crate) struct Site {
    /// Data and keys.
    pub(crate) folder: PathBuf,
    /// None: a private cluster.
    pub(crate) database_url: Option<String>,
    /// None: the simulated one.
    pub(crate) facilitator_url: Option<String>,
}

/// A running process; it is killed with this value.
pub(crate) struct Jim {
    pub(crate) url: String,
    child: Child,
    log: PathBuf,
    _stdout: Lines<BufReader<ChildStdout>>,
}

impl Site {
    /// Starts a process and waits until it can sell. `variables` come on top.
    pub(crate) async fn start(&self, client: &reqwest::Client, name: &str, variables: &[(&str, &str)]) -> Jim {
        let log = self.folder.join(format!("{name}.log"));
        let stderr = File::options().create(true).append(true).open(&log).expect("a log file");
        let mut command = Command::new(env!("CARGO_BIN_EXE_jim"));
        command.arg("serve").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(stderr).kill_on_drop(true);
        command
            .env("JIM_LISTEN", "127.0.0.1:0")
            .env("JIM_OPERATOR_LISTEN", "127.0.0.1:0")
            .env("JIM_PUBLIC_URL", "http://jim.example")
            .env("JIM_DATA_DIR", &self.folder)
            .env("JIM_KEYS_DIR", self.folder.join("keys"))
            .env("JIM_LIMITS__RATE_PER_MINUTE", "0")
            .env("RUST_LOG", "warn")
            .env("RUST_BACKTRACE", "0");
        if let Some(url) = &self.database_url {
            command.env("JIM_DATABASE_URL", url);
        }
        if let Some(url) = &self.facilitator_url {
            command.env("JIM_PAYMENTS__FACILITATOR_URL", url);
        }
        command.envs(variables.iter().copied());
        let mut child = command.spawn().expect("jim starts");
        let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
        let first = tokio::time::timeout(START_WAIT, lines.next_line()).await.expect("it starts in time");
        let Some(line) = first.expect("a line") else { panic!("jim did not start:\n{}", tail(&log)) };
        let url = line.split(' ').find(|word| word.starts_with("http://")).expect("an address").to_owned();
        let jim = Jim { url, child, log, _stdout: lines };
        jim.wait_until_ready(client).await;
        jim
    }
}

impl Jim {
    async fn wait_until_ready(&self, client: &reqwest::Client) {
        let until = Instant::now() + START_WAIT;
        while Instant::now() < until {
            let asked = client.get(format!("{}/ready", self.url)).send().await;
            if asked.is_ok_and(|response| response.status().is_success()) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("not ready:\n{}", self.tail());
    }

    /// True when the process has ended.
    pub(crate) fn is_gone(&mut self) -> bool {
        self.child.try_wait().expect("a status").is_some()
    }

    /// `kill -9`.
    pub(crate) async fn kill(&mut self) {
        self.child.kill().await.expect("killed");
    }

    /// SIGTERM, and the wait for its end.
    pub(crate) async fn stop(&mut self) -> ExitStatus {
        let pid = self.child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw).expect("running");
        kill_process(pid, Signal::TERM).expect("a signal");
        self.child.wait().await.expect("a status")
    }

    /// True when its log has the text.
    pub(crate) fn has_logged(&self, text: &str) -> bool {
        std::fs::read_to_string(&self.log).unwrap_or_default().contains(text)
    }

    /// The end of its log.
    pub(crate) fn tail(&self) -> String {
        tail(&self.log)
    }
}

fn tail(log: &Path) -> String {
    let text = std::fs::read_to_string(log).unwrap_or_default();
    let lines: Vec<&str> = text.lines().collect();
    lines[lines.len().saturating_sub(30)..].join("\n")
}

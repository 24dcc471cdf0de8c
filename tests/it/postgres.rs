//! The private cluster, with the real server binaries of this machine, each test in a data folder of its own.

mod faults;
mod fetch;
mod life;

use std::{
    fs::{self, Permissions},
    io::{BufRead, BufReader},
    os::unix::fs::{PermissionsExt, chown},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

use jim::postgres::{Cluster, Error, Machine, Options};
use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use sqlx::{ConnectOptions, PgConnection};
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

/// Names the data folder to the service process, which is this binary once more.
const SERVICE_DATA: &str = "IT_SERVICE_DATA";

/// A data folder and a machine to start clusters on. Whatever still runs is killed at the end.
struct Bench {
    temp: TempDir,
    machine: Machine,
    options: Options,
}

impl Bench {
    fn new() -> Bench {
        let temp = tempfile::Builder::new().prefix("jim-it-").tempdir().expect("a folder");
        // as root the server is another user, who must get through
        set_mode(temp.path(), 0o755);
        let machine = Machine { system_data: temp.path().join("system"), ..Machine::this() };
        let data_dir = temp.path().join("data");
        let options = Options { data_dir, postgres_bin: None, allow_download: false, durable: false };
        Bench { temp, machine, options }
    }

    fn cluster_folder(&self) -> PathBuf {
        self.options.data_dir.join("postgres")
    }

    async fn start(&self) -> Result<Cluster, Error> {
        self.start_with(CancellationToken::new()).await
    }

    async fn start_with(&self, cancel: CancellationToken) -> Result<Cluster, Error> {
        Cluster::start_on(self.machine.clone(), self.options.clone(), cancel).await
    }

    async fn started(&self) -> Cluster {
        self.start().await.unwrap_or_else(|error| panic!("no cluster: {error}"))
    }

    async fn refused(&self) -> Error {
        match self.start().await {
            Ok(cluster) => panic!("it should not start: {}", cluster.describe()),
            Err(error) => error,
        }
    }

    /// Makes a folder that looks like a cluster of the given major, owned by the server's user.
    fn fake_cluster(&self, major: &str) {
        let folder = self.cluster_folder();
        fs::create_dir_all(&folder).expect("a folder");
        fs::write(folder.join("PG_VERSION"), format!("{major}\n")).expect("a file");
        if is_root() {
            let (uid, gid) = server_account();
            chown(&folder, Some(uid), Some(gid)).expect("given away");
        }
    }

    /// Processes whose command line names this bench's folder.
    fn processes(&self) -> Vec<String> {
        let mark = self.temp.path().to_string_lossy().into_owned();
        let lines = fs::read_dir("/proc").into_iter().flatten().flatten().filter_map(|entry| {
            let _: u32 = entry.file_name().to_str()?.parse().ok()?;
            fs::read_to_string(entry.path().join("cmdline")).ok()
        });
        lines.map(|line| line.replace('\0', " ")).filter(|line| line.contains(&mark)).collect()
    }

    fn entries(&self) -> Vec<String> {
        let mut names: Vec<String> = fs::read_dir(&self.options.data_dir)
            .into_iter()
            .flatten()
            .flatten()
            .map(|entry| entry.file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        names
    }
}

impl Drop for Bench {
    fn drop(&mut self) {
        if let Some(pid) = postmaster(&self.cluster_folder()) {
            let _ = kill_process(pid, Signal::QUIT);
            wait_until("the server is gone", || test_kill_process(pid).is_err());
        }
    }
}

/// The process id in a cluster's pid file.
fn postmaster(cluster: &Path) -> Option<Pid> {
    let text = fs::read_to_string(cluster.join("postmaster.pid")).ok()?;
    Pid::from_raw(text.lines().next()?.parse().ok()?)
}

async fn connect(cluster: &Cluster) -> PgConnection {
    cluster.connect_options("jim").connect().await.expect("a connection")
}

async fn show(connection: &mut PgConnection, setting: &str) -> String {
    sqlx::query_scalar("select current_setting($1)").bind(setting).fetch_one(connection).await.expect("a setting")
}

async fn write_mark(cluster: &Cluster, mark: i32) {
    let mut connection = connect(cluster).await;
    sqlx::query("create table if not exists mark (x int)").execute(&mut connection).await.expect("a table");
    sqlx::query("insert into mark values ($1)").bind(mark).execute(&mut connection).await.expect("a row");
}

async fn marks(cluster: &Cluster) -> Vec<i32> {
    let mut connection = connect(cluster).await;
    sqlx::query_scalar("select x from mark order by x").fetch_all(&mut connection).await.expect("rows")
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// User and group of the account that the server runs as under root.
fn server_account() -> (u32, u32) {
    let passwd = fs::read_to_string("/etc/passwd").expect("the accounts");
    let find = |name: &str| {
        let line = passwd.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        let fields: Vec<&str> = line.split(':').collect();
        Some((fields[2].parse().expect("a number"), fields[3].parse().expect("a number")))
    };
    find("postgres").or_else(|| find("nobody")).expect("an account for the server")
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, Permissions::from_mode(mode)).expect("a mode");
}

fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !done() {
        assert!(begun.elapsed() < Duration::from_secs(20), "waited too long until {what}");
        thread::sleep(Duration::from_millis(20));
    }
}

/// A process that starts the cluster of this bench and then only waits, like the service does.
fn spawn_service(bench: &Bench) -> Child {
    let mut child = Command::new(std::env::current_exe().expect("a path"))
        .args(["--exact", "postgres::service", "--ignored", "--nocapture"])
        .env(SERVICE_DATA, &bench.options.data_dir)
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()
        .expect("the service starts");
    let output = BufReader::new(child.stderr.take().expect("a pipe"));
    let ready = output.lines().map_while(Result::ok).any(|line| line.contains("service is ready"));
    assert!(ready, "the service ended without a cluster");
    child
}

#[tokio::test]
#[ignore = "started by other tests, as a process that can be killed"]
async fn service() {
    let Some(data_dir) = std::env::var_os(SERVICE_DATA) else { return };
    let options = Options { data_dir: data_dir.into(), postgres_bin: None, allow_download: false, durable: false };
    let cluster = Cluster::start(options, CancellationToken::new()).await.expect("a cluster");
    assert!(cluster.owns());
    eprintln!("service is ready");
    std::future::pending::<()>().await;
}

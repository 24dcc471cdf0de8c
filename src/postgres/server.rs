//! The server itself: making a cluster, starting it, asking whether it is there, stopping it.

use std::{
    fs::{self, File},
    os::unix::fs::{DirBuilderExt, chown},
    path::{Path, PathBuf},
    process::Stdio,
    time::Instant,
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use sqlx::{
    ConnectOptions, PgConnection,
    postgres::{PgConnectOptions, PgSslMode},
};
use tokio::{
    process::{Child, Command},
    time::{sleep, timeout},
};
use tokio_util::sync::CancellationToken;

use super::{
    Error,
    account::Account,
    binaries::Binaries,
    command::{Failure, run, server_program},
    place::{PORT, Place, check_socket_folder},
};
use crate::limits::{
    POSTGRES_CONNECT_WAIT, POSTGRES_CONNECTIONS_MAX, POSTGRES_INIT_WAIT, POSTGRES_LOCK_RETRY, POSTGRES_POLL,
    POSTGRES_QUIT_WAIT, POSTGRES_RETRY_PAUSE, POSTGRES_START_WAIT, POSTGRES_STOP_WAIT,
};

/// The cluster's superuser.
pub(super) const USER: &str = "jim";

/// The database of the service inside the cluster.
pub const DATABASE: &str = "jim";

/// The database that every cluster has.
pub(super) const MAINTENANCE: &str = "postgres";

/// A server that accepted a connection.
#[derive(Debug)]
pub(super) struct Running {
    pub(super) socket: PathBuf,
    pid: i32,
    /// Present when this process started it. Boxed because it is large and seldom there.
    child: Option<Box<Child>>,
}

/// What is known about a cluster from the outside.
#[derive(Debug)]
pub(super) enum Probe {
    Live(Running),
    /// It is there and starting, stopping or not ready for this database.
    Busy,
    Absent,
}

/// How the wait for the first connection ended.
enum Wait {
    Ready,
    Ended,
    TooLong,
    Cancelled,
}

/// How to reach a database through the socket in a folder.
pub(super) fn connect_options(socket: &Path, database: &str) -> PgConnectOptions {
    PgConnectOptions::new_without_pgpass()
        .socket(socket)
        .port(PORT)
        .username(USER)
        .database(database)
        .ssl_mode(PgSslMode::Disable)
}

/// Looks for a live cluster: its pid file, then a real connection to `database`.
pub(super) async fn probe(place: &Place, account: &Account, database: &str) -> Result<Probe, Error> {
    let Some((pid, socket)) = read_pid_file(&place.cluster()) else { return Ok(Probe::Absent) };
    if !is_alive(pid) || check_socket_folder(&socket, account).is_err() {
        return Ok(Probe::Absent);
    }
    match connect(&socket, database).await {
        None => Ok(Probe::Busy),
        Some(Ok(_)) => Ok(Probe::Live(Running { socket, pid, child: None })),
        Some(Err(sqlx::Error::Io(_))) => Ok(Probe::Absent),
        Some(Err(error)) if is_not_ready(&error) => Ok(Probe::Busy),
        Some(Err(error)) => Err(error.into()),
    }
}

/// One connection attempt; `None` when it took too long.
pub(super) async fn connect(socket: &Path, database: &str) -> Option<Result<PgConnection, sqlx::Error>> {
    timeout(POSTGRES_CONNECT_WAIT, connect_options(socket, database).connect()).await.ok()
}

/// Makes a cluster under a temporary name and renames it when it is whole: `PG_VERSION` appears early, so a folder in
/// which initdb was interrupted looks like a cluster.
pub(super) async fn init(
    binaries: &Binaries,
    place: &Place,
    account: &Account,
    durable: bool,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    let folder = place.unfinished();
    let outcome = init_and_rename(&folder, binaries, place, account, durable, cancel).await;
    if outcome.is_err() {
        let _ = fs::remove_dir_all(&folder);
    }
    outcome
}

async fn init_and_rename(
    folder: &Path,
    binaries: &Binaries,
    place: &Place,
    account: &Account,
    durable: bool,
    cancel: &CancellationToken,
) -> Result<(), Error> {
    fs::DirBuilder::new().mode(0o700).create(folder).map_err(Error::io("create", folder))?;
    if account.switch {
        chown(folder, Some(account.uid), Some(account.gid)).map_err(Error::io("give away", folder))?;
    }
    let mut initdb = server_program(&binaries.folder.join("initdb"), account);
    // trust: the socket's folder is 0700 and there is no TCP listener
    initdb.args(["--auth=trust", "--data-checksums", "--encoding=UTF8", "--locale=C", "--username", USER]);
    initdb.arg("--pgdata").arg(folder);
    if !durable {
        initdb.arg("--no-sync");
    }
    match run(initdb, POSTGRES_INIT_WAIT, cancel).await {
        Ok(_) => {}
        Err(Failure::Cancelled) => return Err(Error::Cancelled),
        Err(Failure::Failed(output)) => return Err(Error::InitFailed { output }),
    }
    let cluster = place.cluster();
    fs::rename(folder, &cluster).map_err(Error::io("rename the new cluster to", &cluster))?;
    if durable {
        let home = &place.home;
        File::open(home).and_then(|home| home.sync_all()).map_err(Error::io("sync", home))?;
    }
    Ok(())
}

/// Starts the server and waits for its first connection. On any error it is stopped again.
pub(super) async fn launch(
    binaries: &Binaries,
    place: &Place,
    account: &Account,
    socket: PathBuf,
    durable: bool,
    cancel: &CancellationToken,
) -> Result<Running, Error> {
    let log = place.log();
    // one old log is kept; a missing one is no matter
    let _ = fs::rename(&log, log.with_extension("log.1"));
    let begun = Instant::now();
    loop {
        let file = File::options().create(true).append(true).open(&log).map_err(Error::io("open", &log))?;
        let offset = file.metadata().map_or(0, |data| data.len());
        let mut command = server_command(binaries, place, account, &socket, durable);
        command.stdout(Stdio::null()).stderr(file);
        let child = command.spawn().map_err(Error::io("run", binaries.folder.join("postgres")))?;
        let pid = child.id().and_then(|id| i32::try_from(id).ok()).unwrap_or_default();
        let mut running = Running { socket: socket.clone(), pid, child: Some(Box::new(child)) };
        let reason = match wait_until_ready(&mut running, begun, cancel).await? {
            Wait::Ready => return Ok(running),
            Wait::Ended if is_lock_conflict(&place.log_since(offset)) && begun.elapsed() < POSTGRES_LOCK_RETRY => {
                tokio::select! {
                    () = cancel.cancelled() => {
                        let _ = fs::remove_dir(&socket);
                        return Err(Error::Cancelled);
                    }
                    () = sleep(POSTGRES_RETRY_PAUSE) => {}
                }
                match probe(place, account, MAINTENANCE).await? {
                    Probe::Live(found) => return Ok(found),
                    Probe::Busy | Probe::Absent => continue,
                }
            }
            Wait::Ended => {
                let _ = fs::remove_dir(&socket);
                "it ended"
            }
            Wait::TooLong => {
                stop(running, place).await?;
                "no connection was accepted"
            }
            Wait::Cancelled => {
                stop(running, place).await?;
                return Err(Error::Cancelled);
            }
        };
        return Err(Error::NotStarted { reason: reason.to_owned(), log, tail: place.log_tail() });
    }
}

fn server_command(binaries: &Binaries, place: &Place, account: &Account, socket: &Path, durable: bool) -> Command {
    let mut command = server_program(&binaries.folder.join("postgres"), account);
    command.arg("-D").arg(place.cluster()).arg("-k").arg(socket);
    let mut set = |name: &str, value: &str| {
        command.arg("-c").arg(format!("{name}={value}"));
    };
    // no TCP at all: with `trust` the socket's folder is the only door
    set("listen_addresses", "");
    set("port", &PORT.to_string());
    set("unix_socket_permissions", "0700");
    set("max_connections", &POSTGRES_CONNECTIONS_MAX.to_string());
    set("shared_buffers", "128MB");
    // filling a new segment with zeros holds up the commit that needs it, and with it every buyer who waits for the journal
    set("wal_init_zero", "off");
    set("timezone", "UTC");
    set("log_timezone", "UTC");
    set("logging_collector", "off");
    set("log_destination", "stderr");
    let durability = if durable { "on" } else { "off" };
    for name in ["fsync", "synchronous_commit", "full_page_writes"] {
        set(name, durability);
    }
    command
}

async fn wait_until_ready(running: &mut Running, begun: Instant, cancel: &CancellationToken) -> Result<Wait, Error> {
    loop {
        if cancel.is_cancelled() {
            return Ok(Wait::Cancelled);
        }
        if let Some(child) = &mut running.child
            && child.try_wait().map_err(Error::io("wait for", "postgres"))?.is_some()
        {
            return Ok(Wait::Ended);
        }
        if running.socket.join(format!(".s.PGSQL.{PORT}")).exists()
            && let Some(Ok(_)) = connect(&running.socket, MAINTENANCE).await
        {
            return Ok(Wait::Ready);
        }
        if begun.elapsed() > POSTGRES_START_WAIT {
            return Ok(Wait::TooLong);
        }
        sleep(POSTGRES_POLL).await;
    }
}

/// Fast shutdown, then after a while an immediate one; returns when the server is gone.
pub(super) async fn stop(mut running: Running, place: &Place) -> Result<(), Error> {
    for (signal, wait) in [(Signal::INT, POSTGRES_STOP_WAIT), (Signal::QUIT, POSTGRES_QUIT_WAIT)] {
        if let Some(pid) = Pid::from_raw(running.pid) {
            // already gone is what is wanted
            let _ = kill_process(pid, signal);
        }
        if timeout(wait, wait_until_gone(&mut running, place)).await.is_ok() {
            // empty after a clean stop; a left-over file keeps the folder, and the next start uses it again
            let _ = fs::remove_dir(&running.socket);
            return Ok(());
        }
        tracing::warn!(pid = running.pid, "PostgreSQL is slow to stop");
    }
    Err(Error::NotStopped { pid: running.pid })
}

/// For a server that is no child of ours the pid file tells: it goes last, while a process id can stay as a zombie.
async fn wait_until_gone(running: &mut Running, place: &Place) {
    match &mut running.child {
        Some(child) => drop(child.wait().await),
        None => {
            while is_alive(running.pid) && read_pid(&place.cluster()) == Some(running.pid) {
                sleep(POSTGRES_POLL).await;
            }
        }
    }
}

/// Waits until the server ends, whoever ended it. One that is no child of ours is looked at now and then: it runs for months.
pub(super) async fn wait_until_ended(running: &mut Running) {
    match &mut running.child {
        Some(child) => drop(child.wait().await),
        None => {
            while is_alive(running.pid) {
                sleep(POSTGRES_RETRY_PAUSE).await;
            }
        }
    }
}

/// Line 1 is the postmaster's process id, line 5 its socket folder (missing while it starts).
fn read_pid_file(cluster: &Path) -> Option<(i32, PathBuf)> {
    let text = fs::read_to_string(cluster.join("postmaster.pid")).ok()?;
    let socket = text.lines().nth(4).filter(|line| !line.is_empty())?;
    Some((text.lines().next()?.trim().parse().ok()?, PathBuf::from(socket)))
}

fn read_pid(cluster: &Path) -> Option<i32> {
    fs::read_to_string(cluster.join("postmaster.pid")).ok()?.lines().next()?.trim().parse().ok()
}

fn is_alive(pid: i32) -> bool {
    match Pid::from_raw(pid) {
        // not allowed to signal it still means that it is there
        Some(pid) => !matches!(test_kill_process(pid), Err(rustix::io::Errno::SRCH)),
        None => false,
    }
}

/// Starting or stopping (57P03), no free connection (53300), or the database is not made yet (3D000).
fn is_not_ready(error: &sqlx::Error) -> bool {
    let code = error.as_database_error().and_then(|error| error.code());
    code.is_some_and(|code| ["57P03", "53300", "3D000"].contains(&code.as_ref()))
}

/// The two texts with which a server refuses while remains of an earlier one are there.
fn is_lock_conflict(log: &str) -> bool {
    let lock_file = log.contains("lock file \"") && log.contains("already exists");
    lock_file || log.contains("pre-existing shared memory block")
}

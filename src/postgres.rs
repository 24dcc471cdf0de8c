//! The private PostgreSQL cluster: found or fetched, made, started, adopted and stopped by jim itself.
//!
//! It owns everything in the data folder whose name begins with `postgres`, and the folder of the socket. It knows no
//! table: SQL lives in the store, except that a database is created and a version asked for here. It implements the
//! default storage of the design: one private server, reached over a Unix socket only, never as root.
//!
//! Who stops the server: the process that holds the lock on the data folder, whether it started the server or found it
//! running after a crash of its predecessor. Every other process only connects. The lock is held from before the first
//! look until the server is gone, so two first starts cannot both run `initdb`.
//!
//! What a start leaves behind when it fails or is cancelled is a whole cluster or none, and no process.

mod account;
mod binaries;
mod command;
mod error;
mod fetch;
mod machine;
mod place;
mod server;
mod watch;

use std::{fmt, fs, path::PathBuf, time::Instant};

use sqlx::{AssertSqlSafe, Connection, postgres::PgConnectOptions};
use tokio::time::sleep;
use tokio_util::sync::CancellationToken;

use self::{
    account::Account,
    place::{FolderLock, Place},
    server::{MAINTENANCE, Probe, Running},
};
pub use self::{error::Error, machine::Machine, server::DATABASE};
use crate::limits::{POSTGRES_JOIN_WAIT, POSTGRES_RETRY_PAUSE, POSTGRES_START_WAIT};

/// What the operator decides about the private cluster.
#[derive(Clone, Debug)]
pub struct Options {
    /// jim's data folder; made when missing. The cluster is its subfolder `postgres`.
    pub data_dir: PathBuf,
    /// The folder with `initdb` and `postgres`. When set, no other place is looked at and nothing is downloaded.
    pub postgres_bin: Option<PathBuf>,
    /// Whether a pinned archive of server binaries may be downloaded when none are found.
    pub allow_download: bool,
    /// `false` switches off `fsync`, `synchronous_commit` and `full_page_writes`: for tests, where data may be lost.
    pub durable: bool,
}

/// A usable cluster. Dropping the value leaves the server running, for the next start to adopt; see [`Cluster::stop`].
#[derive(Debug)]
pub struct Cluster {
    running: Running,
    place: Place,
    lock: Option<FolderLock>,
    description: Description,
    /// What a server that died is started again with.
    options: Options,
    machine: Machine,
    account: Account,
}

/// What runs, from what, and how this process came to it.
#[derive(Clone, Debug, Eq, PartialEq)]
pub struct Description {
    /// The server's own version text, as in "15.18".
    pub version: String,
    /// The folder of the running server's program; `None` when it left no note of it.
    pub binaries: Option<PathBuf>,
    /// Where the binaries came from.
    pub source: Source,
    /// The cluster's folder.
    pub data_dir: PathBuf,
    /// The folder of the socket.
    pub socket_dir: PathBuf,
    /// How this process came to the server.
    pub origin: Origin,
}

/// Where server binaries come from.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Source {
    /// Named by the operator or found on the machine.
    Found,
    /// Downloaded by jim, digest checked.
    Fetched,
}

/// How a process came to its server.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub enum Origin {
    /// It started the server.
    Started,
    /// The server was running without an owner, and is now this process's to stop.
    Adopted,
    /// Another process owns the server.
    Joined,
}

/// What a process may do with a data folder.
enum Claim {
    Owner(FolderLock),
    Guest(Running),
}

impl Cluster {
    /// Gives a usable cluster for the data folder: adopts or joins a live one, else starts one, else makes one first.
    ///
    /// # Errors
    /// See [`Error`]. After an error or a cancellation no process of ours runs, and the folder holds a whole cluster
    /// or none. Do not drop the future in mid-flight; cancel the token, and it ends within a moment.
    pub async fn start(options: Options, cancel: CancellationToken) -> Result<Cluster, Error> {
        Cluster::start_on(Machine::this(), options, cancel).await
    }

    /// The same on a machine that is described by the caller.
    ///
    /// # Errors
    /// As [`Cluster::start`].
    pub async fn start_on(machine: Machine, options: Options, cancel: CancellationToken) -> Result<Cluster, Error> {
        let account = Account::resolve(&machine)?;
        let place = Place::resolve(&options.data_dir, &account, &machine)?;
        place.check_owner(&account)?;
        let (running, lock, origin) = match claim(&place, &account, &cancel).await? {
            Claim::Guest(running) => (running, None, Origin::Joined),
            Claim::Owner(lock) => match own(&options, &machine, &place, &account, &cancel).await {
                Ok((running, origin)) => (running, Some(lock), origin),
                Err(error) => {
                    lock.undo();
                    return Err(error);
                }
            },
        };
        let description = describe(&running, &place, origin).await;
        match description {
            Ok(description) => {
                tracing::info!(cluster = %description, "PostgreSQL is ready");
                Ok(Cluster { running, place, lock, description, options, machine, account })
            }
            Err(error) => {
                if lock.is_some() {
                    server::stop(running, &place).await?;
                }
                Err(error)
            }
        }
    }

    /// How to reach a database of this cluster. The service's own is called `jim`.
    #[must_use]
    pub fn connect_options(&self, database: &str) -> PgConnectOptions {
        server::connect_options(&self.running.socket, database)
    }

    /// This process holds the data folder's lock, so [`Cluster::stop`] stops the server.
    #[must_use]
    pub fn owns(&self) -> bool {
        self.lock.is_some()
    }

    /// Version, binaries, folders, and how this process came to the server.
    #[must_use]
    pub fn describe(&self) -> &Description {
        &self.description
    }

    /// Stops the server when this process owns it, and returns when it is gone. Close the pools first: a fast shutdown
    /// ends open sessions and rolls their transactions back.
    ///
    /// # Errors
    /// [`Error::NotStopped`] when neither a fast nor an immediate shutdown had an effect in time.
    pub async fn stop(self) -> Result<(), Error> {
        let Some(lock) = self.lock else { return Ok(()) };
        let outcome = server::stop(self.running, &self.place).await;
        // only now may another process start a server here
        drop(lock);
        outcome
    }
}

impl fmt::Display for Description {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let origin = match self.origin {
            Origin::Started => "started",
            Origin::Adopted => "adopted",
            Origin::Joined => "joined",
        };
        let source = match self.source {
            Source::Found => "found",
            Source::Fetched => "fetched",
        };
        write!(f, "PostgreSQL {}, {origin}, data in {}, binaries {source}", self.version, self.data_dir.display())?;
        match &self.binaries {
            Some(folder) => write!(f, " in {}", folder.display()),
            None => Ok(()),
        }
    }
}

/// Takes the folder's lock, or joins the cluster of the process that has it. While that process is still starting, or
/// already stopping, this waits for whichever comes first.
async fn claim(place: &Place, account: &Account, cancel: &CancellationToken) -> Result<Claim, Error> {
    let begun = Instant::now();
    loop {
        if cancel.is_cancelled() {
            return Err(Error::Cancelled);
        }
        if let Some(lock) = place.try_lock(account)? {
            return Ok(Claim::Owner(lock));
        }
        if let Probe::Live(running) = server::probe(place, account, DATABASE).await? {
            return Ok(Claim::Guest(running));
        }
        if begun.elapsed() > POSTGRES_JOIN_WAIT {
            return Err(Error::Held { lock: place.lock_path(), waited_s: begun.elapsed().as_secs() });
        }
        pause(cancel).await?;
    }
}

/// With the lock: adopts a live server, or makes what is missing and starts one. Then makes sure of the database.
async fn own(
    options: &Options,
    machine: &Machine,
    place: &Place,
    account: &Account,
    cancel: &CancellationToken,
) -> Result<(Running, Origin), Error> {
    let (running, origin) = match settled(place, account, cancel).await? {
        Some(running) => (running, Origin::Adopted),
        None => {
            place.clear_unfinished();
            let binaries = binaries::find(options, machine, place, account, cancel).await?;
            if place.data_major()?.is_none() {
                server::init(&binaries, place, account, options.durable, cancel).await?;
            }
            let socket = place.socket_folder(account, machine)?;
            let running = server::launch(&binaries, place, account, socket, options.durable, cancel).await?;
            (running, Origin::Started)
        }
    };
    let prepared = tokio::select! {
        biased;
        () = cancel.cancelled() => Err(Error::Cancelled),
        prepared = create_database(&running) => prepared,
    };
    match prepared {
        Ok(()) => Ok((running, origin)),
        Err(error) => {
            server::stop(running, place).await?;
            Err(error)
        }
    }
}

/// A live server, or `None` when there is none. One that is starting or stopping is waited for.
async fn settled(place: &Place, account: &Account, cancel: &CancellationToken) -> Result<Option<Running>, Error> {
    let begun = Instant::now();
    loop {
        match server::probe(place, account, MAINTENANCE).await? {
            Probe::Live(running) => return Ok(Some(running)),
            Probe::Absent => return Ok(None),
            Probe::Busy if begun.elapsed() < POSTGRES_START_WAIT => pause(cancel).await?,
            Probe::Busy => {
                let reason = "a server from an earlier run is neither ready nor gone".to_owned();
                return Err(Error::NotStarted { reason, log: place.log(), tail: place.log_tail() });
            }
        }
    }
}

async fn pause(cancel: &CancellationToken) -> Result<(), Error> {
    tokio::select! {
        () = cancel.cancelled() => Err(Error::Cancelled),
        () = sleep(POSTGRES_RETRY_PAUSE) => Ok(()),
    }
}

/// Creates the service's database when it is missing. From `template0`, so that nothing of a person's in `template1`
/// comes along.
async fn create_database(running: &Running) -> Result<(), Error> {
    let mut connection = connect(running, MAINTENANCE).await?;
    let there: bool = sqlx::query_scalar("select exists (select from pg_database where datname = $1)")
        .bind(DATABASE)
        .fetch_one(&mut connection)
        .await?;
    if !there {
        // an identifier cannot be bound; this one is a constant
        let statement = AssertSqlSafe(format!("create database {DATABASE} template template0"));
        sqlx::query(statement).execute(&mut connection).await?;
    }
    Ok(connection.close().await?)
}

/// Asks the server for its version, and reads where its program lies from the note that it keeps in its folder.
async fn describe(running: &Running, place: &Place, origin: Origin) -> Result<Description, Error> {
    let mut connection = connect(running, MAINTENANCE).await?;
    let version: String = sqlx::query_scalar("show server_version").fetch_one(&mut connection).await?;
    connection.close().await?;
    let binaries = fs::read_to_string(place.cluster().join("postmaster.opts")).ok().and_then(|line| {
        let program = line.split(" \"").next()?.trim();
        PathBuf::from(program).parent().map(ToOwned::to_owned)
    });
    let fetched = binaries.as_ref().is_some_and(|folder| folder.starts_with(place.fetched()));
    Ok(Description {
        version: version.split_whitespace().next().unwrap_or_default().to_owned(),
        binaries,
        source: if fetched { Source::Fetched } else { Source::Found },
        data_dir: place.cluster(),
        socket_dir: running.socket.clone(),
        origin,
    })
}

async fn connect(running: &Running, database: &str) -> Result<sqlx::PgConnection, Error> {
    let attempt = server::connect(&running.socket, database).await;
    Ok(attempt.unwrap_or_else(|| Err(sqlx::Error::PoolTimedOut))?)
}

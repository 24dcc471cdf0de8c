//! What can go wrong with the private cluster, in the words that a person at a terminal reads.

use std::{io, path::PathBuf};

use crate::limits::POSTGRES_START_WAIT;

/// Why there is no cluster. `Display` is the whole text for the operator, more than one line where it helps.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The caller's token was cancelled. Nothing runs, and the data folder holds a whole cluster or none.
    #[error("the start of PostgreSQL was cancelled")]
    Cancelled,

    /// No server binaries, and none could be fetched.
    #[error("{}", no_binaries(.searched, .download))]
    NoBinaries {
        /// The places that were searched, in order, with what was wrong there.
        searched: Vec<String>,
        /// Why the download gave none.
        download: String,
    },

    /// The folder that the operator named cannot be used.
    #[error("the configured PostgreSQL binaries folder {} cannot be used: {reason}", .folder.display())]
    ConfiguredFolder {
        /// The folder as configured.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// The data was made by a major version whose binaries are not here.
    #[error("{}", other_major(.folder, *.made_by, .found, .download.as_deref()))]
    OtherMajor {
        /// The cluster's folder.
        folder: PathBuf,
        /// The major version in its `PG_VERSION`.
        made_by: u32,
        /// The usable binaries that were found: version and folder.
        found: Vec<String>,
        /// Why the download gave none, when it was considered.
        download: Option<String>,
    },

    /// The data belongs to another user; Postgres refuses to serve it.
    #[error(
        "the data folder {} belongs to the user with id {owner}, but PostgreSQL would run as {user}.\n  \
         Start jim as the owner, or give the folder to {user}, or name another data folder.", .folder.display()
    )]
    OtherOwner {
        /// The cluster's folder.
        folder: PathBuf,
        /// Its owner's user id.
        owner: u32,
        /// The user that the server would run as.
        user: String,
    },

    /// Started as root on a machine without an unprivileged account to run the server as.
    #[error(
        "jim runs as root, PostgreSQL refuses to, and there is neither a `postgres` nor a `nobody` account.\n  \
         Start jim as an ordinary user, or create one of the two accounts, or set JIM_DATABASE_URL."
    )]
    NoAccount,

    /// The data folder cannot be created or written.
    #[error("the data folder {} is not writable: {source}", .folder.display())]
    NotWritable {
        /// The folder.
        folder: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },

    /// The cluster's folder holds something else.
    #[error("{} is not empty and holds no PostgreSQL cluster (no PG_VERSION). Move it away, or name another data folder.", .folder.display())]
    NotACluster {
        /// The folder.
        folder: PathBuf,
    },

    /// The server's user cannot reach an existing cluster.
    #[error("the user {user} cannot reach the cluster in {}: {} is closed to it", .folder.display(), .ancestor.display())]
    Closed {
        /// The cluster's folder.
        folder: PathBuf,
        /// The first folder on the way that is closed.
        ancestor: PathBuf,
        /// The user that the server would run as.
        user: String,
    },

    /// The folder for the socket cannot be made, or somebody else has made it.
    #[error("the socket folder {} cannot be used: {reason}", .folder.display())]
    SocketFolder {
        /// The folder.
        folder: PathBuf,
        /// What is wrong with it.
        reason: String,
    },

    /// `initdb` failed. Its half-made folder has been removed.
    #[error("{}", init_failed(.output))]
    InitFailed {
        /// What initdb printed, or why it could not run.
        output: String,
    },

    /// The server ended, or did not accept a connection in time. It has been stopped.
    #[error("PostgreSQL did not start within {} s ({reason}). The end of its log {}:\n{}", POSTGRES_START_WAIT.as_secs(), .log.display(), indent(.tail))]
    NotStarted {
        /// "it ended" or "no connection".
        reason: String,
        /// The log file.
        log: PathBuf,
        /// The last lines of the log.
        tail: String,
    },

    /// Another process holds the folder's lock, but its cluster never became usable.
    #[error("another process holds {} but its cluster did not become usable within {waited_s} s", .lock.display())]
    Held {
        /// The lock file.
        lock: PathBuf,
        /// Seconds waited.
        waited_s: u64,
    },

    /// The server is still there after a fast and an immediate shutdown.
    #[error("PostgreSQL (process {pid}) did not stop")]
    NotStopped {
        /// The postmaster's process id.
        pid: i32,
    },

    /// The cluster runs but answered a question of ours with an error.
    #[error("the private cluster answered with an error: {0}")]
    Query(#[from] sqlx::Error),

    /// Any other failure of the operating system.
    #[error("cannot {doing} {}: {source}", .path.display())]
    Io {
        /// What was tried, as a verb.
        doing: &'static str,
        /// On what.
        path: PathBuf,
        /// The operating system's answer.
        source: io::Error,
    },
}

impl Error {
    pub(super) fn io(doing: &'static str, path: impl Into<PathBuf>) -> impl FnOnce(io::Error) -> Error {
        let path = path.into();
        move |source| Error::Io { doing, path, source }
    }
}

fn no_binaries(searched: &[String], download: &str) -> String {
    format!(
        "jim needs a PostgreSQL server (15 or newer) and there is none.\n  \
         searched for `initdb` and `postgres` in:\n{}\n  \
         download of PostgreSQL {}: {download}\n\
         Any one of these helps; then run the same command again:\n  \
         1. install the server:       Debian, Ubuntu  apt-get install -y postgresql\n                               \
         macOS           brew install postgresql@17\n  \
         2. name a running server:    JIM_DATABASE_URL=postgres://user:pass@host/db\n  \
         3. name a binaries folder:   JIM_POSTGRES_BIN=/folder/with/initdb-and-postgres\n\
         Nothing was changed on this machine.",
        indent(&searched.join("\n")),
        super::fetch::POSTGRES_VERSION,
    )
}

fn other_major(folder: &std::path::Path, made_by: u32, found: &[String], download: Option<&str>) -> String {
    let download = download.map(|reason| format!("\n  download of PostgreSQL {made_by}: {reason}")).unwrap_or_default();
    format!(
        "the data in {} was made by PostgreSQL {made_by}, and only these binaries are here:\n{}{download}\n  \
         Install PostgreSQL {made_by} (or name its folder with JIM_POSTGRES_BIN), or export the data with {made_by} and\n  \
         import it into a new data folder, or start with a new data folder. The data was not touched.",
        folder.display(),
        indent(&found.join("\n")),
    )
}

fn init_failed(output: &str) -> String {
    // containers that run with a number for a user
    let hint = if output.contains("could not look up effective user ID") {
        "\n  PostgreSQL needs its user in the account list. Run jim as a listed user, or set JIM_DATABASE_URL."
    } else {
        ""
    };
    format!("initdb failed:\n{}{hint}", indent(output))
}

fn indent(text: &str) -> String {
    text.lines().map(|line| format!("    {line}")).collect::<Vec<_>>().join("\n")
}

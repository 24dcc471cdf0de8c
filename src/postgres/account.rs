//! The user that the server runs as. Postgres refuses to run as root, so a jim that is root lends it another account.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::{Error, Machine};

/// Accounts that the server may run as when jim is root, the better one first.
const NAMES: [&str; 2] = ["postgres", "nobody"];

/// The user of the server's processes.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(super) struct Account {
    pub(super) name: String,
    pub(super) uid: u32,
    pub(super) gid: u32,
    /// jim is root and must switch to this account; otherwise it is jim's own.
    pub(super) switch: bool,
}

impl Account {
    /// jim's own user, or for root the first of `NAMES` that exists.
    pub(super) fn resolve(machine: &Machine) -> Result<Account, Error> {
        let uid = rustix::process::geteuid();
        if !uid.is_root() {
            let gid = rustix::process::getegid().as_raw();
            return Ok(Account { name: format!("user {}", uid.as_raw()), uid: uid.as_raw(), gid, switch: false });
        }
        let passwd = fs::read_to_string(&machine.passwd).unwrap_or_default();
        let find = |name: &&str| find_account(&passwd, name);
        NAMES.iter().find_map(find).ok_or(Error::NoAccount)
    }

    /// The first existing folder from the root down to `path` that this user may not pass through.
    /// Mode bits only: an access list that closes more shows up later, as the server's own error.
    pub(super) fn closed_ancestor(&self, path: &Path) -> Option<PathBuf> {
        let mut ancestors: Vec<&Path> = path.ancestors().collect();
        ancestors.reverse();
        let closed = |path: &&&Path| fs::metadata(path).is_ok_and(|data| data.is_dir() && !self.may_pass(&data));
        ancestors.iter().find(closed).map(|path| path.to_path_buf())
    }

    fn may_pass(&self, folder: &fs::Metadata) -> bool {
        let bit = match (folder.uid() == self.uid, folder.gid() == self.gid) {
            (true, _) => 0o100,
            (false, true) => 0o010,
            (false, false) => 0o001,
        };
        folder.mode() & bit != 0
    }
}

/// Reads `name:password:uid:gid:...`. An account with the rights of root is no help and is passed over.
fn find_account(passwd: &str, name: &str) -> Option<Account> {
    passwd.lines().find_map(|line| {
        let mut fields = line.split(':');
        if fields.next() != Some(name) {
            return None;
        }
        let uid = fields.nth(1)?.parse().ok().filter(|uid| *uid != 0)?;
        let gid = fields.next()?.parse().ok()?;
        Some(Account { name: name.to_owned(), uid, gid, switch: true })
    })
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn an_account_is_read_from_its_line() {
        let passwd = "root:x:0:0:root:/root:/bin/sh\npostgresql:x:7:8::/:\npostgres:x:101:104:,,,:/var:/bin/sh\n";
        let account = find_account(passwd, "postgres").expect("the account is listed");
        assert_eq!((account.uid, account.gid, account.switch), (101, 104, true));
        assert_eq!(find_account(passwd, "nobody"), None);
        assert_eq!(find_account("nobody:x:0:0::/:", "nobody"), None, "root under another name");
    }

    #[test]
    fn a_closed_folder_on_the_way_is_named() {
        let temp = tempfile::tempdir().expect("a folder");
        let (open, closed) = (temp.path().join("open"), temp.path().join("open/closed"));
        fs::create_dir_all(closed.join("data")).expect("folders");
        let set = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("a mode");
        set(temp.path(), 0o755);
        set(&open, 0o711);
        set(&closed, 0o700);
        let stranger = Account { name: "x".into(), uid: 54_321, gid: 54_321, switch: true };
        assert_eq!(stranger.closed_ancestor(&closed.join("data")), Some(closed.clone()));
        assert_eq!(stranger.closed_ancestor(&open.join("future")), None);
        let owner = Account { uid: fs::metadata(&closed).expect("metadata").uid(), ..stranger };
        assert_eq!(owner.closed_ancestor(&closed.join("data")), None);
    }
}

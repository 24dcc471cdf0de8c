//! The place of one purchase in the data folder: what was signed for it, from before it is sent until its end is known.
//!
//! `data_dir/purchases/<key>.json`, mode 0600, written whole or not at all and on disk before the payment leaves; the key is
//! the digest of method, URL, body and payer. A lock keeps two processes from paying for the same thing. Nothing here decides
//! when a purchase has ended.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::{FlockOperation, flock};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use serde_json::json;
use time::OffsetDateTime;

use crate::canonical;
use crate::cli::buyer::Ask;
use crate::evm::checksummed;
use crate::signer::{self, read_secret};
use crate::x402::{OutgoingPayment, PeerOffer, Version, decode};

/// A signed payment with what it was signed for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Purchase {
    method: String,
    url: String,
    /// SHA-256 of the body, in hex; null without one.
    body_sha256: Option<String>,
    payer: String,
    version: u64,
    /// The signed header's value. It is money.
    header: String,
    nonce: String,
    /// In atomic units of the asset.
    amount: String,
    asset: String,
    payee: String,
    network: String,
    /// Seconds since the epoch, as `created_at`.
    valid_before: u64,
    created_at: i64,
}

/// Why a purchase cannot be begun or gone on with.
#[derive(Debug, thiserror::Error)]
pub(super) enum Error {
    /// Another process has it.
    #[error("another jim is buying the same thing at this moment (lock {0}); wait for it to end")]
    Busy(PathBuf),
    /// A file or folder.
    #[error("{path}: {source}")]
    Io {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// The file cannot be read as a purchase: the payment in it may be open.
    #[error(
        "{path} should hold an open payment and cannot be read: {why}; nothing new is signed. \
         Look at it, or run again with --abandon to put it aside"
    )]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        why: String,
    },
}

/// The place of one purchase, locked until it is dropped.
#[derive(Debug)]
pub(super) struct Slot {
    file: PathBuf,
    lock: PathBuf,
    _held: File,
}

impl Purchase {
    /// What is kept of a payment that is about to be sent.
    pub(super) fn new(ask: &Ask, payer: &str, offer: &PeerOffer, payment: &OutgoingPayment, now_s: i64) -> Self {
        Self {
            method: ask.method.to_string(),
            url: ask.url.clone(),
            body_sha256: ask.body.as_ref().map(|body| canonical::sha256_hex(body.as_bytes())),
            payer: payer.to_owned(),
            version: payment.version.number(),
            header: payment.header_value.clone(),
            nonce: format!("{:#x}", payment.authorization.nonce()),
            amount: payment.authorization.value().to_string(),
            asset: checksummed(&offer.asset),
            payee: checksummed(&payment.authorization.to()),
            network: offer.network.to_string(),
            valid_before: u64::try_from(payment.authorization.valid_before()).unwrap_or(u64::MAX),
            created_at: now_s,
        }
    }

    /// The payment, to be sent as it is.
    pub(super) fn payment(&self) -> Option<OutgoingPayment> {
        let version = Version::from_number(self.version)?;
        let authorization = decode(version, &self.header).ok()?.authorization;
        Some(OutgoingPayment { version, header_value: self.header.clone(), authorization })
    }

    /// Its name: the nonce, which is public once it is settled.
    pub(super) fn nonce(&self) -> &str {
        &self.nonce
    }

    /// Amount, asset, payee and network in words.
    pub(super) fn terms(&self) -> String {
        format!("{} units of {} to {} on {}", self.amount, self.asset, self.payee, self.network)
    }

    /// When it was signed.
    pub(super) fn made(&self) -> String {
        minute(self.created_at)
    }

    /// When its authorization ends, in words and as a time.
    pub(super) fn ends(&self) -> (String, u64) {
        (minute(i64::try_from(self.valid_before).unwrap_or(i64::MAX)), self.valid_before)
    }
}

impl Slot {
    /// Takes the place of this purchase. No other process has it until it is dropped.
    pub(super) fn take(data_dir: &Path, ask: &Ask, payer: &str) -> Result<Self, Error> {
        let folder = data_dir.join("purchases");
        fs::create_dir_all(&folder).map_err(|source| io(&folder, source))?;
        fs::set_permissions(&folder, Permissions::from_mode(0o700)).map_err(|source| io(&folder, source))?;
        let what = json!([ask.method.as_str(), ask.url, ask.body, payer]);
        let key = canonical::sha256_hex(canonical::canonical_json(&what).as_bytes());
        let lock = folder.join(format!("{key}.lock"));
        let held = lock_file(&lock)?;
        Ok(Self { file: folder.join(format!("{key}.json")), lock, _held: held })
    }

    /// Where the purchase is kept.
    pub(super) fn path(&self) -> &Path {
        &self.file
    }

    /// The open purchase, when there is one. One that cannot be read is an error and never counts as none.
    pub(super) fn load(&self) -> Result<Option<Purchase>, Error> {
        let unreadable = |why: String| Error::Unreadable { path: self.file.clone(), why };
        let text = match read_secret(&self.file) {
            Ok(text) => text,
            Err(signer::Error::Io { source, .. }) if source.kind() == ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(unreadable(error.to_string())),
        };
        let purchase: Purchase = serde_json::from_str(&text).map_err(|error| unreadable(error.to_string()))?;
        match purchase.payment() {
            Some(payment) if format!("{:#x}", payment.authorization.nonce()) == purchase.nonce => Ok(Some(purchase)),
            _ => Err(unreadable("its payment does not decode".to_owned())),
        }
    }

    /// Puts the purchase on disk; when this returns, it outlives a crash.
    pub(super) fn save(&self, purchase: &Purchase) -> Result<(), Error> {
        let draft = self.file.with_extension("new");
        let text = serde_json::to_string_pretty(purchase).map_err(|error| io(&draft, error.into()))?;
        let written = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(&draft);
        let written = written.and_then(|mut file| file.write_all(text.as_bytes()).and_then(|()| file.sync_all()));
        written.map_err(|source| io(&draft, source))?;
        fs::rename(&draft, &self.file).map_err(|source| io(&self.file, source))?;
        self.sync_folder()
    }

    /// Forgets a purchase that has ended.
    pub(super) fn remove(&self) -> Result<(), Error> {
        match fs::remove_file(&self.file) {
            Err(error) if error.kind() != ErrorKind::NotFound => Err(io(&self.file, error)),
            _ => self.sync_folder(),
        }
    }

    /// Puts an open purchase aside under another name: the payment in it is still the only evidence of what was signed.
    pub(super) fn set_aside(&self, now_s: i64) -> Result<PathBuf, Error> {
        let aside = self.file.with_extension(format!("abandoned-{now_s}.json"));
        fs::rename(&self.file, &aside).map_err(|source| io(&self.file, source))?;
        self.sync_folder()?;
        Ok(aside)
    }

    fn sync_folder(&self) -> Result<(), Error> {
        let folder = self.file.parent().unwrap_or(Path::new("."));
        File::open(folder).and_then(|folder| folder.sync_all()).map_err(|source| io(folder, source))
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        // removed while it is held: whoever waits for it sees that the name is gone and makes a new one
        let _ = fs::remove_file(&self.lock);
    }
}

/// Opens and locks; a file that was removed between the two is not the lock any more.
fn lock_file(path: &Path) -> Result<File, Error> {
    loop {
        let file = OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path);
        let file = file.map_err(|source| io(path, source))?;
        match flock(&file, FlockOperation::NonBlockingLockExclusive) {
            Ok(()) => {}
            Err(Errno::WOULDBLOCK) => return Err(Error::Busy(path.to_owned())),
            Err(errno) => return Err(io(path, errno.into())),
        }
        let ours = file.metadata().map_err(|source| io(path, source))?;
        if fs::metadata(path).is_ok_and(|named| (named.dev(), named.ino()) == (ours.dev(), ours.ino())) {
            return Ok(file);
        }
    }
}

fn minute(at_s: i64) -> String {
    match OffsetDateTime::from_unix_timestamp(at_s) {
        Ok(at) => format!("{} {:02}:{:02} UTC", at.date(), at.hour(), at.minute()),
        Err(_) => format!("{at_s} s after 1970"),
    }
}

fn io(path: &Path, source: std::io::Error) -> Error {
    Error::Io { path: path.to_owned(), source }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, Method};

    use super::*;
    use crate::x402::fixture;

    fn ask(url: &str) -> Ask {
        Ask { method: Method::GET, url: url.to_owned(), body: None, headers: HeaderMap::new() }
    }

    fn purchase() -> Purchase {
        let challenge = crate::x402::Challenge::render(&fixture::offer(), "e", &serde_json::Map::new());
        let offers = crate::x402::read_required(&challenge.expect("small enough").header).expect("readable").offers;
        Purchase::new(&ask("http://x"), "0x1", &offers[0], &fixture::payment(Version::V2, 1), 1_700_000_000)
    }

    #[test]
    fn a_purchase_survives_as_it_was_and_only_its_owner_reads_it() {
        let folder = tempfile::tempdir().expect("a folder");
        let slot = Slot::take(folder.path(), &ask("http://x"), "0x1").expect("free");
        assert_eq!(slot.load().expect("nothing yet"), None);
        slot.save(&purchase()).expect("saved");
        slot.save(&purchase()).expect("saved over");
        assert_eq!(fs::metadata(slot.path()).expect("a file").permissions().mode() & 0o777, 0o600);
        let loaded = slot.load().expect("readable").expect("there");
        assert_eq!(loaded, purchase());
        assert_eq!(loaded.payment(), Some(fixture::payment(Version::V2, 1)));
        assert_eq!(loaded.made(), "2023-11-14 22:13 UTC");
        slot.remove().expect("removed");
        slot.remove().expect("removed before");
        assert_eq!(slot.load().expect("nothing"), None);
    }

    #[test]
    fn a_file_that_cannot_be_read_is_never_taken_for_none() {
        let folder = tempfile::tempdir().expect("a folder");
        let slot = Slot::take(folder.path(), &ask("http://x"), "0x1").expect("free");
        let mut other = purchase();
        other.nonce = "0x00".to_owned();
        for text in ["", "{", "{}", &serde_json::to_string(&other).expect("JSON")] {
            fs::write(slot.path(), text).expect("written");
            fs::set_permissions(slot.path(), Permissions::from_mode(0o600)).expect("mode");
            assert!(matches!(slot.load(), Err(Error::Unreadable { .. })), "{text:?}");
        }
        slot.save(&purchase()).expect("saved");
        fs::set_permissions(slot.path(), Permissions::from_mode(0o644)).expect("mode");
        assert!(matches!(slot.load(), Err(Error::Unreadable { .. })));
        let aside = slot.set_aside(7).expect("put aside");
        assert!(aside.exists() && slot.load().expect("nothing").is_none());
    }

    #[test]
    fn one_at_a_time_for_the_same_thing_and_as_many_as_like_for_others() {
        let folder = tempfile::tempdir().expect("a folder");
        let first = Slot::take(folder.path(), &ask("http://x"), "0x1").expect("free");
        assert!(matches!(Slot::take(folder.path(), &ask("http://x"), "0x1"), Err(Error::Busy(_))));
        Slot::take(folder.path(), &ask("http://y"), "0x1").expect("another thing");
        Slot::take(folder.path(), &ask("http://x"), "0x2").expect("another payer");
        drop(first);
        Slot::take(folder.path(), &ask("http://x"), "0x1").expect("free again");
    }
}

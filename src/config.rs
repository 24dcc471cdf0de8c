//! The settings: defaults compiled in, then a file, then `JIM_` variables; checked before anything starts.
//!
//! `config/jim.toml` documents every key. An unknown one stops the start with its name and its neighbours'.

mod models;
mod rails;
mod raw;

use std::collections::HashSet;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use figment::Figment;
use figment::providers::{Env, Format, Toml};

use crate::catalog::input::normalise_ticker;
use crate::evm::{Address, Network, checksummed, parse_address};
use raw::Raw;

pub use models::Model;
pub use rails::Rails;

/// The defaults, compiled in.
pub const DEFAULTS: &str = include_str!("../config/jim.toml");

/// Variables of the test suite, which are no settings.
const TEST_PREFIX: &str = "test_";

/// Settings that were checked.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Public listener.
    pub listen: SocketAddr,
    /// Operator's listener.
    pub operator_listen: SocketAddr,
    /// Where buyers reach us; None: made of the address that is listened on.
    pub public_url: Option<String>,
    /// Cluster and keys.
    pub data_dir: PathBuf,
    /// Signing key and generated payee.
    pub keys_dir: PathBuf,
    /// A Postgres to use; None: a private cluster.
    pub database_url: Option<String>,
    /// Binaries of the private cluster.
    pub postgres_bin: Option<PathBuf>,
    /// Whether server binaries may be fetched.
    pub allow_download: bool,
    /// Demo switches.
    pub demo_faults: bool,
    /// Where and in what we are paid.
    pub payments: Payments,
    /// Who we are in call chains; None: the payee.
    pub identity: Option<Address>,
    /// Hops at which a chain is refused.
    pub max_depth: usize,
    /// The language model that writes; None: the renderer.
    pub model: Option<Model>,
    /// Drafts judged before a run is rejected.
    pub max_attempts: u32,
    /// Where filings come from.
    pub filings: Filings,
    /// Age since retrieval up to which live filings are sold.
    pub max_age: Duration,
    /// Tickers that are not sold.
    pub denied_subjects: HashSet<String>,
    /// Payers that are not served.
    pub denied_payers: HashSet<Address>,
    /// The operator's token file.
    pub token_file: PathBuf,
    /// Requests a minute; 0 is off.
    pub rate_per_minute: u32,
    /// Paid requests worked on at one time.
    pub max_in_flight: usize,
}

/// Where and in what we are paid.
#[derive(Clone, Debug)]
pub struct Payments {
    /// Base URLs of facilitators, the preferred one first; empty: simulated.
    pub facilitator_urls: Vec<String>,
    /// Chain.
    pub network: Network,
    /// Token.
    pub asset: Address,
    /// Its decimals.
    pub asset_decimals: u8,
    /// Name in its EIP-712 domain.
    pub asset_name: String,
    /// Version in its EIP-712 domain.
    pub asset_version: String,
    /// Who is paid; None: generated.
    pub pay_to: Option<Address>,
    /// Whether contract wallets may pay.
    pub contract_wallets: bool,
    /// How buyers may pay.
    pub rails: Rails,
    /// Who settles what is signed for `upto`; None: the simulated facilitator, or the rail is off.
    pub upto_facilitator: Option<Address>,
    /// JSON-RPC of a node; None: no chain is read.
    pub rpc_url: Option<String>,
    /// Blocks that a transfer must have, its own among them; at least 1.
    pub confirmations: u32,
    /// File with the key that pays refunds.
    pub treasury_key_file: Option<PathBuf>,
    /// Whether owed refunds are paid without an operator.
    pub auto_refunds: bool,
}

/// Where filings come from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Filings {
    /// Compiled in.
    Sample,
    /// Files as the SEC serves them.
    Folder(PathBuf),
    /// The SEC.
    Live {
        /// Name and mail address.
        user_agent: String,
    },
}

/// What the command line overrides.
#[derive(Clone, Debug, Default)]
pub struct Overrides {
    /// `--listen`.
    pub listen: Option<SocketAddr>,
    /// `--data-dir`.
    pub data_dir: Option<PathBuf>,
    /// `--database-url`.
    pub database_url: Option<String>,
    /// `--no-download`.
    pub no_download: bool,
}

/// A setting that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Unknown key, wrong type, unreadable file.
    #[error("configuration: {0}")]
    Read(#[from] Box<figment::Error>),
    /// A value that does not do.
    #[error("configuration: {key} = {value:?}: {why}")]
    Value {
        /// The key.
        key: &'static str,
        /// Its value.
        value: String,
        /// What it must be.
        why: String,
    },
    /// A file that a setting names.
    #[error("configuration: {key} names {path}, which cannot be read: {source}")]
    File {
        /// The key.
        key: &'static str,
        /// The file.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
}

/// Reads and checks all settings.
pub fn load(file: Option<&Path>, overrides: &Overrides) -> Result<Settings, Error> {
    let mut figment = Figment::from(Toml::string(DEFAULTS));
    if let Some(path) = file {
        std::fs::metadata(path).map_err(|source| Error::File { key: "--config", path: path.to_owned(), source })?;
        figment = figment.merge(Toml::file_exact(path));
    }
    let variables = Env::prefixed("JIM_").filter(|key| !key.as_str().to_ascii_lowercase().starts_with(TEST_PREFIX));
    let raw: Raw = figment.merge(variables.split("__")).extract().map_err(Box::new)?;
    check(raw, overrides)
}

fn check(raw: Raw, overrides: &Overrides) -> Result<Settings, Error> {
    let data_dir = match (&overrides.data_dir, filled(&raw.data_dir)) {
        (Some(path), _) => path.clone(),
        (None, Some(path)) => PathBuf::from(path),
        (None, None) => {
            default_data_dir().ok_or_else(|| bad("data_dir", "", "no HOME to put a cache folder in; name a folder"))?
        }
    };
    let path_or = |text: &str, name: &str| filled(text).map_or_else(|| data_dir.join(name), PathBuf::from);
    let listen = match overrides.listen {
        Some(address) => address,
        None => address("listen", &raw.listen)?,
    };
    let settings = Settings {
        listen,
        operator_listen: address("operator_listen", &raw.operator_listen)?,
        public_url: filled(&raw.public_url).map(|url| base_url("public_url", url)).transpose()?,
        keys_dir: path_or(&raw.keys_dir, "keys"),
        token_file: path_or(&raw.operator.token_file, "operator.token"),
        database_url: overrides.database_url.clone().or_else(|| filled(&raw.database_url).map(str::to_owned)),
        postgres_bin: filled(&raw.postgres_bin).map(PathBuf::from),
        allow_download: !overrides.no_download,
        demo_faults: raw.demo_faults,
        payments: payments(&raw)?,
        identity: filled(&raw.call_chain.identity).map(|a| evm_address("call_chain.identity", a)).transpose()?,
        max_depth: at_least_one("call_chain.max_depth", raw.call_chain.max_depth)?,
        model: models::model(&raw)?,
        max_attempts: u32::try_from(at_least_one("synth.max_attempts", raw.synth.max_attempts)?).unwrap_or(u32::MAX),
        filings: filings(&raw)?,
        max_age: Duration::from_secs(3_600 * u64::from(raw.freshness.max_age_hours)),
        denied_subjects: subjects(&raw.policy.denied_subjects)?,
        denied_payers: filled(&raw.policy.payer_list_file)
            .map(|f| payer_list(Path::new(f)))
            .transpose()?
            .unwrap_or_default(),
        rate_per_minute: raw.limits.rate_per_minute,
        max_in_flight: at_least_one("limits.max_in_flight", raw.limits.max_in_flight)?,
        data_dir,
    };
    if settings.demo_faults && !settings.payments.facilitator_urls.is_empty() {
        return Err(bad(
            "demo_faults",
            "true",
            "never with a real facilitator: remove payments.facilitator_url or this",
        ));
    }
    Ok(settings)
}

impl Settings {
    /// Legal but risky combinations, as sentences for the log.
    pub fn warnings(&self) -> Vec<String> {
        let mut out = Vec::new();
        let real = !self.payments.facilitator_urls.is_empty();
        if real && self.payments.pay_to.is_none() {
            out.push("payments.pay_to is empty: buyers pay a generated address whose key is in keys_dir".to_owned());
        }
        if real && self.public_url.as_ref().is_none_or(|url| url.starts_with("http://")) {
            out.push("public_url is not https: buyers see payment terms that anybody on the way can change".to_owned());
        }
        if real && !matches!(self.filings, Filings::Live { .. }) {
            out.push("filings.source is recorded data, sold for real money; answers say so in limits".to_owned());
        }
        if self.payments.rails.client_broadcast && !real {
            out.push(
                "payments.rails has client-broadcast and the facilitator is simulated: one rail moves money, the other none"
                    .to_owned(),
            );
        }
        if self.payments.rails.client_broadcast && !self.payments.auto_refunds {
            out.push("refunds.auto is false: refusals of client-broadcast payments wait for an operator".to_owned());
        }
        if !self.operator_listen.ip().is_loopback() {
            out.push(format!("operator_listen {} is reachable from other machines", self.operator_listen));
        }
        if self.rate_per_minute == 0 && !self.listen.ip().is_loopback() {
            out.push("limits.rate_per_minute is 0: no request is ever turned away for its rate".to_owned());
        }
        if self.payments.treasury_key_file.is_some() && self.payments.rpc_url.is_none() {
            out.push(
                "payments.treasury_key_file is not used: without payments.rpc_url no refund can be paid".to_owned(),
            );
        }
        out.extend(self.model.iter().flat_map(Model::warnings));
        out
    }
}

fn payments(all: &Raw) -> Result<Payments, Error> {
    let raw = &all.payments;
    if raw.asset_decimals > 36 {
        return Err(bad("payments.asset_decimals", &raw.asset_decimals.to_string(), "at most 36"));
    }
    let network = raw
        .network
        .parse()
        .map_err(|e: crate::evm::ParseError| bad("payments.network", &raw.network, &e.to_string()))?;
    let rpc_url = filled(&raw.rpc_url).map(rails::rpc_url).transpose()?;
    let treasury_key_file = filled(&raw.treasury_key_file).map(PathBuf::from);
    let facilitator_urls = facilitators(&raw.facilitator_url)?;
    let rails = rails::rails(&raw.rails, rpc_url.is_some(), treasury_key_file.is_some())?;
    let named = filled(&raw.upto_facilitator).map(|a| evm_address("payments.upto_facilitator", a)).transpose()?;
    Ok(Payments {
        upto_facilitator: rails::upto_facilitator(named, rails.upto, facilitator_urls.len())?,
        facilitator_urls,
        rails,
        confirmations: rails::confirmations(raw.confirmations)?,
        auto_refunds: rails::auto_refunds(all.refunds.auto, rpc_url.is_some(), treasury_key_file.is_some())?,
        rpc_url,
        treasury_key_file,
        network,
        asset: evm_address("payments.asset", &raw.asset)?,
        asset_decimals: raw.asset_decimals,
        asset_name: raw.asset_name.clone(),
        asset_version: raw.asset_version.clone(),
        pay_to: filled(&raw.pay_to).map(|a| evm_address("payments.pay_to", a)).transpose()?,
        contract_wallets: raw.contract_wallets,
    })
}

/// A list, in the order of preference; an empty text in it is left out.
fn facilitators(listed: &[String]) -> Result<Vec<String>, Error> {
    let key = "payments.facilitator_url";
    let mut urls: Vec<String> = Vec::new();
    for url in listed.iter().filter_map(|text| filled(text)) {
        let url = base_url(key, url)?;
        if urls.contains(&url) {
            return Err(bad(key, &url, "is listed twice"));
        }
        urls.push(url);
    }
    Ok(urls)
}

fn filings(raw: &Raw) -> Result<Filings, Error> {
    match raw.filings.source.as_str() {
        "sample" => Ok(Filings::Sample),
        "live" => Ok(Filings::Live { user_agent: raw.filings.user_agent.clone() }),
        other => match other.strip_prefix("folder:").and_then(filled) {
            Some(path) => Ok(Filings::Folder(PathBuf::from(path))),
            None => Err(bad("filings.source", other, "must be sample, live or folder:PATH")),
        },
    }
}

fn subjects(listed: &[String]) -> Result<HashSet<String>, Error> {
    let one = |t: &String| normalise_ticker(t.trim()).ok_or_else(|| bad("policy.denied_subjects", t, "is no ticker"));
    listed.iter().map(one).collect()
}

/// One address a line; empty lines and what follows a # are left out.
fn payer_list(path: &Path) -> Result<HashSet<Address>, Error> {
    let key = "policy.payer_list_file";
    let text = std::fs::read_to_string(path).map_err(|source| Error::File { key, path: path.to_owned(), source })?;
    let lines = text.lines().map(|line| line.split('#').next().unwrap_or("").trim());
    lines.filter(|line| !line.is_empty()).map(|line| evm_address(key, line)).collect()
}

/// An address by its 20 bytes; one in mixed case must carry its EIP-55 checksum, since a wrong one is a typing error.
fn evm_address(key: &'static str, text: &str) -> Result<Address, Error> {
    let address = parse_address(text).map_err(|e| bad(key, text, &e.to_string()))?;
    let digits = text.trim_start_matches("0x");
    let mixed = digits.bytes().any(|b| b.is_ascii_lowercase()) && digits.bytes().any(|b| b.is_ascii_uppercase());
    if mixed && checksummed(&address) != text {
        return Err(bad(
            key,
            text,
            &format!("its EIP-55 checksum is wrong; written rightly it is {}", checksummed(&address)),
        ));
    }
    Ok(address)
}

fn base_url(key: &'static str, text: &str) -> Result<String, Error> {
    let good = text.starts_with("https://") || text.starts_with("http://");
    if !good || text.contains(['?', '#', ' ']) {
        return Err(bad(key, text, "must be an http or https URL without query"));
    }
    Ok(text.trim_end_matches('/').to_owned())
}

fn address(key: &'static str, text: &str) -> Result<SocketAddr, Error> {
    text.parse().map_err(|_| bad(key, text, "must be an address and a port, as 127.0.0.1:4021"))
}

fn at_least_one(key: &'static str, value: u32) -> Result<usize, Error> {
    match value {
        0 => Err(bad(key, "0", "must be at least 1")),
        n => Ok(n as usize),
    }
}

fn bad(key: &'static str, value: &str, why: &str) -> Error {
    Error::Value { key, value: value.to_owned(), why: why.to_owned() }
}

fn filled(text: &str) -> Option<&str> {
    Some(text.trim()).filter(|t| !t.is_empty())
}

fn default_data_dir() -> Option<PathBuf> {
    let variable = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    variable("XDG_CACHE_HOME").or_else(|| variable("HOME").map(|home| home.join(".cache"))).map(|dir| dir.join("jim"))
}

/// How long the facilitator may stay silent before it is asked again for its kinds.
pub const SUPPORTED_PAUSE: Duration = Duration::from_secs(2);

#[cfg(test)]
mod tests {
    use super::*;

    pub(super) fn with(toml: &str) -> Result<Settings, Error> {
        let figment = Figment::from(Toml::string(DEFAULTS)).merge(Toml::string(toml));
        let overrides = Overrides { data_dir: Some(PathBuf::from("/nowhere")), ..Overrides::default() };
        check(figment.extract().map_err(Box::new)?, &overrides)
    }

    #[test]
    fn the_compiled_in_file_is_complete_and_valid() {
        let settings = with("").expect("the defaults");
        assert_eq!(settings.listen.to_string(), "127.0.0.1:4021");
        assert_eq!((settings.max_depth, settings.rate_per_minute, settings.max_in_flight), (4, 600, 256));
        assert!(settings.warnings().is_empty());
    }

    #[test]
    fn an_unknown_key_is_named_with_its_neighbours() {
        let text = with("[payments]\npayto = '0x'\n").expect_err("an unknown key").to_string();
        assert!(text.contains("payto") && text.contains("pay_to"), "{text}");
    }

    #[test]
    fn facilitators_are_one_or_several() {
        for (toml, urls) in [
            ("''", &[][..]),
            ("[]", &[]),
            ("'http://a/'", &["http://a"]),
            ("'http://a, https://b/c,'", &["http://a", "https://b/c"]),
            ("['http://a', 'https://b/c/']", &["http://a", "https://b/c"]),
        ] {
            let settings = with(&format!("[payments]\nfacilitator_url = {toml}")).expect(toml);
            assert_eq!(settings.payments.facilitator_urls, urls, "{toml}");
        }
    }

    #[test]
    fn what_cannot_work_stops_the_start_and_says_why() {
        for (toml, word) in [
            ("listen = 'here'", "listen"),
            ("[payments]\nnetwork = 'base'", "eip155"),
            ("[payments]\npay_to = '0x036cbD53842c5426634e7929541eC2318f3dCF7e'", "checksum"),
            ("[filings]\nsource = 'folder:'", "folder:PATH"),
            ("[synth]\nkind = 'poet'", "renderer"),
            ("[policy]\npayer_list_file = '/nowhere/at/all'", "payer_list_file"),
            ("[call_chain]\nmax_depth = 0", "at least 1"),
            ("[payments]\nfacilitator_url = ['http://a', 'b']", "facilitator_url"),
            ("[payments]\nfacilitator_url = 'http://a, http://a/'", "twice"),
            ("demo_faults = true\n[payments]\nfacilitator_url = 'http://127.0.0.1:1'", "demo_faults"),
        ] {
            let text = with(toml).expect_err(toml).to_string();
            assert!(text.contains(word), "{text}");
        }
    }
}

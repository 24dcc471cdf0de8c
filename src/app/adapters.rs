//! The adapters of a deployment, each built from the settings: facilitators, chain, treasury, sources, database, keys.

use std::path::Path;
use std::sync::Arc;

use sqlx::PgPool;
use sqlx::postgres::PgConnectOptions;
use tokio_util::sync::CancellationToken;

use super::{StartError, say};
use crate::chain_rpc::{Balances, ChainRpc, TreasuryRpc};
use crate::clock::Clock;
use crate::config::{Filings, Settings};
use crate::evm::{Address, SecretKey, TokenDomain};
use crate::facilitator::{Budgets, Pool, Remote, Simulated};
use crate::http::shelf::Till;
use crate::paywall::port::Facilitator;
use crate::paywall::port::chain::{Chain, Treasury};
use crate::pipeline::port::Source;
use crate::postgres::{self, Cluster};
use crate::signer;
use crate::source::filings::{self, FilingsConfig};
use crate::store::filing_cache::PgFilingCache;
use crate::x402::{OfferSecret, Permit2Rails};

/// Where the SEC publishes its ticker list.
const SEC_FILES: &str = "https://www.sec.gov";

/// Where the SEC publishes companyfacts.
const SEC_DATA: &str = "https://data.sec.gov";

/// File in the keys folder with the secret behind offers of the client-broadcast rail.
const OFFER_KEY: &str = "offer.key";

pub(super) fn till(settings: &Settings, pay_to: Address) -> Result<Till, StartError> {
    let payments = &settings.payments;
    let offer_secret = match payments.rails.client_broadcast {
        true => Some(signer::load_or_create_bytes(&settings.keys_dir.join(OFFER_KEY)).map_err(say)?),
        false => None,
    };
    Ok(Till {
        network: payments.network,
        asset: payments.asset,
        asset_decimals: payments.asset_decimals,
        asset_name: payments.asset_name.clone(),
        asset_version: payments.asset_version.clone(),
        pay_to,
        offer_secret: offer_secret.map(OfferSecret::from_bytes).map(Arc::new),
        permit2: Permit2Rails {
            exact: payments.rails.exact_permit2,
            upto: payments.rails.upto.then(|| payments.upto_facilitator.unwrap_or(Simulated::ADDRESS)),
        },
    })
}

type Money = (Option<Arc<dyn Chain>>, Option<Arc<dyn Treasury>>);

/// The chain and the treasury: those that are given, or else what the settings name.
pub(super) fn money(
    settings: &Settings,
    till: &Till,
    given_chain: Option<Arc<dyn Chain>>,
    given_treasury: Option<Arc<dyn Treasury>>,
) -> Result<Money, StartError> {
    let chain = if given_chain.is_some() { given_chain } else { chain(settings, till)? };
    let treasury = if given_treasury.is_some() { given_treasury } else { treasury(settings, till)? };
    Ok((chain, treasury))
}

/// The node that is read, when one is named.
fn chain(settings: &Settings, till: &Till) -> Result<Option<Arc<dyn Chain>>, StartError> {
    let Some(url) = &settings.payments.rpc_url else { return Ok(None) };
    let chain = ChainRpc::new(url, till.network, u64::from(settings.payments.confirmations)).map_err(say)?;
    Ok(Some(Arc::new(chain)))
}

/// The key that pays refunds, when one is named.
fn treasury(settings: &Settings, till: &Till) -> Result<Option<Arc<dyn Treasury>>, StartError> {
    let (Some(url), Some(file)) = (&settings.payments.rpc_url, &settings.payments.treasury_key_file) else {
        return Ok(None);
    };
    let key = read_key(file)?;
    Ok(Some(Arc::new(TreasuryRpc::new(url, key, domain(till)).map_err(say)?)))
}

/// Who pays refunds and what he has, asked at this moment; None when no such key is named.
pub async fn load_treasury(settings: &Settings) -> Result<Option<(Address, Balances)>, StartError> {
    let payments = &settings.payments;
    let (Some(url), Some(file)) = (&payments.rpc_url, &payments.treasury_key_file) else { return Ok(None) };
    let domain = TokenDomain {
        name: payments.asset_name.clone(),
        version: payments.asset_version.clone(),
        chain_id: payments.network.chain_id(),
        contract: payments.asset,
    };
    let key = read_key(file)?;
    let address = key.address();
    let balances = TreasuryRpc::new(url, key, domain).map_err(say)?.load_balances().await.map_err(say)?;
    Ok(Some((address, balances)))
}

fn domain(till: &Till) -> TokenDomain {
    TokenDomain {
        name: till.asset_name.clone(),
        version: till.asset_version.clone(),
        chain_id: till.network.chain_id(),
        contract: till.asset,
    }
}

pub(super) type Facilitators = (Arc<dyn Facilitator>, Option<Arc<Simulated>>);

pub(super) fn facilitator(
    settings: &Settings,
    budgets: Budgets,
    pool: &PgPool,
    till: &Till,
    clock: &Arc<dyn Clock>,
) -> Result<Facilitators, StartError> {
    match settings.payments.facilitator_urls.as_slice() {
        urls @ [_, ..] => {
            let remotes = urls.iter().map(|url| Remote::new(url, budgets)).collect::<Result<_, _>>();
            let pool = remotes.and_then(|remotes| Pool::new(remotes, till.network)).map_err(say)?;
            Ok((Arc::new(pool), None))
        }
        [] => {
            let simulated = Arc::new(Simulated::new(pool.clone(), domain(till), Arc::clone(clock)));
            Ok((Arc::clone(&simulated) as Arc<dyn Facilitator>, Some(simulated)))
        }
    }
}

pub(super) async fn open_filings(
    settings: &Settings,
    pool: &PgPool,
    clock: &Arc<dyn Clock>,
) -> Result<Arc<dyn Source>, StartError> {
    let config = match &settings.filings {
        Filings::Sample => FilingsConfig::Sample,
        Filings::Folder(path) => FilingsConfig::Folder(path.clone()),
        Filings::Live { user_agent } => FilingsConfig::Live {
            user_agent: user_agent.clone(),
            files_base: SEC_FILES.into(),
            data_base: SEC_DATA.into(),
            max_age: settings.max_age,
        },
    };
    filings::open(config, Arc::new(PgFilingCache::new(pool.clone())), Arc::clone(clock)).await.map_err(say)
}

pub(super) async fn database(
    settings: &Settings,
    cancel: CancellationToken,
) -> Result<(Option<Cluster>, PgConnectOptions), StartError> {
    if let Some(url) = &settings.database_url {
        let options = url.parse().map_err(|e| StartError::Settings(format!("configuration: database_url: {e}")))?;
        return Ok((None, options));
    }
    let options = postgres::Options {
        data_dir: settings.data_dir.clone(),
        postgres_bin: settings.postgres_bin.clone(),
        allow_download: settings.allow_download,
        durable: true,
    };
    let cluster = Cluster::start(options, cancel).await?;
    let options = cluster.connect_options(postgres::DATABASE);
    Ok((Some(cluster), options))
}

/// The payee whose key was generated, or is generated now.
pub(super) fn payee(keys_dir: &Path) -> Result<Address, StartError> {
    Ok(load_or_create_key(&keys_dir.join("payee.key"))?.address())
}

/// A secp256k1 key in a file of 64 hex digits that nobody else may read; made on first use.
pub fn load_or_create_key(path: &Path) -> Result<SecretKey, StartError> {
    if !path.exists() {
        let mut bytes = [0u8; 32];
        getrandom::fill(&mut bytes).map_err(say)?;
        SecretKey::from_bytes(bytes).map_err(say)?;
        signer::write_secret(path, crate::canonical::hex(&bytes).as_bytes()).map_err(say)?;
    }
    read_key(path)
}

fn read_key(path: &Path) -> Result<SecretKey, StartError> {
    let text = signer::read_secret(path).map_err(say)?;
    SecretKey::from_hex(text.trim()).map_err(|e| StartError::Settings(format!("key file {}: {e}", path.display())))
}

//! Composition: builds the adapters, hands them to the faces, and owns the order in which things start and stop.

mod adapters;
mod terms;

use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;

use sqlx::PgPool;
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::catalog;
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Settings};
use crate::evm::Address;
use crate::facilitator::{Budgets, Simulated};
use crate::http::shelf::Shelf;
use crate::http::{self, Shop, router, server};
use crate::limits;
use crate::paywall::Paywall;
use crate::paywall::port::chain::{Chain, Treasury};
use crate::paywall::port::{Facilitator, Member};
use crate::paywall::recovery::Recovery;
use crate::paywall::refunds::RefundDesk;
use crate::pipeline::Pipeline;
use crate::pipeline::port::{Source, Synthesizer};
use crate::postgres::{self, Cluster};
use crate::signer::{self, Signer};
use crate::store::journal::Journal;
use crate::store::{self};
use crate::synth::faulty::Faulty;

pub use adapters::{load_or_create_key, load_treasury};
pub use terms::writer;

/// A running service.
pub struct App {
    /// Address of the public listener.
    pub public_addr: SocketAddr,
    /// Address of the operator's listener.
    pub operator_addr: SocketAddr,
    /// Where buyers reach it.
    pub public_url: String,
    /// The operator's token, when it was made just now.
    pub new_token: Option<String>,
    /// The database.
    pub pool: PgPool,
    /// The simulated facilitator, when it is that.
    pub simulated: Option<Arc<Simulated>>,
    /// The switch that makes the synthesizer lie, with `demo_faults`.
    pub faulty: Option<Faulty>,
    /// Who is paid.
    pub pay_to: Address,
    journal: Journal,
    keeper: Option<Keeper>,
    stop: CancellationToken,
    shop: Arc<Shop>,
    tasks: TaskTracker,
    heart: Heart,
}

/// What says that this process lives: it beats until the last paid work has ended.
struct Heart {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
}

/// The task that keeps the private cluster up; cancelling it gives the cluster back.
struct Keeper {
    end: CancellationToken,
    task: JoinHandle<Cluster>,
}

/// What tests put in place of an adapter.
#[derive(Clone, Default)]
pub struct Parts {
    /// Who writes drafts.
    pub synthesizer: Option<Arc<dyn Synthesizer>>,
    /// Where facts come from.
    pub source: Option<Arc<dyn Source>>,
    /// Wall-clock time.
    pub clock: Option<Arc<dyn Clock>>,
    /// How long calls to facilitators may take.
    pub budgets: Option<Budgets>,
    /// The chain that is read.
    pub chain: Option<Arc<dyn Chain>>,
    /// Who pays refunds.
    pub treasury: Option<Arc<dyn Treasury>>,
    /// Pause between two rounds of recovery.
    pub recovery_pause: Option<std::time::Duration>,
    /// Who verifies and settles.
    pub facilitator: Option<Arc<dyn Facilitator>>,
}

/// Why the service does not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A setting or a file that one names.
    #[error("{0}")]
    Settings(String),
    /// The private cluster.
    #[error(transparent)]
    Postgres(#[from] postgres::Error),
    /// The database.
    #[error(transparent)]
    Database(#[from] store::Error),
}

impl StartError {
    /// Exit status: 2 configuration, 3 database.
    pub fn exit_status(&self) -> u8 {
        match self {
            Self::Settings(_) => 2,
            Self::Postgres(_) | Self::Database(_) => 3,
        }
    }
}

impl App {
    /// Starts everything in order: keys, database, contract, adapters, listeners. `cancel` ends a start that is under way.
    pub async fn start(settings: Settings, parts: Parts, cancel: CancellationToken) -> Result<Self, StartError> {
        let signer = Signer::load_or_create(&settings.keys_dir).map_err(say)?;
        let pay_to = match settings.payments.pay_to {
            Some(address) => address,
            None => adapters::payee(&settings.keys_dir)?,
        };
        let (token, new_token) = operator_token(&settings.token_file)?;
        let listener = bind("listen", settings.listen).await?;
        let operator_listener = bind("operator_listen", settings.operator_listen).await?;
        let (cluster, options) = adapters::database(&settings, cancel).await?;
        let opened = store::open(options).await;
        let pool = match opened {
            Ok(pool) => pool,
            Err(error) => return Err(abandon(cluster, error.into()).await),
        };
        let public_addr = listener.local_addr().map_err(say)?;
        let ready = async {
            let assembled = assemble(&settings, parts, signer, pay_to, public_addr, &pool).await?;
            // what died with its owner is written before anybody asks about it
            assembled.recovery.on_start().await?;
            Ok(assembled)
        };
        match ready.await {
            Ok(assembled) => {
                Ok(Self::open(assembled, listener, operator_listener, token, new_token, cluster, pool, pay_to))
            }
            Err(error) => Err(abandon(cluster, error).await),
        }
    }

    #[expect(clippy::too_many_arguments, reason = "the one place where everything that was built meets")]
    fn open(
        assembled: Assembled,
        listener: TcpListener,
        operator_listener: TcpListener,
        token: router::TokenDigest,
        new_token: Option<String>,
        cluster: Option<Cluster>,
        pool: PgPool,
        pay_to: Address,
    ) -> Self {
        let Assembled { shop, journal, recovery, simulated, faulty, network, desk } = assembled;
        let (stop, tasks) = (CancellationToken::new(), TaskTracker::new());
        let heart_stop = CancellationToken::new();
        let beating = tokio::spawn(heartbeat(journal.clone(), heart_stop.clone()));
        let address = |l: &TcpListener| l.local_addr().unwrap_or_else(|_| SocketAddr::from(([0, 0, 0, 0], 0)));
        let app = Self {
            public_addr: address(&listener),
            operator_addr: address(&operator_listener),
            public_url: shop.public_url.clone(),
            new_token,
            pool,
            simulated,
            faulty,
            pay_to,
            journal,
            keeper: cluster.map(Keeper::start),
            stop: stop.clone(),
            shop: Arc::clone(&shop),
            tasks: tasks.clone(),
            heart: Heart { stop: heart_stop, task: beating },
        };
        tasks.spawn(server::serve(listener, router::public(&shop), stop.clone()));
        tasks.spawn(server::serve(operator_listener, router::operator(&shop, token), stop.clone()));
        tasks.spawn(recovery.run(stop.clone()));
        tasks.spawn(watch_facilitators(Arc::clone(&shop), network, stop.clone()));
        if let Some(desk) = desk {
            tasks.spawn(desk.run(stop.clone()));
        }
        tasks.spawn(forget_old_rates(shop, stop));
        app
    }

    /// Waits until the facilitator has listed our kind; false when it has not in that time.
    pub async fn wait_until_supported(&self, longest: std::time::Duration) -> bool {
        let seen = async {
            while !self.shop.paywall.is_supported() {
                tokio::time::sleep(limits::REPEAT_POLL).await;
            }
        };
        tokio::time::timeout(longest, seen).await.is_ok()
    }

    /// Each facilitator, as it was last seen.
    pub fn facilitators(&self) -> Vec<Member> {
        self.shop.paywall.facilitators()
    }

    /// Stops taking requests and recovering, lets paid work end while the heart beats on, gives up claims, closes the pool, and
    /// last stops the cluster.
    pub async fn stop(self) {
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
        self.shop.work.close();
        if tokio::time::timeout(limits::DRAIN_BUDGET, self.shop.work.wait()).await.is_err() {
            tracing::error!(
                open = self.shop.work.len(),
                "paid work was still running; its payments can be presented again"
            );
        }
        self.heart.stop.cancel();
        if let Err(error) = self.heart.task.await {
            tracing::warn!(%error, "the heart had stopped before");
        }
        if let Err(error) = self.journal.retire().await {
            tracing::warn!(%error, "the claims of this process end by themselves in a few seconds");
        }
        self.pool.close().await;
        if let Some(keeper) = self.keeper {
            keeper.stop().await;
        }
    }
}

impl Keeper {
    fn start(cluster: Cluster) -> Self {
        let end = CancellationToken::new();
        Self { end: end.clone(), task: tokio::spawn(cluster.keep_running(end)) }
    }

    async fn stop(self) {
        self.end.cancel();
        match self.task.await {
            Ok(cluster) => {
                if let Err(error) = cluster.stop().await {
                    tracing::error!(%error, "the private cluster did not stop");
                }
            }
            Err(error) => tracing::error!(%error, "nobody watched the private cluster; the next start adopts it"),
        }
    }
}

struct Assembled {
    shop: Arc<Shop>,
    journal: Journal,
    recovery: Recovery,
    simulated: Option<Arc<Simulated>>,
    faulty: Option<Faulty>,
    network: crate::evm::Network,
    desk: Option<Arc<RefundDesk>>,
}

async fn assemble(
    settings: &Settings,
    parts: Parts,
    signer: Signer,
    pay_to: Address,
    listening: SocketAddr,
    pool: &PgPool,
) -> Result<Assembled, StartError> {
    let clock: Arc<dyn Clock> = parts.clock.unwrap_or_else(|| Arc::new(SystemClock));
    let public_url = settings.public_url.clone().unwrap_or_else(|| format!("http://{listening}"));
    let till = adapters::till(settings, pay_to)?;
    let products = catalog::parse(catalog::BUILT_IN, settings.payments.asset_decimals).map_err(say)?;
    let (chain, treasury) = adapters::money(settings, &till, parts.chain, parts.treasury)?;
    let refund = terms::refund_promise(settings, &public_url);
    let contract =
        terms::publish_contract(&products, &public_url, signer, chain.is_some(), refund, till.permit2, &clock, pool)
            .await?;
    let shelves = products
        .into_iter()
        .map(|p| Shelf::new(p, &till, &public_url, contract.extension(), clock.unix_s()).map(Arc::new))
        .collect::<Result<Vec<_>, _>>()
        .map_err(say)?;
    let (facilitator, simulated) = match parts.facilitator {
        Some(facilitator) => (facilitator, None),
        None => adapters::facilitator(settings, parts.budgets.unwrap_or_default(), pool, &till, &clock)?,
    };
    let source = match parts.source {
        Some(source) => source,
        None => adapters::open_filings(settings, pool, &clock).await?,
    };
    let faulty = (settings.demo_faults).then(Faulty::default);
    let writing = terms::writing(settings, parts.synthesizer, faulty.as_ref())?;
    let identity = settings.identity.unwrap_or(pay_to);
    let journal = Journal::open(pool.clone(), chain.is_some()).await?;
    let desk = terms::refund_desk(settings, &till, &journal, chain.clone().zip(treasury), &clock);
    let sweep = terms::sweep(&till, &shelves, contract.id());
    let pause = parts.recovery_pause.unwrap_or(limits::RECOVERY_PAUSE);
    let recovery = Recovery::new(journal.clone(), chain.clone(), sweep, Arc::clone(&clock), pause);
    let policy = terms::policy(settings, [pay_to, identity]);
    let mut paywall = Paywall::new(journal.clone(), facilitator, chain, contract, Arc::clone(&clock), policy);
    if let Some(landings) = terms::landings(&till, &shelves, &public_url) {
        paywall = paywall.with_landings(landings);
    }
    let shop = Shop {
        shelves,
        paywall: Arc::new(paywall),
        pipeline: Pipeline::new(source, writing, Arc::clone(&clock)),
        pool: pool.clone(),
        clock,
        rules: terms::rules(settings, identity),
        public_url,
        address_rate: http::per_address(settings.rate_per_minute),
        work: TaskTracker::new(),
    };
    Ok(Assembled { shop: Arc::new(shop), journal, recovery, simulated, faulty, network: till.network, desk })
}

/// The configured database, migrated, and the private cluster that it is in, for a command that serves nothing.
pub async fn open_database(
    settings: &Settings,
    cancel: CancellationToken,
) -> Result<(PgPool, Option<Cluster>), StartError> {
    let (cluster, options) = adapters::database(settings, cancel).await?;
    match store::open(options).await {
        Ok(pool) => Ok((pool, cluster)),
        Err(error) => Err(abandon(cluster, error.into()).await),
    }
}

/// A start that failed leaves no server behind.
async fn abandon(cluster: Option<Cluster>, error: StartError) -> StartError {
    if let Some(cluster) = cluster
        && let Err(stop) = cluster.stop().await
    {
        tracing::warn!(error = %stop, "the private cluster did not stop");
    }
    error
}

async fn bind(key: &str, address: SocketAddr) -> Result<TcpListener, StartError> {
    TcpListener::bind(address)
        .await
        .map_err(|e| StartError::Settings(format!("cannot listen on {address} ({key}): {e}")))
}

/// The operator's token: an existing file as it stands, or a new one of 256 random bits.
fn operator_token(path: &Path) -> Result<(router::TokenDigest, Option<String>), StartError> {
    let fresh = !path.exists();
    if fresh {
        let mut bytes = [0u8; 32];
        getrandom::fill(&mut bytes).map_err(say)?;
        signer::write_secret(path, crate::canonical::hex(&bytes).as_bytes()).map_err(say)?;
    }
    let token = signer::read_secret(path).map_err(say)?.trim().to_owned();
    if token.is_empty() {
        return Err(StartError::Settings(format!("operator.token_file {} is empty", path.display())));
    }
    Ok((router::TokenDigest::of(&token), fresh.then_some(token)))
}

async fn heartbeat(journal: Journal, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(limits::HEARTBEAT)).await.is_some() {
        if let Err(error) = journal.beat().await {
            tracing::warn!(%error, "the heartbeat could not be written");
        }
    }
}

/// Asks the facilitators for their kinds, each at its own pace, and says when paid routes open or shut.
async fn watch_facilitators(shop: Arc<Shop>, network: crate::evm::Network, stop: CancellationToken) {
    let (name, _) = shop.paywall.facilitator();
    let mut open = false;
    loop {
        match shop.paywall.check_supported(network).await {
            Ok(true) if open => {}
            Ok(true) => tracing::info!(facilitator = name, %network, "the facilitator settles what we offer"),
            Ok(false) => {
                tracing::error!(facilitator = name, %network, "the facilitator does not list exact on our network; paid routes are shut")
            }
            Err(error) => {
                tracing::warn!(%error, facilitator = name, "the facilitator cannot be reached; paid routes are shut")
            }
        }
        open = shop.paywall.is_supported();
        if stop.run_until_cancelled(tokio::time::sleep(config::SUPPORTED_PAUSE)).await.is_none() {
            return;
        }
    }
}

/// Keeps the table of addresses small: who has not asked for a minute is forgotten.
async fn forget_old_rates(shop: Arc<Shop>, stop: CancellationToken) {
    while stop.run_until_cancelled(tokio::time::sleep(limits::RATE_TABLE_SWEEP)).await.is_some() {
        if let Some(limiter) = &shop.address_rate {
            limiter.retain_recent();
        }
        shop.paywall.forget_old_rates();
    }
}

fn say(error: impl std::fmt::Display) -> StartError {
    StartError::Settings(error.to_string())
}

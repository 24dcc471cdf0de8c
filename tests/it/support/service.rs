//! The whole service in this process, over a database of its own, with parts of the test's choice.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use jim::app::{App, Parts};
use jim::config::{self, Overrides, Settings};
use serde_json::Value;
use tempfile::TempDir;
use tokio_util::sync::CancellationToken;

use super::buyer::{Ask, Buyer, Reply};
use super::database::{TestDatabase, fresh_database};
use super::facilitator::StubFacilitator;
use super::research::{Scribe, Shelves};
use super::rows::Rows;

/// Where buyers are told to reach it, whatever port it has: terms stay the same over a restart.
pub(crate) const PUBLIC_URL: &str = "http://jim.example";

/// The route that is sold, with a subject that the test source knows.
pub(crate) const MEMO: &str = "/research/fundamentals?ticker=ACME";

/// How long a started service may take to see its facilitator.
const SUPPORTED_WAIT: Duration = Duration::from_secs(10);

/// A running service.
pub(crate) struct Service {
    pub(crate) app: App,
    pub(crate) world: World,
}

/// What outlives a restart.
pub(crate) struct World {
    pub(crate) database: TestDatabase,
    pub(crate) scribe: Arc<Scribe>,
    settings: Settings,
    parts: Parts,
    folder: TempDir,
}

impl Service {
    /// Honest parts and the simulated facilitator.
    pub(crate) async fn start() -> Self {
        Self::start_with(|_, _| {}).await
    }

    /// With changes to settings and parts.
    pub(crate) async fn start_with(change: impl FnOnce(&mut Settings, &mut Parts)) -> Self {
        let service = Self::start_shut(change).await;
        assert!(service.app.wait_until_supported(SUPPORTED_WAIT).await, "the facilitator does not list our kind");
        service
    }

    /// Against a facilitator that the test scripts.
    pub(crate) async fn start_at(facilitator: &StubFacilitator) -> Self {
        Self::start_with(|settings, _| settings.payments.facilitator_urls = vec![facilitator.url()]).await
    }

    /// Does not wait for the facilitator.
    pub(crate) async fn start_shut(change: impl FnOnce(&mut Settings, &mut Parts)) -> Self {
        World::prepare(change).await.open().await
    }

    /// Stops in an orderly way.
    pub(crate) async fn stop(self) -> World {
        self.app.stop().await;
        self.world
    }

    /// The public address of a path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.app.public_addr)
    }

    /// Settle calls that the simulated facilitator counted.
    pub(crate) fn settle_calls(&self) -> u64 {
        self.app.simulated.as_ref().expect("the simulated facilitator").calls().settle
    }

    /// How many rows each table has.
    pub(crate) async fn rows(&self) -> Rows {
        Rows::load(&self.world.database.pool).await
    }

    /// A GET of a public path without a payment.
    pub(crate) async fn get(&self, path: &str) -> Reply {
        Buyer::new(self, 200).send(&Ask::get(path), None).await
    }

    /// A GET of a path of the operator's listener, with his token.
    pub(crate) async fn operate(&self, path: &str) -> Value {
        let token = self.token();
        let url = format!("http://{}{path}", self.app.operator_addr);
        let ask = Ask::get("").header("authorization", &format!("Bearer {token}"));
        let reply = Buyer::new(self, 200).send_to(&url, &ask, None).await;
        assert_eq!(reply.status, 200, "{}", reply.text());
        reply.json()
    }

    /// The operator's token, as it is in its file.
    pub(crate) fn token(&self) -> String {
        std::fs::read_to_string(self.world.folder.path().join("operator.token")).expect("a token").trim().to_owned()
    }
}

impl World {
    /// A database, keys and parts, without a running service.
    pub(crate) async fn prepare(change: impl FnOnce(&mut Settings, &mut Parts)) -> Self {
        let database = fresh_database().await;
        let folder = TempDir::new().expect("a folder");
        let overrides = Overrides {
            listen: Some(([127, 0, 0, 1], 0).into()),
            data_dir: Some(PathBuf::from(folder.path())),
            database_url: Some(database.url()),
            no_download: true,
        };
        let mut settings = config::load(None, &overrides).expect("the defaults");
        settings.operator_listen = ([127, 0, 0, 1], 0).into();
        settings.public_url = Some(PUBLIC_URL.to_owned());
        settings.rate_per_minute = 0;
        let scribe = Arc::new(Scribe::default());
        let mut parts = Parts {
            synthesizer: Some(Arc::clone(&scribe) as _),
            source: Some(Arc::new(Shelves::default())),
            ..Parts::default()
        };
        change(&mut settings, &mut parts);
        World { database, scribe, settings, parts, folder }
    }

    /// Starts the service again on the same database and keys.
    pub(crate) async fn open(self) -> Service {
        let app = App::start(self.settings.clone(), self.parts.clone(), CancellationToken::new()).await;
        Service { app: app.expect("the service starts"), world: self }
    }

    /// Changes what the next start is made with.
    pub(crate) fn change(&mut self, change: impl FnOnce(&mut Settings, &mut Parts)) {
        change(&mut self.settings, &mut self.parts);
    }
}

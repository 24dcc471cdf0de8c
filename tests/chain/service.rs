//! jim itself, as a child process with settings from the environment.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use tempfile::TempDir;

use crate::facilitator::Facilitator;
use crate::process::{Running, free_port, wait_for};
use crate::web::Web;

/// A first start makes a database cluster, and may have to fetch the server's programs.
const READY_WAIT: Duration = Duration::from_secs(180);

/// A running jim. The process is the first field: it must have ended before its folder goes.
pub(crate) struct Jim {
    process: Running,
    url: String,
    operator_url: String,
    _data: Option<TempDir>,
}

impl Jim {
    /// Starts `jim serve` with recorded filings and the given facilitator, and waits until it is ready.
    pub(crate) fn start(web: &Web, facilitator: &Facilitator, pay_to: &str, logs: &Path) -> Self {
        let folder = TempDir::new().expect("a folder");
        // a root's jim runs Postgres as another user, who must be able to walk in
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
        let jim = Self::start_in(&folder.path().join("data"), web, facilitator.url(), pay_to, logs, &[]);
        Self { _data: Some(folder), ..jim }
    }

    /// The same on a data folder that outlives it, with more settings.
    pub(crate) fn start_in(
        data: &Path,
        web: &Web,
        facilitator_url: &str,
        pay_to: &str,
        logs: &Path,
        settings: &[(&str, &str)],
    ) -> Self {
        let mut jim = Self::spawn(data, facilitator_url, pay_to, logs, settings);
        let ready = jim.url("/ready");
        wait_for("jim to be ready", READY_WAIT, || {
            jim.process.assert_alive();
            web.try_get(&ready, &[]).filter(|answer| answer.status == 200)
        });
        jim
    }

    /// Starts it and waits for nothing: it may be doomed.
    pub(crate) fn spawn(
        data: &Path,
        facilitator_url: &str,
        pay_to: &str,
        logs: &Path,
        settings: &[(&str, &str)],
    ) -> Self {
        let (listen, operator) = (format!("127.0.0.1:{}", free_port()), format!("127.0.0.1:{}", free_port()));
        let mut command = Command::new(env!("CARGO_BIN_EXE_jim"));
        command
            .arg("serve")
            .env("JIM_LISTEN", &listen)
            .env("JIM_OPERATOR_LISTEN", &operator)
            .env("JIM_DATA_DIR", data)
            .env("JIM_PAYMENTS__FACILITATOR_URL", facilitator_url)
            .env("JIM_PAYMENTS__PAY_TO", pay_to)
            .env("JIM_FILINGS__SOURCE", "sample")
            .envs(settings.iter().copied());
        let process = Running::start("jim", logs, &mut command);
        Self { process, url: format!("http://{listen}"), operator_url: format!("http://{operator}"), _data: None }
    }

    /// The paid route.
    pub(crate) fn memo_url(&self) -> String {
        self.url("/research/fundamentals?ticker=COIN")
    }

    /// A public path.
    pub(crate) fn url(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }

    /// A path of the operator's listener.
    pub(crate) fn operator_url(&self, path: &str) -> String {
        format!("{}{path}", self.operator_url)
    }

    /// Waits until it has ended by itself.
    pub(crate) fn wait_for_death(&mut self, limit: Duration) {
        wait_for("its death", limit, || self.process.has_ended().then_some(()));
    }

    pub(crate) fn tail(&self) -> String {
        self.process.tail()
    }
}

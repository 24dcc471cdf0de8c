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
    _data: TempDir,
}

impl Jim {
    /// Starts `jim serve` with recorded filings and the given facilitator, and waits until it is ready.
    pub(crate) fn start(web: &Web, facilitator: &Facilitator, pay_to: &str, logs: &Path) -> Self {
        Self::start_with(web, facilitator, pay_to, logs, &[])
    }

    /// The same with more variables.
    pub(crate) fn start_with(
        web: &Web,
        facilitator: &Facilitator,
        pay_to: &str,
        logs: &Path,
        settings: &[(&str, &str)],
    ) -> Self {
        let data = TempDir::new().expect("a folder");
        // a root's jim runs Postgres as another user, who must be able to walk in
        fs::set_permissions(data.path(), fs::Permissions::from_mode(0o755)).expect("permissions");
        let listen = format!("127.0.0.1:{}", free_port());
        let mut command = Command::new(env!("CARGO_BIN_EXE_jim"));
        command
            .arg("serve")
            .env("JIM_LISTEN", &listen)
            .env("JIM_OPERATOR_LISTEN", format!("127.0.0.1:{}", free_port()))
            .env("JIM_DATA_DIR", data.path().join("data"))
            .env("JIM_PAYMENTS__FACILITATOR_URL", facilitator.url())
            .env("JIM_PAYMENTS__PAY_TO", pay_to)
            .env("JIM_FILINGS__SOURCE", "sample")
            .envs(settings.iter().copied());
        let mut process = Running::start("jim", logs, &mut command);
        let url = format!("http://{listen}");
        wait_for("jim to be ready", READY_WAIT, || {
            process.assert_alive();
            web.try_get(&format!("{url}/ready"), &[]).filter(|answer| answer.status == 200)
        });
        Self { process, url, _data: data }
    }

    /// The paid route.
    pub(crate) fn memo_url(&self) -> String {
        format!("{}/research/fundamentals?ticker=COIN", self.url)
    }

    pub(crate) fn tail(&self) -> String {
        self.process.tail()
    }
}

//! `jim demo`: the main job end to end over real HTTP on loopback, then the service itself until Ctrl-C.
//! Exit status with `--exit`: 0 only if every step held.

mod shown;
mod steps;

use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::fail;
use crate::app::{App, Parts};
use crate::config::{self, Filings, Overrides, Settings};
use crate::signer::read_secret;
use crate::telemetry;

/// Tell the whole story on this machine.
#[derive(Debug, Args)]
pub(super) struct Demo {
    /// End after the story instead of serving on; status 0 only if every step held.
    #[arg(long)]
    exit: bool,
    /// Print one JSON object a step.
    #[arg(long)]
    json: bool,
    /// Folder for the demo's database and keys [default: jim-demo in the user's cache folder].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// Public listener [default: 127.0.0.1:4021, or a free port when that is taken].
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Never fetch server binaries when none are found.
    #[arg(long)]
    no_download: bool,
}

impl Demo {
    pub(super) async fn run(self) -> ExitCode {
        telemetry::install(true);
        let settings = match self.settings() {
            Ok(settings) => settings,
            Err(error) => return fail(2, error),
        };
        let token_file = settings.token_file.clone();
        eprintln!("jim: starting a private database and the service in {} ...", settings.data_dir.display());
        let cancel = CancellationToken::new();
        let app = tokio::select! {
            started = App::start(settings, Parts::default(), cancel.clone()) => started,
            _ = tokio::signal::ctrl_c() => {
                cancel.cancel();
                return fail(130, "ended before the story began");
            }
        };
        let app = match app {
            Ok(app) => app,
            Err(error) => return fail(error.exit_status(), error),
        };
        let held = tokio::select! {
            held = self.story(&app, &token_file) => held,
            _ = tokio::signal::ctrl_c() => {
                eprintln!("jim: stopping");
                app.stop().await;
                return ExitCode::from(130);
            }
        };
        if !self.exit {
            self.serve_on().await;
        }
        app.stop().await;
        if held { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    async fn story(&self, app: &App, token_file: &std::path::Path) -> bool {
        let token = match read_secret(token_file) {
            Ok(token) => token.trim().to_owned(),
            Err(error) => {
                eprintln!("jim: {error}");
                return false;
            }
        };
        let mut stage = match steps::Stage::new(app, token).await {
            Ok(stage) => stage,
            Err(error) => {
                eprintln!("jim: the stage could not be set: {error:#}");
                return false;
            }
        };
        let mut held = true;
        for step in steps::STORY {
            let (ok, value) = match stage.play(step).await {
                Ok(value) => (true, value),
                Err(error) => (false, json!({"error": format!("{error:#}")})),
            };
            held &= ok;
            self.show(step, ok, &value);
        }
        held
    }

    fn show(&self, step: steps::Step, ok: bool, value: &Value) {
        if self.json {
            let mut line = json!({"step": step.letter(), "title": step.title(), "ok": ok});
            if let (Value::Object(line), Value::Object(more)) = (&mut line, value) {
                line.extend(more.clone());
            }
            println!("{line}");
        } else {
            println!("{}", shown::screen(step, ok, value));
        }
    }

    async fn serve_on(&self) {
        if !self.json {
            println!("Serving on until Ctrl-C.");
        }
        if let Err(error) = tokio::signal::ctrl_c().await {
            eprintln!("jim: cannot wait for Ctrl-C: {error}");
        }
        eprintln!("jim: stopping");
    }

    /// The demo's own settings: simulated money, recorded filings, switches for the faults; no file and no rate limit.
    fn settings(&self) -> anyhow::Result<Settings> {
        let mut settings = config::load(None, &Overrides { no_download: self.no_download, ..Overrides::default() })?;
        let folder = || settings.data_dir.with_file_name("jim-demo");
        settings.data_dir = self.data_dir.clone().unwrap_or_else(folder);
        settings.keys_dir = settings.data_dir.join("keys");
        settings.token_file = settings.data_dir.join("operator.token");
        settings.database_url = None;
        settings.public_url = None;
        settings.payments.facilitator_urls.clear();
        settings.payments.pay_to = None;
        settings.identity = None;
        settings.filings = Filings::Sample;
        settings.denied_subjects.clear();
        settings.denied_payers.clear();
        settings.rate_per_minute = 0;
        settings.demo_faults = true;
        settings.listen = match self.listen {
            Some(address) => address,
            None => free_or_any(settings.listen),
        };
        settings.operator_listen = free_or_any(settings.operator_listen);
        Ok(settings)
    }
}

/// The address, or any port of it when that one is taken.
fn free_or_any(mut address: SocketAddr) -> SocketAddr {
    if TcpListener::bind(address).is_err() {
        address.set_port(0);
    }
    address
}

//! `jim serve`. Exit status: 0 after draining on SIGTERM or SIGINT, 2 configuration, 3 database.

use std::process::ExitCode;

use clap::Args;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use super::{Place, fail};
use crate::app::{App, Parts};
use crate::{config, telemetry};

/// Run the service.
#[derive(Debug, Args)]
pub(super) struct Serve {
    #[command(flatten)]
    place: Place,
}

impl Serve {
    pub(super) async fn run(self) -> ExitCode {
        let settings = match config::load(self.place.config.as_deref(), &self.place.overrides()) {
            Ok(settings) => settings,
            Err(error) => return fail(2, error),
        };
        telemetry::install(false);
        // handlers first: a signal during start-up must end it cleanly, not kill it
        let (mut interrupt, mut terminate) = match (signal(SignalKind::interrupt()), signal(SignalKind::terminate())) {
            (Ok(interrupt), Ok(terminate)) => (interrupt, terminate),
            (Err(error), _) | (_, Err(error)) => return fail(2, format!("cannot handle signals: {error}")),
        };
        for warning in settings.warnings() {
            tracing::warn!("{warning}");
        }
        let simulated = settings.payments.facilitator_urls.is_empty();
        let landings = settings.payments.rails.client_broadcast;
        let cancel = CancellationToken::new();
        let starting = App::start(settings, Parts::default(), cancel.clone());
        tokio::pin!(starting);
        let app = tokio::select! {
            started = &mut starting => started,
            () = either(&mut interrupt, &mut terminate) => {
                cancel.cancel();
                match starting.await {
                    Ok(app) => app.stop().await,
                    Err(error) => tracing::info!(%error, "the start was ended by a signal"),
                }
                return ExitCode::SUCCESS;
            }
        };
        let app = match app {
            Ok(app) => app,
            Err(error) => return fail(error.exit_status(), &error),
        };
        announce(&app, simulated, landings);
        either(&mut interrupt, &mut terminate).await;
        println!("jim: stopping; paid work in progress is finished first");
        app.stop().await;
        ExitCode::SUCCESS
    }
}

async fn either(interrupt: &mut Signal, terminate: &mut Signal) {
    tokio::select! {
        _ = interrupt.recv() => {}
        _ = terminate.recv() => {}
    }
}

fn announce(app: &App, simulated: bool, landings: bool) {
    let money = match (simulated, landings) {
        (true, false) => "with a SIMULATED facilitator: no money moves",
        (true, true) => "with a SIMULATED facilitator for exact; client-broadcast moves real money",
        (false, _) => "and takes real payments",
    };
    println!("jim {} serves on http://{} {money}", env!("CARGO_PKG_VERSION"), app.public_addr);
    println!("  buyers reach it at  {}", app.public_url);
    println!("  paid to             {}", crate::evm::checksummed(&app.pay_to));
    println!(
        "  operator            http://{}/api/ledger/margin, /api/payments, /api/refunds (bearer token)",
        app.operator_addr
    );
    if let Some(token) = &app.new_token {
        println!("  operator token      {token}  (shown this once; kept in the token file)");
    }
    println!("  try                 jim buy '{}/research/fundamentals?ticker=COIN'", app.public_url);
}

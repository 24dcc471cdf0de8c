//! `jim doctor`: everything that a start needs, looked at without serving; with `--invariants`, what must hold in the database.
//! Exit status: 0 all fine, 1 not.

use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::Place;
use crate::app::{self, App, Parts};
use crate::chain_rpc::{Balances, ChainRpc};
use crate::clock::{Clock, SystemClock};
use crate::config::{self, Settings};
use crate::evm::{Address, EXACT_PROXY, PERMIT2, UPTO_PROXY, checksummed};
use crate::limits;
use crate::paywall::port::Member;
use crate::store;
use crate::store::invariants::{self, Breach, INVARIANTS};

/// Longest difference between our clock and the database's.
const CLOCK_DIFFERENCE_MAX: Duration = Duration::from_secs(30);

/// How long the facilitator is given to list its kinds.
const FACILITATOR_WAIT: Duration = Duration::from_secs(10);

/// Check what a start needs.
#[derive(Debug, Args)]
pub(super) struct Doctor {
    #[command(flatten)]
    place: Place,
    /// Check nothing but what must hold in the database at every moment, and show the rows that do not.
    #[arg(long)]
    invariants: bool,
}

/// Longer than any examination: recovery makes no round of its own meanwhile.
const NO_ROUND: Duration = Duration::from_secs(24 * 3_600);

/// One line of the report.
struct Finding {
    what: &'static str,
    good: bool,
    detail: String,
}

impl Doctor {
    pub(super) async fn run(self) -> ExitCode {
        let findings = match config::load(self.place.config.as_deref(), &self.place.overrides()) {
            Ok(settings) if self.invariants => audit(&settings).await,
            Ok(settings) => examine(settings).await,
            Err(error) => vec![Finding { what: "settings", good: false, detail: error.to_string() }],
        };
        for Finding { what, good, detail } in &findings {
            println!("{} {what:<12} {detail}", if *good { "ok  " } else { "FAIL" });
        }
        if findings.iter().all(|f| f.good) { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }
}

/// One line for each invariant, with the rows that break it below.
async fn audit(settings: &Settings) -> Vec<Finding> {
    let failed = |what, detail| vec![Finding { what, good: false, detail }];
    let (pool, cluster) = match app::open_database(settings, CancellationToken::new()).await {
        Ok(opened) => opened,
        Err(error) => return failed("database", error.to_string()),
    };
    let found = invariants::find_breaches(&pool).await;
    pool.close().await;
    if let Some(cluster) = cluster
        && let Err(error) = cluster.stop().await
    {
        return failed("database", format!("the private cluster did not stop: {error}"));
    }
    match found {
        Ok(breaches) => INVARIANTS.iter().map(|invariant| judge(invariant.id, invariant.breach, &breaches)).collect(),
        Err(error) => failed("invariants", error.to_string()),
    }
}

fn judge(id: &'static str, breach: &str, breaches: &[Breach]) -> Finding {
    let rows: Vec<&str> = breaches.iter().filter(|b| b.id == id).map(|b| b.row.as_str()).collect();
    if rows.is_empty() {
        return Finding { what: id, good: true, detail: format!("holds; a breach would be {breach}") };
    }
    let shown = rows.iter().take(limits::BREACHES_SHOWN_MAX).map(|row| format!("\n       {row}"));
    let rest = rows.len().saturating_sub(limits::BREACHES_SHOWN_MAX);
    let more = if rest > 0 { format!("\n       and {rest} more") } else { String::new() };
    let count = rows.len();
    let word = if count == 1 { "breach" } else { "breaches" };
    Finding { what: id, good: false, detail: format!("{count} {word}: {breach}{}{more}", shown.collect::<String>()) }
}

async fn examine(mut settings: Settings) -> Vec<Finding> {
    let mut findings = vec![Finding { what: "settings", good: true, detail: "every key is known and valid".into() }];
    for warning in settings.warnings() {
        findings.push(Finding { what: "warning", good: true, detail: warning });
    }
    // any free port: a service may be running on the configured ones while it is examined
    settings.listen.set_port(0);
    settings.operator_listen.set_port(0);
    let public_url = settings.public_url.clone().unwrap_or_else(|| "made of the listen address".into());
    let treasury = treasury(&settings).await;
    let model = model(&settings).await;
    let permits = permits(&settings).await;
    // looked at, not worked on: no refund is sent and no round of recovery begins while it is up
    settings.payments.auto_refunds = false;
    let parts = Parts { recovery_pause: Some(NO_ROUND), ..Parts::default() };
    let app = match App::start(settings, parts, CancellationToken::new()).await {
        Ok(app) => app,
        Err(error) => {
            findings.push(Finding { what: "start", good: false, detail: error.to_string() });
            return findings;
        }
    };
    findings.push(Finding { what: "keys", good: true, detail: "readable by their owner alone".into() });
    findings.push(Finding { what: "pay_to", good: true, detail: checksummed(&app.pay_to) });
    findings.push(Finding { what: "public_url", good: true, detail: public_url });
    findings.push(database(&app).await);
    findings.push(clock(&app).await);
    findings.extend(facilitators(&app).await);
    findings.extend(treasury);
    findings.extend(model);
    findings.extend(permits);
    app.stop().await;
    findings
}

async fn database(app: &App) -> Finding {
    let good = store::ping(&app.pool).await;
    Finding {
        what: "database",
        good,
        detail: if good { "answers, schema up to date" } else { "does not answer" }.into(),
    }
}

async fn clock(app: &App) -> Finding {
    match store::load_clock(&app.pool).await {
        Ok(theirs) => {
            let apart = (SystemClock.now() - theirs).unsigned_abs();
            let detail = format!("{} ms from the database's", apart.as_millis());
            Finding { what: "clock", good: apart <= CLOCK_DIFFERENCE_MAX, detail }
        }
        Err(error) => Finding { what: "clock", good: false, detail: error.to_string() },
    }
}

/// Whether the language model that is to write answers; asking costs nothing. None: the renderer writes.
async fn model(settings: &Settings) -> Option<Finding> {
    let model = settings.model.as_ref()?;
    let checked = match app::writer(model) {
        Ok(writer) => writer.check().await,
        Err(error) => Err(error.to_string()),
    };
    let good = checked.is_ok();
    Some(Finding { what: "model", good, detail: checked.unwrap_or_else(|why| why) })
}

/// Whether refunds can be paid: a key, something to pay from, and gas. None without such a key.
async fn treasury(settings: &Settings) -> Option<Finding> {
    let loaded = app::load_treasury(settings).await.transpose()?;
    Some(match loaded {
        Ok((address, Balances { token, gas_wei })) => {
            let good = !token.is_zero() && gas_wei > 0;
            let detail = format!(
                "{}; {token} units of {}, {gas_wei} wei for gas{}",
                checksummed(&address),
                checksummed(&settings.payments.asset),
                if good { "" } else { ": refunds cannot be paid" }
            );
            Finding { what: "treasury", good, detail }
        }
        Err(error) => Finding { what: "treasury", good: false, detail: error.to_string() },
    })
}

/// Whether the contracts behind the rails by Permit2 are there. None without such a rail, or without a node to ask.
async fn permits(settings: &Settings) -> Option<Finding> {
    let payments = &settings.payments;
    let exact = payments.rails.exact_permit2.then_some(EXACT_PROXY);
    let proxies: Vec<Address> = exact.into_iter().chain(payments.rails.upto.then_some(UPTO_PROXY)).collect();
    let url = payments.rpc_url.as_ref().filter(|_| !proxies.is_empty())?;
    let contracts = [vec![PERMIT2], proxies].concat();
    let missing = match ChainRpc::new(url, payments.network, u64::from(payments.confirmations)) {
        Ok(chain) => chain.find_missing(&contracts).await.map_err(|error| error.to_string()),
        Err(error) => Err(error.to_string()),
    };
    Some(match missing {
        Ok(missing) if missing.is_empty() => {
            Finding { what: "permit2", good: true, detail: "Permit2 and the x402 proxies are on the chain".into() }
        }
        Ok(missing) => {
            let names: Vec<String> = missing.iter().map(checksummed).collect();
            let detail = format!("{} has no code: payments.rails has what cannot be settled there", names.join(", "));
            Finding { what: "permit2", good: false, detail }
        }
        Err(detail) => Finding { what: "permit2", good: false, detail },
    })
}

/// One line for each; all of them are given the same time to list their kinds.
async fn facilitators(app: &App) -> Vec<Finding> {
    let until = Instant::now() + FACILITATOR_WAIT;
    while Instant::now() < until
        && !(app.wait_until_supported(limits::REPEAT_POLL).await && app.facilitators().iter().all(|m| m.supported))
    {
        tokio::time::sleep(limits::REPEAT_POLL).await;
    }
    let money = if app.simulated.is_some() { ": no money moves" } else { "" };
    let finding = |Member { name, supported, failing }: Member| {
        let detail = match (supported, failing) {
            (true, None) => "lists our kind".to_owned(),
            (true, Some(why)) => format!("lists our kind, but its last call failed: {why}"),
            (false, None) => "does not list our kind".to_owned(),
            (false, Some(why)) => format!("cannot be reached: {why}"),
        };
        Finding { what: "facilitator", good: supported, detail: format!("{name}{money}; {detail}") }
    };
    app.facilitators().into_iter().map(finding).collect()
}

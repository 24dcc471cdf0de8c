//! Logs: one line of JSON or text an event, on standard error. Never a payment header, a signature, a key or a memo.

use std::io::IsTerminal;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

/// What is logged unless `RUST_LOG` says otherwise.
const DEFAULT_FILTER: &str = "info,sqlx=warn,hyper=warn,reqwest=warn";

/// Installs the log. Text on a terminal, JSON where a machine reads; `quiet` keeps warnings only.
pub fn install(quiet: bool) {
    let fallback = if quiet { "error" } else { DEFAULT_FILTER };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(fallback));
    let registry = tracing_subscriber::registry().with(filter);
    // a second install (tests) keeps the first
    let installed = if std::io::stderr().is_terminal() {
        registry.with(fmt::layer().with_writer(std::io::stderr)).try_init()
    } else {
        registry.with(fmt::layer().json().flatten_event(true).with_writer(std::io::stderr)).try_init()
    };
    drop(installed);
}

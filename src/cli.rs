//! The command line: one subcommand a file. Exit statuses are part of the contract and stand in each file.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a command speaks to the person at the terminal")]

mod buy;
mod buyer;
mod demo;
mod doctor;
mod gate;
mod serve;
mod verify;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::config::Overrides;

/// Sells cited financial research to software agents, paid per request over x402.
#[derive(Debug, Parser)]
#[command(name = "jim", version, about, max_term_width = 100)]
struct Command {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Run the service. Without any configuration it serves with a simulated facilitator: no money moves.
    Serve(serve::Serve),
    /// Tell the whole story on this machine: a sale, a replay, a lie, a loop, a cut settlement, the ledger.
    Demo(demo::Demo),
    /// Buy one URL over x402. Pays at most once. Exit status: 0 delivered, 4 refused and not charged, 5 outcome unknown.
    Buy(buy::Buy),
    /// Judge a memo, or a file of cases, with the sourcing gate alone.
    Gate(gate::Gate),
    /// Verify a proof bundle from its bytes alone. Exit status: 0 clean, 1 problems.
    Verify(verify::Verify),
    /// Check settings, keys, database, facilitator and clock before serving. Exit status: 0 all fine, 1 not.
    Doctor(doctor::Doctor),
}

/// Where the service keeps its things.
#[derive(Clone, Debug, Args)]
struct Place {
    /// Settings file (TOML); config/jim.toml of the source documents every key.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Public listener, as 127.0.0.1:4021.
    #[arg(long, value_name = "ADDR")]
    listen: Option<SocketAddr>,
    /// Folder for the database cluster and the keys [default: jim in the user's cache folder].
    #[arg(long, value_name = "DIR")]
    data_dir: Option<PathBuf>,
    /// A Postgres to use instead of a private cluster.
    #[arg(long, value_name = "URL")]
    database_url: Option<String>,
    /// Never fetch server binaries when none are found.
    #[arg(long)]
    no_download: bool,
}

impl Place {
    fn overrides(&self) -> Overrides {
        Overrides {
            listen: self.listen,
            data_dir: self.data_dir.clone(),
            database_url: self.database_url.clone(),
            no_download: self.no_download,
        }
    }
}

/// Parses the arguments and runs the command.
pub fn main() -> ExitCode {
    let command = Command::parse();
    // one crypto provider for every client, installed before the first of them is built
    if rustls::crypto::ring::default_provider().install_default().is_err() {
        tracing::debug!("a crypto provider was installed before");
    }
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            eprintln!("jim: cannot start: {error}");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(async {
        match command.verb {
            Verb::Serve(serve) => serve.run().await,
            Verb::Demo(demo) => demo.run().await,
            Verb::Buy(buy) => buy.run().await,
            Verb::Gate(gate) => gate.run(),
            Verb::Verify(verify) => verify.run(),
            Verb::Doctor(doctor) => doctor.run().await,
        }
    })
}

/// Ends with a message and a status.
fn fail(status: u8, message: impl std::fmt::Display) -> ExitCode {
    eprintln!("jim: {message}");
    ExitCode::from(status)
}

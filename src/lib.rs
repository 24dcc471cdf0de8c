//! jim sells financial research to software agents, one request at a time, over x402.
//!
//! Modules stand in dependency order; an arrow may point to the same layer or a lower one, never up.
//! The one exception are the ports: an adapter implements a trait that its user owns
//! (`pipeline::port`, `paywall::port`).
//!
//! Without the `server` feature only the pure core is built: no I/O, no clock, no async.

// layer 0: vocabulary
pub mod canonical;
pub mod clock;
pub mod evm;
pub mod limits;
pub mod money;
pub mod strict_json;

// layer 1: domain
pub mod call_chain;
pub mod catalog;
pub mod machine;
pub mod memo;
pub mod proof;
pub mod refusal;
pub mod x402;

// layer 2: adapters
#[cfg(feature = "server")]
pub mod chain_rpc;
#[cfg(feature = "server")]
pub mod facilitator;
#[cfg(feature = "server")]
pub mod fault;
#[cfg(feature = "server")]
pub mod postgres;
#[cfg(feature = "server")]
pub mod signer;
#[cfg(feature = "server")]
pub mod source;
#[cfg(feature = "server")]
pub mod store;
#[cfg(feature = "server")]
pub mod synth;

// layer 3: application
#[cfg(feature = "server")]
pub mod ledger;
#[cfg(feature = "server")]
pub mod paywall;
#[cfg(feature = "server")]
pub mod pipeline;

// layer 4: faces
#[cfg(feature = "server")]
pub mod cli;
#[cfg(feature = "server")]
pub mod http;

// composition
#[cfg(feature = "server")]
pub mod app;
#[cfg(feature = "server")]
pub mod config;
#[cfg(feature = "server")]
pub mod telemetry;

//! The Agent Proof Protocol, APP/1.4: evidence that a stranger can recompute.
//!
//! Pure: no I/O, no clock, no randomness. Times and keys are handed in, bytes are handed out. Sections 1 to 5 and 8 of the
//! protocol: content addressing, chains, checkpoints, bundles and their verification.
//!
//! - [`vocabulary`] and [`dialect`]: the closed word lists and the fingerprint over them;
//! - [`address`], [`output`], [`evidence`], [`baseline`]: what is addressed, and how;
//! - [`verdict`], [`claim`], [`confidence`]: what a run means;
//! - [`key`], [`walk`], [`chain`], [`anchor`], [`audit`]: the log, reading and writing it;
//! - [`bundle`]: the exchange format, produced and verified;
//! - [`order`]: the chain of one sale.

pub mod address;
pub mod anchor;
pub mod audit;
pub mod baseline;
pub mod bundle;
pub mod chain;
pub mod claim;
pub mod confidence;
pub mod dialect;
pub mod evidence;
pub mod key;
pub mod order;
pub mod output;
pub mod verdict;
pub mod vocabulary;
pub mod walk;

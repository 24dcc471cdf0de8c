//! What a memo is made of: facts with sources, a snapshot of them, a draft over the snapshot, and the sourcing gate.
//!
//! Pure: no I/O, no clock, no model. The only way to an accepted memo is through the gate.

pub mod case;
pub mod derived;
pub mod draft;
pub mod fact;
pub mod figure;
pub mod fingerprint;
#[cfg(test)]
pub(crate) mod fixture;
pub mod gate;
pub mod impersonal;
pub mod render;
pub mod snapshot;

pub use draft::{Draft, Mode, Section};
pub use fact::{Currency, Fact, Provenance, Unit};
pub use fingerprint::Fingerprint;
pub use snapshot::{Coverage, Snapshot, Subject};

//! All SQL of the crate, one file per table family.

pub mod simulated;

//! Conformance: the crate against cases and suites made outside its modules.

#![expect(clippy::print_stderr, reason = "a score table is what these tests are read for")]

mod gate;
mod generated;
mod held_out;
mod proof;
mod properties;
mod reference;

//! Conformance: the crate against cases and suites made outside its modules.

mod gate;

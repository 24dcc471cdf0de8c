//! The integration tests, one binary: building one is cheaper than building many, and they share one cluster.

#![expect(clippy::print_stderr, reason = "tests say why they skip and what they measured")]

mod postgres;
mod support;

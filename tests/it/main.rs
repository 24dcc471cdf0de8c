//! The integration tests, one binary: building one is cheaper than building many, and they share one cluster.

#![expect(clippy::print_stderr, reason = "tests say why they skip and what they measured")]

mod buy;
mod constraints;
mod free;
mod operator;
mod paid;
mod postgres;
mod recovery;
mod refunds;
mod render;
mod store;
mod support;
mod writers;

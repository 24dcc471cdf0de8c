//! Whole processes that are killed, and buyers who lose nothing by it.
//!
//! A real `jim serve` over a real database, a facilitator with books of its own over HTTP, and buyers who send the same payment
//! again until it is answered. After each fault three views must agree: what buyers were told, the facilitator's books, and the rows.
//! `JIM_TEST_SEED` repeats a run's keys and its moments; `JIM_TEST_LONG=1` makes the
//! runs with a dying database last five minutes.

#![expect(clippy::print_stderr, reason = "these tests report what they measured")]

mod books;
mod buyer;
mod check;
mod database_dies;
mod fenced;
mod graceful;
mod history;
mod market;
mod process;
mod replicas;
mod support;
mod walk;

/// One at a time: each measures times, and the machine may be small.
static TURN: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

//! jim against a real EVM node, a real facilitator and three real x402 buyers, all on loopback.
//!
//! One node, one facilitator and one jim per run; every test has a payer of its own, because a repeated purchase by one
//! payer is answered from the first. Without `node` the suite says so and is skipped; with it nothing may be skipped.
//! The runner is our own, so that what was started is ended before the process ends, whatever happened.

#![expect(clippy::print_stdout, reason = "the runner of a test binary reports on its standard output")]

mod buyers;
mod devnet;
mod evidence;
mod facilitator;
mod landing;
mod money;
mod permits;
mod process;
mod purchases;
mod refunds;
mod service;
mod survival;
mod web;
mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::ExitCode;
use std::time::Instant;

use world::World;

/// One test: its name and what it does.
pub(crate) type Case = (&'static str, fn(&World));

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let filters: Vec<&String> = args.iter().filter(|arg| !arg.starts_with('-')).collect();
    let all = purchases::CASES
        .into_iter()
        .chain(evidence::CASES)
        .chain(landing::CASES)
        .chain(permits::CASES)
        .chain(refunds::CASES)
        .chain(survival::CASES);
    let all: Vec<Case> = all.collect();
    let chosen: Vec<Case> = all
        .iter()
        .copied()
        .filter(|(name, _)| filters.is_empty() || filters.iter().any(|filter| name.contains(filter.as_str())))
        .collect();
    let left_out = all.len() - chosen.len();
    if args.iter().any(|arg| arg == "--list") {
        chosen.iter().for_each(|(name, _)| println!("{name}: test"));
        return ExitCode::SUCCESS;
    }
    println!("\nrunning {} tests", chosen.len());
    let started = Instant::now();
    if !chosen.is_empty() && !process::is_installed("node") {
        println!("chain: skipped, `node` is not installed");
        report(0, 0, chosen.len(), left_out, started);
        return ExitCode::SUCCESS;
    }
    let (passed, failed) = run(&chosen);
    println!("\nchain: {} tests run", passed + failed);
    report(passed, failed, 0, left_out, started);
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs the cases one after the other over one world, and ends the world.
fn run(chosen: &[Case]) -> (usize, usize) {
    if chosen.is_empty() {
        return (0, 0);
    }
    let Ok(world) = catch_unwind(World::start) else {
        println!("chain: the world did not start");
        return (0, chosen.len());
    };
    let mut failed = 0;
    for (name, case) in chosen {
        let started = Instant::now();
        let held = catch_unwind(AssertUnwindSafe(|| case(&world))).is_ok();
        println!("test {name} ... {} ({:.1}s)", if held { "ok" } else { "FAILED" }, started.elapsed().as_secs_f32());
        if !held {
            failed += 1;
            world.print_logs();
        }
    }
    (chosen.len() - failed, failed)
}

fn report(passed: usize, failed: usize, ignored: usize, left_out: usize, started: Instant) {
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!(
        "\ntest result: {word}. {passed} passed; {failed} failed; {ignored} ignored; 0 measured; {left_out} filtered out; \
         finished in {:.2}s\n",
        started.elapsed().as_secs_f32()
    );
}

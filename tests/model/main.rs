//! The payment machine, explored to the last state: every order of requests, crashes, lost answers, transfers and refunds.
//!
//! Two models share the table of allowed moves with the code (`jim::machine::MOVES`, through `table.rs`): the settle-after
//! rail (`exact.rs`) and the client-broadcast rail (`landing.rs`); `refund.rs` pays back on both. The search is exhaustive
//! within the budgets of a variant (and up to equal 64-bit hashes of states), so there is no seed. What it proves ends there:
//! small budgets, one buyer, an honest chain, commits that are atomic.
//!
//! A mistake is built in for each rule of the design that carries weight; the search must find what it breaks, or the rule is
//! not tested. `cargo test --test model -- --nocapture` shows a line for each variant.

#![expect(clippy::print_stderr, reason = "a table of runs is what these tests are read for")]

mod exact;
mod landing;
mod lease;
mod refund;
mod run;
mod table;

use std::sync::{Mutex, OnceLock};

use exact::{Config, Exact, Mutation, names};
use jim::machine::{MOVES, Move, Rail};
use landing::Landing;
use run::Run;

/// The settle-after rail with a patient buyer. Variants change single fields.
const EXACT: Config = Config {
    name: "exact: patient buyer",
    rail: Rail::Exact,
    auths: 2,
    sends: 4,
    flying: 3,
    crashes: 2,
    impatient: false,
    rpc: true,
    liar: false,
    third: 0,
    cancels: 0,
    reorgs: 0,
    refunds: None,
    mutation: None,
};

/// The same with a buyer who signs anew at any time.
const IMPATIENT: Config = Config { name: "exact: impatient buyer", impatient: true, ..EXACT };

/// The client-broadcast rail.
const LANDING: landing::Config = landing::Config {
    name: "landing: one payment",
    payments: 1,
    sends: 4,
    crashes: 2,
    restores: 1,
    deep: false,
    refund_steps: true,
    mutation: None,
};

fn exact(config: Config, until: Option<&'static str>) -> Run {
    let name = config.mutation.map_or(config.name.to_owned(), |mutation| format!("exact, mistake: {mutation:?}"));
    let run = run::run(name, Exact::new(config), until, |model| model.table.taken());
    eprintln!("{}", run.line());
    run
}

fn landing(config: landing::Config, until: Option<&'static str>) -> Run {
    let name = config.mutation.map_or(config.name.to_owned(), |mutation| format!("landing, mistake: {mutation:?}"));
    let run = run::run(name, Landing::new(config), until, |model| model.table.taken());
    eprintln!("{}", run.line());
    run
}

/// The variants of the settle-after rail.
fn exact_design() -> Vec<Config> {
    let all = Config { liar: true, third: 1, cancels: 1, reorgs: 1, ..IMPATIENT };
    vec![
        EXACT,
        IMPATIENT,
        Config { name: "exact: three authorizations", auths: 3, sends: 4, crashes: 1, ..IMPATIENT },
        Config { name: "exact: somebody else submits, payer cancels", sends: 3, third: 1, cancels: 1, ..IMPATIENT },
        Config { name: "exact: facilitator lies", sends: 3, liar: true, third: 1, ..IMPATIENT },
        Config { name: "exact: a block is lost", sends: 3, reorgs: 2, ..IMPATIENT },
        Config { name: "exact: all of these", sends: 3, crashes: 1, ..all },
        Config { name: "exact: no RPC", rpc: false, ..IMPATIENT },
        Config { name: "exact: no RPC, payer cancels", rpc: false, cancels: 1, sends: 3, ..IMPATIENT },
        // a nonce of Permit2 that its owner voids, or spends on another amount; a facilitator that settles less than it was asked to
        Config {
            name: "exact-permit2: nonce voided or spent",
            rail: Rail::ExactPermit2,
            sends: 3,
            cancels: 1,
            ..IMPATIENT
        },
        Config {
            name: "upto: another amount moves",
            rail: Rail::Upto,
            sends: 3,
            cancels: 1,
            liar: true,
            crashes: 1,
            ..IMPATIENT
        },
        Config { name: "exact: refund in all its steps", auths: 1, sends: 4, third: 1, refunds: Some(1), ..EXACT },
        Config { name: "exact: refund beside a charge", sends: 2, crashes: 1, third: 1, refunds: Some(0), ..IMPATIENT },
    ]
}

/// The variants of the client-broadcast rail.
fn landing_design() -> Vec<landing::Config> {
    let two = landing::Config { payments: 2, sends: 5, ..LANDING };
    vec![
        LANDING,
        landing::Config { name: "landing: two payments of a purchase", refund_steps: false, ..two },
        landing::Config { name: "landing: restored to before the refusal", deep: true, ..LANDING },
    ]
}

/// The runs of the design, once for all tests: two at a time.
fn design() -> &'static [Run] {
    static RUNS: OnceLock<Vec<Run>> = OnceLock::new();
    RUNS.get_or_init(|| {
        type Job = Box<dyn FnOnce() -> Run + Send>;
        let exact = exact_design().into_iter().map(|config| Box::new(|| exact(config, None)) as Job);
        let landing = landing_design().into_iter().map(|config| Box::new(|| landing(config, None)) as Job);
        let jobs: Mutex<Vec<Job>> = Mutex::new(exact.chain(landing).collect());
        let work = || {
            let next = || jobs.lock().expect("no run holds the lock").pop();
            std::iter::from_fn(next).map(|job| job()).collect::<Vec<Run>>()
        };
        std::thread::scope(|scope| {
            let other = scope.spawn(work);
            let mut runs = work();
            runs.extend(other.join().expect("a move that the table doesn't have ends the run"));
            runs
        })
    })
}

#[test]
fn the_design_holds() {
    for run in design() {
        assert!(run.broken.is_empty(), "{}: {:#?}", run.name, run.broken);
        assert!(run.unreached.is_empty(), "{}: {:?} was never reached", run.name, run.unreached);
    }
}

#[test]
fn the_rails_that_we_settle_have_the_same_moves() {
    let of = |rail| MOVES.iter().filter(move |one| one.rail == rail).map(|one| (one.from, one.to)).collect::<Vec<_>>();
    for rail in Rail::SETTLED_BY_US {
        assert_eq!(of(rail), of(Rail::Exact), "{rail:?}");
    }
}

#[test]
fn every_move_is_taken() {
    let taken = design().iter().fold(0, |all, run| all | run.taken);
    let dead: Vec<&Move> =
        table::modelled().enumerate().filter(|(at, _)| taken & (1 << at) == 0).map(|(_, one)| one).collect();
    assert!(dead.is_empty(), "no run of the design takes {dead:#?}");
}

fn caught(run: &Run, property: &str) {
    let steps = run.steps(property).unwrap_or_else(|| panic!("{}: `{property}` holds all the same", run.name));
    eprintln!("    breaks `{property}` in {} steps: {}", steps.len(), steps.join(", "));
}

#[test]
fn each_mistake_on_the_exact_rail_is_caught() {
    let cases = [
        (Mutation::VerifyFrees, names::FINAL, EXACT),
        (Mutation::LostIsRefusal, names::REFUSAL, EXACT),
        (Mutation::TakeOverLive, names::REFUSAL, EXACT),
        (Mutation::NoIntent, names::REFUSAL, EXACT),
        (Mutation::NonceUsedIsRefusal, names::REFUSAL, EXACT),
        (Mutation::NoHold, names::ONCE, IMPATIENT),
        (Mutation::NoFreeAnswer, names::ONCE, IMPATIENT),
        (Mutation::BelievesLaterDenial, names::REFUSAL, EXACT),
        (Mutation::BelievesFailedTransaction, names::REFUSAL, EXACT),
        (Mutation::ExpiryIsProof, names::KEPT, Config { rpc: false, ..EXACT }),
        (Mutation::NoFence, names::ONCE, IMPATIENT),
        (Mutation::AnyAmount, names::DELIVERED, Config { cancels: 1, ..EXACT }),
    ];
    for (mutation, property, config) in cases {
        caught(&exact(Config { mutation: Some(mutation), ..config }, Some(property)), property);
    }
}

#[test]
fn each_mistake_on_the_landing_rail_is_caught() {
    use landing::{Config, Mutation, names};
    let cases = [
        (Mutation::RandomRefundNonce, names::REFUND, LANDING),
        (Mutation::HashIsProof, names::KEPT, LANDING),
        (Mutation::NoSweep, names::KEPT, LANDING),
        (Mutation::NoHold, names::ONCE, Config { payments: 2, ..LANDING }),
        (Mutation::WorksAfterRestore, names::BOTH, Config { deep: true, ..LANDING }),
    ];
    for (mutation, property, config) in cases {
        caught(&landing(Config { mutation: Some(mutation), ..config }, Some(property)), property);
    }
}

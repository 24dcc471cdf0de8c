//! Random programs against the whole service: copies, other authorizations of the same purchase, hang-ups, processes that are
//! killed at a call of a port or at any moment, third parties, cancellations, time that jumps. After each the buyer repeats
//! until he knows, the chain is looked at once, and what the chain, the rows and the buyer's own history say must agree.
//!
//! `JIM_TEST_CASES` sets the number of programs, `JIM_TEST_SEED` (printed at the start) the first of their seeds. Each thread
//! has seeds and programs of its own; how a program's steps meet in time is up to the machine, so a seed repeats a program and
//! not always its failure. Not in here: blocks that go away, a facilitator that lies about a broadcast, the client-broadcast rail.

mod check;
mod run;

use std::time::Instant;

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use crate::support::world::{Answer, Look};

/// Programs that are run when nobody asks for more.
const CASES: u32 = 48;

/// Programs that run at one time. Most of a program is waiting, and the cluster has a hundred connections.
const THREADS: u32 = 16;

/// Authorizations of the purchase.
const AUTHS: usize = 3;

/// One step of a program.
#[derive(Clone, Copy, Debug)]
enum Step {
    /// The buyer sends this authorization, beside all that still run.
    Send(usize),
    /// He hangs up on the oldest request that still runs.
    HangUp,
    /// The process dies, and another one starts.
    Kill,
    /// It will die at the n-th call of a port from now.
    KillAtCall(u32),
    /// Milliseconds.
    Wait(u64),
    /// Until every request that runs is answered.
    Finish,
    /// Somebody else submits the signed transfer.
    ThirdParty(usize),
    /// The payer cancels.
    Cancel(usize),
    /// He spends the nonce on another transfer to us.
    SpendOtherwise(usize),
    /// All windows end.
    Pass,
    Mine,
    Forget,
}

/// A program.
#[derive(Clone, Debug)]
struct Program {
    /// The seller reads the chain.
    rpc: bool,
    steps: Vec<Step>,
    answers: Vec<Answer>,
    looks: Vec<Look>,
    /// How many prices the payer has.
    purse: u128,
    /// What becomes of transfers that wait at the end.
    mined: bool,
    /// Windows end before the buyer's last repeats.
    late: bool,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let auth = || 0..AUTHS;
    let step = prop_oneof![
        12 => auth().prop_map(Step::Send),
        3 => Just(Step::HangUp),
        2 => Just(Step::Kill),
        3 => (1u32..6).prop_map(Step::KillAtCall),
        8 => (0u64..60).prop_map(Step::Wait),
        3 => Just(Step::Finish),
        1 => auth().prop_map(Step::ThirdParty),
        1 => auth().prop_map(Step::Cancel),
        1 => auth().prop_map(Step::SpendOtherwise),
        1 => Just(Step::Pass),
        2 => Just(Step::Mine),
        1 => Just(Step::Forget),
    ];
    prop::collection::vec(step, 2..14)
}

fn programs() -> impl Strategy<Value = Program> {
    let answer = prop_oneof![
        3 => Just(Answer::Success),
        2 => Just(Answer::Slow),
        2 => Just(Answer::Lost),
        1 => Just(Answer::MovedAndErred),
        1 => Just(Answer::MovedAndNonceUsed),
        2 => Just(Answer::Sent),
        1 => Just(Answer::SentWithTransaction),
        2 => Just(Answer::Erred),
        1 => Just(Answer::Refused),
        2 => Just(Answer::NotSent),
    ];
    let look = prop_oneof![5 => Just(Look::Honest), 3 => Just(Look::Slow), 1 => Just(Look::Unreachable)];
    let calls = (prop::collection::vec(answer, 0..6), prop::collection::vec(look, 0..4));
    let ends = (prop_oneof![9 => Just(9u128), 1 => Just(0)], any::<bool>(), prop::bool::weighted(0.3));
    (any::<bool>(), steps(), calls, ends).prop_map(|(rpc, steps, (answers, looks), (purse, mined, late))| Program {
        rpc,
        steps,
        answers,
        looks,
        purse,
        mined,
        late,
    })
}

fn asked(name: &str) -> Option<u64> {
    std::env::var(name).ok()?.parse().ok()
}

#[test]
fn random_interleavings_leave_chain_rows_and_history_in_agreement() {
    let cases = asked("JIM_TEST_CASES").and_then(|n| u32::try_from(n).ok()).unwrap_or(CASES);
    let mut fresh = [0; 8];
    getrandom::fill(&mut fresh).expect("random bytes");
    let seed = asked("JIM_TEST_SEED").unwrap_or(u64::from_be_bytes(fresh) >> 16);
    eprintln!("interleavings: {cases} programs, JIM_TEST_SEED={seed}");
    let start = Instant::now();
    std::thread::scope(|scope| {
        let work = |n: u32| scope.spawn(move || one_thread(cases.div_ceil(THREADS), seed + u64::from(n)));
        let all: Vec<_> = (0..THREADS).map(work).collect();
        let failed: Vec<String> = all.into_iter().filter_map(|one| one.join().expect("no panic")).collect();
        assert!(failed.is_empty(), "JIM_TEST_SEED={seed}\n{}", failed.join("\n"));
    });
    eprintln!("interleavings: {cases} programs in {:?}", start.elapsed());
}

/// Runs its share; the smallest program that fails, and how.
fn one_thread(cases: u32, seed: u64) -> Option<String> {
    let mut bytes = [0; 32];
    bytes[..8].copy_from_slice(&seed.to_be_bytes());
    let config = Config { cases, max_shrink_iters: 60, failure_persistence: None, ..Config::default() };
    let mut runner = TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &bytes));
    match runner.run(&programs(), |program| run::run(&program).map_err(TestCaseError::fail)) {
        Ok(()) => None,
        Err(TestError::Fail(reason, program)) => Some(format!("{reason}\n{program:#?}")),
        Err(TestError::Abort(reason)) => Some(format!("given up: {reason}")),
    }
}

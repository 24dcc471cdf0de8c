//! The settle-after rail (`exact`): state of the world, what can happen next, and the variants.
//!
//! Two replicas with crash epochs share one database. A buyer wants one purchase; he holds up to three authorizations for it
//! and sends any of them any number of times (within the budget) at once. Every commit is one step, every outside call and
//! the record of its answer are two, and a crash fits between any two steps. Not in here: time as a quantity (the window for a
//! free answer never closes, a lease ends by a step `Fence`), a second payer, and a database that loses commits.

mod rules;
mod steps;
mod world;

use jim::machine::{Rail, State};
use stateright::{Model, Property};

use crate::refund::{self, Refund};
use crate::table::Table;
pub(crate) use rules::names;
use world::{Broadcast, Reply};

/// A mistake that can be built in. The checker must find what it breaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// A failed verify frees the claim instead of refusing.
    VerifyFrees,
    /// 402, and the claim dropped, after a lost settle answer.
    LostIsRefusal,
    /// A live claim may be taken over, and nobody asks whose claim it is when he writes.
    TakeOverLive,
    /// Settle is called without a durable intent.
    NoIntent,
    /// "Nonce used" on our own retry is a refusal.
    NonceUsedIsRefusal,
    /// Another authorization of a live purchase is worked on.
    NoHold,
    /// A purchase that was charged is not looked for.
    NoFreeAnswer,
    /// `success: false` without a transaction is believed on a later attempt too.
    BelievesLaterDenial,
    /// `success: false` with a transaction is believed.
    BelievesFailedTransaction,
    /// Without an RPC, expiry alone is taken for proof that no money moved.
    ExpiryIsProof,
    /// Whoever takes a purchase over leaves the claim of the dead as it is: who only seemed dead writes under it.
    NoFence,
    /// Money under the nonce is taken for the price, whatever it is.
    AnyAmount,
}

/// One variant. Numbers are budgets: how often a thing may happen in one run.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) name: &'static str,
    /// One of those that we settle.
    pub(crate) rail: Rail,
    /// Authorizations of the one purchase.
    pub(crate) auths: usize,
    /// Requests that change something; those that are only told to wait are free.
    pub(crate) sends: u8,
    /// Requests at once.
    pub(crate) flying: usize,
    /// Crashes and lost leases of replicas, and deaths of refund workers.
    pub(crate) crashes: u8,
    /// The buyer signs anew without having read a refusal.
    pub(crate) impatient: bool,
    /// The seller can read the chain.
    pub(crate) rpc: bool,
    /// The facilitator says no although it has sent the transfer.
    pub(crate) liar: bool,
    /// Transfers submitted by somebody else.
    pub(crate) third: u8,
    /// Authorizations cancelled by the payer, or whose nonce he spends on a transfer to us of another amount.
    pub(crate) cancels: u8,
    /// Blocks lost after evidence was read in them.
    pub(crate) reorgs: u8,
    /// Refunds in all their steps (otherwise in one), and restores of their rows.
    pub(crate) refunds: Option<u8>,
    pub(crate) mutation: Option<Mutation>,
}

/// What one authorization is on chain.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Chain {
    #[default]
    Unused,
    /// The transfer is on its way and may be mined or forgotten.
    Pending,
    Moved,
    Cancelled,
    /// The payer spent the nonce on another transfer to us: money came, but not the price.
    Odd,
}

/// One authorization: its cell in the database, and the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Pay {
    // the database
    pub(crate) state: Option<State>,
    /// Who works on it: 0 nobody, a replica in its present epoch, or the dead.
    pub(crate) owner: u8,
    /// Intents to settle.
    pub(crate) attempts: u8,
    /// Those that may have reached the facilitator, one bit each: all but the ones whose connection was refused.
    pub(crate) sent: u8,
    /// The body of a call whose outcome is unknown is stored.
    pub(crate) call: bool,
    /// Settled without proof.
    pub(crate) unproven: bool,
    /// An answer is stored.
    pub(crate) answer: bool,
    pub(crate) refund: Refund,
    // the world
    pub(crate) chain: Chain,
    /// The transfer goes back to a settle call of ours.
    pub(crate) by_us: bool,
    /// Money was here at least once (a reorg may have taken it back).
    pub(crate) came: bool,
    pub(crate) expired: bool,
    // the buyer
    /// Was told 402 or `charged: false`.
    pub(crate) told: bool,
    /// Was given the memo for it.
    pub(crate) served: bool,
}

/// Where a request stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum At {
    /// The claim is committed; asks the facilitator to verify. With the payment whose answer it is to take over.
    Verify(Option<usize>),
    /// Verified; will pay for the stored answer of that payment.
    TakeOver(usize),
    /// Verified; the memo is being made.
    Work,
    /// The intent is committed; calls settle.
    Call,
    /// Has this answer; will record it.
    Record(Reply),
}

/// One running request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Req {
    pub(crate) auth: usize,
    /// Who took it; a request that outlives its lease runs on.
    pub(crate) owner: u8,
    /// Which settle call of the authorization it is; 0 before there is one.
    pub(crate) attempt: u8,
    /// The buyer asked under this authorization, which waits for what becomes of `auth`.
    pub(crate) waits: Option<usize>,
    pub(crate) at: At,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) pay: [Pay; 3],
    /// In order, so that two worlds that differ only in the order of arrival are one.
    pub(crate) flying: Vec<Req>,
    pub(crate) sends: u8,
    pub(crate) crashes: u8,
    pub(crate) third: u8,
    pub(crate) cancels: u8,
    pub(crate) reorgs: u8,
    pub(crate) restores: u8,
    /// A crash lost a settle answer after the money had moved.
    pub(crate) lost_answer: bool,
    /// A memo was given for a second authorization, from the first.
    pub(crate) free: bool,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// The buyer's request arrives at a replica and makes its first commit.
    Send {
        auth: usize,
        replica: usize,
    },
    VerifyOk(usize),
    VerifyFails(usize),
    VerifyUnreachable(usize),
    /// The memo passed: its bytes and the intent to settle are one commit.
    Done(usize),
    /// The memo passed and the client is gone: stored, not settled.
    DoneForNobody(usize),
    /// The stored answer of another authorization changes hands, with the intent to settle it.
    TakeOver(usize),
    GateRefuses(usize),
    /// The handler ends early; the guard gives the claim back.
    GiveBack(usize),
    /// The facilitator acts on settle and answers.
    Settle(usize, Broadcast, Reply),
    /// The answer is recorded and passed on.
    Record(usize),
    /// All requests of a replica end.
    Crash(usize),
    /// A replica's lease is lost; its requests don't know.
    Fence(usize),
    Mine(usize),
    Drop(usize),
    Expire(usize),
    ThirdParty(usize),
    Cancel(usize),
    /// The payer spends the nonce on another transfer to us.
    SpendOtherwise(usize),
    Reorg(usize),
    /// The reconciler looks at one payment.
    Reconcile(usize),
    Refund(usize, refund::Act),
}

/// The model: a variant and its table.
#[derive(Debug)]
pub(crate) struct Exact {
    pub(crate) config: Config,
    pub(crate) table: Table,
}

impl Exact {
    pub(crate) fn new(config: Config) -> Self {
        let table = Table::new(config.rail, config.mutation.is_none());
        Self { config, table }
    }

    pub(crate) fn has(&self, mutation: Mutation) -> bool {
        self.config.mutation == Some(mutation)
    }
}

impl Model for Exact {
    type State = World;
    type Action = Act;

    fn init_states(&self) -> Vec<World> {
        let Config { sends, crashes, third, cancels, reorgs, refunds, .. } = self.config;
        vec![World {
            pay: [Pay::default(); 3],
            flying: Vec::new(),
            sends,
            crashes,
            third,
            cancels,
            reorgs,
            restores: refunds.unwrap_or(0),
            lost_answer: false,
            free: false,
        }]
    }

    fn actions(&self, world: &World, acts: &mut Vec<Act>) {
        self.request_acts(world, acts);
        self.world_acts(world, acts);
    }

    fn next_state(&self, last: &World, act: Act) -> Option<World> {
        let mut world = last.clone();
        let changed = match act {
            Act::Send { auth, replica } => self.arrive(&mut world, auth, replica),
            Act::VerifyOk(_)
            | Act::VerifyFails(_)
            | Act::VerifyUnreachable(_)
            | Act::Done(_)
            | Act::DoneForNobody(_)
            | Act::TakeOver(_)
            | Act::GateRefuses(_)
            | Act::GiveBack(_)
            | Act::Settle(..)
            | Act::Record(_) => {
                self.advance(&mut world, act);
                true
            }
            Act::Reconcile(auth) => self.reconcile(&mut world, auth),
            Act::Refund(auth, step) => self.refund(&mut world, auth, step),
            Act::Crash(_)
            | Act::Fence(_)
            | Act::Mine(_)
            | Act::Drop(_)
            | Act::Expire(_)
            | Act::ThirdParty(_)
            | Act::Cancel(_)
            | Act::SpendOtherwise(_)
            | Act::Reorg(_) => {
                world.happen(act);
                true
            }
        };
        world.normalise();
        changed.then_some(world)
    }

    fn properties(&self) -> Vec<Property<Self>> {
        rules::properties(&self.config)
    }
}

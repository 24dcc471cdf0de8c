//! The client-broadcast rail: the buyer moves the money first, then asks.
//!
//! Two payments of one purchase; two replicas; a sweep that finds money whose request never came;
//! refunds in all their steps. Not in here: money under an unknown nonce (it is parked and shown to operators, no state), and
//! a payment above the price (the difference goes back as part of the sale).

mod rules;
mod steps;

use jim::machine::{Rail, State};
use stateright::{Model, Property};

use crate::lease::owner;
use crate::refund::{self, Refund};
use crate::table::Table;
pub(crate) use rules::names;

/// A mistake that can be built in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Mutation {
    /// Each refund is signed with a fresh nonce.
    RandomRefundNonce,
    /// A refund counts as paid when it has a hash.
    HashIsProof,
    /// Nobody looks for money whose request never came.
    NoSweep,
    /// Another payment of a live purchase is worked on.
    NoHold,
    /// Work whose owner died is taken up again if the chain shows no refund (after a restore one may be on its way).
    WorksAfterRestore,
}

/// One variant; numbers are budgets.
#[derive(Clone, Debug)]
pub(crate) struct Config {
    pub(crate) name: &'static str,
    pub(crate) payments: usize,
    pub(crate) sends: u8,
    pub(crate) crashes: u8,
    /// Restores of a backup from before the refund.
    pub(crate) restores: u8,
    /// The backup is from before the refusal as well: the payment is `Landed` again.
    pub(crate) deep: bool,
    /// Refunds in all their steps; otherwise in one.
    pub(crate) refund_steps: bool,
    pub(crate) mutation: Option<Mutation>,
}

/// One payment: its cell, and the truth.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub(crate) struct Pay {
    pub(crate) state: Option<State>,
    pub(crate) owner: u8,
    pub(crate) answer: bool,
    pub(crate) refund: Refund,
    /// The money is here.
    pub(crate) came: bool,
    /// The offer and its grace are over: the sweep may take it.
    pub(crate) over: bool,
    /// Was told that it is refused and goes back.
    pub(crate) told: bool,
    pub(crate) served: bool,
}

/// One running request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) struct Req {
    pub(crate) pay: usize,
    pub(crate) owner: u8,
    /// The answer is committed; will be sent.
    pub(crate) done: bool,
}

/// Everything.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(crate) struct World {
    pub(crate) pay: [Pay; 2],
    pub(crate) flying: Vec<Req>,
    pub(crate) sends: u8,
    pub(crate) crashes: u8,
    pub(crate) restores: u8,
    /// A crash lost an answer that was committed.
    pub(crate) lost_answer: bool,
    pub(crate) free: bool,
}

/// One step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Act {
    /// The buyer's transfer is mined.
    Land(usize),
    Send {
        pay: usize,
        replica: usize,
        /// The request itself is refused (chain, rate, input), after the money is recorded.
        bad: bool,
    },
    Done(usize),
    Refuse(usize),
    Deliver(usize),
    Crash(usize),
    Fence(usize),
    OfferOver(usize),
    /// Sweep and recovery look at one payment.
    Reconcile(usize),
    Refund(usize, refund::Act),
}

/// The model: a variant and its table.
#[derive(Debug)]
pub(crate) struct Landing {
    pub(crate) config: Config,
    pub(crate) table: Table,
}

impl Landing {
    pub(crate) fn new(config: Config) -> Self {
        let table = Table::new(Rail::ClientBroadcast, config.mutation.is_none());
        Self { config, table }
    }
}

impl Model for Landing {
    type State = World;
    type Action = Act;

    fn init_states(&self) -> Vec<World> {
        let Config { sends, crashes, restores, .. } = self.config;
        let pay = [Pay::default(); 2];
        vec![World { pay, flying: Vec::new(), sends, crashes, restores, lost_answer: false, free: false }]
    }

    fn actions(&self, world: &World, acts: &mut Vec<Act>) {
        for (at, req) in world.flying.iter().enumerate() {
            if req.done {
                acts.push(Act::Deliver(at));
            } else {
                acts.extend([Act::Done(at), Act::Refuse(at)]);
            }
        }
        for replica in 0..2 {
            if world.crashes > 0 && world.flying.iter().any(|req| req.owner == owner(replica)) {
                acts.extend([Act::Crash(replica), Act::Fence(replica)]);
            }
        }
        (0..self.config.payments).for_each(|at| self.offer(world, at, acts));
    }

    fn next_state(&self, last: &World, act: Act) -> Option<World> {
        let mut world = last.clone();
        let changed = match act {
            Act::Land(at) => !std::mem::replace(&mut world.pay[at].came, true),
            Act::Send { pay, replica, bad } => self.arrive(&mut world, pay, replica, bad),
            Act::Done(at) => {
                let req = world.flying.remove(at);
                if self.finish(&mut world, req, State::Settled) {
                    world.pay[req.pay].answer = true;
                    world.flying.push(Req { done: true, ..req });
                }
                true
            }
            Act::Refuse(at) => {
                let req = world.flying.remove(at);
                world.pay[req.pay].told |= self.finish(&mut world, req, State::RefundOwed);
                true
            }
            Act::Deliver(at) => {
                let req = world.flying.remove(at);
                world.pay[req.pay].served = true;
                true
            }
            Act::Crash(replica) => {
                world.crash(replica);
                true
            }
            Act::Fence(replica) => {
                world.end_lease(replica);
                true
            }
            Act::OfferOver(at) => !std::mem::replace(&mut world.pay[at].over, true),
            Act::Reconcile(at) => self.reconcile(&mut world, at),
            Act::Refund(at, step) => {
                self.refund(&mut world, at, step);
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

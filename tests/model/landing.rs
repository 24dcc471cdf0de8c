//! The client-broadcast rail: the buyer moves the money first, then asks.
//!
//! payments.md sections 3 and 5. Two payments of one purchase; two replicas; a sweep that finds money whose request never came;
//! refunds in all their steps. Not in here: money under an unknown nonce (it is parked and shown to operators, no state), and
//! a payment above the price (the difference goes back as part of the sale).

mod rules;

use jim::machine::{Rail, State};
use stateright::{Model, Property};

use crate::lease::{DEAD, NOBODY, live, owner, swapped};
use crate::refund::{self, Flaws, Outcome, Refund, Row};
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
    /// After a restore nobody asks the chain whether the refund was paid before he works again.
    NoLookAfterRestore,
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

    fn has(&self, mutation: Mutation) -> bool {
        self.config.mutation == Some(mutation)
    }

    fn flaws(&self) -> Flaws {
        let random_nonce = self.has(Mutation::RandomRefundNonce);
        Flaws { random_nonce, hash_is_proof: self.has(Mutation::HashIsProof) }
    }

    fn put(&self, world: &mut World, at: usize, to: State, by: u8) {
        let pay = &mut world.pay[at];
        self.table.take(&mut pay.state, to);
        pay.owner = by;
        if to == State::RefundOwed {
            // the same commit
            pay.refund.owe();
        }
    }

    /// The first commit of a request. False: told to wait, or nothing new.
    fn arrive(&self, world: &mut World, at: usize, replica: usize, bad: bool) -> bool {
        world.sends -= 1;
        let me = owner(replica);
        let Pay { state, owner: by, .. } = world.pay[at];
        match state {
            None => {
                let other = world.pay[1 - at].state;
                if other == Some(State::Settled) {
                    // answered from that one; this money goes back
                    self.put(world, at, State::RefundOwed, NOBODY);
                    (world.free, world.pay[at].told) = (true, true);
                    return true;
                }
                if other.is_some_and(State::holds_purchase) && !self.has(Mutation::NoHold) {
                    return false;
                }
                self.put(world, at, State::Landed, me);
                if bad {
                    self.put(world, at, State::RefundOwed, NOBODY);
                    world.pay[at].told = true;
                } else {
                    world.flying.push(Req { pay: at, owner: me, done: false });
                }
                true
            }
            Some(State::Landed) if live(by) || bad => false,
            // what a restore brought back may have been refunded
            Some(State::Landed) if self.paid_back(&world.pay[at]) => false,
            Some(State::Landed) => {
                self.put(world, at, State::Landed, me);
                world.flying.push(Req { pay: at, owner: me, done: false });
                true
            }
            Some(State::Settled) => !std::mem::replace(&mut world.pay[at].served, true),
            Some(State::RefundOwed | State::Refunded) => !std::mem::replace(&mut world.pay[at].told, true),
            Some(_) => false,
        }
    }

    fn paid_back(&self, pay: &Pay) -> bool {
        let paid = pay.refund.paid > 0 || pay.refund.pending > 0;
        self.config.deep && paid && !self.has(Mutation::NoLookAfterRestore)
    }

    /// Compare and set from our own `Landed`.
    fn finish(&self, world: &mut World, req: Req, to: State) -> bool {
        let pay = &world.pay[req.pay];
        let ours = pay.state == Some(State::Landed) && pay.owner == req.owner;
        if ours {
            self.put(world, req.pay, to, NOBODY);
        }
        ours
    }

    fn reconcile(&self, world: &mut World, at: usize) -> bool {
        let pay = world.pay[at];
        let orphan = pay.state.is_none() && pay.came && pay.over && !self.has(Mutation::NoSweep);
        let left = pay.state == Some(State::Landed) && !live(pay.owner);
        if orphan || left {
            self.put(world, at, State::RefundOwed, NOBODY);
        }
        orphan || left
    }

    fn refund(&self, world: &mut World, at: usize, step: refund::Act) {
        match step {
            refund::Act::Die(_) => world.crashes -= 1,
            refund::Act::Restore => world.restores -= 1,
            refund::Act::Work(_) | refund::Act::Mine | refund::Act::Drop => {}
        }
        let pay = &mut world.pay[at];
        match pay.refund.step(step, self.flaws()) {
            Outcome::Done => self.put(world, at, State::Refunded, NOBODY),
            // an older database, not a move
            Outcome::Back if self.config.deep => {
                pay.refund.row = Row::None;
                (pay.state, pay.owner) = (Some(State::Landed), DEAD);
            }
            Outcome::Back => pay.state = Some(State::RefundOwed),
            Outcome::Plain | Outcome::Again => {}
        }
    }

    fn offer(&self, world: &World, at: usize, acts: &mut Vec<Act>) {
        let pay = &world.pay[at];
        if !pay.came {
            // the second transfer is made without having read anything about the first
            if at == 0 || world.pay[at - 1].came {
                acts.push(Act::Land(at));
            }
            return;
        }
        if world.sends > 0 {
            let send = |replica| [false, true].map(|bad| Act::Send { pay: at, replica, bad });
            acts.extend((0..2).flat_map(send));
        }
        if !pay.over && pay.state.is_none() {
            acts.push(Act::OfferOver(at));
        }
        acts.push(Act::Reconcile(at));
        pay.refund.acts(world.crashes, world.restores, |step| acts.push(Act::Refund(at, step)));
    }
}

impl World {
    fn end_lease(&mut self, replica: usize) {
        self.crashes -= 1;
        let owners = self.pay.iter_mut().map(|pay| &mut pay.owner);
        for name in owners.chain(self.flying.iter_mut().map(|req| &mut req.owner)) {
            if *name == owner(replica) {
                *name = DEAD;
            }
        }
    }

    /// One form for all worlds that can't be told apart. A request whose claim is gone can do nothing more on this rail.
    fn normalise(&mut self) {
        let pay = self.pay;
        self.flying.retain(|req| req.done || req.owner != DEAD || pay[req.pay].owner == DEAD);
        self.flying.sort_unstable();
        let mut other = self.flying.clone();
        for req in &mut other {
            req.owner = swapped(req.owner);
        }
        other.sort_unstable();
        let owners = self.pay.map(|pay| pay.owner);
        if (owners.map(swapped), &other) < (owners, &self.flying) {
            self.flying = other;
            for pay in &mut self.pay {
                pay.owner = swapped(pay.owner);
            }
        }
    }

    fn crash(&mut self, replica: usize) {
        self.lost_answer |= self.flying.iter().any(|req| req.done && req.owner == owner(replica));
        self.flying.retain(|req| req.owner != owner(replica));
        self.end_lease(replica);
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

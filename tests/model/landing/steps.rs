//! What the service does on the client-broadcast rail: requests, the sweep, refunds; and how its replicas die.

use jim::machine::State;

use super::{Act, Landing, Mutation, Pay, Req, World};
use crate::lease::{DEAD, NOBODY, live, owner, swapped};
use crate::refund::{self, Flaws, Outcome, Row};

impl Landing {
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
    pub(super) fn arrive(&self, world: &mut World, at: usize, replica: usize, bad: bool) -> bool {
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
            // a backup may have brought it back, with its refund on its way: it can only go back
            Some(State::Landed) if !self.works_again(&world.pay[at]) => false,
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

    fn works_again(&self, pay: &Pay) -> bool {
        self.has(Mutation::WorksAfterRestore) && pay.refund.paid == 0
    }

    /// Compare and set from our own `Landed`.
    pub(super) fn finish(&self, world: &mut World, req: Req, to: State) -> bool {
        let pay = &world.pay[req.pay];
        let ours = pay.state == Some(State::Landed) && pay.owner == req.owner;
        if ours {
            self.put(world, req.pay, to, NOBODY);
        }
        ours
    }

    pub(super) fn reconcile(&self, world: &mut World, at: usize) -> bool {
        let pay = world.pay[at];
        let orphan = pay.state.is_none() && pay.came && pay.over && !self.has(Mutation::NoSweep);
        let left = pay.state == Some(State::Landed) && !live(pay.owner);
        if orphan || left {
            self.put(world, at, State::RefundOwed, NOBODY);
        }
        orphan || left
    }

    pub(super) fn refund(&self, world: &mut World, at: usize, step: refund::Act) {
        if !self.config.refund_steps {
            world.pay[at].refund.pay_at_once();
            self.put(world, at, State::Refunded, NOBODY);
            return;
        }
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

    pub(super) fn offer(&self, world: &World, at: usize, acts: &mut Vec<Act>) {
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
        if !self.config.refund_steps {
            if pay.state == Some(State::RefundOwed) {
                acts.push(Act::Refund(at, refund::Act::Mine));
            }
            return;
        }
        pay.refund.acts(world.crashes, world.restores, |step| acts.push(Act::Refund(at, step)));
    }
}

impl World {
    pub(super) fn end_lease(&mut self, replica: usize) {
        self.crashes -= 1;
        let owners = self.pay.iter_mut().map(|pay| &mut pay.owner);
        for name in owners.chain(self.flying.iter_mut().map(|req| &mut req.owner)) {
            if *name == owner(replica) {
                *name = DEAD;
            }
        }
    }

    /// One form for all worlds that can't be told apart. A request whose claim is gone can do nothing more on this rail.
    pub(super) fn normalise(&mut self) {
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

    pub(super) fn crash(&mut self, replica: usize) {
        self.lost_answer |= self.flying.iter().any(|req| req.done && req.owner == owner(replica));
        self.flying.retain(|req| req.owner != owner(replica));
        self.end_lease(replica);
    }
}

//! What the service does with one request: the first commit, then verify, work, settle and record.
//!
//! payments.md sections 0a, 3 and 4. A request that is only told to wait (409, 503) changes nothing and is no step.

use jim::machine::State;

use super::world::replies;
use super::{Act, At, Exact, Mutation, Pay, Reply, Req, World};
use crate::lease::{NOBODY, live, owner};

/// What the other authorizations of the purchase allow.
enum Purchase {
    /// Nobody holds it.
    Open,
    /// One was charged and answered.
    Answered,
    /// One may be charged still.
    Held,
}

impl Exact {
    /// Offers the steps of requests.
    pub(super) fn request_acts(&self, world: &World, acts: &mut Vec<Act>) {
        if world.sends > 0 && world.flying.len() < self.config.flying {
            for auth in 0..self.config.auths {
                // nobody signs a second authorization before he has sent the first
                let signed = auth == 0
                    || world.pay[auth - 1].told
                    || (self.config.impatient && world.pay[auth - 1].state.is_some());
                if signed {
                    acts.extend((0..2).map(|replica| Act::Send { auth, replica }));
                }
            }
        }
        for (at, req) in world.flying.iter().enumerate() {
            if at > 0 && world.flying[at - 1] == *req {
                continue;
            }
            let pay = &world.pay[req.auth];
            match req.at {
                At::Verify => {
                    if pay.chain == super::Chain::Unused && !pay.expired {
                        acts.push(Act::VerifyOk(at));
                    }
                    acts.extend([Act::VerifyFails(at), Act::VerifyUnreachable(at)]);
                }
                At::Work => {
                    acts.extend([Act::Done(at), Act::DoneForNobody(at), Act::GateRefuses(at), Act::GiveBack(at)]);
                }
                At::Call => {
                    acts.extend(replies(pay, self.config.liar).map(|(sent, reply)| Act::Settle(at, sent, reply)));
                }
                At::Record(_) => acts.push(Act::Record(at)),
            }
        }
    }

    /// The first commit of a request. False: nothing changes, the buyer is told to wait or gets what he got before.
    pub(super) fn arrive(&self, world: &mut World, auth: usize, replica: usize) -> bool {
        world.sends -= 1;
        let me = owner(replica);
        let live = live(world.pay[auth].owner) && !self.has(Mutation::TakeOverLive);
        match world.pay[auth].state {
            None | Some(State::Abandoned) => match self.purchase(world, auth) {
                Purchase::Held => return false,
                Purchase::Answered => self.answer_free(world, auth),
                Purchase::Open => {
                    self.supersede_others(world, auth);
                    self.claim(world, auth, me);
                }
            },
            Some(State::Claimed) if live => return false,
            Some(State::Claimed) => {
                self.put(world, auth, State::Abandoned);
                self.claim(world, auth, me);
            }
            Some(State::Settling) if live => return false,
            Some(State::Settling) => {
                self.put(world, auth, State::Unknown);
                self.intend(world, auth, me);
            }
            Some(State::Ready | State::Unknown) => self.intend(world, auth, me),
            // the stored answer again
            Some(State::Settled) => return !std::mem::replace(&mut world.pay[auth].served, true),
            Some(State::Refused | State::Denied | State::Dead) => {
                return !std::mem::replace(&mut world.pay[auth].told, true);
            }
            Some(State::Free | State::Superseded) => return self.answer_superseded(world, auth),
            Some(State::RefundOwed | State::Refunded | State::Landed) => return false,
        }
        true
    }

    fn purchase(&self, world: &World, auth: usize) -> Purchase {
        let others = || (0..self.config.auths).filter(|other| *other != auth).map(|other| &world.pay[other]);
        if others().any(|pay| pay.state == Some(State::Settled)) && !self.has(Mutation::NoFreeAnswer) {
            return Purchase::Answered;
        }
        let held = others().any(|pay| match pay.state {
            Some(State::Claimed) => live(pay.owner),
            // once something was sent to settle it, it stays
            Some(State::Ready) => pay.attempts > 0,
            Some(state) => state.holds_purchase(),
            None => false,
        });
        if held && !self.has(Mutation::NoHold) { Purchase::Held } else { Purchase::Open }
    }

    fn supersede_others(&self, world: &mut World, auth: usize) {
        for other in (0..self.config.auths).filter(|other| *other != auth) {
            let Pay { state, attempts, owner: by, answer, .. } = world.pay[other];
            if state == Some(State::Claimed) && !live(by) {
                self.put(world, other, State::Abandoned);
            }
            if matches!(world.pay[other].state, Some(State::Abandoned | State::Ready)) && attempts == 0 {
                self.put(world, other, State::Superseded);
                world.pay[auth].answer |= answer;
            }
        }
    }

    /// An earlier one was charged: its answer, and no charge.
    fn answer_free(&self, world: &mut World, auth: usize) {
        let to = if world.pay[auth].state.is_none() { State::Free } else { State::Superseded };
        self.put(world, auth, to);
        world.pay[auth].told = true;
        world.free = true;
    }

    /// A superseded one is answered from the one that took over, if that was charged; it is never charged itself.
    fn answer_superseded(&self, world: &mut World, auth: usize) -> bool {
        match self.purchase(world, auth) {
            Purchase::Held => false,
            Purchase::Answered => {
                let news = !world.free || !world.pay[auth].told;
                world.free = true;
                world.pay[auth].told = true;
                news
            }
            Purchase::Open => !std::mem::replace(&mut world.pay[auth].told, true),
        }
    }

    fn claim(&self, world: &mut World, auth: usize, me: u8) {
        self.put(world, auth, State::Claimed);
        world.pay[auth].owner = me;
        world.flying.push(Req { auth, owner: me, first: true, at: At::Verify });
    }

    /// The intent to settle a stored answer.
    fn intend(&self, world: &mut World, auth: usize, me: u8) {
        self.put(world, auth, State::Settling);
        let pay = &mut world.pay[auth];
        pay.owner = me;
        pay.attempts += 1;
        world.flying.push(Req { auth, owner: me, first: pay.attempts == 1, at: At::Call });
    }

    /// Writes the state; whoever owned it doesn't any more, unless it stays in work.
    pub(super) fn put(&self, world: &mut World, auth: usize, to: State) {
        let pay = &mut world.pay[auth];
        self.table.take(&mut pay.state, to);
        if !matches!(to, State::Claimed | State::Settling) {
            pay.owner = NOBODY;
        }
    }

    /// Compare and set from our own claim.
    fn put_own(&self, world: &mut World, req: Req, from: State, to: State) -> bool {
        let pay = &world.pay[req.auth];
        let mine = pay.owner == req.owner || self.has(Mutation::TakeOverLive);
        let ours = mine && pay.state == Some(from);
        if ours {
            self.put(world, req.auth, to);
        }
        ours
    }

    /// The next step of a running request.
    pub(super) fn advance(&self, world: &mut World, act: Act) {
        let at = match act {
            Act::VerifyOk(at) | Act::VerifyFails(at) | Act::VerifyUnreachable(at) | Act::Done(at) => at,
            Act::DoneForNobody(at) | Act::GateRefuses(at) | Act::GiveBack(at) => at,
            Act::Settle(at, ..) | Act::Record(at) => at,
            _ => unreachable!("not a step of a request: {act:?}"),
        };
        let req = world.flying.remove(at);
        let next = |at| Req { at, ..req };
        match act {
            Act::VerifyOk(_) => world.flying.push(next(At::Work)),
            Act::VerifyFails(_) if self.has(Mutation::VerifyFrees) => {
                let pay = &mut world.pay[req.auth];
                if pay.owner == req.owner {
                    (pay.state, pay.owner) = (None, NOBODY);
                }
                pay.told = true;
            }
            // written first, then answered; who doesn't own the claim any more answers from the row
            Act::VerifyFails(_) | Act::GateRefuses(_) => {
                world.pay[req.auth].told |= self.put_own(world, req, State::Claimed, State::Refused);
            }
            Act::VerifyUnreachable(_) | Act::GiveBack(_) => {
                self.put_own(world, req, State::Claimed, State::Abandoned);
            }
            Act::DoneForNobody(_) => {
                if self.put_own(world, req, State::Claimed, State::Ready) {
                    world.pay[req.auth].answer = true;
                }
            }
            Act::Done(_) if self.has(Mutation::NoIntent) => {
                world.pay[req.auth].answer = true;
                world.flying.push(next(At::Call));
            }
            Act::Done(_) => {
                if self.put_own(world, req, State::Claimed, State::Settling) {
                    let pay = &mut world.pay[req.auth];
                    pay.answer = true;
                    pay.attempts += 1;
                    pay.owner = req.owner;
                    world.flying.push(Req { first: pay.attempts == 1, ..next(At::Call) });
                }
            }
            Act::Settle(_, sent, reply) => {
                sent.happen(&mut world.pay[req.auth]);
                world.flying.push(next(At::Record(reply)));
            }
            _ => self.record(world, req),
        }
    }

    fn record(&self, world: &mut World, req: Req) {
        let At::Record(reply) = req.at else { unreachable!("nothing to record: {req:?}") };
        let from = if self.has(Mutation::NoIntent) { State::Claimed } else { State::Settling };
        let to = self.judge(reply, req.first);
        if self.has(Mutation::LostIsRefusal) && to == State::Unknown {
            let pay = &mut world.pay[req.auth];
            (pay.state, pay.owner, pay.told) = (None, NOBODY, true);
            return;
        }
        if self.put_own(world, req, from, to) {
            let pay = &mut world.pay[req.auth];
            pay.served |= to == State::Settled;
            pay.told |= to == State::Denied;
        }
    }

    /// What a settle answer means (payments.md section 1).
    fn judge(&self, reply: Reply, first: bool) -> State {
        match reply {
            Reply::Success => State::Settled,
            Reply::Denied if first || self.has(Mutation::BelievesLaterDenial) => State::Denied,
            Reply::NotSent if first => State::Ready,
            Reply::FailedWithTransaction if self.has(Mutation::BelievesFailedTransaction) => State::Denied,
            Reply::NonceUsed if self.has(Mutation::NonceUsedIsRefusal) && !first => State::Denied,
            // nobody can look it up, and we have an intent: taken for ours, marked unproven
            Reply::NonceUsed if !self.config.rpc => State::Settled,
            Reply::Denied | Reply::NotSent | Reply::FailedWithTransaction | Reply::NonceUsed | Reply::Lost => {
                State::Unknown
            }
        }
    }
}

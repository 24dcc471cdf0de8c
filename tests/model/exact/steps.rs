//! What the service does with one request: the first commit, then verify, work, settle and record.
//!
//! A request that is only told to wait (409, 503) changes nothing and is no step.

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
                At::Verify(_) => {
                    if pay.chain == super::Chain::Unused && !pay.expired {
                        acts.push(Act::VerifyOk(at));
                    }
                    acts.extend([Act::VerifyFails(at), Act::VerifyUnreachable(at)]);
                }
                At::Work => {
                    acts.extend([Act::Done(at), Act::DoneForNobody(at), Act::GateRefuses(at), Act::GiveBack(at)]);
                }
                At::TakeOver(_) => acts.extend([Act::TakeOver(at), Act::GiveBack(at)]),
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
        self.admit(world, auth, owner(replica), true)
    }

    /// `first`: whoever holds the purchase with an unknown outcome may be presented again, inside this request, once.
    fn admit(&self, world: &mut World, auth: usize, me: u8, first: bool) -> bool {
        let live = live(world.pay[auth].owner) && !self.has(Mutation::TakeOverLive);
        match world.pay[auth].state {
            Some(State::Claimed) if live => return false,
            None | Some(State::Abandoned | State::Claimed) => match self.purchase(world, auth) {
                Purchase::Held => return first && self.resolve_holder(world, auth, me),
                Purchase::Answered => self.answer_free(world, auth),
                Purchase::Open => self.claim(world, auth, me),
            },
            Some(State::Settling) if live => return false,
            Some(State::Settling) => {
                self.put(world, auth, State::Unknown);
                self.intend(world, auth, me, None);
            }
            Some(State::Ready | State::Unknown) => self.intend(world, auth, me, None),
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
        let held = others().any(|pay| match pay.state {
            Some(State::Claimed) => live(pay.owner),
            // once something was sent to settle it, it stays
            Some(State::Ready) => pay.sent > 0,
            Some(state) => state.holds_purchase(),
            None => false,
        });
        if held && !self.has(Mutation::NoHold) {
            return Purchase::Held;
        }
        let charged = others().any(|pay| pay.state == Some(State::Settled)) && !self.has(Mutation::NoFreeAnswer);
        if charged { Purchase::Answered } else { Purchase::Open }
    }

    /// A client that signs anew on every retry never sends the first payment again: its stored call is presented for it.
    fn resolve_holder(&self, world: &mut World, auth: usize, me: u8) -> bool {
        let unknown = |pay: &Pay| match pay.state {
            Some(State::Unknown) => pay.call,
            Some(State::Settling) => pay.call && !live(pay.owner),
            _ => false,
        };
        let Some(holder) = (0..self.config.auths).find(|other| *other != auth && unknown(&world.pay[*other])) else {
            return false;
        };
        self.end_of_the_dead(world, holder);
        self.intend(world, holder, me, Some(auth));
        true
    }

    /// What time did to a claim or a settle call, as an event: from here on whoever only seemed dead writes nothing under it.
    fn end_of_the_dead(&self, world: &mut World, auth: usize) {
        let pay = &world.pay[auth];
        match pay.state {
            Some(State::Claimed) if !live(pay.owner) => self.put(world, auth, State::Abandoned),
            Some(State::Settling) if !live(pay.owner) => self.put(world, auth, State::Unknown),
            _ => {}
        }
    }

    /// An earlier one was charged: its answer, and no charge.
    fn answer_free(&self, world: &mut World, auth: usize) {
        self.end_of_the_dead(world, auth);
        self.put(world, auth, State::Free);
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
        for other in 0..self.config.auths {
            if other == auth || !self.has(Mutation::NoFence) {
                self.end_of_the_dead(world, other);
            }
        }
        if world.pay[auth].state == Some(State::Claimed) {
            // taken from the living: a mistake
            self.put(world, auth, State::Abandoned);
        }
        let waits = |pay: &Pay| pay.state == Some(State::Ready) && pay.sent == 0;
        let over = (0..self.config.auths).find(|other| *other != auth && waits(&world.pay[*other]));
        self.put(world, auth, State::Claimed);
        world.pay[auth].owner = me;
        world.flying.push(Req { auth, owner: me, attempt: 0, waits: None, at: At::Verify(over) });
    }

    /// The intent to settle a stored answer.
    fn intend(&self, world: &mut World, auth: usize, me: u8, waits: Option<usize>) {
        self.put(world, auth, State::Settling);
        let pay = &mut world.pay[auth];
        pay.owner = me;
        let attempt = pay.intend();
        world.flying.push(Req { auth, owner: me, attempt, waits, at: At::Call });
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
            Act::TakeOver(at) | Act::Settle(at, ..) | Act::Record(at) => at,
            _ => unreachable!("not a step of a request: {act:?}"),
        };
        let req = world.flying.remove(at);
        let next = |at| Req { at, ..req };
        match act {
            Act::VerifyOk(_) => {
                let over = if let At::Verify(over) = req.at { over } else { None };
                world.flying.push(next(over.map_or(At::Work, At::TakeOver)));
            }
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
                world.flying.push(Req { attempt: 1, ..next(At::Call) });
            }
            Act::Done(_) => {
                if self.put_own(world, req, State::Claimed, State::Settling) {
                    let pay = &mut world.pay[req.auth];
                    pay.answer = true;
                    pay.owner = req.owner;
                    world.flying.push(Req { attempt: pay.intend(), ..next(At::Call) });
                }
            }
            Act::TakeOver(_) => self.take_over(world, req),
            Act::Settle(_, sent, reply) => {
                sent.happen(&mut world.pay[req.auth]);
                world.flying.push(next(At::Record(reply)));
            }
            _ => self.record(world, req),
        }
    }

    /// The answer and its claim change hands with the intent to settle; when either has moved on, the claim is given back.
    fn take_over(&self, world: &mut World, req: Req) {
        let At::TakeOver(other) = req.at else { unreachable!("nothing to take over: {req:?}") };
        let Pay { state, sent, .. } = world.pay[other];
        let waits = state == Some(State::Ready) && sent == 0;
        if !waits {
            self.put_own(world, req, State::Claimed, State::Abandoned);
        } else if self.put_own(world, req, State::Claimed, State::Settling) {
            self.put(world, other, State::Superseded);
            let pay = &mut world.pay[req.auth];
            pay.answer = true;
            pay.owner = req.owner;
            world.flying.push(Req { attempt: pay.intend(), at: At::Call, ..req });
        }
    }

    fn record(&self, world: &mut World, req: Req) {
        let At::Record(reply) = req.at else { unreachable!("nothing to record: {req:?}") };
        if self.has(Mutation::NoIntent) {
            let to = self.judge(reply, req, &world.pay[req.auth]);
            if self.put_own(world, req, State::Claimed, to) {
                world.pay[req.auth].told |= to == State::Denied;
                world.pay[req.auth].served |= to == State::Settled;
            }
            return;
        }
        if reply == Reply::NotSent {
            world.pay[req.auth].sent &= !bit(req.attempt);
        }
        let to = self.judge(reply, req, &world.pay[req.auth]);
        if self.has(Mutation::LostIsRefusal) && to == State::Unknown {
            let pay = &mut world.pay[req.auth];
            (pay.state, pay.owner, pay.told) = (None, NOBODY, true);
            return;
        }
        world.pay[req.auth].call |= reply != Reply::Success;
        // an answer that comes after the end of its lease counts when it says "charged"
        let late = to == State::Settled && matches!(world.pay[req.auth].state, Some(State::Settling | State::Unknown));
        if late {
            self.put(world, req.auth, to);
        }
        if late || self.put_own(world, req, State::Settling, to) {
            let pay = &mut world.pay[req.auth];
            pay.unproven |= to == State::Settled && reply != Reply::Success;
            pay.served |= to == State::Settled && req.waits.is_none();
            pay.told |= to == State::Denied && req.waits.is_none();
        }
        // the request that waited for this asks again, once
        if let Some(auth) = req.waits
            && !world.pay[req.auth].state.is_some_and(State::holds_purchase)
            && live(req.owner)
        {
            self.admit(world, auth, req.owner, false);
        }
    }

    /// What a settle answer means.
    fn judge(&self, reply: Reply, req: Req, pay: &Pay) -> State {
        let first = req.attempt <= 1;
        let earlier = pay.sent & (bit(req.attempt) - 1) != 0;
        match reply {
            Reply::Success => State::Settled,
            Reply::Denied if first || self.has(Mutation::BelievesLaterDenial) => State::Denied,
            Reply::NotSent if !earlier => State::Ready,
            Reply::FailedWithTransaction if self.has(Mutation::BelievesFailedTransaction) => State::Denied,
            Reply::NonceUsed if self.has(Mutation::NonceUsedIsRefusal) && !first => State::Denied,
            // nobody can look it up, and an earlier call of ours was sent: taken for ours, marked unproven
            Reply::NonceUsed if !self.config.rpc && earlier => State::Settled,
            // and it will never be known: the buyer may have been charged, so he gets the answer
            Reply::Denied | Reply::FailedWithTransaction | Reply::Lost
                if !self.config.rpc && earlier && pay.expired =>
            {
                State::Settled
            }
            Reply::Denied | Reply::NotSent | Reply::FailedWithTransaction | Reply::NonceUsed | Reply::Lost => {
                State::Unknown
            }
        }
    }
}

impl Pay {
    /// One more intent to settle: its number.
    fn intend(&mut self) -> u8 {
        self.attempts += 1;
        self.sent |= bit(self.attempts);
        self.attempts
    }
}

/// The bit of an attempt; the first has bit 0.
fn bit(attempt: u8) -> u8 {
    1 << attempt.saturating_sub(1)
}

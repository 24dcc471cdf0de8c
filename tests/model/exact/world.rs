//! What happens outside the requests: facilitator, chain, crashes, the reconciler, refunds.
//!
//! The reconciler reads the chain at a depth that doesn't change any more, but for
//! `Settled`, which may be reached on one confirmation: only there a block may be lost.

use jim::machine::State;

use super::{Act, At, Chain, Exact, Mutation, Pay, World};
use crate::lease::{DEAD, LOST, live, owner, swapped};
use crate::refund::{self, Flaws, Outcome};

/// What the facilitator does with a settle call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Broadcast {
    Nothing,
    /// Sent, not mined yet.
    Sent,
    Mined,
}

/// What it answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(crate) enum Reply {
    Success,
    /// Time-out, reset, 5xx, no sense, or success without a transaction.
    Lost,
    /// The connection was refused.
    NotSent,
    /// `success: false`, no transaction, a reason from before the broadcast.
    Denied,
    /// `success: false` with a transaction.
    FailedWithTransaction,
    NonceUsed,
}

impl Broadcast {
    pub(super) fn happen(self, pay: &mut Pay) {
        match self {
            Self::Nothing => return,
            Self::Sent => pay.chain = Chain::Pending,
            Self::Mined => {
                pay.chain = Chain::Moved;
                pay.came = true;
            }
        }
        pay.by_us = true;
    }
}

/// What is done, and what is answered.
type Pairs = &'static [(Broadcast, Reply)];

/// All that a settle call may do and answer. `Lost` with a transfer sent covers a call that is executed after we gave up.
pub(super) fn replies(pay: &Pay, liar: bool) -> impl Iterator<Item = (Broadcast, Reply)> {
    use Broadcast::{Mined, Nothing, Sent};
    use Reply::{Denied, FailedWithTransaction, Lost, NonceUsed, NotSent, Success};
    let always: Pairs = &[(Nothing, Lost), (Nothing, NotSent), (Nothing, Denied)];
    let (here, lies): (Pairs, Pairs) = match pay.chain {
        // only `expired` and its like, whatever became of it before
        Chain::Unused | Chain::Moved if pay.expired => (&[], &[]),
        Chain::Unused => (&[(Mined, Success), (Sent, Lost), (Sent, FailedWithTransaction)], &[(Sent, Denied)]),
        Chain::Pending => (&[(Mined, Success), (Nothing, FailedWithTransaction)], &[]),
        // an empty wallet is the reason for `Denied`
        Chain::Moved if pay.by_us => (&[(Nothing, NonceUsed), (Nothing, Success)], &[]),
        Chain::Moved | Chain::Cancelled | Chain::Odd => (&[(Nothing, NonceUsed)], &[]),
    };
    let lies = if liar { lies } else { &[] };
    always.iter().chain(here).chain(lies).copied()
}

/// True while a request whose claim has gone to somebody else may still do something.
fn matters(req: &super::Req, pay: &Pay) -> bool {
    let open = matches!(pay.state, Some(State::Settling | State::Unknown));
    match req.at {
        At::Call => true,
        At::Record(Reply::Success | Reply::NonceUsed | Reply::NotSent) => open,
        At::Record(_) => false,
        At::Verify(_) | At::TakeOver(_) | At::Work => false,
    }
}

impl World {
    /// Brings the world into the form in which it is kept: one form for all worlds that can't be told apart.
    ///
    /// A request that outlived its lease and whose claim is gone is only kept while it may still call settle, or has an answer
    /// that counts however late it is. Replicas are alike, and so are requests, but for what they do.
    pub(super) fn normalise(&mut self) {
        for req in &mut self.flying {
            if req.owner == DEAD && self.pay[req.auth].owner != DEAD {
                req.owner = LOST;
            }
        }
        let pay = self.pay;
        self.flying.retain(|req| req.owner != LOST || matters(req, &pay[req.auth]));
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

    /// Crashes, and what the chain does.
    pub(super) fn happen(&mut self, act: Act) {
        match act {
            Act::Crash(replica) => {
                let dead = owner(replica);
                let lost = |req: &super::Req| matches!(req.at, At::Record(_)) && req.owner == dead;
                let came = self.flying.iter().any(|req| lost(req) && self.pay[req.auth].came);
                self.lost_answer |= came;
                self.flying.retain(|req| req.owner != dead);
                self.end_lease(replica);
            }
            Act::Fence(replica) => self.end_lease(replica),
            Act::Mine(auth) => {
                self.pay[auth].chain = Chain::Moved;
                self.pay[auth].came = true;
            }
            Act::Drop(auth) => {
                self.pay[auth].chain = Chain::Unused;
                self.pay[auth].by_us = false;
            }
            Act::Expire(auth) => self.pay[auth].expired = true,
            Act::ThirdParty(auth) => {
                self.third -= 1;
                self.pay[auth].chain = Chain::Moved;
                self.pay[auth].came = true;
            }
            Act::Cancel(auth) => {
                self.cancels -= 1;
                self.pay[auth].chain = Chain::Cancelled;
            }
            Act::SpendOtherwise(auth) => {
                self.cancels -= 1;
                self.pay[auth].chain = Chain::Odd;
            }
            Act::Reorg(auth) => {
                self.reorgs -= 1;
                self.pay[auth].chain = Chain::Pending;
            }
            _ => unreachable!("not of the world: {act:?}"),
        }
    }

    fn end_lease(&mut self, replica: usize) {
        self.crashes -= 1;
        let ended = owner(replica);
        let owners = self.pay.iter_mut().map(|pay| &mut pay.owner);
        for name in owners.chain(self.flying.iter_mut().map(|req| &mut req.owner)) {
            if *name == ended {
                *name = DEAD;
            }
        }
    }
}

impl Exact {
    /// Offers what can happen outside.
    pub(super) fn world_acts(&self, world: &World, acts: &mut Vec<Act>) {
        if world.crashes > 0 {
            for replica in 0..2 {
                // a replica that runs nothing can crash unseen
                if world.flying.iter().any(|req| req.owner == owner(replica)) {
                    acts.extend([Act::Crash(replica), Act::Fence(replica)]);
                }
            }
        }
        for (auth, pay) in world.pay.iter().enumerate().take(self.config.auths) {
            let Some(state) = pay.state else { continue };
            match pay.chain {
                Chain::Unused if !pay.expired => {
                    // the first signed ends first
                    if auth == 0 || world.pay[auth - 1].expired || world.pay[auth - 1].chain != Chain::Unused {
                        acts.push(Act::Expire(auth));
                    }
                    if world.third > 0 {
                        acts.push(Act::ThirdParty(auth));
                    }
                    if world.cancels > 0 {
                        acts.extend([Act::Cancel(auth), Act::SpendOtherwise(auth)]);
                    }
                }
                Chain::Unused | Chain::Cancelled | Chain::Odd => {}
                Chain::Pending => acts.extend([Act::Mine(auth), Act::Drop(auth)]),
                Chain::Moved if world.reorgs > 0 && state == State::Settled => acts.push(Act::Reorg(auth)),
                // time passes for a used one too; only a facilitator's answer depends on it
                Chain::Moved if !self.config.rpc && !pay.expired => acts.push(Act::Expire(auth)),
                Chain::Moved => {}
            }
            acts.push(Act::Reconcile(auth));
            if self.config.refunds.is_some() {
                let crashes = world.crashes;
                pay.refund.acts(crashes, world.restores, |step| acts.push(Act::Refund(auth, step)));
            } else if state == State::RefundOwed {
                acts.push(Act::Refund(auth, refund::Act::Mine));
            }
        }
    }

    /// One look at one payment. False: nothing to do.
    pub(super) fn reconcile(&self, world: &mut World, auth: usize) -> bool {
        let pay = world.pay[auth];
        let Some(state) = pay.state else { return false };
        let to = match state {
            State::Claimed | State::Settling if live(pay.owner) => return false,
            State::Claimed => State::Abandoned,
            State::Settling => State::Unknown,
            _ => match self.evidence(&pay, state) {
                Some(to) => to,
                None => return false,
            },
        };
        self.put(world, auth, to);
        if to == State::RefundOwed {
            world.pay[auth].refund.owe();
        }
        true
    }

    /// What the chain says about a payment that nobody works on.
    fn evidence(&self, pay: &Pay, state: State) -> Option<State> {
        if !self.config.rpc {
            let guess = self.has(Mutation::ExpiryIsProof) && pay.expired && state == State::Unknown;
            return guess.then_some(State::Dead);
        }
        let never = pay.chain == Chain::Cancelled || (pay.chain == Chain::Unused && pay.expired);
        let odd = self.has(Mutation::AnyAmount) && pay.chain == Chain::Odd;
        match (state, if odd { Chain::Moved } else { pay.chain }) {
            (State::Unknown | State::Ready, Chain::Odd) => Some(State::RefundOwed),
            (State::Unknown | State::Ready, Chain::Moved) => Some(State::Settled),
            (
                State::Denied | State::Abandoned | State::Refused | State::Superseded | State::Free,
                Chain::Moved | Chain::Odd,
            ) => Some(State::RefundOwed),
            (State::Unknown | State::Denied | State::Ready | State::Abandoned, _) if never => Some(State::Dead),
            // the transfer is gone, and something else may have used the nonce
            (State::Settled, Chain::Unused | Chain::Pending | Chain::Cancelled | Chain::Odd) => Some(State::Unknown),
            _ => None,
        }
    }

    /// One step of a refund.
    pub(super) fn refund(&self, world: &mut World, auth: usize, step: refund::Act) -> bool {
        if self.config.refunds.is_none() {
            world.pay[auth].refund.pay_at_once();
            self.put(world, auth, State::Refunded);
            return true;
        }
        match step {
            refund::Act::Die(_) => world.crashes -= 1,
            refund::Act::Restore => world.restores -= 1,
            refund::Act::Work(_) | refund::Act::Mine | refund::Act::Drop => {}
        }
        match world.pay[auth].refund.step(step, Flaws::default()) {
            Outcome::Done => self.put(world, auth, State::Refunded),
            // an older database, not a move
            Outcome::Back => world.pay[auth].state = Some(State::RefundOwed),
            Outcome::Plain | Outcome::Again => {}
        }
        true
    }
}

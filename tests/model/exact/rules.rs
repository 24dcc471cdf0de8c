//! What must hold on the settle-after rail, and what must be reachable.

use jim::machine::State;
use stateright::Property;

use super::{Chain, Config, Exact, Pay, World};
use crate::refund::Row;

/// Names of the properties.
pub(crate) mod names {
    pub(crate) const DELIVERED: &str = "I1 a memo is given only for money that came";
    pub(crate) const KEPT: &str = "I2 money that came ends as an answer or as a refund";
    pub(crate) const REFUSAL: &str = "I5 no refusal where our settle call moves the money";
    pub(crate) const FINAL: &str = "I4 what was refused stays refused";
    pub(crate) const ONCE: &str = "G3 one purchase, one charge";
    pub(crate) const REFUND: &str = "G4 at most one refund, only of money that came";
    pub(crate) const UNTOUCHED: &str = "V2 a refused payment has no settle attempt";
    pub(crate) const ANSWER: &str = "V1 no settle attempt without a stored answer";
    pub(crate) const MEMO: &str = "a memo is given";
    pub(crate) const AFTER_CRASH: &str = "a memo is given after a crash behind the settle";
    pub(crate) const FREE: &str = "a second authorization is answered free";
    pub(crate) const REFUNDED: &str = "a refund is confirmed";
    /// Not wanted, but so: what a seller without an RPC must live with, and say in his manifest.
    pub(crate) const DOUBT: &str = "without an RPC an authorization that ended in doubt buys a memo";
    /// The same.
    pub(crate) const GIFT: &str = "without an RPC a cancelled authorization buys a memo";
}

/// The properties of a variant. Reachability is asked only where the variant has what it takes.
pub(super) fn properties(config: &Config) -> Vec<Property<Exact>> {
    let mut all = vec![
        Property::always(names::DELIVERED, |model: &Exact, world| model.each(world, |m, _, pay| m.delivered(pay))),
        Property::always(names::KEPT, |model: &Exact, world| {
            !model.quiet(world) || model.each(world, |m, _, pay| m.kept(pay))
        }),
        Property::always(names::REFUSAL, |model: &Exact, world| model.each(world, |m, _, pay| m.refusal_true(pay))),
        Property::always(names::FINAL, |model: &Exact, world| model.each(world, |_, _, pay| refusal_final(pay))),
        Property::always(names::ONCE, |model: &Exact, world| model.charged_once(world)),
        Property::always(names::REFUND, |model: &Exact, world| model.each(world, |_, _, pay| refund_sound(pay))),
        Property::always(names::UNTOUCHED, |model: &Exact, world| {
            model.each(world, |_, _, pay| {
                let refused = matches!(pay.state, Some(State::Refused | State::Superseded | State::Free));
                !refused || pay.sent == 0
            })
        }),
        Property::always(names::ANSWER, |model: &Exact, world| {
            model.each(world, |_, _, pay| pay.attempts == 0 || pay.answer)
        }),
        Property::sometimes(names::MEMO, |_, world: &World| world.pay.iter().any(|pay| pay.served)),
    ];
    if config.crashes > 0 {
        all.push(Property::sometimes(names::AFTER_CRASH, |_, world: &World| {
            world.lost_answer && world.pay.iter().any(|pay| pay.served)
        }));
    }
    // only who signs anew without having read a refusal gets there
    if config.impatient {
        all.push(Property::sometimes(names::FREE, |_, world: &World| world.free));
    }
    if config.rpc && (config.liar || config.third > 0) {
        all.push(Property::sometimes(names::REFUNDED, |_, world: &World| {
            world.pay.iter().any(|pay| pay.refund.row == Row::Confirmed)
        }));
    }
    if !config.rpc {
        all.push(Property::sometimes(names::DOUBT, |_, world: &World| {
            world.pay.iter().any(|pay| pay.served && pay.unproven && pay.chain == Chain::Unused && pay.expired)
        }));
    }
    if !config.rpc && config.cancels > 0 {
        all.push(Property::sometimes(names::GIFT, |_, world: &World| {
            world.pay.iter().any(|pay| pay.served && pay.chain == Chain::Cancelled)
        }));
    }
    all
}

fn refusal_final(pay: &Pay) -> bool {
    !pay.told
        || match pay.state {
            Some(
                State::Refused
                | State::Superseded
                | State::Free
                | State::Denied
                | State::Dead
                | State::RefundOwed
                | State::Refunded,
            ) => true,
            Some(State::Claimed | State::Abandoned | State::Ready | State::Settling | State::Unknown)
            | Some(State::Settled | State::Landed)
            | None => false,
        }
}

fn refund_sound(pay: &Pay) -> bool {
    pay.refund.paid <= 1 && (pay.refund.paid == 0 || pay.came || pay.chain == Chain::Odd)
}

impl Exact {
    fn each(&self, world: &World, holds: fn(&Self, &World, &Pay) -> bool) -> bool {
        world.pay[..self.config.auths].iter().all(|pay| holds(self, world, pay))
    }

    /// Without an RPC a cancelled authorization looks like a used one, and one that ended in doubt may have been: the memo is
    /// given, at the seller's cost.
    fn delivered(&self, pay: &Pay) -> bool {
        !pay.served || pay.came || (!self.config.rpc && pay.unproven)
    }

    /// A facilitator that lies on the first attempt can't be seen through: there the money must go back, which `kept` checks.
    /// A transfer by somebody else may come at any time, also after a refusal.
    fn refusal_true(&self, pay: &Pay) -> bool {
        let moves = pay.by_us && matches!(pay.chain, Chain::Moved | Chain::Pending);
        let lied_to =
            self.config.liar && matches!(pay.state, Some(State::Denied | State::RefundOwed | State::Refunded));
        !(pay.told && moves) || lied_to
    }

    /// Never two settled at once; in the end never two charges that stay; with an honest facilitator never two at all.
    fn charged_once(&self, world: &World) -> bool {
        let count = |what: fn(&Pay) -> bool| world.pay.iter().filter(|pay| what(pay)).count();
        let here = |pay: &Pay| matches!(pay.chain, Chain::Moved | Chain::Odd);
        let stays = world.pay.iter().filter(|pay| here(pay) && pay.refund.paid == 0 && pay.state.is_some()).count();
        let by_us = count(|pay| pay.chain == Chain::Moved && pay.by_us);
        count(|pay| pay.state == Some(State::Settled)) <= 1
            && (self.config.liar || by_us <= 1)
            && (stays <= 1 || !self.config.rpc || !self.quiet(world))
    }

    /// Nothing runs, nothing is left to do, and the chain has spoken its last word.
    fn quiet(&self, world: &World) -> bool {
        let over = |pay: &Pay| match pay.chain {
            Chain::Pending => false,
            Chain::Unused => pay.expired || pay.state.is_none(),
            Chain::Moved | Chain::Cancelled | Chain::Odd => true,
        };
        world.flying.is_empty()
            && world.pay.iter().all(over)
            && world.pay.iter().all(|pay| pay.refund.quiet())
            && !(0..self.config.auths).any(|auth| self.reconcile(&mut world.clone(), auth))
    }

    /// How a payment may end. Without an RPC nobody sees what others moved, and what is unknown may stay so.
    fn kept(&self, pay: &Pay) -> bool {
        if !matches!(pay.chain, Chain::Moved | Chain::Odd) {
            return match pay.state {
                None | Some(State::Refused | State::Superseded | State::Free | State::Dead) => true,
                Some(State::Unknown | State::Denied | State::Ready | State::Abandoned | State::Settled) => {
                    !self.config.rpc
                }
                Some(State::Claimed | State::Settling | State::Landed | State::RefundOwed | State::Refunded) => false,
            };
        }
        match pay.state {
            Some(State::Settled) if pay.chain == Chain::Odd => !self.config.rpc,
            Some(State::Settled) => pay.answer && pay.refund.paid == 0,
            Some(State::Refunded) => pay.refund.paid == 1,
            Some(State::Unknown) => !self.config.rpc,
            Some(_) => !self.config.rpc && !pay.by_us,
            None => false,
        }
    }
}

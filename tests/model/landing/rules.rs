//! What must hold on the client-broadcast rail, and what must be reachable.

use jim::machine::State;
use stateright::Property;

use super::{Config, Landing, Pay, World};
use crate::refund::Row;

/// Names of the properties.
pub(crate) mod names {
    pub(crate) const DELIVERED: &str = "I1 a memo is given only for money that landed";
    pub(crate) const KEPT: &str = "I2 money that landed ends as an answer or as a refund";
    pub(crate) const FINAL: &str = "I4 what was refused is not answered";
    pub(crate) const ONCE: &str = "G3 one purchase, one charge";
    pub(crate) const REFUND: &str = "G4 at most one refund, only of money that landed";
    pub(crate) const BOTH: &str = "an answer or a refund, never both";
    pub(crate) const MEMO: &str = "a memo is given";
    pub(crate) const AFTER_CRASH: &str = "a memo is given after a crash behind the commit";
    pub(crate) const FREE: &str = "a second payment is answered free and goes back";
    pub(crate) const REFUNDED: &str = "a refund is confirmed";
}

/// The properties of a variant.
pub(super) fn properties(config: &Config) -> Vec<Property<Landing>> {
    let mut all = vec![
        Property::always(names::DELIVERED, |_, world: &World| {
            world.pay.iter().all(|pay| !pay.served || (pay.came && pay.answer && pay.state == Some(State::Settled)))
        }),
        Property::always(names::KEPT, |model: &Landing, world| !model.quiet(world) || world.pay.iter().all(kept)),
        Property::always(names::FINAL, |_, world: &World| world.pay.iter().all(|pay| !(pay.told && pay.served))),
        Property::always(names::ONCE, |_, world: &World| {
            world.pay.iter().filter(|pay| pay.state == Some(State::Settled)).count() <= 1
        }),
        Property::always(names::REFUND, |_, world: &World| {
            world.pay.iter().all(|pay| pay.refund.paid <= 1 && (pay.refund.paid == 0 || pay.came))
        }),
        Property::always(names::BOTH, |_, world: &World| {
            world.pay.iter().all(|pay| !(pay.served && pay.refund.paid > 0))
        }),
        Property::sometimes(names::MEMO, |_, world: &World| world.pay.iter().any(|pay| pay.served)),
        Property::sometimes(names::AFTER_CRASH, |_, world: &World| {
            world.lost_answer && world.pay.iter().any(|pay| pay.served)
        }),
        Property::sometimes(names::REFUNDED, |_, world: &World| {
            world.pay.iter().any(|pay| pay.refund.row == Row::Confirmed)
        }),
    ];
    if config.payments > 1 {
        all.push(Property::sometimes(names::FREE, |_, world: &World| world.free));
    }
    all
}

fn kept(pay: &Pay) -> bool {
    match pay.state {
        None => !pay.came,
        Some(State::Settled) => pay.answer && pay.refund.paid == 0,
        Some(State::Refunded) => pay.refund.paid == 1,
        Some(_) => false,
    }
}

impl Landing {
    /// Nothing runs and nothing is left to do.
    fn quiet(&self, world: &World) -> bool {
        world.flying.is_empty()
            && world.pay.iter().all(|pay| pay.refund.quiet())
            && world.pay.iter().all(|pay| !pay.came || pay.over || pay.state.is_some())
            && !(0..self.config.payments).any(|at| self.reconcile(&mut world.clone(), at))
    }
}

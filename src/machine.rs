//! The states of a payment and the moves between them: one table, for the database, the code and the model.
//!
//! The journal writes each move as one event; the database refuses an event whose move is not in its
//! copy of [`MOVES`] (function `moves`, compared with this one when the service starts), and the model under `tests/model`
//! walks the same table. Nothing here knows how a move is stored or why it is made.
//!
//! What time alone changes is no move: a claim whose owner is dead reads as [`State::Abandoned`], a settle call whose owner is
//! dead as [`State::Unknown`]. Whoever acts on that writes the event first.

/// How the money comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rail {
    /// The buyer signs, the facilitator moves the money at settle (`exact`, EIP-3009).
    Exact,
    /// The same through Permit2 and the x402 proxy.
    ExactPermit2,
    /// The buyer signs a cap for Permit2; at settle the facilitator moves what the delivery costs.
    Upto,
    /// The buyer has moved the money before the request.
    ClientBroadcast,
}

/// The state of one payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum State {
    /// Somebody works on it.
    Claimed,
    /// Claimed once; whoever worked on it gave it back or died.
    Abandoned,
    /// A definite refusal is stored, or verify failed. Never settled.
    Refused,
    /// Another authorization of the same purchase took over. Never settled.
    Superseded,
    /// Answered from an earlier settled payment of the same purchase. Never settled.
    Free,
    /// The answer is stored, nothing is being sent to settle it.
    Ready,
    /// The intent to settle is stored; a settle call may be running.
    Settling,
    /// A settle call ended without a usable answer.
    Unknown,
    /// The first settle call was refused before anything was sent.
    Denied,
    /// The authorization can no longer move money: expired unused, or cancelled.
    Dead,
    /// Charged; the answer is stored.
    Settled,
    /// The money is here, the answer is not.
    Landed,
    /// The money is here and must go back.
    RefundOwed,
    /// The money went back, seen on chain.
    Refunded,
}

/// One allowed move. `from` is None for the first event of a payment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Move {
    /// On this rail.
    pub rail: Rail,
    /// From this state.
    pub from: Option<State>,
    /// To this one.
    pub to: State,
}

/// The moves of a rail on which our settle call moves the money, without their rail.
const SETTLED_BY_US: [(Option<State>, State); 30] = {
    use State::{
        Abandoned, Claimed, Dead, Denied, Free, Ready, RefundOwed, Refunded, Refused, Settled, Settling, Superseded,
        Unknown,
    };
    const fn to(from: State, to: State) -> (Option<State>, State) {
        (Some(from), to)
    }
    const fn first(to: State) -> (Option<State>, State) {
        (None, to)
    }
    [
        first(Claimed),
        first(Free),
        to(Claimed, Abandoned),
        to(Abandoned, Claimed),
        // the same purchase was charged meanwhile, under another authorization
        to(Abandoned, Free),
        to(Claimed, Refused),
        to(Claimed, Ready),
        // the answer and the intent to settle are one commit
        to(Claimed, Settling),
        to(Ready, Settling),
        to(Ready, Superseded),
        to(Settling, Settled),
        to(Settling, Unknown),
        to(Settling, Denied),
        // the connection was refused: nothing was sent
        to(Settling, Ready),
        to(Unknown, Settling),
        to(Unknown, Settled),
        // proof that no money moved
        to(Unknown, Dead),
        to(Denied, Dead),
        to(Ready, Dead),
        to(Abandoned, Dead),
        // a third party submitted the transfer: the holder of a stored answer gets it, everybody else his money back
        to(Ready, Settled),
        to(Denied, RefundOwed),
        to(Abandoned, RefundOwed),
        to(Refused, RefundOwed),
        to(Superseded, RefundOwed),
        to(Free, RefundOwed),
        // money came, but not the price: the payer spent the nonce on another transfer to us
        to(Unknown, RefundOwed),
        to(Ready, RefundOwed),
        // the evidence went away with a block
        to(Settled, Unknown),
        to(RefundOwed, Refunded),
    ]
};

/// The moves of the rail on which the buyer has moved the money.
const LANDED: [(Option<State>, State); 5] = [
    (None, State::Landed),
    // found by the sweep: the request never came
    (None, State::RefundOwed),
    (Some(State::Landed), State::Settled),
    (Some(State::Landed), State::RefundOwed),
    (Some(State::RefundOwed), State::Refunded),
];

const MOVE_COUNT: usize = Rail::SETTLED_BY_US.len() * SETTLED_BY_US.len() + LANDED.len();

/// All allowed moves.
pub const MOVES: &[Move] = &{
    let mut all = [Move { rail: Rail::ClientBroadcast, from: None, to: State::Landed }; MOVE_COUNT];
    let (mut at, mut rail) = (0, 0);
    while rail < Rail::SETTLED_BY_US.len() {
        let mut i = 0;
        while i < SETTLED_BY_US.len() {
            let (from, to) = SETTLED_BY_US[i];
            all[at] = Move { rail: Rail::SETTLED_BY_US[rail], from, to };
            (at, i) = (at + 1, i + 1);
        }
        rail += 1;
    }
    let mut i = 0;
    while i < LANDED.len() {
        let (from, to) = LANDED[i];
        all[at] = Move { rail: Rail::ClientBroadcast, from, to };
        (at, i) = (at + 1, i + 1);
    }
    all
};

impl Rail {
    /// Those on which our settle call moves the money.
    pub const SETTLED_BY_US: [Self; 3] = [Self::Exact, Self::ExactPermit2, Self::Upto];

    /// The rail of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::SETTLED_BY_US.into_iter().chain([Self::ClientBroadcast]).find(|rail| rail.name() == name)
    }

    /// Name in rows and settings.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
            Self::ExactPermit2 => "exact-permit2",
            Self::Upto => "upto",
            Self::ClientBroadcast => "client-broadcast",
        }
    }
}

impl State {
    /// All states.
    pub const ALL: [Self; 14] = [
        Self::Claimed,
        Self::Abandoned,
        Self::Refused,
        Self::Superseded,
        Self::Free,
        Self::Ready,
        Self::Settling,
        Self::Unknown,
        Self::Denied,
        Self::Dead,
        Self::Settled,
        Self::Landed,
        Self::RefundOwed,
        Self::Refunded,
    ];

    /// Name in rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Claimed => "claimed",
            Self::Abandoned => "abandoned",
            Self::Refused => "refused",
            Self::Superseded => "superseded",
            Self::Free => "free",
            Self::Ready => "ready",
            Self::Settling => "settling",
            Self::Unknown => "unknown",
            Self::Denied => "denied",
            Self::Dead => "dead",
            Self::Settled => "settled",
            Self::Landed => "landed",
            Self::RefundOwed => "refund_owed",
            Self::Refunded => "refunded",
        }
    }

    /// The state of that name.
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|state| state.name() == name)
    }

    /// True while nobody knows whether it is charged.
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Settling | Self::Unknown)
    }

    /// True when money may have moved for the payment, or has: nobody may be told that it is not charged.
    pub const fn may_be_charged(self) -> bool {
        match self {
            Self::Settling | Self::Unknown | Self::Settled | Self::Landed | Self::RefundOwed | Self::Refunded => true,
            Self::Claimed
            | Self::Abandoned
            | Self::Ready
            | Self::Refused
            | Self::Superseded
            | Self::Free
            | Self::Denied
            | Self::Dead => false,
        }
    }

    /// True while the payment may still be charged or is being charged: it holds its purchase.
    pub const fn holds_purchase(self) -> bool {
        match self {
            Self::Claimed | Self::Ready | Self::Settling | Self::Unknown | Self::Landed => true,
            Self::Abandoned
            | Self::Refused
            | Self::Superseded
            | Self::Free
            | Self::Denied
            | Self::Dead
            | Self::Settled
            | Self::RefundOwed
            | Self::Refunded => false,
        }
    }
}

/// True when the table allows the move.
pub fn allows(rail: Rail, from: Option<State>, to: State) -> bool {
    MOVES.contains(&Move { rail, from, to })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_moves_are_unique() {
        for state in State::ALL {
            assert_eq!(State::from_name(state.name()), Some(state));
        }
        for (i, one) in MOVES.iter().enumerate() {
            assert!(!MOVES[i + 1..].contains(one), "{one:?}");
        }
    }

    #[test]
    fn what_is_never_settled_has_no_way_to_settling() {
        for from in [State::Refused, State::Superseded, State::Free, State::Denied, State::Dead, State::RefundOwed] {
            for rail in [Rail::Exact, Rail::ExactPermit2, Rail::Upto, Rail::ClientBroadcast] {
                assert!(!allows(rail, Some(from), State::Settling));
                assert!(!allows(rail, Some(from), State::Settled));
            }
        }
    }

    #[test]
    fn every_state_but_the_ends_can_be_left() {
        for state in State::ALL {
            let left = MOVES.iter().any(|m| m.from == Some(state) && m.to != state);
            assert_eq!(left, !matches!(state, State::Dead | State::Refunded), "{state:?}");
        }
    }
}

//! The states of a payment and the moves between them: one table, for the database, the code and the model.
//!
//! payments.md section 3. The journal writes each move as one event; the database refuses an event whose move is not in its
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

/// All allowed moves.
pub const MOVES: &[Move] = &{
    use Rail::{ClientBroadcast as Landing, Exact};
    use State::{
        Abandoned, Claimed, Dead, Denied, Free, Landed, Ready, RefundOwed, Refunded, Refused, Settled, Settling,
        Superseded, Unknown,
    };
    const fn to(rail: Rail, from: State, to: State) -> Move {
        Move { rail, from: Some(from), to }
    }
    const fn first(rail: Rail, to: State) -> Move {
        Move { rail, from: None, to }
    }
    [
        first(Exact, Claimed),
        first(Exact, Free),
        to(Exact, Claimed, Abandoned),
        to(Exact, Abandoned, Claimed),
        // the same purchase was charged meanwhile, under another authorization
        to(Exact, Abandoned, Free),
        to(Exact, Claimed, Refused),
        to(Exact, Claimed, Ready),
        // the answer and the intent to settle are one commit
        to(Exact, Claimed, Settling),
        to(Exact, Ready, Settling),
        to(Exact, Ready, Superseded),
        to(Exact, Settling, Settled),
        to(Exact, Settling, Unknown),
        to(Exact, Settling, Denied),
        // the connection was refused: nothing was sent
        to(Exact, Settling, Ready),
        to(Exact, Unknown, Settling),
        to(Exact, Unknown, Settled),
        // proof that no money moved
        to(Exact, Unknown, Dead),
        to(Exact, Denied, Dead),
        to(Exact, Ready, Dead),
        to(Exact, Abandoned, Dead),
        // a third party submitted the transfer: the holder of a stored answer gets it, everybody else his money back
        to(Exact, Ready, Settled),
        to(Exact, Denied, RefundOwed),
        to(Exact, Abandoned, RefundOwed),
        to(Exact, Refused, RefundOwed),
        to(Exact, Superseded, RefundOwed),
        to(Exact, Free, RefundOwed),
        // money came, but not the price: the payer spent the nonce on another transfer to us
        to(Exact, Unknown, RefundOwed),
        to(Exact, Ready, RefundOwed),
        // the evidence went away with a block
        to(Exact, Settled, Unknown),
        to(Exact, RefundOwed, Refunded),
        first(Landing, Landed),
        // found by the sweep: the request never came
        first(Landing, RefundOwed),
        to(Landing, Landed, Settled),
        to(Landing, Landed, RefundOwed),
        to(Landing, RefundOwed, Refunded),
    ]
};

impl Rail {
    /// Name in rows.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Exact => "exact",
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
            for rail in [Rail::Exact, Rail::ClientBroadcast] {
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

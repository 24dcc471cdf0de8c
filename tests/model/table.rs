//! The one place where a state in a modelled database cell changes: every change is looked up in `jim::machine::MOVES`.
//!
//! A run of the design stops at a move that the table doesn't have. A run with a mistake built in (`Mutation`) may leave the
//! table: there the properties must notice. Each table remembers which moves were taken, so that rows that no run of the design
//! takes are found.

use std::sync::atomic::{AtomicU64, Ordering};

use jim::machine::{MOVES, Move, Rail, State, allows};

/// The moves that are counted: those of `exact` stand for all rails that we settle, which have the same.
pub(crate) fn modelled() -> impl Iterator<Item = &'static Move> {
    MOVES.iter().filter(|one| matches!(one.rail, Rail::Exact | Rail::ClientBroadcast))
}

/// The moves of one rail, as one run of the checker takes them.
#[derive(Debug)]
pub(crate) struct Table {
    rail: Rail,
    strict: bool,
    taken: AtomicU64,
}

impl Table {
    /// A table for one rail. `strict`: a move that isn't allowed ends the run.
    pub(crate) fn new(rail: Rail, strict: bool) -> Self {
        assert!(modelled().count() <= 64, "one bit a move");
        Self { rail, strict, taken: AtomicU64::new(0) }
    }

    /// Changes the cell.
    pub(crate) fn take(&self, cell: &mut Option<State>, to: State) {
        let allowed = allows(self.rail, *cell, to);
        assert!(allowed || !self.strict, "the table has no move {:?} -> {to:?} on {:?}", *cell, self.rail);
        let wanted = Move { rail: self.rail, from: *cell, to };
        if let Some(at) = modelled().position(|one| *one == wanted) {
            // most moves are known already: a read keeps the cache line shared
            if self.taken.load(Ordering::Relaxed) & (1 << at) == 0 {
                self.taken.fetch_or(1 << at, Ordering::Relaxed);
            }
        }
        *cell = Some(to);
    }

    /// The moves taken, one bit each, in the order of `modelled`.
    pub(crate) fn taken(&self) -> u64 {
        self.taken.load(Ordering::Relaxed)
    }
}

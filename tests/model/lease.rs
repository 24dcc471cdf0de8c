//! Names of owners. A claim bears the name of a replica in its present epoch; a crash, or a lost lease, ends the epoch.
//!
//! Epochs aren't counted: when one ends, everything that bears its name gets the name of the dead instead, and the replica
//! starts again under its own. That keeps the state small, and no comparison of two names changes by it, as a request only
//! ever compares itself with the claim of its own authorization.

/// Nobody.
pub(crate) const NOBODY: u8 = 0;

/// Whoever owned this claim has lost its lease.
pub(crate) const DEAD: u8 = 3;

/// A request that outlived its lease, and whose claim has gone to somebody else.
pub(crate) const LOST: u8 = 4;

/// The name of a replica in its present epoch.
pub(crate) fn owner(replica: usize) -> u8 {
    [1, 2][replica]
}

/// True while the lease holds.
pub(crate) fn live(owner: u8) -> bool {
    matches!(owner, 1 | 2)
}

/// The name after the replicas changed places.
pub(crate) fn swapped(owner: u8) -> u8 {
    match owner {
        1 => 2,
        2 => 1,
        _ => owner,
    }
}

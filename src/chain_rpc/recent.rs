//! What was read a moment ago: blocks by hash, which never change, and times of blocks by number, which are hints only.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::evm::B256;
use crate::limits::{CHAIN_BLOCKS_KEPT, CHAIN_TIMES_KEPT};
use crate::paywall::port::chain::Block;

/// Bounded memory of one reader.
#[derive(Debug, Default)]
pub(super) struct Recent {
    kept: Mutex<Kept>,
}

/// The known blocks nearest to a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Hint {
    /// The highest one that is earlier.
    pub(super) before: Option<u64>,
    /// The lowest one above it that is not.
    pub(super) after: Option<u64>,
}

#[derive(Debug, Default)]
struct Kept {
    // the one used last stands at the back
    by_hash: VecDeque<(B256, Block)>,
    times_s: BTreeMap<u64, u64>,
}

impl Recent {
    /// The block with this hash, when it is remembered.
    pub(super) fn get(&self, hash: &B256) -> Option<Block> {
        let mut kept = self.lock();
        let at = kept.by_hash.iter().position(|(known, _)| known == hash)?;
        let entry = kept.by_hash.remove(at)?;
        kept.by_hash.push_back(entry);
        Some(entry.1)
    }

    /// Remembers a block by its hash.
    pub(super) fn keep(&self, hash: B256, block: Block) {
        let mut kept = self.lock();
        kept.by_hash.push_back((hash, block));
        if kept.by_hash.len() > CHAIN_BLOCKS_KEPT {
            kept.by_hash.pop_front();
        }
    }

    /// Remembers the time of a block. The lowest blocks are forgotten first: searches begin near the head.
    pub(super) fn note_time(&self, block: Block) {
        let mut kept = self.lock();
        kept.times_s.insert(block.number, block.time_s);
        if kept.times_s.len() > CHAIN_TIMES_KEPT {
            kept.times_s.pop_first();
        }
    }

    /// What is known around a time, up to a block.
    pub(super) fn around(&self, target_s: u64, up_to: u64) -> Hint {
        let kept = self.lock();
        let mut hint = Hint::default();
        for (number, time_s) in kept.times_s.range(..=up_to).rev() {
            if *time_s < target_s {
                hint.before = Some(*number);
                break;
            }
            hint.after = Some(*number);
        }
        hint
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        // every write leaves both maps whole
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_used_last_is_kept() {
        let recent = Recent::default();
        let block = |number| Block { number, time_s: 10 * number };
        let hash = |number: u64| B256::from(alloy_primitives::U256::from(number));
        let most = u64::try_from(CHAIN_BLOCKS_KEPT).expect("a small bound");
        (0..most).for_each(|number| recent.keep(hash(number), block(number)));
        assert_eq!(recent.get(&hash(0)), Some(block(0)));
        recent.keep(hash(most), block(most));
        assert_eq!(recent.get(&hash(0)), Some(block(0)));
        assert_eq!(recent.get(&hash(1)), None);
        assert_eq!(recent.get(&hash(most)), Some(block(most)));
    }

    #[test]
    fn hints_stand_on_both_sides_of_a_time() {
        let recent = Recent::default();
        [3, 7, 9].into_iter().for_each(|number| recent.note_time(Block { number, time_s: 10 * number }));
        assert_eq!(recent.around(70, 100), Hint { before: Some(3), after: Some(7) });
        assert_eq!(recent.around(71, 100), Hint { before: Some(7), after: Some(9) });
        assert_eq!(recent.around(30, 100), Hint { before: None, after: Some(3) });
        assert_eq!(recent.around(1_000, 8), Hint { before: Some(7), after: None });
        let most = u64::try_from(CHAIN_TIMES_KEPT).expect("a small bound");
        (10..10 + most).for_each(|number| recent.note_time(Block { number, time_s: 10 * number }));
        assert_eq!(recent.around(91, u64::MAX), Hint { before: None, after: Some(10) }, "the lowest went first");
    }
}

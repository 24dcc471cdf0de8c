//! Walks a list that is too long for one round, so that each payment gets its turn whatever the others do.

use std::collections::HashMap;
use std::time::Duration;

use tokio::time::Instant;
use uuid::Uuid;

use crate::limits;
use crate::store::recovery::{Key, List};

/// Where the walk over one list stands.
#[derive(Debug)]
pub(super) struct Pager {
    list: List,
    after: Key,
    /// First payment of this pass: nothing before it is open.
    first: Option<Key>,
    full_at: Instant,
}

impl Pager {
    /// At the beginning of a list.
    pub(super) fn new(list: List) -> Self {
        Self { list, after: Key::FIRST, first: None, full_at: Instant::now() }
    }

    /// Which list.
    pub(super) fn list(&self) -> List {
        self.list
    }

    /// The key after which the next page begins.
    pub(super) fn after(&self) -> Key {
        self.after
    }

    /// Goes on behind a page. A short one ends the pass: the next begins where something may be open, and once in a while at the
    /// beginning.
    pub(super) fn turn(&mut self, page: &[Key], now_s: u64) {
        self.first = self.first.or_else(|| page.first().copied());
        if page.len() >= usize::try_from(limits::RECOVERY_PAGE).unwrap_or(usize::MAX)
            && let Some(last) = page.last()
        {
            self.after = *last;
            return;
        }
        let back = self.list.place(now_s.saturating_sub(limits::RECOVERY_BACK.as_secs()));
        self.after = match self.first.take() {
            Some(first) => first.before().min(back),
            None => back,
        };
        if self.full_at.elapsed() >= limits::RECOVERY_FULL {
            (self.full_at, self.after) = (Instant::now(), Key::FIRST);
        }
    }
}

/// When each payment is looked at next. In memory alone: a new process looks at all of them once.
#[derive(Debug, Default)]
pub(super) struct Paces {
    next: HashMap<Uuid, Instant>,
}

impl Paces {
    /// True when the payment may be looked at now.
    pub(super) fn is_due(&self, payment_id: Uuid) -> bool {
        self.next.get(&payment_id).is_none_or(|next| *next <= Instant::now())
    }

    /// Looked at now; what is older waits longer.
    pub(super) fn note(&mut self, payment_id: Uuid, age: Duration) {
        if self.next.len() >= limits::RECOVERY_LOOKS_KEPT {
            self.next.clear();
        }
        let (least, most) = limits::RECOVERY_LOOK;
        self.next.insert(payment_id, Instant::now() + (age / limits::RECOVERY_LOOK_SHARE).clamp(least, most));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW_S: u64 = 2_000_000_000;

    fn key(seconds_ago: u64) -> Key {
        let at_us = i64::try_from((NOW_S - seconds_ago) * 1_000_000).expect("small");
        Key { at_us, payment_id: Uuid::from_u128(7) }
    }

    #[test]
    fn a_full_page_is_followed_by_the_next_one_and_the_end_by_the_first_that_is_open() {
        let mut pager = Pager::new(List::Over);
        assert_eq!(pager.after(), Key::FIRST);
        let page: Vec<Key> = (0..100).map(|n| key(100_000 - n)).collect();
        pager.turn(&page, NOW_S);
        assert_eq!(pager.after(), page[99]);
        pager.turn(&[key(5)], NOW_S);
        assert_eq!(pager.after(), page[0].before());
        assert!(pager.after() < page[0]);
    }

    #[test]
    fn a_pass_that_found_nothing_old_still_looks_back_a_window() {
        for list in [List::Unclear, List::Over, List::Unproven] {
            let mut pager = Pager::new(list);
            pager.turn(&[], NOW_S);
            assert_eq!(pager.after(), list.place(NOW_S - 7_200));
            pager.turn(&[list.place(NOW_S - 1)], NOW_S);
            assert_eq!(pager.after(), list.place(NOW_S - 7_200), "younger ones than the first may become due");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_old_payment_waits_longer_and_no_longer_than_the_bound() {
        let mut paces = Paces::default();
        let (young, old) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert!(paces.is_due(young) && paces.is_due(old));
        paces.note(young, Duration::ZERO);
        paces.note(old, Duration::from_secs(1_000_000));
        assert!(!paces.is_due(young) && !paces.is_due(old));
        tokio::time::advance(Duration::from_secs(5)).await;
        assert!(paces.is_due(young) && !paces.is_due(old));
        tokio::time::advance(Duration::from_secs(60)).await;
        assert!(paces.is_due(old));
    }
}

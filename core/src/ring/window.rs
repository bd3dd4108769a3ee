//! The arithmetic of a reader: which records to copy, which of them were still whole. No memory, no order:
//! the cursor in memory and the readers that copy from files share it.

use crate::sync::{Fault, faulty};

/// Where a reader stands, and the size of its ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    next: u64,
    capacity: u64,
}

/// What to copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Claim {
    /// Position of the first record to copy.
    pub first: u64,
    /// Records to copy, not 0.
    pub count: u64,
}

/// What a copy turned out to be worth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Settled {
    /// Records between the last one read and the first valid one of this copy.
    pub lost: u64,
    /// Records at the start of the copy that may be overwritten: throw them away.
    pub skip: u64,
    /// Position of the first valid record.
    pub first: u64,
    /// Valid records.
    pub count: u64,
}

impl Window {
    /// A reader that wants `next` first.
    #[must_use]
    pub const fn new(next: u64, capacity: u64) -> Window {
        Window { next, capacity }
    }

    /// A reader that starts at the oldest record still there: what was before is not lost to it.
    #[must_use]
    pub const fn oldest(intent: u64, capacity: u64) -> Window {
        Window { next: intent.saturating_sub(capacity), capacity }
    }

    /// The position wanted next.
    #[must_use]
    pub const fn next(&self) -> u64 {
        self.next
    }

    /// Which records to copy, `most` at the most; `None` when nothing is new. `committed` was loaded first.
    #[inline]
    #[must_use]
    pub fn claim(&self, committed: u64, most: u64) -> Option<Claim> {
        let empty = if faulty(Fault::RingEmptyByEquality) { committed == self.next } else { committed <= self.next };
        if empty || most == 0 {
            return None;
        }
        let first = self.next.max(committed.saturating_sub(self.capacity));
        Some(Claim { first, count: committed.wrapping_sub(first).min(most).min(self.capacity) })
    }

    /// Judges a copy by the `intent` that was loaded after it, and moves on behind it.
    #[inline]
    pub fn settle(&mut self, claim: Claim, intent: u64) -> Settled {
        let end = claim.first.wrapping_add(claim.count);
        let oldest = intent.saturating_sub(self.capacity);
        let first = claim.first.max(oldest);
        let settled = Settled {
            lost: first.wrapping_sub(self.next),
            skip: first.wrapping_sub(claim.first).min(claim.count),
            first,
            count: end.saturating_sub(first),
        };
        self.next = end.max(first);
        settled
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// However far the producer runs between the looks, every position is read or lost, once.
        #[test]
        fn read_and_lost_add_up(steps in prop::collection::vec((0_u64..40, 0_u64..40, 1_u64..20), 1..50)) {
            let mut window = Window::new(0, 16);
            let (mut committed, mut read, mut lost) = (0, 0, 0);
            for (before, during, most) in steps {
                committed += before;
                if let Some(claim) = window.claim(committed, most) {
                    prop_assert!(claim.count <= 16 && claim.first + claim.count <= committed);
                    committed += during;
                    let settled = window.settle(claim, committed);
                    prop_assert!(settled.count == 0 || settled.first + 16 >= committed);
                    prop_assert_eq!(settled.skip + settled.count, claim.count);
                    lost += settled.lost;
                    read += settled.count;
                    prop_assert_eq!(read + lost, window.next());
                }
            }
        }
    }
}

//! The writing side of a ring.

use super::Ring;
use crate::sync::{Fault, Ordering, faulty, fence_unless, order};

/// Writes into a ring. One at a time: a second producer makes nonsense of the records, but nothing worse.
///
/// Its position is its own: whatever others write into the shared memory, it can't be made to leave
/// the ring or to stop.
#[derive(Debug)]
pub struct Producer<'a, const WORDS: usize> {
    ring: Ring<'a, WORDS>,
    next: u64,
}

impl<'a, const WORDS: usize> Producer<'a, WORDS> {
    /// Goes on at `next`: 0 for fresh memory, else the position that this ring's last producer reached.
    #[inline(always)]
    #[must_use]
    pub fn resume(ring: Ring<'a, WORDS>, next: u64) -> Self {
        Producer { ring, next }
    }

    /// The position of the next record.
    #[inline(always)]
    #[must_use]
    pub fn position(&self) -> u64 {
        self.next
    }

    /// The ring.
    #[must_use]
    pub fn ring(&self) -> Ring<'a, WORDS> {
        self.ring
    }

    /// Writes one record over the oldest. Never waits, never fails.
    #[inline(always)]
    pub fn push(&mut self, words: [u64; WORDS]) {
        self.announce(1);
        self.write(self.next, words);
        self.commit(1);
    }

    /// Writes `count` records that readers see together; `record(position)` gives each.
    ///
    /// # Panics
    /// If `count` is more than [`Ring::max_batch`].
    #[inline]
    pub fn push_batch(&mut self, count: u64, mut record: impl FnMut(u64) -> [u64; WORDS]) {
        assert!(count <= self.ring.max_batch(), "a batch of {count} records is too large for this ring");
        self.announce(count);
        // Counted, not compared with an end: positions may wrap.
        for place in 0..count {
            let position = self.next.wrapping_add(place);
            let words = record(position);
            self.write(position, words);
        }
        self.commit(count);
    }

    #[inline(always)]
    fn announce(&mut self, count: u64) {
        if !faulty(Fault::RingNoIntent) {
            self.ring.intent.store(self.next.wrapping_add(count).to_le(), Ordering::Relaxed);
        }
        // ORDER ring-intent: whoever sees a word written below also sees the intent above.
        fence_unless(Fault::RingNoReleaseFence, Ordering::Release);
    }

    #[inline(always)]
    fn write(&mut self, position: u64, words: [u64; WORDS]) {
        let Some(record) = self.ring.record(position) else { return };
        for (place, word) in record.iter().zip(words) {
            place.store(word.to_le(), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn commit(&mut self, count: u64) {
        self.next = self.next.wrapping_add(count);
        // ORDER ring-commit: whoever sees this position also sees the words of the records before it.
        self.ring.committed.store(self.next.to_le(), order(Ordering::Release, Fault::RingRelaxedCommit));
    }
}

//! The flush thread's side of a slot: takes records out and knows exactly how many events were lost.

use super::staged::{STAGED_WORDS, Staged};
use crate::ring::{Cursor, Ring};

/// The flush thread's place in one slot.
#[derive(Debug)]
pub struct SlotCursor {
    cursor: Cursor,
    events_seen: u64,
}

impl SlotCursor {
    /// A cursor at the very start of a slot's ring.
    #[must_use]
    pub fn new(ring: &Ring<'_, STAGED_WORDS>) -> SlotCursor {
        SlotCursor { cursor: Cursor::at(ring, 0), events_seen: 0 }
    }

    /// Position of the next record.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.cursor.position()
    }

    /// Application events accounted for so far: taken out, or known to be lost.
    #[must_use]
    pub fn events_seen(&self) -> u64 {
        self.events_seen
    }

    /// Copies the next records before `limit` (a value of [`Cursor::committed`]) and hands each over.
    /// Returns how many application events were lost before them, or `None` when there is no record.
    pub fn drain(
        &mut self,
        ring: &Ring<'_, STAGED_WORDS>,
        limit: u64,
        buffer: &mut [[u64; STAGED_WORDS]],
        mut take: impl FnMut(Staged),
    ) -> Option<u64> {
        let drained = self.cursor.drain(ring, limit, buffer)?;
        let mut lost = 0;
        for words in &buffer[drained.start..drained.start + drained.count] {
            let Some(staged) = Staged::from_words(words) else { continue };
            let before = staged.events_after.wrapping_sub(staged.events());
            lost += before.wrapping_sub(self.events_seen);
            self.events_seen = staged.events_after;
            take(staged);
        }
        Some(lost)
    }

    /// Counts as lost what was recorded up to `events` and never came out. Returns how many that were.
    pub fn give_up(&mut self, events: u64) -> u64 {
        let lost = events.saturating_sub(self.events_seen);
        self.events_seen += lost;
        lost
    }
}

//! Taking records out of the slots, merged by time.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::sync::Arc;

use telering_core::ring::Cursor;
use telering_core::slot::{STAGED_WORDS, SlotCursor, Staged};

use crate::agent::hot::OwnedSlot;

/// Records that are taken out of one slot at a time. Bounds the memory of a flush.
const CHUNK: usize = 256;

/// One slot, as the flush thread knows it.
pub(super) struct Source {
    owned: Arc<OwnedSlot>,
    cursor: SlotCursor,
    /// Records of this flush end here, so that a flush ends while others go on recording.
    limit: u64,
    waiting: VecDeque<Staged>,
}

impl Source {
    pub(super) fn new(owned: Arc<OwnedSlot>) -> Source {
        let cursor = SlotCursor::new(&owned.ring());
        Source { owned, cursor, limit: 0, waiting: VecDeque::with_capacity(CHUNK) }
    }

    pub(super) fn owned(&self) -> &OwnedSlot {
        &self.owned
    }

    pub(super) fn events_seen(&self) -> u64 {
        self.cursor.events_seen()
    }

    /// Fixes what this flush takes; returns how many records that may be.
    pub(super) fn fix_limit(&mut self) -> u64 {
        let before = self.cursor.position();
        self.limit = Cursor::committed(&self.owned.ring());
        self.limit.saturating_sub(before)
    }

    /// Whether the ring went past the end of a quarter since the last flush.
    pub(super) fn is_past_quarter(&self, quarter: u64) -> bool {
        Cursor::committed(&self.owned.ring()) / quarter != self.cursor.position() / quarter
    }

    /// Takes records out while none wait; returns the events that were lost before them.
    fn refill(&mut self, buffer: &mut [[u64; STAGED_WORDS]; CHUNK]) -> u64 {
        let mut lost = 0;
        let waiting = &mut self.waiting;
        while waiting.is_empty() {
            let ring = self.owned.ring();
            match self.cursor.drain(&ring, self.limit, buffer, |staged| waiting.push_back(staged)) {
                Some(more) => lost += more,
                None => break,
            }
        }
        lost
    }

    /// Counts as lost what never came out.
    pub(super) fn give_up(&mut self) -> u64 {
        let events = self.owned.slot.totals().events();
        self.cursor.give_up(events)
    }
}

/// Takes all records of this flush out of `sources` and out of `extra` (in the order of their ticks), the
/// oldest first, and hands each to `take`. Returns the events lost in the rings.
pub(super) fn merge(sources: &mut [Source], extra: Vec<Staged>, mut take: impl FnMut(Staged)) -> u64 {
    let mut buffer = [[0; STAGED_WORDS]; CHUNK];
    let mut lost = 0;
    let mut extra = VecDeque::from(extra);
    // The place behind the last source stands for `extra`.
    let mut oldest = BinaryHeap::with_capacity(sources.len() + 1);
    for (place, source) in sources.iter_mut().enumerate() {
        lost += source.refill(&mut buffer);
        if let Some(first) = source.waiting.front() {
            oldest.push(Reverse((first.ticks, place)));
        }
    }
    if let Some(first) = extra.front() {
        oldest.push(Reverse((first.ticks, sources.len())));
    }
    while let Some(Reverse((_, place))) = oldest.pop() {
        let until = oldest.peek().map_or(u64::MAX, |Reverse((ticks, _))| *ticks);
        let Some(source) = sources.get_mut(place) else {
            while let Some(staged) = extra.pop_front_if(|staged| staged.ticks <= until) {
                take(staged);
            }
            if let Some(next) = extra.front() {
                oldest.push(Reverse((next.ticks, place)));
            }
            continue;
        };
        // Runs of one source need no look at the others.
        while let Some(staged) = source.waiting.pop_front_if(|staged| staged.ticks <= until) {
            take(staged);
            if source.waiting.is_empty() {
                lost += source.refill(&mut buffer);
            }
        }
        if let Some(next) = source.waiting.front() {
            oldest.push(Reverse((next.ticks, place)));
        }
    }
    lost
}

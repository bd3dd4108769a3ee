//! The reading side of a ring in memory.

use super::{Ring, Window};
use crate::sync::{Fault, Ordering, fence_unless, order};

/// A private position in a ring. Reading changes nothing for the producer or for other readers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    window: Window,
}

/// What one look found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look<const WORDS: usize> {
    /// Nothing new.
    Empty,
    /// So many records were overwritten before they were read.
    Lost(u64),
    /// A record and its position.
    Record(u64, [u64; WORDS]),
}

/// What one drain found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drained {
    /// Records overwritten before the first one of this drain.
    pub lost: u64,
    /// Place of the first valid record in the buffer.
    pub start: usize,
    /// Valid records from there on.
    pub count: usize,
    /// Position of the first valid record.
    pub first: u64,
}

impl Cursor {
    /// A cursor that wants `position` first.
    #[must_use]
    pub fn at<const WORDS: usize>(ring: &Ring<'_, WORDS>, position: u64) -> Cursor {
        Cursor { window: Window::new(position, ring.capacity()) }
    }

    /// A cursor at the oldest record still there.
    #[must_use]
    pub fn oldest<const WORDS: usize>(ring: &Ring<'_, WORDS>) -> Cursor {
        let intent = u64::from_le(ring.intent.load(Ordering::Relaxed));
        Cursor { window: Window::oldest(intent, ring.capacity()) }
    }

    /// The position wanted next.
    #[must_use]
    pub const fn position(&self) -> u64 {
        self.window.next()
    }

    /// Positions finished so far; every record below is visible.
    #[must_use]
    pub fn committed<const WORDS: usize>(ring: &Ring<'_, WORDS>) -> u64 {
        // ORDER ring-commit: pairs with the producer's release.
        u64::from_le(ring.committed.load(order(Ordering::Acquire, Fault::RingRelaxedCommittedLoad)))
    }

    /// One look: nothing, a loss, or a record.
    pub fn look<const WORDS: usize>(&mut self, ring: &Ring<'_, WORDS>) -> Look<WORDS> {
        let mut buffer = [[0; WORDS]; 1];
        let before = self.window;
        let Some(drained) = self.drain(ring, Self::committed(ring), &mut buffer) else {
            return Look::Empty;
        };
        if drained.lost > 0 {
            // Say the loss first; the record, if it is still there, is the next look's.
            self.window = Window::new(before.next() + drained.lost, ring.capacity());
            return Look::Lost(drained.lost);
        }
        Look::Record(drained.first, buffer[0])
    }

    /// Copies the next records before `limit` into `buffer`; `None` when there is none.
    ///
    /// `limit` is a value of [`Cursor::committed`]: taken once, it bounds a whole pass.
    pub fn drain<const WORDS: usize>(
        &mut self,
        ring: &Ring<'_, WORDS>,
        limit: u64,
        buffer: &mut [[u64; WORDS]],
    ) -> Option<Drained> {
        let claim = self.window.claim(limit, buffer.len() as u64)?;
        for (copy, position) in buffer.iter_mut().zip(claim.first..).take(claim.count as usize) {
            let Some(record) = ring.record(position) else { continue };
            for (word, place) in copy.iter_mut().zip(record) {
                *word = u64::from_le(place.load(Ordering::Relaxed));
            }
        }
        // ORDER ring-intent: pairs with the producer's fence. If any word above was of a later record,
        // the intent below is that record's.
        fence_unless(Fault::RingNoAcquireFence, Ordering::Acquire);
        let intent = u64::from_le(ring.intent.load(Ordering::Relaxed));
        let settled = self.window.settle(claim, intent);
        Some(Drained {
            lost: settled.lost,
            start: settled.skip as usize,
            count: settled.count as usize,
            first: settled.first,
        })
    }
}

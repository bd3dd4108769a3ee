//! The ring: one producer, overwrites the oldest, any number of read-only readers.
//!
//! Two free-running positions. `intent` says what the producer is about to write, `committed` what it
//! finished. A reader copies a record and only then asks `intent` whether it may have been overwritten
//! meanwhile, so it never holds anything up and always knows exactly what it lost.
//!
//! ```text
//! push   intent = n + 1; fence(Release); words...; committed = n + 1 (Release)
//! read   committed (Acquire); words...; fence(Acquire); intent
//! ```
//!
//! One algorithm serves the rings inside a process (records of 64 bytes) and the image (56 bytes).

mod attach;
mod cursor;
mod producer;
mod window;

pub use attach::{AttachError, attach};
pub use cursor::{Cursor, Drained, Look};
pub use producer::Producer;
pub use window::{Claim, Settled, Window};

use static_assertions::{assert_impl_all, assert_not_impl_any};

use crate::layout::image;
use crate::sync::{AtomicU64, Ordering};

// Any thread may look at a ring, and its producer may move to another thread. Only one of it: a copy would go on
// from an old position over records that readers believe to be whole.
assert_impl_all!(Ring<'static, 7>: Send, Sync, Copy);
assert_impl_all!(Producer<'static, 7>: Send);
assert_not_impl_any!(Producer<'static, 7>: Clone, Copy);
assert_impl_all!(Cursor: Send, Sync);

/// Why memory can't be a ring.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum RingError {
    /// The number of records is not a power of two, or smaller than 2.
    Capacity {
        /// Records that the memory has room for.
        records: usize,
    },
}

impl core::fmt::Display for RingError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            RingError::Capacity { records } => {
                write!(f, "a ring of {records} records: the number must be a power of two, 2 at the least")
            }
        }
    }
}

impl core::error::Error for RingError {}

/// A number of records that a ring can have: looked at once, where the memory is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capacity(usize);

impl Capacity {
    /// A power of two, 2 at the least.
    ///
    /// # Errors
    /// [`RingError::Capacity`] for any other number.
    pub const fn new(records: usize) -> Result<Capacity, RingError> {
        if records < 2 || !records.is_power_of_two() {
            return Err(RingError::Capacity { records });
        }
        Ok(Capacity(records))
    }

    /// The number of records.
    #[must_use]
    pub const fn records(self) -> usize {
        self.0
    }
}

/// A view of a ring's memory: two positions and the records, `WORDS` 64-bit words each.
///
/// All words are stored little-endian, also the positions, because the same view lies over a file.
#[derive(Clone, Copy, Debug)]
pub struct Ring<'a, const WORDS: usize> {
    intent: &'a AtomicU64,
    committed: &'a AtomicU64,
    records: &'a [[AtomicU64; WORDS]],
    /// Models need batches in rings that are far too small for one.
    #[cfg(loom)]
    max_batch: u64,
}

impl<'a, const WORDS: usize> Ring<'a, WORDS> {
    /// Lays a ring over memory.
    ///
    /// # Errors
    /// [`RingError::Capacity`] unless there is room for a power of two of records, 2 at the least.
    pub fn new(
        intent: &'a AtomicU64,
        committed: &'a AtomicU64,
        records: &'a [[AtomicU64; WORDS]],
    ) -> Result<Self, RingError> {
        Ok(Ring::over(intent, committed, records, Capacity::new(records.len())?))
    }

    /// Lays a ring over memory whose size was looked at before. With another size than `capacity` the records
    /// are nonsense, but nothing worse.
    #[inline(always)]
    #[must_use]
    pub fn over(
        intent: &'a AtomicU64,
        committed: &'a AtomicU64,
        records: &'a [[AtomicU64; WORDS]],
        capacity: Capacity,
    ) -> Self {
        debug_assert_eq!(records.len(), capacity.records());
        Ring {
            intent,
            committed,
            records,
            #[cfg(loom)]
            max_batch: image::max_batch(records.len() as u64),
        }
    }

    /// A ring for the model tests alone: also of one record, also with batches in a small ring.
    #[cfg(loom)]
    pub fn of_any_size(
        intent: &'a AtomicU64,
        committed: &'a AtomicU64,
        records: &'a [[AtomicU64; WORDS]],
        max_batch: u64,
    ) -> Self {
        assert!(records.len().is_power_of_two() && max_batch <= records.len() as u64);
        Ring { intent, committed, records, max_batch }
    }

    /// Records that the ring holds.
    #[must_use]
    pub fn capacity(&self) -> u64 {
        self.records.len() as u64
    }

    /// Records that one batch may have.
    #[must_use]
    pub fn max_batch(&self) -> u64 {
        #[cfg(loom)]
        return self.max_batch;
        #[cfg(not(loom))]
        image::max_batch(self.capacity())
    }

    /// The memory of the record at a position. Never `None`: the length is a power of two, `Capacity` saw to it. But
    /// the compiler can't know that, and in firmware not even the code of a panic may be linked for it.
    #[inline(always)]
    fn record(&self, position: u64) -> Option<&'a [AtomicU64; WORDS]> {
        self.records.get(position as usize & self.records.len().wrapping_sub(1))
    }

    /// Positions finished so far, as the producer itself sees it.
    #[inline(always)]
    #[must_use]
    pub fn committed_relaxed(&self) -> u64 {
        u64::from_le(self.committed.load(Ordering::Relaxed))
    }
}

//! Running totals of one slot, exact at any rate: whatever the ring overwrites, they have counted it.

use super::staged::{Group, Operation, Transfer};
use crate::layout::parts::metrics::BOUNDS_MAX;
use crate::names;
use crate::status::{STATUS_COUNT, Status};
use crate::sync::{AtomicU64, Ordering};

/// NIXL's histogram bounds: microseconds, inclusive.
pub const DEFAULT_BOUNDS: [u64; 18] = [
    10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000, 25_000, 50_000, 100_000, 250_000, 500_000, 1_000_000,
    5_000_000, 10_000_000,
];

/// Why bounds can't be a histogram's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BucketsError {
    /// More bounds than a telemetry file has room for.
    TooMany {
        /// How many there are.
        bounds: usize,
    },
    /// A bound is not larger than the one before it, or 0.
    NotIncreasing {
        /// Its place in the list.
        place: usize,
        /// The bound.
        bound: u64,
    },
}

impl core::fmt::Display for BucketsError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            BucketsError::TooMany { bounds } => write!(f, "{bounds} histogram bounds: {BOUNDS_MAX} at the most"),
            BucketsError::NotIncreasing { place, bound } => {
                write!(f, "histogram bound {bound} (number {}) must be larger than the one before it", place + 1)
            }
        }
    }
}

impl core::error::Error for BucketsError {}

/// A power of two that the bounds and their end fit in.
const PLACES: usize = (BOUNDS_MAX + 1).next_power_of_two();

/// Finds the bucket of a duration in a few instructions.
#[derive(Clone, Copy, Debug)]
pub struct Buckets {
    /// The bounds, then `u64::MAX` to the end: the search always stops. As long as a mask can be, so that it needs no
    /// other check.
    bounds: [u64; PLACES],
    /// First bucket that a number with this highest bit can be in.
    first: [u8; 64],
    used: usize,
}

impl Default for Buckets {
    fn default() -> Self {
        Buckets::fill(&DEFAULT_BOUNDS)
    }
}

impl Buckets {
    /// Buckets with these upper bounds: microseconds, inclusive, increasing.
    ///
    /// # Errors
    /// [`BucketsError`] for more than 32 bounds, a 0, or bounds that do not increase.
    pub fn new(bounds: &[u64]) -> Result<Buckets, BucketsError> {
        if bounds.len() > BOUNDS_MAX {
            return Err(BucketsError::TooMany { bounds: bounds.len() });
        }
        let mut before = 0;
        for (place, &bound) in bounds.iter().enumerate() {
            if bound <= before {
                return Err(BucketsError::NotIncreasing { place, bound });
            }
            before = bound;
        }
        Ok(Buckets::fill(bounds))
    }

    fn fill(bounds: &[u64]) -> Buckets {
        let mut buckets = Buckets { bounds: [u64::MAX; PLACES], first: [0; 64], used: bounds.len() };
        buckets.bounds[..bounds.len()].copy_from_slice(bounds);
        for (bit, first) in buckets.first.iter_mut().enumerate() {
            // No bound is 0, so 0 can share a place with 1.
            *first = bounds.iter().take_while(|&&bound| bound < 1 << bit).count() as u8;
        }
        buckets
    }

    /// The bounds.
    #[must_use]
    pub fn bounds(&self) -> &[u64] {
        &self.bounds[..self.used]
    }

    /// Place of the first bound that is not smaller than `value`; the number of bounds for the overflow.
    #[inline(always)]
    #[must_use]
    pub fn find(&self, value: u64) -> usize {
        let mut place = usize::from(self.first[(value | 1).ilog2() as usize]);
        while value > self.bounds[place % PLACES] {
            place += 1;
        }
        place
    }
}

/// Adds to a number that this thread alone writes.
#[inline(always)]
fn add(number: &AtomicU64, more: u64) {
    number.store(number.load(Ordering::Relaxed).wrapping_add(more), Ordering::Relaxed);
}

#[inline(always)]
fn set(number: &AtomicU64, value: u64) {
    number.store(value, Ordering::Relaxed);
}

/// Bytes and requests of one direction.
#[derive(Debug, Default)]
pub struct Direction {
    /// Bytes of all transfers.
    pub bytes: AtomicU64,
    /// Finished transfers.
    pub requests: AtomicU64,
    /// Bytes of the last one.
    pub last_bytes: AtomicU64,
    /// Ticks of the last one.
    pub last_ticks: AtomicU64,
}

/// One of the two durations.
#[derive(Debug)]
pub struct Latency {
    /// Microseconds of all transfers.
    pub sum: AtomicU64,
    /// Microseconds of the last one.
    pub last: AtomicU64,
    /// Transfers by bucket; their sum is the count.
    pub buckets: [AtomicU64; BOUNDS_MAX + 1],
}

impl Default for Latency {
    fn default() -> Self {
        let zero = || AtomicU64::new(0);
        Latency { sum: zero(), last: zero(), buckets: core::array::from_fn(|_| zero()) }
    }
}

/// A built-in event that stands alone.
#[derive(Debug, Default)]
pub struct Single {
    /// Sum of the values.
    pub sum: AtomicU64,
    /// Number of events.
    pub count: AtomicU64,
    /// The last value.
    pub last: AtomicU64,
    /// Ticks of the last one.
    pub last_ticks: AtomicU64,
}

/// Built-in events that stand alone: memory (2), then ours (6).
const SINGLES: usize = 8;

/// All totals of a slot.
#[derive(Debug, Default)]
pub struct Totals {
    events: AtomicU64,
    /// Writes, then reads.
    pub directions: [Direction; 2],
    /// Start to completion.
    pub xfer_time: Latency,
    /// Start to posted.
    pub post_time: Latency,
    singles: [Single; SINGLES],
    /// By [`Status::index`].
    pub errors: [AtomicU64; STATUS_COUNT],
}

impl Totals {
    /// Application events recorded so far.
    #[must_use]
    pub fn events(&self) -> u64 {
        self.events.load(Ordering::Relaxed)
    }

    #[inline(always)]
    pub(super) fn add_events(&self, more: u64) -> u64 {
        let events = self.events().wrapping_add(more);
        set(&self.events, events);
        events
    }

    pub(super) fn set_events(&self, events: u64) {
        set(&self.events, events);
    }

    /// The totals of a built-in event that stands alone; `None` for all others.
    #[must_use]
    pub fn single(&self, id: u32) -> Option<&Single> {
        let place = match id {
            names::MEMORY_REGISTERED | names::MEMORY_DEREGISTERED => id - names::MEMORY_REGISTERED,
            names::FIRST_OWN_ID.. => id - names::FIRST_OWN_ID + 2,
            _ => return None,
        };
        self.singles.get(place as usize)
    }

    #[inline(always)]
    pub(super) fn add_transfer(&self, buckets: &Buckets, transfer: &Transfer) {
        let direction = match transfer.operation {
            Operation::Write => &self.directions[0],
            Operation::Read => &self.directions[1],
        };
        if transfer.group == Group::ALL {
            direction.add_bytes(transfer.bytes);
            add(&direction.requests, 1);
            self.xfer_time.add(buckets, transfer.xfer_us);
            self.post_time.add(buckets, transfer.post_us);
        } else {
            self.add_some(direction, buckets, transfer.group, [transfer.bytes, transfer.xfer_us, transfer.post_us]);
        }
        set(&direction.last_ticks, transfer.ticks);
    }

    /// Under an allowlist: a metric that is off stays 0. Takes parts, so that the transfer can stay in registers.
    #[cold]
    #[inline(never)]
    fn add_some(&self, direction: &Direction, buckets: &Buckets, group: Group, values: [u64; 3]) {
        let [bytes, xfer_us, post_us] = values;
        if group.has(Group::BYTES) {
            direction.add_bytes(bytes);
        }
        if group.has(Group::BYTES) || group.has(Group::REQUESTS) {
            add(&direction.requests, 1);
        }
        if group.has(Group::XFER_TIME) {
            self.xfer_time.add(buckets, xfer_us);
        }
        if group.has(Group::POST_TIME) {
            self.post_time.add(buckets, post_us);
        }
    }

    pub(super) fn add_single(&self, id: u32, ticks: u64, value: u64) {
        if let Some(single) = self.single(id) {
            add(&single.sum, value);
            add(&single.count, 1);
            set(&single.last, value);
            set(&single.last_ticks, ticks);
        }
    }

    pub(super) fn add_error(&self, status: Status) {
        add(&self.errors[status.index()], 1);
    }
}

impl Direction {
    #[inline(always)]
    fn add_bytes(&self, bytes: u64) {
        add(&self.bytes, bytes);
        set(&self.last_bytes, bytes);
    }
}

impl Latency {
    #[inline(always)]
    fn add(&self, buckets: &Buckets, us: u64) {
        add(&self.sum, us);
        set(&self.last, us);
        add(&self.buckets[buckets.find(us)], 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_bucket_is_the_first_bound_not_smaller(value: u64, small in 0_u64..20_000_000, bounds in prop::collection::btree_set(1_u64.., 0..32)) {
            let bounds = bounds.into_iter().collect::<std::vec::Vec<_>>();
            for buckets in [Buckets::new(&bounds).expect("increasing"), Buckets::default()] {
                for value in [value, small] {
                    let expected = buckets.bounds().iter().position(|&bound| bound >= value);
                    prop_assert_eq!(buckets.find(value), expected.unwrap_or(buckets.bounds().len()));
                }
            }
        }
    }

    extern crate std;

    #[test]
    fn bounds_are_inclusive_and_wrong_lists_are_refused() {
        let buckets = Buckets::default();
        assert_eq!((buckets.find(10), buckets.find(11), buckets.find(10_000_001)), (0, 1, 18));
        assert_eq!(Buckets::new(&[5, 5]).err(), Some(BucketsError::NotIncreasing { place: 1, bound: 5 }));
        assert_eq!(Buckets::new(&[0]).err(), Some(BucketsError::NotIncreasing { place: 0, bound: 0 }));
        assert_eq!(Buckets::new(&[1; 40]).err(), Some(BucketsError::TooMany { bounds: 40 }));
        assert_eq!(Buckets::new(&[u64::MAX]).map(|b| b.find(u64::MAX)).ok(), Some(0));
    }
}

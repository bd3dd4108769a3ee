//! What one recording thread owns: a staging ring, running totals, and the flags it shares with the
//! flush thread.
//!
//! A slot belongs to an agent and is leased to one thread at a time. That thread alone writes ring and
//! totals: no read-modify-write, no lock. A thread that ends gives the slot back as it is, undrained;
//! the next one goes on with its position and totals, so nothing is ever folded or reset and the
//! memory is that of the most threads at once.

mod drain;
mod flags;
mod staged;
mod totals;

pub use drain::SlotCursor;
pub use flags::{CloseFlag, Lease, SleepFlag};
pub use staged::{Group, Operation, STAGED_WORDS, Staged, StagedKind, Transfer};
pub use totals::{Buckets, BucketsError, DEFAULT_BOUNDS, Direction, Latency, Single, Totals};

use static_assertions::{assert_eq_align, assert_impl_all, assert_not_impl_any};

use crate::event::Category;
use crate::name::Name;
use crate::ring::{Capacity, Producer, Ring, RingError};
use crate::status::Status;
use crate::sync::{AtomicU64, Fault, faulty};

/// A cache line of its own (two, for processors that fetch lines in pairs).
#[derive(Debug, Default)]
#[repr(align(128))]
struct Line<T>(T);

#[derive(Debug, Default)]
struct Positions {
    intent: AtomicU64,
    committed: AtomicU64,
}

/// Memory of one record in a staging ring.
pub type StagedMemory = [AtomicU64; STAGED_WORDS];

/// The fixed part of a slot. Its staging ring's records are memory that the caller owns: the same
/// memory in every call.
#[derive(Debug, Default)]
pub struct Slot {
    positions: Line<Positions>,
    lease: Line<Lease>,
    totals: Line<Totals>,
}

// Recording threads and the flush thread share it.
assert_impl_all!(Slot: Send, Sync);
assert_not_impl_any!(SlotCursor: Clone, Copy);
// Two words that different threads write never share a cache line.
assert_eq_align!(Slot, Line<u8>);

impl Slot {
    /// A slot whose ring and totals are empty.
    #[must_use]
    pub fn new() -> Slot {
        Slot::default()
    }

    /// Who may write.
    #[must_use]
    pub fn lease(&self) -> &Lease {
        &self.lease.0
    }

    /// The running totals.
    #[must_use]
    pub fn totals(&self) -> &Totals {
        &self.totals.0
    }

    /// The staging ring over its memory.
    ///
    /// # Errors
    /// [`RingError`] unless `records` is a power of two long, 2 at the least.
    pub fn ring<'a>(&'a self, records: &'a [StagedMemory]) -> Result<Ring<'a, STAGED_WORDS>, RingError> {
        Ring::new(&self.positions.0.intent, &self.positions.0.committed, records)
    }

    /// The same over memory whose size was looked at before: see [`Ring::over`].
    #[inline(always)]
    #[must_use]
    pub fn ring_over<'a>(&'a self, records: &'a [StagedMemory], capacity: Capacity) -> Ring<'a, STAGED_WORDS> {
        Ring::over(&self.positions.0.intent, &self.positions.0.committed, records, capacity)
    }

    /// Records one finished transfer: its totals, then one record. Returns the ring's position after it.
    #[inline(always)]
    pub fn transfer(&self, ring: Ring<'_, STAGED_WORDS>, buckets: &Buckets, transfer: &Transfer) -> u64 {
        self.record(ring, &Counted { buckets, transfer })
    }

    /// Records one built-in event that is no error. Returns the ring's position after it.
    #[inline]
    pub fn single(&self, ring: Ring<'_, STAGED_WORDS>, ticks: u64, id: u32, value: u64) -> u64 {
        self.record(ring, &SingleEvent { ticks, id, value })
    }

    /// Records one failed operation. Returns the ring's position after it.
    #[inline]
    pub fn error(&self, ring: Ring<'_, STAGED_WORDS>, ticks: u64, status: Status) -> u64 {
        self.record(ring, &ErrorEvent { ticks, status })
    }

    /// Records one custom or backend event. Returns the ring's position after it.
    #[inline]
    pub fn named(&self, ring: Ring<'_, STAGED_WORDS>, ticks: u64, category: Category, name: &Name, value: u64) -> u64 {
        self.record(ring, &NamedEvent { ticks, category, name, value })
    }

    #[inline(always)]
    fn record(&self, ring: Ring<'_, STAGED_WORDS>, entry: &impl Entry) -> u64 {
        let totals = self.totals();
        let mut producer = Producer::resume(ring, ring.committed_relaxed());
        // ORDER totals: before the record's commit, so that totals never lag behind what was drained.
        let events = if faulty(Fault::TotalsAfterCommit) {
            totals.events() + entry.events()
        } else {
            entry.count(totals);
            totals.add_events(entry.events())
        };
        producer.push(entry.words(events));
        if faulty(Fault::TotalsAfterCommit) {
            entry.count(totals);
            totals.set_events(events);
        }
        producer.position()
    }
}

/// What is recorded. A trait and no closures, because only functions can be told to be inlined, and these must be.
trait Entry {
    /// Application events that it stands for.
    fn events(&self) -> u64;
    /// Adds it to the totals.
    fn count(&self, totals: &Totals);
    /// Its record, with the slot's number of events after it.
    fn words(&self, events: u64) -> [u64; STAGED_WORDS];
}

struct Counted<'a> {
    buckets: &'a Buckets,
    transfer: &'a Transfer,
}

impl Entry for Counted<'_> {
    #[inline(always)]
    fn events(&self) -> u64 {
        // Nearly always; counting bits takes several instructions on old processors.
        if self.transfer.group == Group::ALL { 4 } else { self.transfer.group.events() }
    }

    #[inline(always)]
    fn count(&self, totals: &Totals) {
        totals.add_transfer(self.buckets, self.transfer);
    }

    #[inline(always)]
    fn words(&self, events: u64) -> [u64; STAGED_WORDS] {
        self.transfer.words(events)
    }
}

struct SingleEvent {
    ticks: u64,
    id: u32,
    value: u64,
}

impl Entry for SingleEvent {
    #[inline(always)]
    fn events(&self) -> u64 {
        1
    }

    #[inline(always)]
    fn count(&self, totals: &Totals) {
        totals.add_single(self.id, self.ticks, self.value);
    }

    #[inline(always)]
    fn words(&self, events: u64) -> [u64; STAGED_WORDS] {
        staged::single_words(self.ticks, self.id, self.value, events)
    }
}

struct ErrorEvent {
    ticks: u64,
    status: Status,
}

impl Entry for ErrorEvent {
    #[inline(always)]
    fn events(&self) -> u64 {
        1
    }

    #[inline(always)]
    fn count(&self, totals: &Totals) {
        totals.add_error(self.status);
    }

    #[inline(always)]
    fn words(&self, events: u64) -> [u64; STAGED_WORDS] {
        staged::single_words(self.ticks, crate::names::error_id(self.status), 1, events)
    }
}

struct NamedEvent<'a> {
    ticks: u64,
    category: Category,
    name: &'a Name,
    value: u64,
}

impl Entry for NamedEvent<'_> {
    #[inline(always)]
    fn events(&self) -> u64 {
        1
    }

    #[inline(always)]
    fn count(&self, _: &Totals) {}

    #[inline(always)]
    fn words(&self, events: u64) -> [u64; STAGED_WORDS] {
        staged::named_words(self.ticks, self.category, self.name, self.value, events)
    }
}

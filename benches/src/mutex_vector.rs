//! What we compare with: a bounded vector behind a mutex, the common design, with the same totals.
//!
//! Events of 16 bytes; the four events of a transfer go in under one lock. Somebody else drains: here a full
//! vector is exchanged for an empty one at no further cost, which flatters this design (in reality the excess is
//! dropped, and draining holds the lock now and then).

use std::sync::Mutex;

use telering::Operation;
use telering::core::slot::Buckets;

use crate::locks::Lock;

const CAPACITY: usize = 4096;
const BUCKETS: usize = 33;

#[derive(Clone, Copy, Default)]
struct Event {
    kind: u32,
    value: u64,
}

#[derive(Default)]
struct Direction {
    bytes: u64,
    requests: u64,
    last_bytes: u64,
    last_ticks: u64,
}

struct Latency {
    sum: u64,
    last: u64,
    buckets: [u64; BUCKETS],
}

impl Default for Inner {
    fn default() -> Self {
        let zero = || Latency { sum: 0, last: 0, buckets: [0; BUCKETS] };
        Inner {
            events: Vec::with_capacity(CAPACITY),
            drained: Vec::with_capacity(CAPACITY),
            recorded: 0,
            directions: Default::default(),
            xfer_time: zero(),
            post_time: zero(),
        }
    }
}

/// What is behind the lock.
pub struct Inner {
    events: Vec<Event>,
    drained: Vec<Event>,
    recorded: u64,
    directions: [Direction; 2],
    xfer_time: Latency,
    post_time: Latency,
}

/// The vector behind its mutex: Rust's, unless another is named.
pub struct MutexVector<L = Mutex<Inner>> {
    enabled: bool,
    buckets: Buckets,
    inner: L,
}

impl<L: Lock<Inner>> Default for MutexVector<L> {
    fn default() -> Self {
        MutexVector { enabled: true, buckets: Buckets::default(), inner: L::new(Inner::default()) }
    }
}

impl Latency {
    #[inline(always)]
    fn add(&mut self, buckets: &Buckets, us: u64) {
        self.sum = self.sum.wrapping_add(us);
        self.last = us;
        self.buckets[buckets.find(us)] += 1;
    }
}

impl Inner {
    #[inline(always)]
    fn append<const COUNT: usize>(&mut self, events: [Event; COUNT]) {
        if self.events.len() + COUNT > CAPACITY {
            std::mem::swap(&mut self.events, &mut self.drained);
            self.events.clear();
        }
        self.events.extend_from_slice(&events);
        self.recorded += COUNT as u64;
    }
}

impl<L: Lock<Inner>> MutexVector<L> {
    /// One event.
    #[inline(never)]
    pub fn event(&self, kind: u32, value: u64) {
        if self.enabled {
            self.inner.hold(|inner| inner.append([Event { kind, value }]));
        }
    }

    /// The four events of one transfer, and the totals.
    #[inline(never)]
    pub fn transfer(&self, operation: Operation, ticks: u64, bytes: u64, post_us: u64, xfer_us: u64) {
        if !self.enabled {
            return;
        }
        self.inner.hold(|inner| {
            inner.append([
                Event { kind: 2, value: bytes },
                Event { kind: 4, value: 1 },
                Event { kind: 6, value: xfer_us },
                Event { kind: 7, value: post_us },
            ]);
            let direction = &mut inner.directions[operation as usize];
            direction.bytes = direction.bytes.wrapping_add(bytes);
            direction.requests += 1;
            direction.last_bytes = bytes;
            direction.last_ticks = ticks;
            inner.xfer_time.add(&self.buckets, xfer_us);
            inner.post_time.add(&self.buckets, post_us);
        });
    }

    /// Events recorded, and the sum of what was recorded last: so that no compiler leaves anything out.
    #[must_use]
    pub fn recorded(&self) -> u64 {
        self.inner.hold(|inner| {
            let kept = inner.events.iter().chain(&inner.drained).map(|event| event.value ^ u64::from(event.kind));
            std::hint::black_box(kept.fold(0, u64::wrapping_add));
            inner.recorded
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_vector_counts_what_goes_in_and_stays_bounded() {
        let vector: MutexVector = MutexVector::default();
        for bytes in 0..5000 {
            vector.transfer(Operation::Read, bytes, bytes, 1, 26);
            vector.event(1, bytes);
        }
        assert_eq!(vector.recorded(), 25_000);
        let inner = vector.inner.lock().unwrap();
        assert_eq!(inner.directions[1].bytes, 5000 * 4999 / 2);
        assert_eq!((inner.xfer_time.buckets[2], inner.post_time.buckets[0]), (5000, 5000));
        assert_eq!(inner.events.capacity(), CAPACITY);
    }
}

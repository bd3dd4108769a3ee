//! The ring on real processors: a producer flat out, two readers that can't keep up, records whose every word
//! is a function of their position. Nothing torn, nothing foreign, every loss counted.
//!
//! loom shows the orders (crate `telering-loom-tests`); this shows that the machine agrees.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use telering_core::ring::{Cursor, Look, Producer, Ring};
use telering_core::sync::AtomicU64;

const WORDS: usize = 7;

/// Records that the quick tests push.
const A_MOMENT: u64 = 1_000_000;

/// Close positions give close words: a word of the neighbour or of the lap before would be noticed.
fn record(position: u64) -> [u64; WORDS] {
    std::array::from_fn(|word| position.wrapping_mul(8) + word as u64)
}

#[derive(Default)]
struct Sums {
    events: u64,
    lost: u64,
}

fn check(position: u64, words: &[u64; WORDS]) {
    assert_eq!(*words, record(position), "torn or foreign record at position {position}");
}

/// Reads one by one until the producer is done and nothing is left.
fn look(ring: &Ring<'_, WORDS>, done: &AtomicBool) -> Sums {
    let mut sums = Sums::default();
    let mut cursor = Cursor::at(ring, 0);
    let mut said_a_loss = false;
    loop {
        // Before the look: what was committed before `done` is found by it.
        let last = done.load(Ordering::Acquire);
        match cursor.look(ring) {
            Look::Empty if last => return sums,
            Look::Empty => thread::yield_now(),
            Look::Lost(lost) => {
                assert!(lost > 0);
                sums.lost += lost;
                said_a_loss = true;
            }
            Look::Record(position, words) => {
                assert_eq!(position, sums.events + sums.lost, "positions go on without a gap");
                check(position, &words);
                sums.events += 1;
                // Behind a loss, let the producer run: the next copy is more likely to be overtaken.
                if std::mem::take(&mut said_a_loss) && position % 64 == 0 {
                    thread::yield_now();
                }
            }
        }
    }
}

/// Reads in pieces until the producer is done and nothing is left.
fn drain(ring: &Ring<'_, WORDS>, done: &AtomicBool) -> Sums {
    let mut sums = Sums::default();
    let mut cursor = Cursor::at(ring, 0);
    let mut buffer = [[0; WORDS]; 64];
    loop {
        let last = done.load(Ordering::Acquire);
        let Some(drained) = cursor.drain(ring, Cursor::committed(ring), &mut buffer) else {
            if last {
                return sums;
            }
            thread::yield_now();
            continue;
        };
        sums.lost += drained.lost;
        assert_eq!(drained.first, sums.events + sums.lost, "positions go on without a gap");
        for (position, words) in (drained.first..).zip(&buffer[drained.start..drained.start + drained.count]) {
            check(position, words);
        }
        sums.events += drained.count as u64;
    }
}

fn stress(capacity: usize, pushes: u64) {
    let (intent, committed) = (AtomicU64::new(0), AtomicU64::new(0));
    let records: Vec<[AtomicU64; WORDS]> = (0..capacity).map(|_| Default::default()).collect();
    let ring = Ring::new(&intent, &committed, &records).expect("a power of two");
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let readers = [scope.spawn(|| look(&ring, &done)), scope.spawn(|| drain(&ring, &done))];
        let mut producer = Producer::resume(ring, 0);
        while producer.position() < pushes {
            producer.push(record(producer.position()));
            producer.push_batch(ring.max_batch(), record);
        }
        done.store(true, Ordering::Release);
        for reader in readers {
            let sums = reader.join().expect("a reader found a torn record");
            assert_eq!(sums.events + sums.lost, producer.position());
            assert!(sums.events >= capacity as u64, "the newest records are still there when the producer is done");
        }
    });
}

#[test]
fn readers_of_2_records_are_exact_under_a_producer_flat_out() {
    stress(2, A_MOMENT);
}

#[test]
fn readers_of_4_records_are_exact_under_a_producer_flat_out() {
    stress(4, A_MOMENT);
}

#[test]
fn readers_of_8_records_are_exact_under_a_producer_flat_out() {
    stress(8, A_MOMENT);
}

#[test]
fn readers_of_4096_records_are_exact_under_a_producer_flat_out() {
    stress(4096, A_MOMENT);
}

#[test]
#[ignore = "4 x 10^8 records keep two processors busy for some seconds, more without optimisation"]
fn four_hundred_million_records_hold_no_torn_one() {
    for capacity in [2, 4, 8, 4096] {
        stress(capacity, 100_000_000);
    }
}

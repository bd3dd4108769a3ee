//! Where a reader may start. What was there before is not lost to it; from there on it is exact.

use std::sync::Arc;

use loom::thread;
use telering_core::ring::{Cursor, Producer, Ring};

use crate::common::{Memory, Tally, WORDS, check_bounded, record};

/// The first look at a position makes one more load than in the ring's models, which makes every order a
/// matter of minutes.
const PREEMPTIONS: usize = 3;

/// A reader starts at a moment of its own choice while the producer is at work.
fn start(at: fn(&Ring<'_, WORDS>) -> Cursor) {
    const PUSHES: u64 = 3;
    let memory = Arc::new(Memory::<1>::new(1));
    let reader = thread::spawn({
        let memory = memory.clone();
        move || {
            let mut tally = Tally::new(at(&memory.ring()));
            for _ in 0..2 {
                tally.look(&memory.ring());
            }
            tally
        }
    });
    let mut producer = Producer::resume(memory.ring(), 0);
    for position in 0..PUSHES {
        producer.push(record(position));
    }
    reader.join().expect("the reader's promises are checked").finish(&memory.ring(), PUSHES, 0);
}

fn oldest() {
    check_bounded(PREEMPTIONS, || start(Cursor::oldest));
}

fn newest() {
    check_bounded(PREEMPTIONS, || start(|ring| Cursor::at(ring, Cursor::committed(ring))));
}

#[test]
fn a_reader_that_starts_at_the_oldest_record_is_exact_from_there() {
    oldest();
}

#[test]
fn a_reader_that_starts_at_the_newest_record_is_exact_from_there() {
    newest();
}

mutants! {
    emptiness_by_equality_at_the_oldest: RingEmptyByEquality => oldest;
    no_intent_at_the_oldest: RingNoIntent => oldest;
    relaxed_commit_at_the_newest: RingRelaxedCommit => newest;
    no_acquire_fence_at_the_newest: RingNoAcquireFence => newest;
}

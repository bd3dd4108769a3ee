//! Taking a ring up again after a reset while readers are at work: what was announced and never finished
//! becomes fillers, and no reader gets the half-written records under them.

use std::sync::Arc;

use loom::thread;
use telering_core::ring::{Cursor, Producer, attach};
use telering_core::sync::{Ordering, fence};

use crate::common::{Memory, Tally, check_bounded, filler, record};

/// A batch of `announced` records is interrupted after `words` of its words; then the ring is taken up and
/// one more record is pushed. A reader that knows nothing of all this looks meanwhile.
fn interrupted<const CAPACITY: usize>(announced: u64, words: usize) {
    const COMMITTED: u64 = 2;
    let memory = Arc::new(Memory::<CAPACITY>::interrupted(announced, COMMITTED, COMMITTED));
    let reader = thread::spawn({
        let memory = memory.clone();
        move || {
            let mut tally = Tally::new(Cursor::at(&memory.ring(), COMMITTED - CAPACITY as u64));
            tally.look(&memory.ring());
            tally.look(&memory.ring());
            tally
        }
    });
    // What a producer does until the reset: it announces, and writes some words.
    let end = COMMITTED + announced;
    memory.intent.store(end, Ordering::Relaxed);
    fence(Ordering::Release);
    let positions = COMMITTED..end;
    let places = positions.flat_map(|position| {
        let slot = &memory.records[position as usize % CAPACITY];
        slot.iter().zip(record(position))
    });
    for (place, word) in places.take(words) {
        place.store(word, Ordering::Relaxed);
    }

    let (mut producer, fillers) = attach(memory.ring(), filler).expect("positions that belong together");
    assert_eq!((fillers, producer.position()), (announced, end));
    producer.push(record(end));
    reader.join().expect("the reader's promises are checked").finish(&memory.ring(), end + 1, announced);
}

// The reset's thread alone has ten stores: with every order a model takes minutes. Three preemptions put the
// reader's copy before, into and behind any two of them.
const PREEMPTIONS: usize = 3;

fn one_record() {
    check_bounded(PREEMPTIONS, || interrupted::<1>(1, 1));
}

fn two_records() {
    check_bounded(PREEMPTIONS, || interrupted::<2>(2, 3));
}

#[test]
fn an_interrupted_push_becomes_a_filler() {
    one_record();
}

#[test]
fn an_interrupted_batch_becomes_fillers_together() {
    two_records();
}

#[test]
fn nothing_written_yet_makes_fillers_too() {
    check_bounded(PREEMPTIONS, || interrupted::<2>(2, 0));
}

/// An attached producer goes on at its end: with intent lowered, `attach` returns another position, which the
/// model asserts; so these mutants run without that assertion.
fn only_what_readers_see() {
    check_bounded(PREEMPTIONS, || {
        let memory = Arc::new(Memory::<2>::interrupted(2, 2, 4));
        // The reset came after the first record of the batch and half of the second.
        for (place, word) in memory.records.as_flattened().iter().zip([record(2), record(3)].concat()).take(3) {
            place.store(word, Ordering::Relaxed);
        }
        let reader = thread::spawn({
            let memory = memory.clone();
            move || {
                let mut tally = Tally::new(Cursor::at(&memory.ring(), 0));
                tally.look(&memory.ring());
                tally.look(&memory.ring());
                tally
            }
        });
        let (producer, _) = attach(memory.ring(), filler).expect("positions that belong together");
        let end = Producer::position(&producer);
        reader.join().expect("the reader's promises are checked").finish(&memory.ring(), end, 2);
    });
}

#[test]
fn a_reader_never_gets_a_record_under_an_interrupted_batch() {
    only_what_readers_see();
}

mutants! {
    lowering_the_intent: AttachLowersIntent => only_what_readers_see;
    pushing_fillers_one_by_one: AttachPushesOneByOne => only_what_readers_see;
    pushing_fillers_one_by_one_after_a_reset_under_a_reader: AttachPushesOneByOne => two_records;
    relaxed_commit_of_fillers: RingRelaxedCommit => two_records;
    no_acquire_fence_in_the_reader: RingNoAcquireFence => two_records;
}

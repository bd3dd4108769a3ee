//! The ring: no reader ever gets a torn or foreign record, and `events + lost = committed - start`.

use std::sync::Arc;

use loom::thread;
use telering_core::ring::{Cursor, Producer};

use crate::common::{Memory, Tally, check, check_bounded, record};

/// A producer pushes `pushes` records one by one, `READERS` readers look `looks` times meanwhile.
fn singles<const CAPACITY: usize, const READERS: usize>(pushes: u64, looks: usize) {
    let memory = Arc::new(Memory::<CAPACITY>::new(1));
    let readers: [_; READERS] = std::array::from_fn(|_| {
        let memory = memory.clone();
        thread::spawn(move || {
            let mut tally = Tally::new(Cursor::at(&memory.ring(), 0));
            for _ in 0..looks {
                tally.look(&memory.ring());
            }
            tally
        })
    });
    let mut producer = Producer::resume(memory.ring(), 0);
    for position in 0..pushes {
        producer.push(record(position));
    }
    for reader in readers {
        reader.join().expect("the reader's promises are checked").finish(&memory.ring(), pushes, 0);
    }
}

/// A producer writes batches, a reader drains up to `SIZE` records in each of two passes.
fn batches<const CAPACITY: usize, const SIZE: usize>(counts: &[u64]) {
    let memory = Arc::new(Memory::<CAPACITY>::new(2));
    let reader = thread::spawn({
        let memory = memory.clone();
        move || {
            let mut tally = Tally::new(Cursor::at(&memory.ring(), 0));
            for _ in 0..2 {
                tally.drain::<SIZE>(&memory.ring());
            }
            tally
        }
    });
    let mut producer = Producer::resume(memory.ring(), 0);
    for &count in counts {
        producer.push_batch(count, record);
    }
    reader.join().expect("the reader's promises are checked").finish(&memory.ring(), counts.iter().sum(), 0);
}

fn capacity_1() {
    check(|| singles::<1, 1>(3, 2));
}

fn capacity_2() {
    check(|| singles::<2, 1>(3, 2));
}

fn batches_of_capacity_2() {
    // Three batches, so that the last one overwrites what a reader already claimed: every order of that takes
    // minutes, three preemptions seconds.
    check_bounded(3, || batches::<2, 2>(&[2, 1, 2]));
}

#[test]
fn a_ring_of_1_record_is_exact() {
    capacity_1();
}

#[test]
fn a_ring_of_2_records_is_exact() {
    capacity_2();
}

#[test]
fn a_ring_of_4_records_is_exact() {
    // Six pushes are needed to overwrite, too many for every order; three preemptions let the reader be
    // interrupted inside a copy, after it, and before its last look.
    check_bounded(3, || singles::<4, 1>(6, 2));
}

#[test]
fn two_readers_are_exact_and_do_not_see_each_other() {
    // Three threads. Readers write nothing, so each needs no more preemptions than one alone.
    check_bounded(3, || singles::<2, 2>(3, 1));
}

#[test]
fn batches_are_exact_in_a_ring_of_2_records() {
    batches_of_capacity_2();
}

#[test]
fn batches_are_exact_in_a_ring_of_4_records() {
    // As for single pushes: the batches must lap the reader.
    check_bounded(3, || batches::<4, 4>(&[2, 1, 2, 2]));
}

mutants! {
    no_release_fence: RingNoReleaseFence => capacity_1;
    no_acquire_fence: RingNoAcquireFence => capacity_1;
    relaxed_commit: RingRelaxedCommit => capacity_1;
    no_intent: RingNoIntent => capacity_1;
    relaxed_load_of_committed: RingRelaxedCommittedLoad => capacity_1;
    emptiness_by_equality: RingEmptyByEquality => capacity_1;
    no_release_fence_in_2_records: RingNoReleaseFence => capacity_2;
    no_acquire_fence_in_2_records: RingNoAcquireFence => capacity_2;
    relaxed_commit_in_2_records: RingRelaxedCommit => capacity_2;
    no_intent_in_2_records: RingNoIntent => capacity_2;
    relaxed_load_of_committed_in_2_records: RingRelaxedCommittedLoad => capacity_2;
    no_release_fence_before_a_batch: RingNoReleaseFence => batches_of_capacity_2;
    no_acquire_fence_after_a_drain: RingNoAcquireFence => batches_of_capacity_2;
    relaxed_commit_of_a_batch: RingRelaxedCommit => batches_of_capacity_2;
    no_intent_before_a_batch: RingNoIntent => batches_of_capacity_2;
    relaxed_load_of_committed_before_a_drain: RingRelaxedCommittedLoad => batches_of_capacity_2;
    emptiness_by_equality_with_batches: RingEmptyByEquality => batches_of_capacity_2;
}

//! The flush thread never sleeps on a full quarter that nobody wakes it for, and is woken once per sleep.
//!
//! The property needs the one total order of SeqCst fences (each side stores, fences, loads the other's
//! word). loom treats SeqCst *accesses* as AcqRel, but joins SeqCst *fences* in one order, and fences are all
//! that the protocol uses.

use std::sync::Arc;

use loom::thread;
use telering_core::ring::{Cursor, Producer};
use telering_core::slot::SleepFlag;

use crate::common::{Memory, check, record};

/// `RECORDERS` threads fill `pushes` records each into a ring of their own, of which one record is a quarter.
/// The flush thread announces `sleeps` sleeps and looks at the rings each time.
fn sleep<const RECORDERS: usize>(pushes: u64, sleeps: usize) {
    let flag = Arc::new(SleepFlag::default());
    let rings: [_; RECORDERS] = std::array::from_fn(|_| Arc::new(Memory::<4>::new(1)));
    let recorders = rings.clone().map(|memory| {
        let flag = flag.clone();
        thread::spawn(move || {
            let mut producer = Producer::resume(memory.ring(), 0);
            let mut wake_ups = 0;
            for position in 0..pushes {
                producer.push(record(position));
                wake_ups += usize::from(flag.claim_wake_up());
            }
            wake_ups
        })
    });
    let mut withdrawn = 0;
    let mut asleep = false;
    let mut seen = [0; RECORDERS];
    for last in (0..sleeps).map(|sleep| sleep + 1 == sleeps) {
        flag.announce();
        let committed = rings.each_ref().map(|memory| Cursor::committed(&memory.ring()));
        if committed == seen && last {
            asleep = true;
        } else {
            // Something to do, or the sleep's time is over.
            withdrawn += usize::from(flag.withdraw());
            seen = committed;
        }
    }
    let wake_ups: usize = recorders.map(|recorder| recorder.join().expect("a recorder only records")).iter().sum();
    let committed = rings.each_ref().map(|memory| memory.ring().committed_relaxed());
    let nobody_woke = flag.withdraw();
    // Each announcement ends once: a recorder took it, or the flush thread itself did.
    withdrawn += usize::from(nobody_woke);
    promise!(wake_ups + withdrawn == sleeps, "{sleeps} sleeps, {wake_ups} wake-ups, {withdrawn} withdrawn");
    promise!(!asleep || committed == seen || !nobody_woke, "asleep, {committed:?} records and nobody wakes");
}

fn one_recorder() {
    check(|| sleep::<1>(1, 1));
}

fn two_recorders() {
    check(|| sleep::<2>(1, 1));
}

#[test]
fn one_recorder_wakes_a_flush_thread_that_sleeps() {
    one_recorder();
}

#[test]
fn a_recorder_at_work_wakes_it_once_per_sleep() {
    check(|| sleep::<1>(2, 2));
}

#[test]
fn of_two_recorders_one_wakes_it() {
    two_recorders();
}

mutants! {
    no_fence_in_the_recorder: WakeNoRecorderFence => one_recorder;
    no_fence_in_the_flush_thread: WakeNoSleeperFence => one_recorder;
    waking_without_taking_the_announcement: WakeWithoutClaim => two_recorders;
}

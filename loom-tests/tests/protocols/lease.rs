//! A thread gives its slot back undrained; the next one goes on with its positions, totals and event numbers.

use std::sync::Arc;

use loom::thread;
use telering_core::Status;
use telering_core::ring::Cursor;
use telering_core::slot::{Slot, SlotCursor, Staged, StagedMemory};

use crate::common::check;

/// Two threads want the one slot. Each records `EACH` errors once it has it.
fn one_after_the_other() {
    const EACH: u64 = 2;
    const CAPACITY: usize = 4;
    let slot = Arc::new((Slot::new(), std::array::from_fn::<StagedMemory, CAPACITY, _>(|_| StagedMemory::default())));
    let record = |slot: &(Slot, [StagedMemory; CAPACITY])| {
        let ring = slot.0.ring(&slot.1).expect("a power of two");
        while !slot.0.lease().take() {
            thread::yield_now();
        }
        for _ in 0..EACH {
            slot.0.error(ring, 7, Status::Backend);
        }
        slot.0.lease().give_back();
    };
    let other = thread::spawn({
        let slot = slot.clone();
        move || record(&slot)
    });
    record(&slot);
    other.join().expect("the other thread only records");

    let ring = slot.0.ring(&slot.1).expect("a power of two");
    promise!(ring.committed_relaxed() == 2 * EACH, "{} positions of {}", ring.committed_relaxed(), 2 * EACH);
    let totals = slot.0.totals();
    promise!(totals.events() == 2 * EACH, "{} events of {}", totals.events(), 2 * EACH);
    let errors = totals.errors[Status::Backend.index()].load(telering_core::sync::Ordering::Relaxed);
    promise!(errors == 2 * EACH, "{errors} errors of {}", 2 * EACH);

    let mut cursor = SlotCursor::new(&ring);
    let mut numbers = Vec::new();
    let take = |staged: Staged| numbers.push(staged.events_after);
    let lost = cursor.drain(&ring, Cursor::committed(&ring), &mut [[0; 8]; CAPACITY], take);
    promise!(lost == Some(0), "lost {lost:?}");
    promise!(numbers == [1, 2, 3, 4], "event numbers {numbers:?}");
}

fn hand_over() {
    check(one_after_the_other);
}

#[test]
fn the_next_thread_goes_on_where_the_last_one_stopped() {
    hand_over();
}

mutants! {
    relaxed_return: LeaseRelaxedReturn => hand_over;
    relaxed_take: LeaseRelaxedTake => hand_over;
}

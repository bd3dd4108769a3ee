//! Totals read after a drain hold every drained record.

use std::sync::Arc;

use loom::thread;
use telering_core::ring::Cursor;
use telering_core::slot::{Buckets, Group, Operation, Slot, SlotCursor, StagedKind, StagedMemory, Transfer};
use telering_core::sync::Ordering;

use crate::common::check;

const TRANSFERS: u64 = 2;

fn transfer(bytes: u64) -> Transfer {
    Transfer { ticks: 1, operation: Operation::Write, group: Group::ALL, bytes, post_us: 1, xfer_us: 2, descriptors: 1 }
}

/// Drains once and holds the totals against what came out.
fn drain_then_totals(slot: &Slot, records: &[StagedMemory]) {
    let ring = slot.ring(records).expect("a power of two");
    let mut cursor = SlotCursor::new(&ring);
    let mut bytes = 0;
    cursor.drain(&ring, Cursor::committed(&ring), &mut [[0; 8]; 2], |staged| {
        let StagedKind::Transfer(transfer) = staged.kind else { panic!("nobody recorded this: {staged:?}") };
        bytes += transfer.bytes;
    });
    let totals = slot.totals();
    let events = totals.events();
    promise!(events >= cursor.events_seen(), "{} events drained, {events} in the totals", cursor.events_seen());
    let total_bytes = totals.directions[0].bytes.load(Ordering::Relaxed);
    promise!(total_bytes >= bytes, "{bytes} bytes drained, {total_bytes} in the totals");
    let finished = totals.xfer_time.buckets[0].load(Ordering::Relaxed);
    promise!(finished * 4 >= cursor.events_seen(), "{} events drained, {finished} in the bucket", cursor.events_seen());
}

fn record_and_drain() {
    let slot = Arc::new((Slot::new(), [StagedMemory::default(), StagedMemory::default()]));
    let flush = thread::spawn({
        let slot = slot.clone();
        move || drain_then_totals(&slot.0, &slot.1)
    });
    let ring = slot.0.ring(&slot.1).expect("a power of two");
    for number in 0..TRANSFERS {
        slot.0.transfer(ring, &Buckets::default(), &transfer(100 + number));
    }
    flush.join().expect("its promises are checked");
}

fn drained_is_counted() {
    check(record_and_drain);
}

#[test]
fn totals_never_lag_behind_what_was_drained() {
    drained_is_counted();
}

// A relaxed commit does not break this promise: the fence of the ring's intent lies between totals and words too,
// and a drain passes its pair. It breaks the ring, whose models see it.
mutants! {
    totals_after_the_commit: TotalsAfterCommit => drained_is_counted;
}

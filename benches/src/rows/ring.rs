//! The ring and the slot of `telering-core`, without an agent around them.

use std::hint::black_box;

use telering::core::ring::{Producer, Ring};
use telering::core::slot::{Buckets, Group, Operation, Slot, Transfer};
use telering::core::sync::AtomicU64;

use crate::harness::{Reference, Row, timed};
use crate::reference::{LINES, Lines};

/// Records of an agent's own ring by default: 1 MiB.
const DEFAULT_RECORDS: usize = 16_384;

fn push(name: &'static str, what: &'static str, records: usize) -> Row {
    let lines = Lines::new(records);
    let positions: Box<[AtomicU64; 2]> = Box::default();
    let mut next = 0;
    let body = timed(move |operations| {
        let Ok(ring) = Ring::new(&positions[0], &positions[1], lines.records()) else { return };
        let mut producer = Producer::resume(ring, next);
        for turn in 0..operations {
            let value = black_box(turn);
            producer.push([value, value + 1, value + 2, value + 3, value + 4, value + 5, value + 6, value + 7]);
        }
        next = producer.position();
    });
    Row { name, what, reference: Reference::Raw64, body }
}

/// A transfer of changing size and duration, so that no branch is learnt by heart.
#[must_use]
pub(super) fn example(turn: u64) -> Transfer {
    Transfer {
        ticks: turn,
        operation: Operation::Write,
        group: Group::ALL,
        bytes: 4096 + turn,
        post_us: 1,
        xfer_us: 12,
        descriptors: 1,
    }
}

fn slot(name: &'static str, what: &'static str, records: usize) -> Row {
    let lines = Lines::new(records);
    let (slot, buckets) = (Box::new(Slot::new()), Buckets::default());
    let body = timed(move |operations| {
        let Ok(ring) = slot.ring(lines.records()) else { return };
        for turn in 0..operations {
            black_box(slot.transfer(ring, &buckets, &example(black_box(turn))));
        }
    });
    Row { name, what, reference: Reference::Raw64, body }
}

pub(super) fn rows() -> Vec<Row> {
    vec![
        push("push", "one record of 64 bytes into a ring of 256 KiB", LINES),
        push("push-1m", "the same, a ring of 1 MiB: the default of an agent", DEFAULT_RECORDS),
        slot("slot", "totals, buckets and record of a transfer: a slot of 256 KiB, found already", LINES),
    ]
}

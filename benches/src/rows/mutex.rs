//! The design with a vector behind a mutex, doing the same.

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;

use telering::Operation;

use crate::harness::{Reference, Row, Slice, timed};
use crate::machine::{Partner, Work};
use crate::mutex_vector::MutexVector;

fn transfers(vector: &MutexVector, operations: u64) {
    for turn in 0..operations {
        let turn = black_box(turn);
        vector.transfer(Operation::Write, turn, 4096 + turn, black_box(1), black_box(12));
    }
}

pub(super) fn rows() -> Vec<Row> {
    let (vector, events): (MutexVector, MutexVector) = Default::default();
    vec![
        Row {
            name: "mutex-transfer",
            what: "mutex and vector: four events and the same totals, no clock",
            reference: Reference::Raw64,
            body: timed(move |operations| {
                transfers(&vector, operations);
                black_box(vector.recorded());
            }),
        },
        Row {
            name: "mutex-event",
            what: "mutex and vector: one event, no totals, no clock",
            reference: Reference::Raw64,
            body: timed(move |operations| {
                for turn in 0..operations {
                    events.event(0, black_box(turn));
                }
            }),
        },
    ]
}

pub(super) fn rows_of_two(partner: &Rc<Partner>) -> Vec<Row> {
    let vector: MutexVector = MutexVector::default();
    let work: Work = Arc::new(move |operations| transfers(&vector, operations));
    let partner = Rc::clone(partner);
    vec![Row {
        name: "mutex-transfer-2",
        what: "two threads, mutex and vector, no clock",
        reference: Reference::Raw64,
        body: Box::new(move |operations| Slice { operations, elapsed: partner.together(operations, &work) }),
    }]
}

//! What was recorded before the close is in the final drain.

use std::sync::Arc;

use loom::thread;
use telering_core::ring::{Cursor, Producer};
use telering_core::slot::CloseFlag;

use crate::common::{Memory, check, record};

/// The flush thread drains until it sees the flag, then once more.
fn flush(memory: &Memory<2>, flag: &CloseFlag, recorded: u64) {
    let ring = memory.ring();
    let mut cursor = Cursor::at(&ring, 0);
    let mut found = 0;
    loop {
        let last = flag.is_closed();
        let limit = Cursor::committed(&ring);
        while let Some(drained) = cursor.drain(&ring, limit, &mut [[0; 2]; 2]) {
            found += drained.lost + drained.count as u64;
        }
        if last {
            break;
        }
        thread::yield_now();
    }
    promise!(found == recorded, "the final drain has {found} records of {recorded}");
}

fn shared() -> Arc<(Memory<2>, CloseFlag)> {
    Arc::new((Memory::new(1), CloseFlag::default()))
}

fn by_the_recorder() {
    check(|| {
        let shared = shared();
        let flush = thread::spawn({
            let shared = shared.clone();
            move || flush(&shared.0, &shared.1, 1)
        });
        Producer::resume(shared.0.ring(), 0).push(record(0));
        shared.1.close();
        flush.join().expect("its promises are checked");
    });
}

fn by_a_thread_that_joined_the_recorder() {
    check(|| {
        let shared = shared();
        let recorder = thread::spawn({
            let shared = shared.clone();
            move || Producer::resume(shared.0.ring(), 0).push(record(0))
        });
        let flush = thread::spawn({
            let shared = shared.clone();
            move || flush(&shared.0, &shared.1, 1)
        });
        recorder.join().expect("a recorder only records");
        shared.1.close();
        flush.join().expect("its promises are checked");
    });
}

#[test]
fn all_that_the_closing_thread_recorded_is_drained() {
    by_the_recorder();
}

#[test]
fn all_that_a_finished_thread_recorded_is_drained() {
    by_a_thread_that_joined_the_recorder();
}

mutants! {
    relaxed_store: CloseRelaxedStore => by_the_recorder;
    relaxed_load: CloseRelaxedLoad => by_the_recorder;
    relaxed_store_after_a_join: CloseRelaxedStore => by_a_thread_that_joined_the_recorder;
}

//! Whoever sees an image's magic number sees a finished image; whoever sees NIXL's index sees the records.

use std::sync::Arc;

use loom::thread;
use telering_core::image::{Identity, ImagePlan, ImageState, PartSet};
use telering_core::layout::image::{MAGIC, TimeBase, control, head, nixl_header};
use telering_core::sync::{AtomicU64, Ordering};
use telering_core::{Category, Name, Record};

use crate::common::check;

const EXTENSION: usize = 192;
const INSTANCE: u64 = 77;

fn plan() -> ImagePlan {
    ImagePlan::new(2, PartSet::NONE, TimeBase::Unix).expect("a power of two")
}

fn memory() -> Arc<Vec<AtomicU64>> {
    Arc::new((0..plan().words()).map(|_| AtomicU64::new(0)).collect())
}

fn word(memory: &[AtomicU64], byte: usize) -> &AtomicU64 {
    &memory[byte / 8]
}

fn format(memory: &[AtomicU64]) -> ImageState {
    plan().format(memory, true, INSTANCE, 1, &Identity::default(), &[]).expect("memory of the right size")
}

/// Runs `look` on a thread of its own while `write` writes.
fn look_while(write: impl FnOnce(&[AtomicU64]), look: fn(&[AtomicU64]), memory: Arc<Vec<AtomicU64>>) {
    let reader = thread::spawn({
        let memory = memory.clone();
        move || look(&memory)
    });
    write(&memory);
    reader.join().expect("its promises are checked");
}

fn look_at_the_head(memory: &[AtomicU64]) {
    if word(memory, EXTENSION).load(Ordering::Acquire) == MAGIC {
        let load = |byte| word(memory, byte).load(Ordering::Relaxed);
        promise!(load(nixl_header::CAPACITY) == 2, "no capacity behind the magic number");
        promise!(load(EXTENSION + head::INSTANCE) == INSTANCE, "no instance behind the magic number");
        promise!(load(EXTENSION + control::STATE) == 1, "not open behind the magic number");
    }
}

fn look_at_the_first_record(memory: &[AtomicU64]) {
    if word(memory, nixl_header::WRITE_POS).load(Ordering::Acquire) == 1 {
        let words = std::array::from_fn(|place| memory[nixl_header::SIZE / 8 + place].load(Ordering::Relaxed));
        let record = Record::from_words(&words);
        promise!(record.fits(0) && record.value == 4096, "a stock reader got {record:?}");
    }
}

fn magic_comes_last() {
    let write = |memory: &[AtomicU64]| {
        format(memory);
    };
    check(move || look_while(write, look_at_the_head, memory()));
}

fn stock_reader() {
    check(|| {
        let memory = memory();
        let mut state = format(&memory);
        let push = |memory: &[AtomicU64]| {
            let mut image = state.on(memory).expect("the same memory");
            image.push(Record::new(1000, Category::TRANSFER, Name::from_static("agent_tx_bytes"), 4096));
        };
        look_while(push, look_at_the_first_record, memory);
    });
}

#[test]
fn the_magic_number_says_that_all_else_is_there() {
    magic_comes_last();
}

#[test]
fn a_stock_reader_that_sees_the_index_sees_the_record() {
    stock_reader();
}

mutants! {
    relaxed_magic_number: ImageRelaxedMagic => magic_comes_last;
    relaxed_index: ImageRelaxedWritePos => stock_reader;
}

//! Images that the tests of the image share.

#![allow(dead_code)]

use telering_core::image::{Identity, ImagePlan, ImageState, PartSet};
use telering_core::layout::image::{Control, TimeBase, control, extension_offset, nixl_header};
use telering_core::sync::{AtomicU64, Ordering};
use telering_core::{Category, Name, Record};

pub(crate) const INSTANCE: u64 = 0x1234;
pub(crate) const RECORD_WORDS: usize = 7;

pub(crate) fn plan(capacity: u64, parts: PartSet) -> ImagePlan {
    ImagePlan::new(capacity, parts, TimeBase::Unix).expect("a power of two")
}

pub(crate) fn memory(words: usize) -> Vec<AtomicU64> {
    // Not zero: formatting has to make all of it.
    (0..words).map(|_| AtomicU64::new(!0)).collect()
}

pub(crate) fn formatted(capacity: u64, parts: PartSet) -> (Vec<AtomicU64>, ImageState) {
    let plan = plan(capacity, parts);
    let memory = memory(plan.words());
    let state = plan.format(&memory, false, INSTANCE, 7, &who(), &[10, 100]).expect("memory of the right size");
    (memory, state)
}

pub(crate) fn who() -> Identity<'static> {
    Identity {
        pid: 4711,
        process_start: 99,
        boot_id: *b"0123456789abcdef",
        agent_instance: 3,
        uid: 1000,
        writer: "telering test",
        hostname: "node-1",
        agent: "prefill é",
        rank: "12",
    }
}

pub(crate) fn event(value: u64) -> Record {
    Record::new(1_000_000 + value, Category::TRANSFER, Name::from_static("agent_tx_bytes"), value)
}

pub(crate) fn bytes(memory: &[AtomicU64]) -> Vec<u8> {
    memory.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
}

pub(crate) fn record_at(memory: &[AtomicU64], capacity: u64, position: u64) -> Record {
    let start = nixl_header::SIZE / 8 + (position % capacity) as usize * RECORD_WORDS;
    Record::from_words(&std::array::from_fn(|word| u64::from_le(memory[start + word].load(Ordering::Relaxed))))
}

pub(crate) fn extension_word(capacity: u64, field: usize) -> usize {
    (extension_offset(capacity).expect("a power of two") as usize + field) / 8
}

pub(crate) fn store(memory: &[AtomicU64], word: usize, value: u64) {
    memory[word].store(value.to_le(), Ordering::Relaxed);
}

pub(crate) fn control_of(memory: &[AtomicU64], capacity: u64) -> Control {
    let line = &memory[extension_word(capacity, control::START)..][..control::SIZE / 8];
    Control::parse(bytes(line).as_slice().try_into().expect("64 bytes"))
}

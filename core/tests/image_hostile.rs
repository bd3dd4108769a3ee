//! The image among others: stock NIXL readers, processes that write what they like, and a reset at any point.

mod image_material;

use image_material::*;
use proptest::prelude::*;
use telering_core::image::{Image, PartSet, TakeUpError};
use telering_core::layout::image::{State, control, max_batch, nixl_header};
use telering_core::ring::AttachError;
use telering_core::snapshot::{Flow, Snapshot};
use telering_core::sync::{AtomicU64, Ordering};
use telering_core::{Category, Record};

/// What a stock NIXL reader does: it takes the record at its index while that is not the writer's.
fn stock_pop(memory: &[AtomicU64]) -> Option<Record> {
    let at = |byte: usize| &memory[byte / 8];
    let mask = at(nixl_header::MASK).load(Ordering::Relaxed);
    let read = at(nixl_header::READ_POS).load(Ordering::Relaxed);
    if read == at(nixl_header::WRITE_POS).load(Ordering::Acquire) {
        return None;
    }
    let record = record_at(memory, mask + 1, read);
    at(nixl_header::READ_POS).store((read + 1) & mask, Ordering::Release);
    Some(record)
}

#[test]
#[cfg(target_endian = "little")]
fn a_stock_reader_that_keeps_up_gets_every_event_once() {
    for capacity in [2, 4, 64, 4096] {
        let (memory, mut state) = formatted(capacity, PartSet::NONE);
        let mut image = state.on(&memory).expect("the same memory");
        let mut expected = 0;
        for round in 0..(3 * capacity).min(300) {
            // As many as fit between two looks of the reader: one slot stays free.
            let burst = round * 37 % (capacity - 1) + 1;
            for value in expected..expected + burst {
                image.push(event(value));
            }
            for value in expected..expected + burst {
                assert_eq!(stock_pop(&memory).map(|record| record.value), Some(value), "capacity {capacity}");
            }
            assert_eq!(stock_pop(&memory), None);
            expected += burst;
        }
    }
}

#[test]
#[cfg(target_endian = "little")]
fn a_stock_reader_that_was_away_gets_a_run_that_ends_at_the_newest_event() {
    const CAPACITY: u64 = 64;
    for pushed in 1..=4 * CAPACITY {
        for batch in [1, 4] {
            let (memory, mut state) = formatted(CAPACITY, PartSet::NONE);
            let mut image = state.on(&memory).expect("the same memory");
            let mut written = 0;
            while written < pushed {
                let count = batch.min(pushed - written);
                image.push_batch(count, |position| event(position).sealed(position).to_words());
                written += count;
            }
            let popped: Vec<u64> =
                std::iter::from_fn(|| stock_pop(&memory)).take(100).map(|record| record.value).collect();
            // A quarter is freed at a time, and one slot is always free.
            let least = if pushed < CAPACITY { pushed } else { CAPACITY - 1 - CAPACITY / 4 };
            assert!(popped.len() as u64 >= least, "{} of {pushed}, at least {least}", popped.len());
            let run: Vec<u64> = (pushed - popped.len() as u64..pushed).collect();
            assert_eq!(popped, run, "{pushed} pushed by {batch}");
        }
    }
}

/// What a vandal writes: anything, what looks right, what overflows.
fn vandals_number() -> impl Strategy<Value = u64> {
    prop_oneof![any::<u64>(), 0_u64..300, u64::MAX - 40..=u64::MAX]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    /// Another process writes whatever it likes into the mapped file.
    #[test]
    fn vandalism_never_stops_the_producer(
        power in 1_u32..8,
        writes in prop::collection::vec((0_usize..6, any::<prop::sample::Index>(), vandals_number(), 0_u64..20), 1..80),
    ) {
        const GUARD: usize = 16;
        let capacity = 1 << power;
        let plan = plan(capacity, PartSet::ALL);
        let all = memory(plan.words() + 2 * GUARD);
        let image_memory = &all[GUARD..GUARD + plan.words()];
        let mut state = plan.format(image_memory, false, INSTANCE, 7, &who(), &[]).expect("the right length");
        let extension = plan.words() - (plan.image_len() as usize - extension_word(capacity, 0) * 8) / 8;
        let mut written = 0;
        for (target, place, value, pushes) in writes {
            let word = match target {
                0 => nixl_header::READ_POS / 8,
                1 => nixl_header::WRITE_POS / 8,
                2 => nixl_header::CAPACITY / 8,
                // Head and control line.
                3 => extension + place.index(16),
                _ => place.index(image_memory.len()),
            };
            store(image_memory, word, value);
            let mut image = state.on(image_memory).expect("the same memory");
            for value in 0..pushes {
                image.push(event(value));
                let record = record_at(image_memory, capacity, written);
                prop_assert!(record.fits(written) && record.value == value);
                written += 1;
            }
            image.push_batch(image.max_batch(), |position| event(position).sealed(position).to_words());
            written += max_batch(capacity);
            image.publish(&Snapshot::default(), &[], 5);
            image.set_flow(&Flow::default());
            image.set_heartbeat(8);
            prop_assert_eq!(state.written(), written);
            let seen = control_of(image_memory, capacity);
            prop_assert_eq!((seen.intent, seen.committed), (written, written));
            let index = image_memory[0].load(Ordering::Relaxed);
            prop_assert_eq!(u64::from_le(index), written % capacity);
        }
        prop_assert!(all[..GUARD].iter().chain(&all[GUARD + plan.words()..]).all(|w| w.load(Ordering::Relaxed) == !0));
    }

    /// Whatever survived in the memory, taking it up ends in an image or in an error.
    #[test]
    fn damaged_memory_is_taken_up_or_refused_without_a_panic(
        damage in prop::collection::vec((any::<bool>(), any::<prop::sample::Index>(), vandals_number()), 1..10),
    ) {
        let (memory, mut state) = formatted(4, PartSet::ALL);
        state.on(&memory).expect("the same memory").push(event(1));
        // Positions that belong together and are damage all the same: the rarest numbers, always tried.
        let extension = extension_word(4, 0);
        if let [(true, _, value), ..] = damage[..] {
            store(&memory, extension_word(4, control::INTENT), value);
            store(&memory, extension_word(4, control::COMMITTED), value);
        }
        for (anywhere, place, value) in damage {
            let word = if anywhere { place.index(memory.len()) } else { extension + place.index(40) };
            store(&memory, word, value);
        }
        if let Ok((mut state, _)) = Image::take_up(&memory) {
            let before = state.written();
            let mut image = state.on(&memory).expect("the same memory");
            image.push(event(2));
            image.publish(&Snapshot::default(), &[], 5);
            image.set_flow(&Flow::default());
            prop_assert_eq!(state.written(), before + 1);
        }
    }
}

/// A reset anywhere inside a batch: `words` of its words were written.
fn interrupt(memory: &[AtomicU64], capacity: u64, committed: u64, announced: u64, words: usize) {
    store(memory, extension_word(capacity, control::INTENT), committed + announced);
    let batch = (committed..committed + announced).flat_map(|position| {
        let start = nixl_header::SIZE / 8 + (position % capacity) as usize * RECORD_WORDS;
        (start..).zip(event(position).sealed(position).to_words())
    });
    for (word, value) in batch.take(words) {
        store(memory, word, value);
    }
}

#[test]
fn a_reset_at_any_point_of_a_batch_leaves_fillers_that_fit() {
    const CAPACITY: u64 = 64;
    const PUSHED: u64 = 70;
    for announced in 0..=4 {
        for words in 0..=announced as usize * RECORD_WORDS {
            let (memory, mut state) = formatted(CAPACITY, PartSet::ALL);
            let mut image = state.on(&memory).expect("the same memory");
            (0..PUSHED).for_each(|value| image.push(event(value)));
            interrupt(&memory, CAPACITY, PUSHED, announced, words);

            let (mut state, fillers) = Image::take_up(&memory).expect("positions that belong together");
            let end = PUSHED + announced;
            assert_eq!((fillers, state.written()), (announced, end));
            let seen = control_of(&memory, CAPACITY);
            assert_eq!((seen.intent, seen.committed, seen.boots, seen.state), (end, end, 1, State::Open));
            for position in end - CAPACITY..end {
                let record = record_at(&memory, CAPACITY, position);
                assert!(record.fits(position), "position {position} after {announced} announced, {words} words");
                assert_eq!(record.category == Category::FILLER, position >= PUSHED);
            }
            let mut image = state.on(&memory).expect("the same memory");
            image.push(event(end));
            assert!(record_at(&memory, CAPACITY, end).fits(end));
        }
    }
}

#[test]
fn boots_are_counted_and_the_metrics_go_on() {
    let (memory, mut state) = formatted(4, PartSet::ALL);
    assert_eq!(control_of(&memory, 4).boots, 0);
    state.on(&memory).expect("the same memory").publish(&Snapshot::default(), &[], 5);
    for boot in 1..=3 {
        let (mut state, fillers) = Image::take_up(&memory).expect("a whole image");
        assert_eq!(fillers, 0);
        let mut image = state.on(&memory).expect("the same memory");
        image.push(event(boot));
        image.publish(&Snapshot::default(), &[], 5);
        image.close(9);
        let seen = control_of(&memory, 4);
        assert_eq!(u64::from(seen.boots), boot);
        assert_eq!((seen.committed, seen.metrics_generation, seen.state), (boot, boot + 1, State::Closed));
    }
}

#[test]
fn positions_that_contradict_each_other_are_refused() {
    const CAPACITY: u64 = 64;
    for (committed, intent) in
        [(5, 4), (5, 10), (0, u64::MAX), (u64::MAX, 0), (u64::MAX, 3), (u64::MAX, u64::MAX), (1 << 63, 1 << 63)]
    {
        let (memory, _) = formatted(CAPACITY, PartSet::NONE);
        store(&memory, extension_word(CAPACITY, control::COMMITTED), committed);
        store(&memory, extension_word(CAPACITY, control::INTENT), intent);
        let error = Image::take_up(&memory).expect_err("these can't both be right");
        assert_eq!(error, TakeUpError::Positions(AttachError::Positions { committed, intent }));
        assert!(error.to_string().contains("format it anew"), "{error}");
    }
}

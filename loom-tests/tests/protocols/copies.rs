//! Two copies of the metrics: a reader gets one whole copy, of a generation that never goes back.

use std::sync::Arc;

use loom::thread;
use telering_core::copies::{publish, read};
use telering_core::sync::{AtomicU64, Ordering};

use crate::common::check;

#[derive(Default)]
struct Copies {
    generation: AtomicU64,
    halves: [[AtomicU64; 2]; 2],
}

fn words(generation: u64) -> [u64; 2] {
    [generation * 10 + 1, generation * 10 + 2]
}

fn look(copies: &Copies) -> u64 {
    let found = read(&copies.generation, |half| copies.halves[half].each_ref().map(|w| w.load(Ordering::Relaxed)));
    if let Some((generation, copy)) = found {
        promise!(copy == words(generation), "generation {generation} has the copy {copy:?}");
    }
    found.map_or(0, |(generation, _)| generation)
}

/// Three generations are published: the third goes where the first was.
fn publish_and_read() {
    const GENERATIONS: u64 = 3;
    let copies = Arc::new(Copies::default());
    let reader = thread::spawn({
        let copies = copies.clone();
        move || {
            let (first, second) = (look(&copies), look(&copies));
            promise!(second == 0 || second >= first, "generation {second} after {first}");
        }
    });
    for current in 0..GENERATIONS {
        publish(&copies.generation, current, |generation, half| {
            for (place, word) in copies.halves[half].iter().zip(words(generation)) {
                place.store(word, Ordering::Relaxed);
            }
        });
    }
    reader.join().expect("its promises are checked");
    promise!(look(&copies) == GENERATIONS, "the last generation is not there");
}

fn whole_copies() {
    check(publish_and_read);
}

#[test]
fn a_reader_gets_a_whole_copy_or_none() {
    whole_copies();
}

mutants! {
    no_release_fence: CopiesNoReleaseFence => whole_copies;
    relaxed_generation: CopiesRelaxedGeneration => whole_copies;
    no_acquire_fence: CopiesNoAcquireFence => whole_copies;
    relaxed_load_of_the_generation: CopiesRelaxedGenerationLoad => whole_copies;
    one_copy: CopiesOneCopy => whole_copies;
}

//! What the models share: how to run one, how to demand that one fails, and a ring whose records tell
//! their own position.

use std::cell::Cell;
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Once;

use loom::model::Builder;
use telering_core::ring::{Cursor, Look, Ring};
use telering_core::sync::{AtomicU64, Fault, plant};

fn run(preemption_bound: Option<usize>, model: impl Fn() + Send + Sync + 'static) {
    let mut builder = Builder::new();
    // All limits stand here, so that no environment variable makes a model smaller than it says.
    builder.preemption_bound = preemption_bound;
    builder.max_branches = 20_000;
    builder.max_permutations = None;
    builder.max_duration = None;
    builder.check(model);
}

/// Runs a model in every order.
pub(crate) fn check(model: impl Fn() + Send + Sync + 'static) {
    run(None, model);
}

/// Runs a model in every order with so many preemptions at the most. Each use says why.
pub(crate) fn check_bounded(preemptions: usize, model: impl Fn() + Send + Sync + 'static) {
    run(Some(preemptions), model);
}

thread_local! {
    static QUIET: Cell<bool> = const { Cell::new(false) };
}

/// A mutant's panic is what we want: it is not printed. Every other panic is, as always.
fn print_no_panic_of_mutants() {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let usual = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            if !QUIET.get() {
                usual(info);
            }
        }));
    });
}

/// Plants a fault of the core, runs the model, and fails unless the model failed.
pub(crate) fn must_fail(fault: Fault, model: impl FnOnce() + Send) {
    must_fail_with(fault, || plant(Some(fault)), model);
}

/// The same with a fault that is planted some other way.
pub(crate) fn must_fail_with(fault: impl Debug, plant: impl FnOnce() + Send, model: impl FnOnce() + Send) {
    print_no_panic_of_mutants();
    // loom runs all threads of a model on the thread that starts it: the fault is planted for this one alone.
    let outcome = std::thread::scope(|scope| {
        let mutant = scope.spawn(|| {
            QUIET.set(true);
            plant();
            catch_unwind(AssertUnwindSafe(model))
        });
        mutant.join().expect("the panic is caught inside")
    });
    let Err(panic) = outcome else {
        panic!("no model saw {fault:?}: the model is too weak, or the step is not needed")
    };
    let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    // Failing for want of room is not failing because of the fault.
    let text = text.unwrap_or("another kind of panic");
    assert!(text.contains(PROMISE), "{fault:?} failed, but no promise was broken: {text}");
    println!("{fault:?}: {text}");
}

/// Stands in the message of each assertion about what a protocol promises.
pub(crate) const PROMISE: &str = "broken promise";

/// `assert!` for what a protocol promises.
macro_rules! promise {
    ($holds:expr, $($message:tt)+) => {
        assert!($holds, "{}: {}", $crate::common::PROMISE, format_args!($($message)+))
    };
}

/// The mutants of one protocol: `name: Fault => model;` makes a test that plants the fault and demands that
/// the model fails.
macro_rules! mutants {
    ($($name:ident: $fault:ident => $model:expr;)*) => {
        pub(crate) const MUTANTS: &[telering_core::sync::Fault] = &[$(telering_core::sync::Fault::$fault),*];

        mod mutants {
            #[allow(unused_imports)]
            use super::*;
            $(
                #[test]
                fn $name() {
                    $crate::common::must_fail(telering_core::sync::Fault::$fault, $model);
                }
            )*
        }
    };
}

/// Words of a record in the models: two, the fewest that can be torn.
pub(crate) const WORDS: usize = 2;

/// The record of a position.
pub(crate) fn record(position: u64) -> [u64; WORDS] {
    [position * 10 + 1, position * 10 + 2]
}

/// What takes the place of a record that was never finished.
pub(crate) fn filler(position: u64) -> [u64; WORDS] {
    [position * 10 + 5, position * 10 + 6]
}

/// Memory of a ring with `CAPACITY` records.
pub(crate) struct Memory<const CAPACITY: usize> {
    pub(crate) intent: AtomicU64,
    pub(crate) committed: AtomicU64,
    pub(crate) records: [[AtomicU64; WORDS]; CAPACITY],
    pub(crate) max_batch: u64,
}

impl<const CAPACITY: usize> Memory<CAPACITY> {
    pub(crate) fn new(max_batch: u64) -> Self {
        Self::interrupted(max_batch, 0, 0)
    }

    /// Memory in which `committed` records were finished and a batch up to `intent` was announced.
    pub(crate) fn interrupted(max_batch: u64, committed: u64, intent: u64) -> Self {
        let newest = |slot: u64| (0..committed).rev().find(|position| position % CAPACITY as u64 == slot);
        let words = |slot: usize| newest(slot as u64).map_or([0; WORDS], record).map(AtomicU64::new);
        Memory {
            intent: AtomicU64::new(intent),
            committed: AtomicU64::new(committed),
            records: std::array::from_fn(words),
            max_batch,
        }
    }

    pub(crate) fn ring(&self) -> Ring<'_, WORDS> {
        Ring::of_any_size(&self.intent, &self.committed, &self.records, self.max_batch)
    }
}

/// A reader that holds every record against its position and counts.
pub(crate) struct Tally {
    cursor: Cursor,
    start: u64,
    events: u64,
    lost: u64,
    fillers: u64,
}

impl Tally {
    pub(crate) fn new(cursor: Cursor) -> Tally {
        Tally { cursor, start: cursor.position(), events: 0, lost: 0, fillers: 0 }
    }

    /// One look. `false` when there was nothing new.
    pub(crate) fn look(&mut self, ring: &Ring<'_, WORDS>) -> bool {
        let next = self.cursor.position();
        match self.cursor.look(ring) {
            Look::Empty => return false,
            Look::Lost(lost) => self.lost += lost,
            Look::Record(position, words) => {
                promise!(position == next, "wanted {next}, got {position}");
                self.count(position, words);
            }
        }
        true
    }

    /// One pass over as many records as `SIZE`.
    pub(crate) fn drain<const SIZE: usize>(&mut self, ring: &Ring<'_, WORDS>) -> bool {
        let mut buffer = [[0; WORDS]; SIZE];
        let next = self.cursor.position();
        let Some(drained) = self.cursor.drain(ring, Cursor::committed(ring), &mut buffer) else { return false };
        promise!(drained.first == next + drained.lost, "wanted {next}, lost {}, got {}", drained.lost, drained.first);
        self.lost += drained.lost;
        for (position, words) in (drained.first..).zip(&buffer[drained.start..drained.start + drained.count]) {
            self.count(position, *words);
        }
        true
    }

    fn count(&mut self, position: u64, words: [u64; WORDS]) {
        if words == filler(position) {
            self.fillers += 1;
        } else {
            promise!(words == record(position), "{words:?} stands for position {position}");
            self.events += 1;
        }
    }

    /// Reads to the end of a ring whose producer is done, then holds the sums against each other.
    pub(crate) fn finish(mut self, ring: &Ring<'_, WORDS>, committed: u64, fillers_written: u64) {
        while self.look(ring) {}
        let found = self.events + self.lost + self.fillers;
        promise!(found == committed - self.start, "{found} read or lost of {committed}, from {}", self.start);
        promise!(self.fillers <= fillers_written, "{} fillers of {fillers_written}", self.fillers);
        // With a reset in between, what it interrupted takes the place of older records.
        let kept = if fillers_written == 0 { ring.capacity().min(committed - self.start) } else { 0 };
        promise!(self.events >= kept, "the last {kept} records are there, {} were read", self.events);
    }
}

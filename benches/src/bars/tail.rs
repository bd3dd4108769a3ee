//! Latency of an operation at a real rate: two threads, each one transfer in about 1.4 microseconds. Flat out a mutex
//! is always contended; here it is now and then, which is what programs see: in the tail.

use std::hint::black_box;
use std::sync::Barrier;
use std::time::Duration;

use telering::clock::Clock;
use telering::{Operation, Telemetry};

use super::{Value, quick};
use crate::harness::{Effort, median};
use crate::locks::CMutex;
use crate::machine;
use crate::mutex_vector::{Inner, MutexVector};
use crate::rows::{held_without_clock, record_transfer};

/// Interleaved runs of each design.
const RUNS: usize = 5;
/// Durations up to so many ticks have a place each; longer ones share one that is looked at by nobody but the far tail.
const PLACES: usize = 1 << 17;

/// A pause in which the clock jumps by so much was interrupted. Far more than a reading takes, less than any interrupt.
const INTERRUPTED: Duration = Duration::from_nanos(1000);

/// Both tails, ours below the line.
pub(super) struct Tails {
    pub(super) near: Value,
    pub(super) far: Value,
}

/// How often an operation took so many ticks.
struct Latencies {
    counts: Vec<u32>,
}

impl Latencies {
    fn new() -> Latencies {
        // Not zeros from the system, which would be mapped when they are first counted up.
        Latencies { counts: (0..PLACES).map(|_| black_box(0)).collect() }
    }

    fn add(&mut self, ticks: u64) {
        self.counts[usize::try_from(ticks).unwrap_or(PLACES).min(PLACES - 1)] += 1;
    }

    fn quantile(of: &[Latencies], share: f64) -> f64 {
        let count = |place: usize| of.iter().map(|one| u64::from(one.counts[place])).sum::<u64>();
        let all: u64 = (0..PLACES).map(count).sum();
        let (wanted, mut seen) = ((all as f64 * share) as u64, 0);
        for place in 0..PLACES {
            seen += count(place);
            if seen > wanted {
                return place as f64;
            }
        }
        PLACES as f64
    }
}

/// One run: the two threads do `operation` for `time`. Returns p99.9 and p99.99 in nanoseconds.
fn run(time: Duration, operation: &(dyn Fn(u64) + Sync)) -> Option<[f64; 2]> {
    let clock = Clock::of_process();
    let (length, base, jitter, interrupted) = (
        clock.ticks_of(time),
        clock.ticks_of(Duration::from_nanos(1200)),
        clock.ticks_of(Duration::from_nanos(400)).max(1),
        clock.ticks_of(INTERRUPTED),
    );
    let start_line = Barrier::new(2);
    let thread = |cpu: usize| {
        machine::pin(cpu);
        let mut latencies = Latencies::new();
        let mut random = 0x9e37_79b9_7f4a_7c15 + cpu as u64;
        start_line.wait();
        let start = clock.ticks();
        let mut turn = 0;
        loop {
            random ^= random << 13;
            random ^= random >> 7;
            random ^= random << 17;
            let due = clock.ticks() + base + random % jitter;
            let (mut before, mut longest) = (clock.ticks(), 0);
            while before < due {
                std::hint::spin_loop();
                let now = clock.ticks();
                longest = longest.max(now.saturating_sub(before));
                before = now;
            }
            let before = clock.ticks();
            operation(black_box(turn));
            let after = clock.ticks();
            // Somebody else had the processor during the pause, and its caches: that is not the design's doing.
            if longest < interrupted {
                latencies.add(after.saturating_sub(before));
            }
            turn += 1;
            if after.saturating_sub(start) > length {
                return latencies;
            }
        }
    };
    let both: Vec<Latencies> = std::thread::scope(|scope| {
        let threads = [0, 1].map(|cpu| scope.spawn(move || thread(cpu)));
        threads.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let ns = 1e9 / clock.rate() as f64;
    (both.len() == 2).then(|| [0.999, 0.9999].map(|share| Latencies::quantile(&both, share) * ns))
}

/// A duration above that of nothing; at least what the clock can tell.
fn above(with_it: f64, nothing: f64) -> f64 {
    (with_it - nothing).max(1.0)
}

pub(super) fn measure(effort: Effort) -> Result<Tails, String> {
    if machine::processors() < 2 {
        return Err("it takes two processors".into());
    }
    let time = Duration::from_millis(if quick(effort) { 20 } else { 1500 });
    let ours = held_without_clock("tail");
    // For the note: nothing held up, the flush thread has to find a processor as well.
    let flushed = Telemetry::builder("tail, flushed").ignore_environment(true).enable(true).nop().build();
    let vector: MutexVector<CMutex<Inner>> = MutexVector::default();
    let rusts: MutexVector = MutexVector::default();
    let nothing = |turn: u64| {
        black_box(turn);
    };
    let with_ours = |turn: u64| record_transfer(&ours, turn);
    let with_flush = |turn: u64| record_transfer(&flushed, turn);
    let with_mutex = |turn: u64| vector.transfer(Operation::Write, turn, 4096 + turn, black_box(1), black_box(12));
    let with_rusts = |turn: u64| rusts.transfer(Operation::Write, turn, 4096 + turn, black_box(1), black_box(12));
    let designs: [&(dyn Fn(u64) + Sync); 5] = [&nothing, &with_ours, &with_mutex, &with_rusts, &with_flush];

    let mut runs: Vec<[[f64; 2]; 5]> = Vec::new();
    for number in 0..RUNS {
        let mut found = [[0.0; 2]; 5];
        for step in 0..designs.len() {
            // Another one begins each time.
            let design = (step + number) % designs.len();
            found[design] = run(time, designs[design]).ok_or("a thread ended with a panic")?;
        }
        runs.push(found);
    }
    let value = |place: usize, name: &str| {
        let middle = |design: usize| median(runs.iter().map(|run| run[design][place]));
        let ratio = |run: &[[f64; 2]; 5]| above(run[2][place], run[0][place]) / above(run[1][place], run[0][place]);
        let note = format!(
            "{name} in ns: nothing {:.0}, ours {:.0}, mutex as in C++ {:.0}, mutex as in Rust {:.0}; ours with its clock \
             and the flush thread at work {:.0}",
            middle(0),
            middle(1),
            middle(2),
            middle(3),
            middle(4)
        );
        Value::new(median(runs.iter().map(ratio)), note)
    };
    Ok(Tails { near: value(0, "p99.9"), far: value(1, "p99.99") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tail_is_found_where_the_slow_ones_are() {
        let mut latencies = [Latencies::new(), Latencies::new()];
        for _ in 0..9_980 {
            latencies[0].add(20);
        }
        for _ in 0..20 {
            latencies[1].add(900);
        }
        latencies[1].add(u64::MAX);
        assert_eq!(Latencies::quantile(&latencies, 0.99), 20.0);
        assert_eq!(Latencies::quantile(&latencies, 0.999), 900.0);
        assert_eq!(Latencies::quantile(&latencies, 0.99995), (PLACES - 1) as f64);
    }
}

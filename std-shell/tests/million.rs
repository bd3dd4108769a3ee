//! A million transfers a second at default settings. Run with `--release`: a debug build is too slow to try.

mod common;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use common::agent;
use telering::core::names;
use telering::{Operation, TransferRecord};

/// From one transfer to the next while the program is late: half of what a million a second has.
const HURRIED: Duration = Duration::from_nanos(500);

struct Run {
    transfers: u64,
    recorded: u64,
    exported: u64,
    lost: u64,
    counted: u64,
    gap: Duration,
}

fn run(seconds: u64) -> Run {
    let dir = tempfile::tempdir_in("/dev/shm").expect("a directory on tmpfs");
    let agent = agent("million").dir(dir.path()).build();
    let (start, mut transfers) = (Instant::now(), 0);
    let mut free = Duration::ZERO;
    while start.elapsed() < Duration::from_secs(seconds) {
        let now = start.elapsed();
        // What a preemption held up is caught up with at twice the rate, not in one burst.
        if u128::from(transfers) < now.as_micros() && now >= free {
            free = now + HURRIED;
            transfers += 1;
            agent.record_transfer(&TransferRecord {
                operation: Operation::Write,
                bytes: 1,
                descriptors: 1,
                post_duration: Duration::from_micros(1),
                xfer_duration: Duration::from_micros(2),
            });
        }
    }
    let flow = agent.close();
    let counted = agent.snapshot().entry(names::TX_BYTES).map_or(0, |total| total.sum);
    Run {
        transfers,
        recorded: flow.recorded,
        exported: flow.exported,
        lost: flow.lost.total(),
        counted,
        gap: agent.longest_flush_gap(),
    }
}

#[test]
#[ignore = "three seconds a run, and it wants a release build: part of the stress step"]
fn a_million_transfers_a_second_are_all_counted_and_nearly_all_exported() {
    let stop = Arc::new(AtomicBool::new(false));
    let spinners: Vec<_> = (0..thread::available_parallelism().map_or(2, usize::from))
        .map(|_| {
            let stop = Arc::clone(&stop);
            thread::spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    std::hint::spin_loop();
                }
            })
        })
        .collect();
    let mut good = 0;
    for round in 0..5 {
        let run = run(3);
        let share = run.exported as f64 / run.recorded as f64;
        println!("round {round}: {} transfers, {:.4} exported, longest gap {:?}", run.transfers, share, run.gap);
        assert_eq!(run.counted, run.transfers, "totals are exact");
        assert_eq!(run.recorded, run.transfers * 4);
        assert_eq!(run.recorded, run.exported + run.lost);
        // Nothing is lost while the ring holds what comes within the longest gap, at twice the rate.
        if run.gap.as_micros() < 16_384 / 2 {
            assert_eq!(run.lost, 0, "longest gap {:?}", run.gap);
        }
        good += u32::from(share >= 0.999);
    }
    stop.store(true, Ordering::Relaxed);
    spinners.into_iter().for_each(|spinner| spinner.join().expect("no panic"));
    assert!(good >= 4, "{good} of 5 runs exported 99.9 %");
}

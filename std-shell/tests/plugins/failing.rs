//! Plug-ins that fail, panic, sleep or start threads: known case 52.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use telering::{Mode, Telemetry};

use crate::building::{hostile, panics};
use crate::{agent, transfers};

/// Runs an agent of this name for a thousand transfers and a second, so that every call comes at least once.
fn run(name: &str, plugin: &str, folder: &Path) -> (telering::core::snapshot::Flow, Vec<String>, Mode) {
    let (builder, warnings) = agent(name, plugin, folder);
    let agent = builder.run_interval(Duration::from_millis(5)).build();
    let mode = agent.mode();
    transfers(&agent, 500);
    // Two flushes and a housekeeping.
    thread::sleep(Duration::from_millis(1100));
    assert!(agent.flush_now(Duration::from_secs(30)));
    transfers(&agent, 500);
    let flow = agent.close();
    assert_eq!(agent.snapshot().entries[0].count, 1000, "{name}");
    let warnings = warnings.lock().expect("unpoisoned").clone();
    (flow, warnings, mode)
}

#[test]
fn an_error_in_each_call_is_one_line_and_what_it_cost_is_counted() {
    let folder = tempfile::tempdir().expect("made");
    hostile(folder.path(), "hostile", &[]);
    thread::scope(|scope| {
        for (name, lost, expected) in [
            ("fail-open", 0, "open failed on purpose\\n\\u{1b}[31m: it could not open"),
            ("fail-export", 4000, "export failed on purpose"),
            ("fail-publish", 0, "publish failed on purpose"),
            ("fail-housekeep", 0, "housekeep failed on purpose"),
            ("fail-close", 0, "close failed on purpose"),
            ("silent", 4000, "it says no more than the number 3"),
            ("greedy", 4000, "export failed on purpose"),
            ("endless", 4000, "xxxxxx"),
        ] {
            let folder = folder.path();
            scope.spawn(move || {
                let (flow, warnings, mode) = run(name, "hostile", folder);
                assert_eq!(warnings.len(), 1, "{name}: {warnings:?}");
                assert!(warnings[0].contains(expected) && warnings[0].contains("hostile.so"), "{name}: {warnings:?}");
                if name == "fail-open" {
                    assert_eq!((mode, flow.recorded), (Mode::Captured, 0));
                } else {
                    assert_eq!((mode, flow.recorded), (Mode::Exported, 4000), "{name}");
                    assert_eq!((flow.exported, flow.lost.exporter), (4000 - lost, lost), "{name}");
                }
            });
        }
    });
}

#[test]
fn a_panic_in_each_call_of_a_plug_in_in_rust_stays_there() {
    let folder = tempfile::tempdir().expect("made");
    panics(folder.path());
    thread::scope(|scope| {
        for place in ["make", "open", "export", "publish", "housekeep", "close", "drop"] {
            let folder = folder.path();
            scope.spawn(move || {
                let (flow, warnings, mode) = run(&format!("panic-{place}"), "panics", folder);
                assert_eq!(warnings.len(), 1, "{place}: {warnings:?}");
                assert!(warnings[0].contains(&format!("it panicked (planted in {place})")), "{place}: {warnings:?}");
                if matches!(place, "make" | "open") {
                    assert_eq!((mode, flow.recorded), (Mode::Captured, 0));
                } else {
                    assert_eq!(flow.recorded, 4000, "{place}");
                    assert_eq!(flow.recorded, flow.exported + flow.lost.total(), "{place}: {flow:?}");
                    assert_eq!(flow.lost.exporter > 0, !matches!(place, "close" | "drop"), "{place}: {flow:?}");
                }
            });
        }
    });
}

/// The longest of many records, and the time of all.
fn latency(agent: &Telemetry, records: u32) -> (Duration, Duration) {
    let start = Instant::now();
    let mut longest = Duration::ZERO;
    for value in 0..records {
        let before = Instant::now();
        agent.event("one", value.into());
        longest = longest.max(before.elapsed());
    }
    (longest, start.elapsed())
}

#[test]
fn a_plug_in_that_sleeps_delays_no_record_and_no_close() {
    let folder = tempfile::tempdir().expect("made");
    hostile(folder.path(), "hostile", &[]);
    let (quick, _) = agent("quick", "hostile", folder.path());
    let (slow, warnings) = agent("slow-export", "hostile", folder.path());
    let patience = Duration::from_millis(300);
    let (quick, slow) = (quick.build(), slow.close_patience(patience).build());
    // Several times what the rings hold, within one sleep of the plug-in.
    let (records, start) = (200_000, Instant::now());
    let without = latency(&quick, records);
    let with = latency(&slow, records);
    println!("records beside a plug-in that works: longest and all {without:?}; that sleeps 5 s: {with:?}");
    // What is generous for a busy machine is still far from one sleep.
    assert!(with.0 < Duration::from_secs(1) && with.1 < Duration::from_secs(4), "{with:?}");
    assert!(!slow.flush_now(Duration::from_millis(50)) || start.elapsed() > Duration::from_secs(5));
    let closing = Instant::now();
    let flow = slow.close();
    assert!(closing.elapsed() < Duration::from_secs(3), "{:?}", closing.elapsed());
    assert_eq!(flow.recorded, u64::from(records));
    assert_eq!(flow.recorded, flow.exported + flow.lost.total(), "{flow:?}");
    assert!(flow.lost.total() > 0, "{flow:?}");
    let flow = quick.close();
    assert_eq!(flow.recorded, flow.exported + flow.lost.total());
    drop((quick, slow));
    assert!(warnings.lock().expect("unpoisoned").is_empty());
}

#[test]
fn a_plug_in_that_opens_slowly_holds_the_start_up_for_two_seconds_and_works_then() {
    let folder = tempfile::tempdir().expect("made");
    hostile(folder.path(), "hostile", &[]);
    let (builder, warnings) = agent("slow-open", "hostile", folder.path());
    let start = Instant::now();
    let agent = builder.close_patience(Duration::from_secs(30)).build();
    assert!(start.elapsed() < Duration::from_secs(4), "{:?}", start.elapsed());
    assert_eq!(agent.mode(), Mode::Exported);
    transfers(&agent, 1000);
    let flow = agent.close();
    assert_eq!((flow.recorded, flow.exported), (4000, 4000), "kept until it was open");
    let warnings = warnings.lock().expect("unpoisoned");
    assert!(warnings.len() == 1 && warnings[0].contains("has not started yet"), "{warnings:?}");
}

#[test]
fn a_plug_in_may_leave_a_thread_behind() {
    let folder = tempfile::tempdir().expect("made");
    let library = hostile(folder.path(), "hostile", &[]);
    for _ in 0..3 {
        let (builder, warnings) = agent("thread", "hostile", folder.path());
        let agent = builder.build();
        transfers(&agent, 1000);
        assert_eq!(agent.close().exported, 4000);
        drop(agent);
        let warnings = warnings.lock().expect("unpoisoned");
        assert_eq!(*warnings, ["hostile: a thread runs"]);
    }
    // The code that the threads run is still there.
    thread::sleep(Duration::from_millis(50));
    let maps = std::fs::read_to_string("/proc/self/maps").expect("read");
    assert!(maps.contains(library.to_str().expect("UTF-8")));
}

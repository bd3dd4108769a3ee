//! Starting, stopping, and exporters that misbehave: the host goes on.

mod common;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use common::{Collector, agent};
use telering::exporter::{Event, ExportError, Exporter};
use telering::{Mode, Operation, Status, Telemetry};

/// Blocks in its first export until it is let go.
#[derive(Default)]
struct Gate {
    state: Mutex<(bool, bool)>,
    changed: Condvar,
}

struct Blocked(Arc<Gate>);

impl Exporter for Blocked {
    fn export(&mut self, _events: &[Event]) -> Result<(), ExportError> {
        let mut state = self.0.state.lock().expect("unpoisoned");
        state.0 = true;
        self.0.changed.notify_all();
        while !state.1 {
            state = self.0.changed.wait(state).expect("unpoisoned");
        }
        Ok(())
    }
}

fn wait_until_blocked(gate: &Gate) {
    let mut state = gate.state.lock().expect("unpoisoned");
    while !state.0 {
        state = gate.changed.wait(state).expect("unpoisoned");
    }
}

fn let_go(gate: &Gate) {
    gate.state.lock().expect("unpoisoned").1 = true;
    gate.changed.notify_all();
}

#[test]
fn closing_overlaps_a_flush_in_flight_and_ends_in_time() {
    // Known case 48: the exporter signals its entry, the agent is dropped meanwhile, the exporter is let go 200 ms later.
    for interval in [Duration::from_millis(1), Duration::from_secs(3600)] {
        let gate = Arc::new(Gate::default());
        let agent = agent("in flight").exporter(Box::new(Blocked(Arc::clone(&gate)))).run_interval(interval).build();
        agent.event("one", 1);
        wait_until_blocked(&gate);
        let helper = {
            let gate = Arc::clone(&gate);
            thread::spawn(move || {
                thread::sleep(Duration::from_millis(200));
                let_go(&gate);
            })
        };
        let start = Instant::now();
        let flow = agent.close();
        assert!(start.elapsed() < Duration::from_secs(2), "{:?}", start.elapsed());
        assert_eq!((flow.recorded, flow.exported), (1, 1));
        helper.join().expect("no panic");
    }
}

#[test]
fn closing_gives_up_on_an_exporter_that_never_comes_back() {
    let (gate, patience) = (Arc::new(Gate::default()), Duration::from_secs(2));
    let agent = agent("stuck").exporter(Box::new(Blocked(Arc::clone(&gate)))).close_patience(patience).build();
    wait_until_blocked(&gate);
    (0..10).for_each(|value| agent.event("one", value));
    let start = Instant::now();
    let flow = agent.close();
    assert!(start.elapsed() >= patience && start.elapsed() < 2 * patience);
    assert_eq!((flow.recorded, flow.exported, flow.lost.closing), (10, 0, 10));
    // The time is up: closing again, or dropping what was closed, waits no longer and tells the same.
    let start = Instant::now();
    assert_eq!(agent.close(), flow);
    drop(agent);
    assert!(start.elapsed() < patience / 2, "{:?}", start.elapsed());
    let_go(&gate);
}

#[test]
fn memory_is_bounded_and_losses_are_exact_while_an_exporter_blocks() {
    // Known case 47: blocked while a million events come, then let go.
    let gate = Arc::new(Gate::default());
    let agent = agent("blocked").exporter(Box::new(Blocked(Arc::clone(&gate)))).staging_records(1024).build();
    wait_until_blocked(&gate);
    (0..1_000_000).for_each(|value| agent.event("one", value));
    let_go(&gate);
    let flow = agent.close();
    assert_eq!((flow.recorded, flow.exported + flow.lost.staging), (1_000_000, 1_000_000));
    assert!(flow.exported >= 1024, "{flow:?}");
}

struct Panicking(&'static str);

impl Exporter for Panicking {
    fn export(&mut self, _events: &[Event]) -> Result<(), ExportError> {
        assert!(self.0 != "export", "planted");
        Ok(())
    }
    fn publish(&mut self, _totals: &telering::exporter::Totals<'_>) {
        assert!(self.0 != "publish", "planted");
    }
    fn close(&mut self, _now_us: u64) {
        assert!(self.0 != "close", "planted");
    }
}

impl Drop for Panicking {
    fn drop(&mut self) {
        assert!(self.0 != "drop", "planted");
    }
}

#[test]
fn a_panic_in_an_exporter_is_one_warning_and_the_transfers_go_on() {
    for place in ["export", "publish", "close", "drop"] {
        let warnings = Arc::new(Mutex::new(Vec::new()));
        let heard = Arc::clone(&warnings);
        let agent = agent("panicking")
            .exporter(Box::new(Panicking(place)))
            .on_warning(move |warning| heard.lock().expect("unpoisoned").push(warning.message.clone()))
            .build();
        for _ in 0..1000 {
            let mut transfer = agent.begin_transfer(Operation::Write, 1, 1);
            transfer.finish();
            assert!(transfer.telemetry().is_some());
        }
        let flow = agent.close();
        assert_eq!(flow.recorded, 4000, "{place}");
        assert_eq!(flow.recorded, flow.exported + flow.lost.total(), "{place}");
        let expected = usize::from(place != "drop");
        assert_eq!(warnings.lock().expect("unpoisoned").len(), expected, "{place}");
    }
}

#[test]
fn closing_twice_and_recording_afterwards_is_harmless() {
    let (collector, seen) = Collector::new(false);
    let agent = agent("twice").exporter(collector).build();
    let mut open = agent.begin_transfer(Operation::Write, 1, 1);
    agent.event("one", 1);
    let flow = agent.close();
    assert_eq!(agent.close(), flow);
    open.finish();
    agent.event("late", 1);
    agent.error(Status::Backend);
    drop(agent.begin_transfer(Operation::Write, 1, 1));
    assert_eq!(agent.close(), flow);
    assert!(open.telemetry().is_some(), "the transfer itself went well");
    assert_eq!(seen.count.load(Ordering::SeqCst), 3);
}

#[test]
fn the_last_handle_closes_the_agent() {
    let (collector, seen) = Collector::new(false);
    let agent = agent("handles").exporter(collector).build();
    let clone = agent.clone();
    drop(agent);
    clone.event("one", 1);
    assert!(!seen.closed.load(Ordering::SeqCst));
    drop(clone);
    assert!(seen.closed.load(Ordering::SeqCst));
    assert_eq!(seen.count.load(Ordering::SeqCst), 3);
}

#[test]
fn a_strict_agent_fails_to_start_with_the_reason_and_others_start_with_less() {
    let builder = || Telemetry::builder("strict").ignore_environment(true).enable(true).dir("/proc/nowhere");
    let error = builder().strict(true).try_build().expect_err("no file can be made there");
    assert!(error.to_string().contains("/proc/nowhere"), "{error}");
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&warnings);
    let agent = builder().on_warning(move |warning| heard.lock().expect("unpoisoned").push(warning.clone())).build();
    assert_eq!(agent.mode(), Mode::Captured);
    let mut transfer = agent.begin_transfer(Operation::Write, 1, 1);
    transfer.finish();
    assert!(transfer.telemetry().is_some());
    assert_eq!(warnings.lock().expect("unpoisoned").len(), 1);
}

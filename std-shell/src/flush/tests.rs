//! What a thread does while a flush is between two of its looks.

use std::sync::{Arc, Mutex};
use std::thread;

use super::ByHand;
use crate::exporter::{Event, ExportError, Exporter};
use crate::{Backend, Telemetry};

/// Keeps the names and values of what is exported.
struct Keeps(Arc<Mutex<Vec<(String, u64)>>>);

impl Exporter for Keeps {
    fn export(&mut self, events: &[Event]) -> Result<(), ExportError> {
        let told = events.iter().map(|event| (event.name.as_str().to_string(), event.value));
        self.0.lock().expect("unpoisoned").extend(told);
        Ok(())
    }
}

struct Scene {
    agent: Telemetry,
    backend: Backend,
    by_hand: ByHand,
    seen: Arc<Mutex<Vec<(String, u64)>>>,
}

impl Scene {
    fn new() -> Scene {
        let seen = Arc::default();
        let builder = Telemetry::builder("order").ignore_environment(true).enable(true);
        let (agent, by_hand) =
            builder.exporter(Box::new(Keeps(Arc::clone(&seen)))).build_by_hand().expect("not strict");
        Scene { backend: agent.backend(), agent, by_hand: by_hand.expect("it exports"), seen }
    }

    /// Flushes, with `meanwhile` in the given gap between two looks of the flush; once more; and says what came out.
    fn flush(mut self, gap: usize, mut meanwhile: impl FnMut(&Telemetry, &Backend)) -> Vec<(String, u64)> {
        let mut gaps = 0;
        self.by_hand.0.flush_with(false, || {
            if gaps == gap {
                meanwhile(&self.agent, &self.backend);
            }
            gaps += 1;
        });
        assert!(gaps > gap, "a flush has only {gaps} gaps");
        self.by_hand.flush();
        self.by_hand.finish();
        Arc::into_inner(self.seen).map_or_else(Vec::new, |seen| seen.into_inner().expect("unpoisoned"))
    }
}

/// All steps are of one thread, the given number of times: 0, 2, 4, ... recorded, 1, 3, 5, ... added to the backend.
fn alternate(steps: std::ops::Range<u64>, agent: &Telemetry, backend: &Backend) {
    for step in steps {
        if step % 2 == 0 { agent.event("step", step) } else { backend.add_event("step", step) }
    }
}

fn in_order(seen: &[(String, u64)]) -> Vec<u64> {
    seen.iter().filter(|(name, _)| name == "step").map(|(_, step)| *step).collect()
}

/// What one thread records and what it adds to its backend come out in its order, wherever the flush is meanwhile.
fn keeps_its_order(known: bool, first: u64) {
    for gap in 0..2 {
        let scene = Scene::new();
        if known {
            // The slot is known and not empty.
            scene.agent.event("before", 0);
        }
        let seen = scene.flush(gap, |agent, backend| {
            if known {
                alternate(first..first + 9, agent, backend);
            } else {
                let (agent, backend) = (agent.clone(), backend.clone());
                thread::spawn(move || alternate(first..first + 9, &agent, &backend)).join().expect("no panic");
            }
        });
        let expected: Vec<u64> = (first..first + 9).collect();
        assert_eq!(in_order(&seen), expected, "in gap {gap}");
    }
}

#[test]
fn a_record_and_then_a_backends_event_come_out_in_this_order_also_in_a_new_slot() {
    keeps_its_order(false, 0);
}

#[test]
fn a_backends_event_and_then_a_record_come_out_in_this_order_also_in_a_new_slot() {
    keeps_its_order(false, 1);
}

#[test]
fn they_come_out_in_order_in_a_known_slot() {
    keeps_its_order(true, 0);
    keeps_its_order(true, 1);
}

#[test]
fn a_backend_that_adds_without_a_pause_does_not_hold_up_a_flush() {
    let mut scene = Scene::new();
    let mut gaps = 0_u64;
    scene.by_hand.0.flush_with(false, || {
        scene.agent.event("step", 2 * gaps);
        scene.backend.add_event("step", 2 * gaps + 1);
        gaps += 1;
    });
    scene.by_hand.finish();
    let seen = scene.seen.lock().expect("unpoisoned");
    assert_eq!(seen.iter().filter(|(name, _)| name == "step").count() as u64, 2 * gaps);
    let flow = scene.agent.counts();
    assert_eq!((flow.recorded, flow.exported), (2 * gaps, 2 * gaps));
}

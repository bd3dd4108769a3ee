//! What several tests need: exporters that collect, block or fail, and agents far from the environment.
#![allow(dead_code, reason = "each test uses some of it")]

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use telering::exporter::{Event, ExportError, Exporter};
use telering::{Builder, Telemetry};

/// What a [`Collector`] saw.
#[derive(Debug, Default)]
pub(crate) struct Seen {
    pub(crate) events: Mutex<Vec<Event>>,
    pub(crate) count: AtomicU64,
    /// Sum of the values of all events.
    pub(crate) values: AtomicU64,
    pub(crate) entered: AtomicBool,
    pub(crate) closed: AtomicBool,
}

/// Collects events, or only counts them; sleeps in each call if told so.
pub(crate) struct Collector {
    pub(crate) seen: Arc<Seen>,
    pub(crate) keep: bool,
    pub(crate) delay: Duration,
}

impl Collector {
    pub(crate) fn new(keep: bool) -> (Box<Collector>, Arc<Seen>) {
        let seen = Arc::new(Seen::default());
        (Box::new(Collector { seen: Arc::clone(&seen), keep, delay: Duration::ZERO }), seen)
    }

    pub(crate) fn slow(delay: Duration) -> (Box<Collector>, Arc<Seen>) {
        let (mut collector, seen) = Collector::new(false);
        collector.delay = delay;
        (collector, seen)
    }
}

impl Exporter for Collector {
    fn export(&mut self, events: &[Event]) -> Result<(), ExportError> {
        self.seen.entered.store(true, Ordering::SeqCst);
        std::thread::sleep(self.delay);
        self.seen.count.fetch_add(events.len() as u64, Ordering::SeqCst);
        self.seen.values.fetch_add(events.iter().map(|event| event.value).sum(), Ordering::SeqCst);
        if self.keep {
            self.seen.events.lock().expect("unpoisoned").extend_from_slice(events);
        }
        Ok(())
    }

    fn close(&mut self, _now_us: u64) {
        self.seen.closed.store(true, Ordering::SeqCst);
    }
}

/// An agent that takes nothing from the environment and exports.
pub(crate) fn agent(name: &str) -> Builder {
    Telemetry::builder(name).ignore_environment(true).enable(true)
}

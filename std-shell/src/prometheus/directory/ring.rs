//! One of NIXL's own rings: its events are taken out and added up here, for the file keeps no totals.

use std::ffi::OsStr;
use std::fs::File;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::time::{Duration, Instant};

use telering_core::names;
use telering_core::snapshot::Total;

use super::list::Stamp;
use crate::file::fork::Descriptor;
use crate::file::lock;
use crate::prometheus::{Labels, Sample};
use crate::reader::{
    DynamicMetric, Event, From, HistogramOf, Item, Metric, MetricsSnapshot, NixlRing, Refused, Trouble,
};

/// Times that one visit reads on, so that a producer at full speed doesn't keep it for ever: 64 x 4094 events.
const ROUNDS: usize = 64;
/// Names outside the table that one ring is counted by.
const NAMES_MAX: usize = 64;
/// Event types that one ring is counted by; NIXL has 21.
const ENTRIES_MAX: usize = 128;
/// How long a ring that fills is left alone at the least, and an idle one at the most. NIXL writes ten times a
/// second, a ring full at the most.
const SHORTEST: Duration = Duration::from_millis(5);
const LONGEST: Duration = Duration::from_millis(100);

/// What was taken out of a ring so far.
pub(super) struct Sums {
    pub(super) sample: Sample,
    /// What was added to the sums of stable labels before.
    pub(super) added: Option<Sample>,
    /// Events that another consumer took, as far as it shows.
    pub(super) taken_by_others: u64,
}

/// A ring that is consumed.
pub(super) struct Ring {
    pub(super) stamp: Stamp,
    /// Tells others of telering that this ring has its consumer. NIXL knows no locks and notices nothing.
    claim: Option<Descriptor>,
    ring: NixlRing,
    pub(super) sums: Sums,
    /// When it is looked at next, and how long it is left alone now.
    pub(super) due: Instant,
    pause: Duration,
}

impl Sums {
    pub(super) fn new(labels: Labels, bounds: &[u64], now_us: u64) -> Sums {
        let histogram = |id| HistogramOf { id, sum: 0, buckets: vec![0; bounds.len() + 1] };
        let metrics = MetricsSnapshot {
            bounds: bounds.to_vec(),
            histograms: telering_core::snapshot::HISTOGRAM_IDS.map(histogram).to_vec(),
            ..MetricsSnapshot::default()
        };
        let sample = Sample { metrics, start_us: Some(now_us), ..Sample::new(labels) };
        Sums { sample, added: None, taken_by_others: 0 }
    }

    /// Adds one event.
    fn add(&mut self, event: &Event) {
        let metrics = &mut self.sample.metrics;
        let time = event.any_time_us().unwrap_or(0);
        metrics.generation += 1;
        let entries = metrics.entries.len();
        // What is newer than this table is counted by its type, within bounds.
        match event.id.map(|id| if names::by_id(id).is_some() || entries < ENTRIES_MAX { id } else { u32::MAX }) {
            Some(id) if names::error_status(id).is_some() => match metrics.errors.iter_mut().find(|row| row.0 == id) {
                Some(row) => row.1 = row.1.wrapping_add(1),
                None => metrics.errors.push((id, 1)),
            },
            Some(id) => {
                let place = metrics.entries.iter().position(|entry| entry.id == id).unwrap_or_else(|| {
                    metrics.entries.push(Metric { id, total: Total::default() });
                    metrics.entries.len() - 1
                });
                add(&mut metrics.entries[place].total, event.value, time);
                if let Some(histogram) = metrics.histograms.iter_mut().find(|histogram| histogram.id == id) {
                    let bucket = metrics.bounds.partition_point(|&bound| bound < event.value);
                    histogram.sum = histogram.sum.wrapping_add(event.value);
                    if let Some(count) = histogram.buckets.get_mut(bucket) {
                        *count = count.wrapping_add(1);
                    }
                }
            }
            // A custom event of an old release.
            None => self.add_named(event, time),
        }
    }

    fn add_named(&mut self, event: &Event, time: u64) {
        let category = event.known_category().unwrap_or(telering_core::Category::CUSTOM);
        let dynamic = &mut self.sample.dynamic;
        let same = |metric: &&mut DynamicMetric| metric.name == event.name && metric.category == category;
        if let Some(metric) = dynamic.iter_mut().find(same) {
            add(&mut metric.total, event.value, time);
        } else if dynamic.len() < NAMES_MAX {
            let mut metric = DynamicMetric { name: event.name, category, total: Total::default() };
            add(&mut metric.total, event.value, time);
            dynamic.push(metric);
        } else {
            let notices = self.sample.notices.get_or_insert_default();
            notices.dynamic_overflow += 1;
        }
    }
}

fn add(total: &mut Total, value: u64, time: u64) {
    total.sum = total.sum.wrapping_add(value);
    total.count = total.count.wrapping_add(1);
    (total.last, total.last_us) = (value, time);
}

/// The labels of an agent of NIXL's that is known by its file alone.
pub(super) fn labels(hostname: &str, name: &OsStr) -> Labels {
    let labels = Labels::new().with("hostname", hostname);
    match name.to_str() {
        Some(name) => labels.with("agent_name", name),
        // A label is text. What is lost of the name must not make two agents one.
        None => labels
            .with("agent_name", name.to_string_lossy())
            .with("file_instance", name.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

/// Claims a ring, as long as the descriptor is open. `None` where locks don't work: then nobody can claim it.
///
/// # Errors
/// Another process has claimed it.
pub(super) fn claim(file: &File) -> Result<Option<Descriptor>, io::Error> {
    match lock::own(file) {
        Ok(()) => Ok(file.try_clone().ok().map(Descriptor::new)),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Err(error),
        Err(_) => Ok(None),
    }
}

impl Ring {
    /// A ring that begins with the events that wait in it. `sums` go on where an earlier file of the name left them.
    ///
    /// # Errors
    /// What the file is instead.
    pub(super) fn new(
        file: &File,
        stamp: Stamp,
        claim: Option<Descriptor>,
        sums: impl FnOnce() -> Sums,
        now: Instant,
    ) -> Result<Ring, Refused> {
        let ring = NixlRing::open(file, From::Oldest, true)?;
        Ok(Ring { stamp, claim, ring, sums: sums(), due: now, pause: SHORTEST })
    }

    pub(super) fn is_claimed(&self) -> bool {
        self.claim.is_some()
    }

    /// Times that another consumer was noticed.
    pub(super) fn rivals(&self) -> u64 {
        self.ring.rivals()
    }

    /// Takes out what is there and adds it up.
    ///
    /// # Errors
    /// The ring is no longer what it was; what was taken before stands in the sums.
    pub(super) fn visit(
        &mut self,
        file: &File,
        stamp: Stamp,
        items: &mut Vec<Item>,
        now: Instant,
        longest: Duration,
    ) -> Result<(), Trouble> {
        self.stamp = stamp;
        let mut most = 0;
        for _ in 0..ROUNDS {
            items.clear();
            let result = self.ring.read(file, items);
            most = most.max(self.ring.waited());
            for item in &*items {
                match item {
                    Item::Event(event) => self.sums.add(event),
                    Item::Lost(count) => self.sums.taken_by_others = self.sums.taken_by_others.wrapping_add(*count),
                    _ => {}
                }
            }
            result?;
            if items.is_empty() {
                break;
            }
        }
        // Each read saves what the one before took.
        self.ring.save(file)?;
        let capacity = self.ring.geometry().capacity;
        self.pause = match most {
            0 => self.pause * 2,
            waited if waited > capacity / 4 => self.pause / 4,
            waited if waited > capacity / 16 => self.pause,
            _ => self.pause * 2,
        }
        .clamp(SHORTEST, LONGEST.max(longest));
        self.due = now + self.pause;
        Ok(())
    }
}

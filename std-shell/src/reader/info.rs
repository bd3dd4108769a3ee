//! Everything that a file says about itself.

use std::path::PathBuf;

use telering_core::event::Category;
use telering_core::layout::image::{State, TimeBase};
use telering_core::layout::parts::PartRow;
use telering_core::snapshot::{ClockInfo, Flow, Notices, Total};

use super::item::{EventName, Layout};
use super::life::Liveness;

/// One look at a file. Texts are as the file holds them: escape them before a terminal sees them.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct FileInfo {
    /// The file.
    pub path: PathBuf,
    /// How it lays out its bytes.
    pub layout: Layout,
    /// Its length in bytes.
    pub len: u64,
    /// Places of its ring.
    pub capacity: u64,
    /// Bytes of one record.
    pub record_size: usize,
    /// Where producer and consumer stand.
    pub positions: Positions,
    /// Whether its writer lives.
    pub liveness: Liveness,
    /// Name and version of the library that writes it.
    pub writer: Option<String>,
    /// Who writes it.
    pub identity: Option<Identity>,
    /// Events recorded, exported and lost by cause.
    pub flow: Option<Flow>,
    /// Things worth knowing that are no loss.
    pub notices: Option<Notices>,
    /// Running totals of the built-in events.
    pub metrics: Option<MetricsSnapshot>,
    /// When the totals were taken, in the image's time base.
    pub metrics_time: Option<u64>,
    /// Running totals of custom and backend events.
    pub dynamic: Option<Vec<DynamicMetric>>,
    /// The clock that durations were measured with.
    pub clock: Option<ClockInfo>,
    /// What timestamps count. [`TimeBase::Unix`] in NIXL's own rings.
    pub time_base: TimeBase,
    /// Names this image among all others.
    pub instance: Option<u64>,
    /// Unix microseconds of its creation.
    pub created_us: Option<u64>,
    /// When the producer was last seen, in the image's time base.
    pub heartbeat: Option<u64>,
    /// Whether the producer is at work.
    pub state: Option<State>,
    /// How often the image was taken up after a reset.
    pub boots: Option<u32>,
    /// Whether records carry check words.
    pub checks: bool,
    /// The table of parts, unknown kinds included.
    pub parts: Vec<PartRow>,
}

/// Where producer and consumer stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Positions {
    /// Free-running positions of an image.
    Image {
        /// Records finished since the image was made.
        committed: u64,
        /// Records announced.
        intent: u64,
    },
    /// Wrapped indices of one of NIXL's own rings.
    Nixl {
        /// Where the producer writes next.
        write_pos: u64,
        /// Where the consumer reads next.
        read_pos: u64,
        /// Events that nobody consumed.
        waiting: u64,
    },
}

impl Positions {
    /// Events that the ring holds now, at most `capacity`.
    #[must_use]
    pub fn held(&self, capacity: u64) -> u64 {
        match *self {
            Positions::Image { committed, intent } => committed - intent.saturating_sub(capacity).min(committed),
            Positions::Nixl { waiting, .. } => waiting,
        }
    }
}

/// Who writes an image.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Identity {
    /// Agent name.
    pub agent: String,
    /// Host name.
    pub hostname: String,
    /// Rank, where there is one.
    pub rank: Option<String>,
    /// Name and version of the writing library.
    pub writer: Option<String>,
    /// Process id.
    pub pid: u64,
    /// Start of the process in clock ticks since boot, 0 unknown.
    pub process_start: u64,
    /// UUID of the boot, 0 unknown.
    pub boot_id: [u8; 16],
    /// Counter of agents within the process.
    pub agent_instance: u64,
    /// User id.
    pub uid: u64,
}

/// Running totals of the built-in events, all of one moment.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricsSnapshot {
    /// Counts up with each flush.
    pub generation: u64,
    /// One entry per event type that is no error, types unknown to this reader included.
    pub entries: Vec<Metric>,
    /// Upper bounds of the histograms' buckets in microseconds, inclusive.
    pub bounds: Vec<u64>,
    /// Latency distributions.
    pub histograms: Vec<HistogramOf>,
    /// Errors: event type and count.
    pub errors: Vec<(u32, u64)>,
}

impl MetricsSnapshot {
    /// The totals of an event type.
    #[must_use]
    pub fn entry(&self, id: u32) -> Option<&Total> {
        self.entries.iter().find(|entry| entry.id == id).map(|entry| &entry.total)
    }

    /// The distribution of an event type.
    #[must_use]
    pub fn histogram(&self, id: u32) -> Option<&HistogramOf> {
        self.histograms.iter().find(|histogram| histogram.id == id)
    }

    /// All errors.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.errors.iter().fold(0, |sum, (_, count)| sum.wrapping_add(*count))
    }
}

/// Running totals of one event type.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Metric {
    /// Event type.
    pub id: u32,
    /// Its totals.
    pub total: Total,
}

/// One latency distribution.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct HistogramOf {
    /// Event type.
    pub id: u32,
    /// Microseconds of all observations.
    pub sum: u64,
    /// Observations by bucket, not cumulative: one for each bound, then those above the last.
    pub buckets: Vec<u64>,
}

impl HistogramOf {
    /// Number of observations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, count| sum.wrapping_add(*count))
    }
}

/// Running totals of one custom or backend event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct DynamicMetric {
    /// Name of the event.
    pub name: EventName,
    /// Its category.
    pub category: Category,
    /// Its totals.
    pub total: Total,
}

impl MetricsSnapshot {
    /// Sets the totals of an event type, known or not.
    pub fn set_entry(&mut self, id: u32, total: Total) {
        match self.entries.iter_mut().find(|entry| entry.id == id) {
            Some(entry) => entry.total = total,
            None => self.entries.push(Metric { id, total }),
        }
    }

    /// Sets the distribution of an event type. `buckets` are as in [`HistogramOf::buckets`].
    pub fn set_histogram(&mut self, id: u32, sum: u64, buckets: Vec<u64>) {
        let new = HistogramOf { id, sum, buckets };
        match self.histograms.iter_mut().find(|histogram| histogram.id == id) {
            Some(histogram) => *histogram = new,
            None => self.histograms.push(new),
        }
    }
}

impl DynamicMetric {
    /// An event that has not happened.
    #[must_use]
    pub fn new(name: EventName, category: Category) -> DynamicMetric {
        DynamicMetric { name, category, total: Total::default() }
    }
}

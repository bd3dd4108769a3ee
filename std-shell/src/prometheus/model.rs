//! The numbers of one agent at one moment.

use telering_core::snapshot::{DynamicTotal, ENTRY_IDS, Flow, HISTOGRAM_IDS, Notices, Snapshot};
use telering_core::status::STATUS_COUNT;
use telering_core::{Status, names};

use super::labels::Labels;
use crate::exporter::Totals;
use crate::reader::{DynamicMetric, EventName, FileInfo, HistogramOf, Metric, MetricsSnapshot};

/// The numbers of one agent at one moment, with the labels that name it. Owned: an agent or a file may be gone
/// before they are written.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Sample {
    /// What all series of this agent carry.
    pub labels: Labels,
    /// Running totals of the built-in events.
    pub metrics: MetricsSnapshot,
    /// Running totals of custom and backend events.
    pub dynamic: Vec<DynamicMetric>,
    /// Events recorded, exported and lost; `None` where nobody counts them.
    pub flow: Option<Flow>,
    /// Things worth knowing that are no loss; `None` where nobody counts them.
    pub notices: Option<Notices>,
    /// When counting began: Unix microseconds.
    pub start_us: Option<u64>,
    /// Name and version of the library that counts.
    pub writer: Option<String>,
}

impl Sample {
    /// An agent that has done nothing.
    #[must_use]
    pub fn new(labels: Labels) -> Sample {
        Sample { labels, ..Sample::default() }
    }

    /// An agent of this process, as its flush thread published it. `bounds` are those of its latency histograms.
    #[must_use]
    pub fn from_totals(labels: Labels, totals: &Totals<'_>, bounds: &[u64]) -> Sample {
        Sample {
            metrics: metrics_of(totals.snapshot, bounds),
            dynamic: totals.dynamic.iter().map(dynamic_of).collect(),
            flow: Some(totals.flow),
            notices: Some(totals.notices),
            ..Sample::new(labels)
        }
    }

    /// What a telemetry file says of its agent. What the file doesn't have counts as 0 or is left out.
    #[must_use]
    pub fn from_file(labels: Labels, info: &FileInfo) -> Sample {
        let writer = info.writer.as_ref().or_else(|| info.identity.as_ref()?.writer.as_ref());
        Sample {
            metrics: info.metrics.clone().unwrap_or_default(),
            dynamic: info.dynamic.clone().unwrap_or_default(),
            flow: info.flow,
            notices: info.notices,
            start_us: info.created_us.filter(|&us| us > 0),
            writer: writer.cloned(),
            ..Sample::new(labels)
        }
    }
}

/// A snapshot of an agent's slots in the form in which files give theirs.
pub(crate) fn metrics_of(snapshot: &Snapshot, bounds: &[u64]) -> MetricsSnapshot {
    let histogram = |(id, histogram): (u32, &telering_core::snapshot::Histogram)| {
        let used = (bounds.len() + 1).min(histogram.buckets.len());
        HistogramOf { id, sum: histogram.sum, buckets: histogram.buckets[..used].to_vec() }
    };
    let error = |place: usize| (names::error_id(Status::ALL[place]), snapshot.errors[place]);
    MetricsSnapshot {
        generation: 0,
        entries: ENTRY_IDS.into_iter().zip(snapshot.entries).map(|(id, total)| Metric { id, total }).collect(),
        bounds: bounds.to_vec(),
        histograms: HISTOGRAM_IDS.into_iter().zip(&snapshot.histograms).map(histogram).collect(),
        errors: (0..STATUS_COUNT).map(error).collect(),
    }
}

/// A total of a custom or backend event in the form in which files give theirs.
pub(crate) fn dynamic_of(dynamic: &DynamicTotal) -> DynamicMetric {
    DynamicMetric { name: EventName::of(&dynamic.name), category: dynamic.category, total: dynamic.total }
}

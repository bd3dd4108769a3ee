//! Plain numbers of one moment: what the flush thread adds up over its slots, what an image publishes
//! and what a reader gets back.

use crate::event::Category;
use crate::layout::parts::metrics::{BOUNDS_MAX, ENTRIES};
use crate::name::Name;
use crate::names::{self, BUILT_IN};
use crate::status::STATUS_COUNT;

/// Running totals of one metric.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Total {
    /// Sum of all values.
    pub sum: u64,
    /// Number of events.
    pub count: u64,
    /// Value of the last event.
    pub last: u64,
    /// When the last event completed, in the image's time base; 0 before the first.
    pub last_us: u64,
}

/// One latency distribution.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Histogram {
    /// Microseconds of all observations.
    pub sum: u64,
    /// Observations by bucket, not cumulative; the one behind the last bound is the overflow.
    pub buckets: [u64; BOUNDS_MAX + 1],
}

impl Default for Histogram {
    fn default() -> Self {
        Histogram { sum: 0, buckets: [0; BOUNDS_MAX + 1] }
    }
}

impl Histogram {
    /// Number of observations.
    #[must_use]
    pub fn count(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, count| sum.wrapping_add(*count))
    }
}

/// Event types of the entries of a [`Snapshot`], in order: every row of the names table that is no error.
pub const ENTRY_IDS: [u32; ENTRIES] = {
    let mut ids = [0; ENTRIES];
    let (mut row, mut entry) = (0, 0);
    while row < BUILT_IN.len() {
        if names::error_status(BUILT_IN[row].id).is_none() {
            ids[entry] = BUILT_IN[row].id;
            entry += 1;
        }
        row += 1;
    }
    assert!(entry == ENTRIES);
    ids
};

/// Event types of the histograms of a [`Snapshot`], in order.
pub const HISTOGRAM_IDS: [u32; 2] = [names::XFER_TIME, names::XFER_POST_TIME];

/// Running totals of all built-in events.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Snapshot {
    /// By the order of [`ENTRY_IDS`].
    pub entries: [Total; ENTRIES],
    /// By the order of [`HISTOGRAM_IDS`].
    pub histograms: [Histogram; 2],
    /// Errors, by [`crate::Status::index`].
    pub errors: [u64; STATUS_COUNT],
}

impl Snapshot {
    /// The totals of an event type; `None` for errors and unknown types.
    #[must_use]
    pub fn entry(&self, id: u32) -> Option<&Total> {
        ENTRY_IDS.iter().position(|&entry| entry == id).map(|place| &self.entries[place])
    }

    /// See [`Snapshot::entry`].
    pub fn entry_mut(&mut self, id: u32) -> Option<&mut Total> {
        ENTRY_IDS.iter().position(|&entry| entry == id).map(|place| &mut self.entries[place])
    }

    /// All errors.
    #[must_use]
    pub fn error_count(&self) -> u64 {
        self.errors.iter().fold(0, |sum, count| sum.wrapping_add(*count))
    }
}

/// Running totals of one custom or backend event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DynamicTotal {
    /// Name of the event.
    pub name: Name,
    /// Its category.
    pub category: Category,
    /// Its totals.
    pub total: Total,
}

/// Application events of one agent: `recorded = exported + lost`, when no record call runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Flow {
    /// Events that the application recorded.
    pub recorded: u64,
    /// Events that reached the exporter and were accepted.
    pub exported: u64,
    /// Events lost, by cause.
    pub lost: Losses,
}

/// Lost events by cause.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Losses {
    /// Overwritten in a thread's ring before the flush thread came.
    pub staging: u64,
    /// The exporter refused or could not store them.
    pub exporter: u64,
    /// Announced and never finished: a reset between.
    pub interrupted: u64,
    /// Backend events over the 1000 that a backend keeps.
    pub backend: u64,
    /// Not flushed before the time to close ran out.
    pub closing: u64,
}

impl Losses {
    /// All causes together. Saturates: the numbers may be a damaged file's.
    #[must_use]
    pub const fn total(&self) -> u64 {
        self.staging
            .saturating_add(self.exporter)
            .saturating_add(self.interrupted)
            .saturating_add(self.backend)
            .saturating_add(self.closing)
    }
}

/// Things worth knowing that are no loss.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Notices {
    /// Names that were cut or cleaned.
    pub names_changed: u64,
    /// Events whose name found no room among the dynamic metrics.
    pub dynamic_overflow: u64,
    /// Records refused: made inside a signal handler, while a thread ended, or after close.
    pub refused: u64,
    /// Times the file was truncated, replaced or unlinked by others.
    pub file_trouble: u64,
}

/// The clock that durations are measured with.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ClockInfo {
    /// 0 unknown, 1 operating system, 2 processor's counter, 3 test, 4 given by the application.
    pub source: u32,
    /// 0 unknown, 1 rate measured, 2 rate told.
    pub quality: u32,
    /// Ticks per second.
    pub rate: u64,
    /// Ticks of the last anchor.
    pub anchor_ticks: u64,
    /// Unix microseconds of the last anchor.
    pub anchor_us: u64,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn losses_of_a_damaged_file_add_up_without_overflow() {
        let all = Losses { staging: u64::MAX, exporter: 1, interrupted: 0, backend: u64::MAX, closing: 3 };
        assert_eq!(all.total(), u64::MAX);
        assert_eq!(Losses { staging: 1, exporter: 2, interrupted: 3, backend: 4, closing: 5 }.total(), 15);
    }
}

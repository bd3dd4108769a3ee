//! Where events go: one exporter per agent, called by its flush thread alone.

mod identity;
mod nop;
mod prometheus;
mod shm;
#[cfg(test)]
mod tests;

pub(crate) use identity::{WRITER, Who};
pub use nop::Nop;
pub(crate) use prometheus::{Prometheus, PrometheusSettings};
pub(crate) use shm::{Shm, ShmSettings};

use std::path::PathBuf;

use telering_core::snapshot::{ClockInfo, DynamicTotal, Flow, Notices, Snapshot};
use telering_core::{Category, Name};

/// One event on its way to an exporter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// When the operation completed: microseconds since the Unix epoch.
    pub timestamp_us: u64,
    /// Bytes, a count, or microseconds.
    pub value: u64,
    /// Event type of the names table (`telering_core::names`); [`Event::NAMED`] for custom and backend events.
    pub id: u32,
    /// Kind of event.
    pub category: Category,
    /// Name as a telemetry file carries it.
    pub name: Name,
    /// Events of this event's group from here on, itself included: 4, 3, 2, 1 for a transfer, else 1.
    /// An exporter takes a group whole or not at all.
    pub group: u8,
}

impl Event {
    /// The id of an event that is not in the names table.
    pub const NAMED: u32 = u32::MAX;
}

/// All numbers of an agent at one moment.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Totals<'a> {
    /// Running totals of the built-in events.
    pub snapshot: &'a Snapshot,
    /// Running totals of custom and backend events.
    pub dynamic: &'a [DynamicTotal],
    /// Events recorded, exported and lost.
    pub flow: Flow,
    /// Things worth knowing that are no loss.
    pub notices: Notices,
    /// The clock.
    pub clock: ClockInfo,
    /// When these numbers were taken: Unix microseconds.
    pub now_us: u64,
}

/// An exporter could not take some events.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExportError {
    /// How many of the batch's events were not taken.
    pub lost: u64,
    /// Why, and what to do. Said once until an export works again.
    pub message: String,
}

/// Takes events and numbers out of an agent.
///
/// All calls come from the agent's flush thread, one at a time. Recording never waits for an exporter:
/// a slow one makes the flush thread late, and what the recording threads overwrite meanwhile is
/// counted as lost. A panic in any method is caught; the exporter is not called again then.
pub trait Exporter: Send {
    /// Takes a batch of events, in the order of their completion. Never empty.
    ///
    /// # Errors
    /// [`ExportError`] with the number of events that were not taken; the others count as exported.
    fn export(&mut self, events: &[Event]) -> Result<(), ExportError>;

    /// Takes the numbers after each flush.
    fn publish(&mut self, totals: &Totals<'_>) {
        let _ = totals;
    }

    /// Called about once a second, also when nothing happens.
    fn housekeep(&mut self, now_us: u64) {
        let _ = now_us;
    }

    /// The last call: the agent stopped in good order.
    fn close(&mut self, now_us: u64) {
        let _ = now_us;
    }

    /// The file that this exporter writes now, if it writes one.
    fn path(&self) -> Option<PathBuf> {
        None
    }

    /// Times the exporter's file was truncated, replaced or unlinked by others.
    fn file_trouble(&self) -> u64 {
        0
    }
}

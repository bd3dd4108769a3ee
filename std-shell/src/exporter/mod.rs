//! Where events go: one exporter per agent, called by its flush thread alone.
//!
//! An exporter of your own implements [`Exporter`]. There are three ways to it:
//!
//! - the program hands it over: [`Builder::exporter`](crate::Builder::exporter);
//! - it is linked in under a name, which `NIXL_TELEMETRY_EXPORTER` chooses: [`register`];
//! - it is a library of its own, loaded by its name: [`plugin`].
//!
//! docs/plugins.md walks through all three.

mod context;
mod identity;
mod nop;
pub mod plugin;
mod prometheus;
mod registry;
mod shm;
#[cfg(test)]
mod tests;

pub use context::AgentContext;
pub(crate) use identity::{WRITER, Who};
pub use nop::Nop;
pub(crate) use prometheus::{Prometheus, PrometheusSettings};
pub(crate) use registry::{Linked, find, is_name};
pub use registry::{RegisterError, register, registered};
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
#[non_exhaustive]
pub struct ExportError {
    /// How many of the batch's events were not taken.
    pub lost: u64,
    /// Why, and what to do. Said once until an export works again; never if it is empty.
    pub message: String,
}

impl ExportError {
    /// An error by which `lost` events of the batch were not taken.
    #[must_use]
    pub fn new(lost: u64, message: impl Into<String>) -> ExportError {
        ExportError { lost, message: message.into() }
    }
}

/// Why an exporter can't start. Text and any error turn into one by `?` or `.into()`.
pub type OpenError = Box<dyn std::error::Error + Send + Sync>;

/// Takes events and numbers out of an agent.
///
/// All calls come from the agent's flush thread, one at a time. Recording never waits for an exporter:
/// a slow one makes the flush thread late, and what the recording threads overwrite meanwhile is
/// counted as lost. A panic in any method is caught; the exporter is not called again then.
///
/// ```
/// use std::sync::mpsc;
/// use telering::exporter::{AgentContext, Event, ExportError, Exporter, OpenError};
///
/// /// Sends a line per event to another thread.
/// struct Lines {
///     to: mpsc::SyncSender<String>,
///     agent: String,
/// }
///
/// impl Exporter for Lines {
///     fn open(&mut self, agent: &AgentContext) -> Result<(), OpenError> {
///         self.agent.clone_from(&agent.name);
///         Ok(())
///     }
///
///     fn export(&mut self, events: &[Event]) -> Result<(), ExportError> {
///         let mut lost = 0;
///         for event in events {
///             let line = format!("{} {} {}", self.agent, event.name.as_str(), event.value);
///             lost += u64::from(self.to.try_send(line).is_err());
///         }
///         if lost == 0 { Ok(()) } else { Err(ExportError::new(lost, "lines: nobody takes them fast enough")) }
///     }
/// }
///
/// let (to, lines) = mpsc::sync_channel(100);
/// let exporter = Lines { to, agent: String::new() };
/// let agent = telering::Telemetry::builder("prefill-0")
///     .ignore_environment(true)
///     .enable(true)
///     .exporter(Box::new(exporter))
///     .build();
/// agent.event("cache_hit", 7);
/// agent.close();
/// assert!(lines.iter().any(|line| line == "prefill-0 cache_hit 7"));
/// ```
pub trait Exporter: Send {
    /// The first call: who the agent is, and the chance to connect, make files, and so on. Starting the agent waits
    /// for it for two seconds at the most; recording goes on in any case.
    ///
    /// # Errors
    /// Why it can't start. One warning tells it, and the agent exports nothing.
    fn open(&mut self, agent: &AgentContext) -> Result<(), OpenError> {
        let _ = agent;
        Ok(())
    }

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

    /// The last call: the agent stopped in good order. Closing the agent waits for it, as for the last batch, no
    /// longer than [`Builder::close_patience`](crate::Builder::close_patience).
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

//! The agent: what a program holds to record its transfers.

mod backend;
mod builder;
pub(crate) mod hot;
mod local;
#[doc(hidden)]
pub mod raw;
mod registry;
mod sink;
#[cfg(test)]
mod tests;
mod transfer;
mod view;

pub(crate) use backend::Waiting;
pub use backend::{BACKEND_EVENTS_MAX, Backend, BackendEvent};
pub use builder::{Builder, StartError};
pub use transfer::{Transfer, TransferRecord, TransferTelemetry};
pub(crate) use view::{write_endpoint, write_process};

use std::fmt;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use static_assertions::{assert_impl_all, assert_not_impl_any};
use telering_core::slot::{Operation, Transfer as Finished};
use telering_core::snapshot::{Flow, Notices, Snapshot};
use telering_core::{Category, Status, names};

use crate::file::fork;
use crate::flush::FlushHandle;
use hot::Hot;
use local::Recorder;
use transfer::Wanted;
use view::View;

/// How much an agent does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Mode {
    /// Nothing: every call returns at once.
    Off,
    /// Transfers are timed and counted in the process; nothing is exported.
    Captured,
    /// Everything is recorded and exported.
    Exported,
}

assert_impl_all!(Telemetry: Send, Sync, Clone);
// A transfer may finish on another thread than it began on; one transfer is one thread's at a time.
assert_impl_all!(Transfer: Send);
assert_not_impl_any!(Transfer: Clone);

#[derive(Debug)]
struct Agent {
    name: String,
    mode: Mode,
    /// What is wanted of a write and of a read.
    wanted: [Wanted; 2],
    hot: Arc<Hot>,
    flush: Option<Arc<FlushHandle>>,
    /// What scrapes see. `None` for an agent that is off.
    view: Option<Arc<View>>,
}

/// One agent's telemetry. Clones are handles of the same agent; when the last one goes, it closes.
///
/// Nothing here fails or panics, and recording never waits: whatever is wrong with telemetry ends in one
/// warning and in less telemetry.
///
/// ```
/// use telering::{Operation, Status, Telemetry};
/// let agent = Telemetry::builder("prefill-0").ignore_environment(true).capture_telemetry(true).build();
/// agent.memory_registered(1 << 30);
/// let mut transfer = agent.begin_transfer(Operation::Write, 1 << 20, 16);
/// transfer.posted();
/// transfer.finish();
/// agent.error(Status::NotFound);
/// assert_eq!(agent.snapshot().errors[Status::NotFound.index()], 1);
/// ```
#[derive(Clone, Debug)]
pub struct Telemetry(Arc<Agent>);

impl Telemetry {
    /// Settings for an agent of this name; what is not set comes from the environment.
    pub fn builder(name: impl Into<String>) -> Builder {
        Builder::new(name.into())
    }

    /// An agent with the settings of the environment.
    #[must_use]
    pub fn from_env(name: impl Into<String>) -> Telemetry {
        Self::builder(name).build()
    }

    /// Name of the agent.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.0.name
    }

    /// How much the agent does.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.0.mode
    }

    /// The telemetry file, if there is one. It can change: somebody may take the name away.
    #[must_use]
    pub fn path(&self) -> Option<PathBuf> {
        self.flush().and_then(FlushHandle::path)
    }

    /// Memory was registered: the bytes of all descriptors of one call.
    pub fn memory_registered(&self, bytes: u64) {
        self.single(names::MEMORY_REGISTERED, bytes);
    }

    /// Memory was deregistered: the bytes of all descriptors of one call.
    pub fn memory_deregistered(&self, bytes: u64) {
        self.single(names::MEMORY_DEREGISTERED, bytes);
    }

    /// Metadata of this many bytes went to a peer.
    pub fn metadata_sent(&self, bytes: u64) {
        self.single(names::METADATA_SENT, bytes);
    }

    /// Metadata of this many bytes came from a peer.
    pub fn metadata_received(&self, bytes: u64) {
        self.single(names::METADATA_RECEIVED, bytes);
    }

    /// A connection to a peer came up.
    pub fn connected(&self) {
        self.single(names::CONNECTED, 1);
    }

    /// A connection to a peer went away.
    pub fn disconnected(&self) {
        self.single(names::DISCONNECTED, 1);
    }

    /// Begins a transfer: reads the clock, unless telemetry is off, or off for all that such a transfer has.
    #[inline(always)]
    pub fn begin_transfer(&self, operation: Operation, bytes: u64, descriptors: u32) -> Transfer {
        let hot = &self.0.hot;
        let wanted = self.0.wanted[operation as usize];
        if wanted != Wanted::Times {
            return Transfer::untimed(hot.id, hot.clock, operation, wanted);
        }
        Transfer::begin(hot.id, hot.clock, hot.groups[operation as usize], operation, bytes, descriptors)
    }

    /// Records a finished transfer that the engine timed itself. It completed now.
    #[inline]
    pub fn record_transfer(&self, record: &TransferRecord) {
        let hot = &self.0.hot;
        let group = hot.groups[record.operation as usize];
        if self.0.mode == Mode::Off || group.events() == 0 {
            return;
        }
        let us = |duration: Duration| duration.as_micros().min(u128::from(u64::MAX)) as u64;
        let post_us = us(record.post_duration);
        let finished = Finished {
            ticks: hot.clock.ticks(),
            operation: record.operation,
            group,
            bytes: record.bytes,
            post_us,
            xfer_us: us(record.xfer_duration).max(post_us),
            descriptors: record.descriptors,
        };
        local::record(hot, local::Record(&finished));
    }

    /// An operation failed.
    pub fn error(&self, status: Status) {
        let hot = &self.0.hot;
        if self.0.mode != Mode::Off && hot.wants(names::error_id(status)) {
            record_error(hot, status);
        }
    }

    /// An event of the application: category CUSTOM. Names are cut to 31 bytes.
    pub fn event(&self, name: &str, value: u64) {
        let hot = &self.0.hot;
        if self.0.mode == Mode::Off || !hot.allowlist.allows_name(name) {
            return;
        }
        let (name, ticks) = (hot.name(name), hot.clock.ticks());
        local::record_by(hot, |_, owned| owned.slot.named(owned.ring(), ticks, Category::CUSTOM, &name, value));
    }

    /// A handle for a backend's own events.
    #[must_use]
    pub fn backend(&self) -> Backend {
        if self.0.mode == Mode::Off { Backend::off() } else { Backend::of(&self.0.hot, self.0.flush.is_some()) }
    }

    fn single(&self, id: u32, value: u64) {
        let hot = &self.0.hot;
        if self.0.mode == Mode::Off || !hot.wants(id) {
            return;
        }
        let ticks = hot.clock.ticks();
        local::record_by(hot, |_, owned| owned.slot.single(owned.ring(), ticks, id, value));
    }

    /// The flush thread's side, unless there is none or this process is a fork of the agent's.
    fn flush(&self) -> Option<&FlushHandle> {
        self.0.flush.as_deref().filter(|_| fork::is_own(self.0.hot.id))
    }

    /// Running totals of the built-in events as of now, exact at any rate.
    #[must_use]
    pub fn snapshot(&self) -> Snapshot {
        match &self.0.view {
            Some(view) if fork::is_own(self.0.hot.id) => view.snapshot(),
            _ => Snapshot::default(),
        }
    }

    /// Where Prometheus finds this agent: the address of the process's endpoint, with its true port. `None` without one
    /// of the exporters `prometheus` and `prometheus_mp`, after [`close`](Self::close), and as long as another process
    /// serves the directory of `prometheus_mp`.
    #[must_use]
    pub fn prometheus_address(&self) -> Option<SocketAddr> {
        let view = self.0.view.as_ref().filter(|view| fork::is_own(view.hot.id) && !view.is_closed())?;
        view.endpoint.as_ref()?.address()
    }

    /// Writes this agent's numbers for Prometheus, for programs that have a `/metrics` of their own; no port is opened.
    /// The text is of the classic format, [`prometheus::CONTENT_TYPE`](crate::prometheus::CONTENT_TYPE). It holds every
    /// transfer that finished before. [`prometheus::render`](crate::prometheus::render) takes all agents of the process.
    ///
    /// Waits up to 50 ms for a flush, for the events that only the flush thread counts. An agent that is off, or whose
    /// process forked, writes nothing.
    ///
    /// ```
    /// use telering::{Operation, Telemetry};
    /// let agent = Telemetry::builder("prefill-0").ignore_environment(true).capture_telemetry(true).build();
    /// agent.begin_transfer(Operation::Write, 4096, 1).finish();
    /// let mut page = String::new();
    /// agent.render_prometheus(&mut page)?;
    /// assert!(page.contains("agent_tx_bytes_total{agent_name=\"prefill-0\""));
    /// # Ok::<(), std::fmt::Error>(())
    /// ```
    ///
    /// # Errors
    /// Only those of `out`.
    pub fn render_prometheus(&self, out: &mut (impl fmt::Write + ?Sized)) -> fmt::Result {
        self.0.view.as_ref().map_or(Ok(()), |view| view::write(std::slice::from_ref(view), out))
    }

    /// Application events recorded, exported and lost, as of the last flush: `recorded = exported + lost`.
    /// All 0 for an agent that exports nothing.
    #[must_use]
    pub fn counts(&self) -> Flow {
        self.flush().map(FlushHandle::flow).unwrap_or_default()
    }

    /// Things worth knowing that are no loss, as of the last flush.
    #[must_use]
    pub fn notices(&self) -> Notices {
        self.flush().map(FlushHandle::notices).unwrap_or_default()
    }

    /// The longest time that a record may have waited: from the beginning of one flush to the end of the next, while
    /// records arrived.
    #[must_use]
    pub fn longest_flush_gap(&self) -> Duration {
        self.flush().map(FlushHandle::longest_gap).unwrap_or_default()
    }

    /// Exports what was recorded before this call; `false` if that took longer than `patience`.
    pub fn flush_now(&self, patience: Duration) -> bool {
        self.flush().is_none_or(|flush| flush.flush_now(&self.0.hot, patience))
    }

    /// Stops recording, exports what is there and closes the exporter, within the agent's time limit.
    /// Returns the final counts. A second call returns them again.
    pub fn close(&self) -> Flow {
        self.0.close()
    }
}

impl Agent {
    fn close(&self) -> Flow {
        if !fork::is_own(self.hot.id) {
            return Flow::default();
        }
        self.hot.closed.close();
        match &self.flush {
            Some(flush) => flush.close(&self.hot),
            None => Flow::default(),
        }
    }
}

impl Drop for Agent {
    fn drop(&mut self) {
        self.close();
    }
}

fn record_error(recorder: impl Recorder, status: Status) {
    local::record_by(recorder, |hot, owned| {
        if hot.wants(names::error_id(status)) {
            owned.slot.error(owned.ring(), hot.clock.ticks(), status)
        } else {
            // Not at the end of a quarter, so that nobody is woken.
            1
        }
    });
}

//! What an agent and its flush thread say to each other: the agent's side of it.

use std::path::PathBuf;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use telering_core::snapshot::{DynamicTotal, Flow, Notices, Total};

use super::opening::Opening;
use super::round::Flusher;
use crate::agent::hot::{Hot, lock};
use crate::exporter::{AgentContext, Exporter};

/// What the flush thread tells.
#[derive(Debug, Default)]
pub(super) struct Told {
    pub(super) opening: Opening,
    /// Flushes asked for, and the last of them that is done.
    pub(super) wanted: u64,
    pub(super) done: u64,
    pub(super) finished: bool,
    pub(super) flow: Flow,
    pub(super) notices: Notices,
    /// Totals of our own events, which no slot counts.
    pub(super) own: Vec<(u32, Total)>,
    pub(super) dynamic: Vec<DynamicTotal>,
    pub(super) path: Option<PathBuf>,
    pub(super) longest_gap: Duration,
}

/// What the flush thread alone knows, as of its last flush.
pub(crate) struct Published {
    /// Totals of our own events, by event type.
    pub(crate) own: Vec<(u32, Total)>,
    pub(crate) dynamic: Vec<DynamicTotal>,
    pub(crate) flow: Flow,
    pub(crate) notices: Notices,
}

#[derive(Debug, Default)]
pub(super) struct Shared {
    pub(super) told: Mutex<Told>,
    pub(super) changed: Condvar,
}

/// An agent's hold on its flush thread.
#[derive(Debug)]
pub(crate) struct FlushHandle {
    pub(super) shared: Arc<Shared>,
    patience: Duration,
    /// Until when closing waits, from the first call on: closing again, or dropping what was closed, waits no longer.
    /// `None` in it is for ever.
    close_by: OnceLock<Option<Instant>>,
}

impl FlushHandle {
    pub(super) fn new(shared: Arc<Shared>, patience: Duration) -> FlushHandle {
        FlushHandle { shared, patience, close_by: OnceLock::new() }
    }

    /// Starts the flush thread, which opens the exporter first. `patience` bounds the wait for it when the agent
    /// closes.
    ///
    /// # Errors
    /// Why nothing is exported: the exporter can't open, or the operating system gives no thread.
    pub(crate) fn start(
        hot: &Arc<Hot>,
        exporter: Box<dyn Exporter>,
        context: AgentContext,
        interval: Duration,
        patience: Duration,
    ) -> Result<FlushHandle, String> {
        let shared = Arc::new(Shared::default());
        let flusher = Flusher::new(Arc::clone(hot), Arc::clone(&shared), exporter, interval);
        let thread = thread::Builder::new()
            .name("telering-flush".into())
            .spawn(move || flusher.open_and_run(&context))
            .map_err(|error| format!("telemetry is not exported: no thread for its flushes: {error}"))?;
        let _ = hot.flusher.set(thread.thread().clone());
        let handle = FlushHandle::new(shared, patience);
        handle.wait_for_opening()?;
        Ok(handle)
    }

    pub(crate) fn flow(&self) -> Flow {
        lock(&self.shared.told).flow
    }

    pub(crate) fn notices(&self) -> Notices {
        lock(&self.shared.told).notices
    }

    pub(crate) fn path(&self) -> Option<PathBuf> {
        lock(&self.shared.told).path.clone()
    }

    pub(crate) fn longest_gap(&self) -> Duration {
        lock(&self.shared.told).longest_gap
    }

    pub(crate) fn published(&self) -> Published {
        let told = lock(&self.shared.told);
        Published { own: told.own.clone(), dynamic: told.dynamic.clone(), flow: told.flow, notices: told.notices }
    }

    /// Asks for a flush and waits for it.
    pub(crate) fn flush_now(&self, hot: &Hot, patience: Duration) -> bool {
        let wanted = self.want(hot);
        self.wait_for(wanted, patience)
    }

    /// Asks for a flush. Returns its number, `None` where no thread would make it.
    pub(crate) fn ask(&self, hot: &Hot) -> Option<u64> {
        hot.flusher.get()?;
        Some(self.want(hot))
    }

    fn want(&self, hot: &Hot) -> u64 {
        let mut told = lock(&self.shared.told);
        told.wanted += 1;
        let wanted = told.wanted;
        drop(told);
        hot.wake();
        wanted
    }

    /// Waits for a flush that was asked for.
    pub(crate) fn wait_for(&self, number: u64, patience: Duration) -> bool {
        self.wait(patience, |told| told.done >= number || told.finished)
    }

    /// Waits for the final flush of an agent that was closed. What is not out by then is lost.
    pub(crate) fn close(&self, hot: &Hot) -> Flow {
        hot.wake();
        let close_by = self.close_by.get_or_init(|| Instant::now().checked_add(self.patience));
        let patience = close_by.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        if !self.wait(patience, |told| told.finished) {
            let recorded: u64 = hot.slots_from(0).iter().map(|owned| owned.slot.totals().events()).sum();
            let mut told = lock(&self.shared.told);
            if !told.finished {
                let flow = &mut told.flow;
                flow.recorded = recorded.max(flow.recorded);
                // What an earlier call wrote off is among it.
                flow.lost.closing = 0;
                flow.lost.closing = flow.recorded.saturating_sub(flow.exported + flow.lost.total());
            }
        }
        self.flow()
    }

    fn wait(&self, patience: Duration, until: impl Fn(&Told) -> bool) -> bool {
        let told = lock(&self.shared.told);
        let (told, _) = self
            .shared
            .changed
            .wait_timeout_while(told, patience, |told| !until(told))
            .unwrap_or_else(PoisonError::into_inner);
        until(&told)
    }
}

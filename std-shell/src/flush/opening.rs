//! Opening an exporter: on the flush thread, while the one who starts the agent waits for a while.
//!
//! An exporter may connect to something, load a library, or sleep. The host's start is not held up for long by any
//! of it, and recording not at all: the rings are there already.

use std::sync::PoisonError;
use std::time::Duration;

use super::handle::FlushHandle;
use super::round::Flusher;
use crate::agent::hot::lock;
use crate::exporter::AgentContext;

/// How long starting an agent waits for its exporter.
const PATIENCE: Duration = Duration::from_secs(2);

/// How far an exporter has come.
#[derive(Debug, Default)]
pub(super) enum Opening {
    /// It is at it.
    #[default]
    Waiting,
    /// It is at it, and nobody waits any more.
    Late,
    Open,
    /// Why it isn't.
    Failed(String),
}

impl FlushHandle {
    /// Waits until the exporter is open, or for [`PATIENCE`].
    pub(super) fn wait_for_opening(&self) -> Result<(), String> {
        let told = lock(&self.shared.told);
        let waiting = |opening: &Opening| matches!(opening, Opening::Waiting);
        let (mut told, _) = self
            .shared
            .changed
            .wait_timeout_while(told, PATIENCE, |told| waiting(&told.opening))
            .unwrap_or_else(PoisonError::into_inner);
        match std::mem::take(&mut told.opening) {
            Opening::Failed(message) => Err(message),
            Opening::Waiting => {
                told.opening = Opening::Late;
                Ok(())
            }
            other => {
                told.opening = other;
                Ok(())
            }
        }
    }

    /// Whether the exporter was not open in time, and still isn't.
    pub(crate) fn is_late(&self) -> bool {
        matches!(lock(&self.shared.told).opening, Opening::Late)
    }
}

impl Flusher {
    /// The flush thread.
    pub(super) fn open_and_run(mut self, context: &AgentContext) {
        let opened = self.outlet.open(context);
        let path = self.outlet.path();
        let mut told = lock(&self.shared.told);
        let late = matches!(told.opening, Opening::Late);
        let failed = opened.is_err();
        if path.is_some() {
            told.path = path;
        }
        told.opening = match opened {
            Ok(()) => Opening::Open,
            Err(message) if !late => Opening::Failed(message),
            Err(message) => {
                // The agent runs already, as one that exports. What it records is counted as lost.
                self.outlet.warn(message);
                Opening::Open
            }
        };
        drop(told);
        self.shared.changed.notify_all();
        if late || !failed {
            self.run();
        }
    }
}

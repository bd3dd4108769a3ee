//! Flushing without a thread, one flush at a time.

use std::sync::Arc;
use std::time::Duration;

use super::handle::{FlushHandle, Shared};
use super::round::Flusher;
use crate::agent::hot::{Hot, lock};
use crate::exporter::{AgentContext, Exporter};

/// A flush thread's work without the thread, for benchmarks that time single flushes. Finish it before
/// the agent closes, which would wait for its last flush otherwise.
#[doc(hidden)]
#[derive(Debug)]
pub struct ByHand(pub(super) Flusher);

impl ByHand {
    /// One flush of everything that was recorded so far.
    pub fn flush(&mut self) {
        self.0.flush(false);
        self.0.tell(0, false);
    }

    /// The last flush; closes the exporter.
    pub fn finish(mut self) {
        self.0.hot.closed.close();
        self.0.flush(true);
        self.0.finish(0);
    }
}

impl FlushHandle {
    /// The same without a thread: nothing is flushed until the second part is told to.
    ///
    /// # Errors
    /// Why the exporter can't open.
    pub(crate) fn by_hand(
        hot: &Arc<Hot>,
        exporter: Box<dyn Exporter>,
        context: &AgentContext,
        interval: Duration,
        patience: Duration,
    ) -> Result<(FlushHandle, ByHand), String> {
        let shared = Arc::new(Shared::default());
        let mut flusher = Flusher::new(Arc::clone(hot), Arc::clone(&shared), exporter, interval);
        flusher.outlet.open(context)?;
        lock(&shared.told).path = flusher.outlet.path();
        Ok((FlushHandle::new(shared, patience), ByHand(flusher)))
    }
}

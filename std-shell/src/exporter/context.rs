//! What an exporter learns about its agent.

use super::Who;
use crate::warn::{Warner, WarningKind};

/// Whose events an exporter gets.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct AgentContext {
    /// Name of the agent, as the program gave it: any text.
    pub name: String,
    /// Agents that this process made before this one.
    pub instance: u64,
    /// Rank of this process within its job; empty if there is none.
    pub rank: String,
    /// Name of this machine; empty if the operating system doesn't tell.
    pub hostname: String,
    /// This process.
    pub pid: u64,
    /// When the agent started: Unix microseconds.
    pub started_us: u64,
    /// Upper bounds of the latency histograms in microseconds, inclusive, increasing.
    pub histogram_bounds: Vec<u64>,
    warner: Warner,
}

impl AgentContext {
    pub(crate) fn new(who: &Who, started_us: u64, histogram_bounds: &[u64], warner: &Warner) -> AgentContext {
        AgentContext {
            name: who.agent.clone(),
            instance: who.agent_instance,
            rank: who.rank.clone(),
            hostname: who.hostname.clone(),
            pid: who.pid,
            started_us,
            histogram_bounds: histogram_bounds.to_vec(),
            warner: warner.clone(),
        }
    }

    /// Tells the user something that no [`ExportError`](super::ExportError) carries: one line, to where the agent's
    /// other warnings go. Say it once, not once per batch.
    pub fn warn(&self, message: impl Into<String>) {
        self.warner.warn(WarningKind::Exporter, message);
    }
}

//! How a directory is looked at.

use std::time::Duration;

use telering_core::slot::DEFAULT_BOUNDS;

use crate::config::STALE_TTL_DEFAULT;
use crate::warn::Warner;

/// Which labels tell one series from another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LabelSet {
    /// `hostname`, `agent_name`, `pid`, `agent_instance` and `local_rank`: one series for each agent.
    #[default]
    Full,
    /// `hostname` and `local_rank`: the sum of all agents that have these in common, which goes on when they start
    /// again.
    Stable,
}

/// How a directory is looked at.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DirectoryOptions {
    /// The labels of the series.
    pub labels: LabelSet,
    /// How long the last numbers of an agent that is gone are published: 30 s. Once they are in any case.
    pub ttl: Duration,
    /// Whether events are taken out of NIXL's own rings. Nobody else may do so then.
    pub consume: bool,
    /// Whether files of other users are left alone: told once each, and counted as foreign.
    pub only_own: bool,
    /// Upper bounds of the histograms that are made of the events in NIXL's rings, in microseconds.
    pub bounds: Vec<u64>,
    /// Hears what is wrong, once for each file.
    pub warner: Warner,
}

impl Default for DirectoryOptions {
    fn default() -> DirectoryOptions {
        DirectoryOptions {
            labels: LabelSet::Full,
            ttl: STALE_TTL_DEFAULT,
            consume: true,
            only_own: false,
            bounds: DEFAULT_BOUNDS.to_vec(),
            warner: Warner::default(),
        }
    }
}

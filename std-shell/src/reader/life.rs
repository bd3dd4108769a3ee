//! Whether the writer of a file lives.

use std::fmt;
use std::time::{SystemTime, UNIX_EPOCH};

use telering_core::layout::image::{Control, State, TimeBase};

use super::read_at::LockState;

/// A heartbeat older than this counts as none, in microseconds.
const FRESH_US: u64 = 10_000_000;

/// What is known about a file's writer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Liveness {
    /// It holds its lock.
    Alive,
    /// The file system has no locks; its heartbeat is under 10 s old.
    AliveByHeartbeat,
    /// Nobody holds the lock and the file was not closed: the writer was killed, or this is a copy.
    Dead,
    /// The writer closed the file in good order.
    Closed,
    /// It can't be known: NIXL's own rings have no lock and no heartbeat.
    Unknown,
    /// Nothing has moved for as long as the caller was ready to wait.
    Stale,
}

impl Liveness {
    /// Whether the writer is known to be at work.
    #[must_use]
    pub const fn is_alive(self) -> bool {
        matches!(self, Liveness::Alive | Liveness::AliveByHeartbeat)
    }

    /// The liveness as words: `alive`, `alive (by heartbeat)`, `dead`, `closed`, `unknown`, `stale`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Liveness::Alive => "alive",
            Liveness::AliveByHeartbeat => "alive (by heartbeat)",
            Liveness::Dead => "dead",
            Liveness::Closed => "closed",
            Liveness::Unknown => "unknown",
            Liveness::Stale => "stale",
        }
    }

    /// From the lock first, then from what the image says.
    pub(crate) fn of_image(lock: LockState, control: &Control, now_us: u64) -> Liveness {
        let fresh = control.time_base == TimeBase::Unix && now_us.abs_diff(control.heartbeat) < FRESH_US;
        match (lock, control.state) {
            (LockState::Held, _) => Liveness::Alive,
            (_, State::Closed) => Liveness::Closed,
            (LockState::Free, _) => Liveness::Dead,
            (LockState::Unknown, _) if fresh => Liveness::AliveByHeartbeat,
            (LockState::Unknown, _) => Liveness::Unknown,
        }
    }
}

impl fmt::Display for Liveness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// The time of day in microseconds since the Unix epoch.
pub(crate) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

//! Events of a backend: kept until a flush takes them, or the backend itself.

use std::sync::{Arc, Mutex};

use telering_core::Name;

use super::hot::{Hot, lock};
use crate::file::fork;

/// Events that a backend keeps between two flushes.
pub const BACKEND_EVENTS_MAX: usize = 1000;

/// One event of a backend.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BackendEvent {
    /// When it was added: Unix microseconds.
    pub timestamp_us: u64,
    /// Its name.
    pub name: Name,
    /// Its value.
    pub value: u64,
}

/// An event with its time in ticks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Waiting {
    pub(crate) ticks: u64,
    pub(crate) name: Name,
    pub(crate) value: u64,
}

#[derive(Debug, Default)]
struct Kept {
    events: Vec<Waiting>,
    /// Events that found no room since the last flush.
    excess: u64,
}

/// The events of one backend.
#[derive(Debug, Default)]
pub(crate) struct BackendEvents(Mutex<Kept>);

impl BackendEvents {
    /// Takes what is there: the events, and how many found no room.
    pub(crate) fn take(&self) -> (Vec<Waiting>, u64) {
        let mut kept = lock(&self.0);
        (std::mem::take(&mut kept.events), std::mem::take(&mut kept.excess))
    }

    /// Whether a flush would find nothing.
    pub(crate) fn is_empty(&self) -> bool {
        let kept = lock(&self.0);
        kept.events.is_empty() && kept.excess == 0
    }
}

/// A backend's handle for its own events. They are exported with category BACKEND.
///
/// ```
/// # let agent = telering::Telemetry::builder("doc").ignore_environment(true).enable(true).build();
/// let backend = agent.backend();
/// backend.add_event("rail_switch", 3);
/// assert_eq!(backend.events()[0].name.as_str(), "rail_switch");
/// assert!(backend.events().is_empty());
/// ```
#[derive(Clone, Debug)]
pub struct Backend {
    agent: Option<(Arc<Hot>, Arc<BackendEvents>)>,
}

impl Backend {
    /// `flushed`: a flush thread takes the events, and lets go of those whose handles are gone. Nobody else does,
    /// so without one the agent must not know of them.
    pub(super) fn of(hot: &Arc<Hot>, flushed: bool) -> Backend {
        let events = Arc::new(BackendEvents::default());
        if flushed && !hot.closed.is_closed() {
            lock(&hot.backends).push(Arc::clone(&events));
        }
        Backend { agent: Some((Arc::clone(hot), events)) }
    }

    /// A backend whose agent records nothing.
    pub(super) fn off() -> Backend {
        Backend { agent: None }
    }

    /// Whether events are kept at all.
    #[must_use]
    pub fn is_enabled(&self) -> bool {
        self.agent.is_some()
    }

    /// Adds an event. At most [`BACKEND_EVENTS_MAX`] wait for a flush; the excess is counted as lost
    /// (cause *backend*). Names are cut to 31 bytes.
    pub fn add_event(&self, name: &str, value: u64) {
        let Some((hot, events)) = &self.agent else { return };
        if !fork::is_own(hot.id) || !hot.allowlist.allows_name(name) {
            return;
        }
        if hot.closed.is_closed() {
            return hot.refuse("a backend added an event after its agent was closed");
        }
        let event = Waiting { ticks: hot.clock.ticks(), name: hot.name(name), value };
        let mut kept = lock(&events.0);
        if kept.events.len() < BACKEND_EVENTS_MAX {
            kept.events.push(event);
        } else {
            kept.excess += 1;
        }
    }

    /// Takes the events that no flush has taken yet, oldest first. They are not exported then.
    #[must_use = "the events are gone from the backend"]
    pub fn events(&self) -> Vec<BackendEvent> {
        self.take_events(BACKEND_EVENTS_MAX)
    }

    /// Takes the oldest of those events, `most` at the most.
    #[must_use = "the events are gone from the backend"]
    pub fn take_events(&self, most: usize) -> Vec<BackendEvent> {
        let Some((hot, events)) = &self.agent else { return Vec::new() };
        if !fork::is_own(hot.id) {
            return Vec::new();
        }
        let anchor = hot.clock.anchor();
        let mut kept = lock(&events.0);
        let most = most.min(kept.events.len());
        let rest = kept.events.split_off(most);
        let taken = std::mem::replace(&mut kept.events, rest);
        drop(kept);
        let told = |event: Waiting| BackendEvent {
            timestamp_us: anchor.unix_us(event.ticks),
            name: event.name,
            value: event.value,
        };
        taken.into_iter().map(told).collect()
    }
}

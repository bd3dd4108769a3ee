//! All agents of the process by their id: for transfers that finish on a thread which never met their agent, and for
//! scrapes.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::hot::{Hot, lock};
use super::local;
use super::view::View;
use crate::file::fork;
use crate::per_process::PerProcess;

/// An agent, as long as it lives.
struct Entry {
    hot: Weak<Hot>,
    view: Weak<View>,
}

static AGENTS: PerProcess<Mutex<BTreeMap<u64, Entry>>> = PerProcess::new();

/// An id for a new agent.
pub(super) fn new_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    fork::on_child(local::forget_after_fork);
    fork::own_id(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Enters an agent; those that are gone leave.
pub(super) fn enter(hot: &Arc<Hot>) {
    let mut agents = lock(AGENTS.get());
    agents.retain(|_, agent| agent.hot.strong_count() > 0);
    agents.insert(hot.id, Entry { hot: Arc::downgrade(hot), view: Weak::new() });
}

/// Shows an agent that was entered to scrapes. `view` is told whether another agent of this process that is shown has
/// the same name, and plain labels.
pub(super) fn show(id: u64, name: &str, view: impl FnOnce(bool) -> View) -> Arc<View> {
    let mut agents = lock(AGENTS.get());
    let views = agents.values().filter_map(|agent| agent.view.upgrade());
    let taken = views.filter(|view| !view.is_closed()).any(|view| view.has_plain_labels_of(name));
    let view = Arc::new(view(taken));
    if let Some(agent) = agents.get_mut(&id) {
        agent.view = Arc::downgrade(&view);
    }
    view
}

/// The agent of an id, `None` when it is gone or belongs to a parent process.
pub(super) fn find(id: u64) -> Option<Arc<Hot>> {
    if !fork::is_own(id) {
        return None;
    }
    lock(AGENTS.get()).get(&id).and_then(|agent| agent.hot.upgrade())
}

/// The agents that are at work, in the order in which they were made.
pub(super) fn views() -> Vec<Arc<View>> {
    let agents = lock(AGENTS.get());
    agents.values().filter_map(|agent| agent.view.upgrade()).filter(|view| !view.is_closed()).collect()
}

/// Number of agents made before in this process, for the label `agent_instance`.
pub(super) fn next_instance() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

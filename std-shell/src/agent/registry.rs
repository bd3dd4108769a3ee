//! All agents of the process by their id, for transfers that finish on a thread which never met their agent.

use std::collections::BTreeMap;
use std::ptr;
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};

use super::hot::{Hot, lock};
use super::local;
use crate::file::fork;

type Agents = Mutex<BTreeMap<u64, Weak<Hot>>>;

/// Made at the first use, and again in a forked child, where another thread of the parent may have held
/// the lock for ever.
static AGENTS: AtomicPtr<Agents> = AtomicPtr::new(ptr::null_mut());

fn agents() -> &'static Agents {
    let mut agents = AGENTS.load(Ordering::Acquire);
    if agents.is_null() {
        let new = Box::into_raw(Box::new(Agents::default()));
        agents = match AGENTS.compare_exchange(ptr::null_mut(), new, Ordering::AcqRel, Ordering::Acquire) {
            Ok(_) => new,
            Err(other) => {
                // SAFETY: `new` came from `Box::into_raw` above and nobody else has seen it.
                drop(unsafe { Box::from_raw(new) });
                other
            }
        };
    }
    // SAFETY: the pointer came from `Box::into_raw` and is never freed.
    unsafe { &*agents }
}

fn in_child() {
    AGENTS.store(ptr::null_mut(), Ordering::Release);
    local::forget_after_fork();
}

/// An id for a new agent.
pub(super) fn new_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(1);
    fork::on_child(in_child);
    fork::own_id(NEXT.fetch_add(1, Ordering::Relaxed))
}

/// Enters an agent; those that are gone leave.
pub(super) fn enter(hot: &Arc<Hot>) {
    let mut agents = lock(agents());
    agents.retain(|_, agent| agent.strong_count() > 0);
    agents.insert(hot.id, Arc::downgrade(hot));
}

/// The agent of an id, `None` when it is gone or belongs to a parent process.
pub(super) fn find(id: u64) -> Option<Arc<Hot>> {
    if !fork::is_own(id) {
        return None;
    }
    lock(agents()).get(&id).and_then(Weak::upgrade)
}

/// Number of agents made before in this process, for the label `agent_instance`.
pub(super) fn next_instance() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

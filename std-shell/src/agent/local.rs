//! The slots that a thread has leased: found through a thread-local, given back when the thread ends.

use std::cell::RefCell;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use super::hot::{Hot, OwnedSlot};
use super::registry;
use crate::file::fork;

struct Lease {
    id: u64,
    hot: Arc<Hot>,
    slot: Arc<OwnedSlot>,
}

/// The leases of one thread. The borrow flag doubles as the sign that a record is being made: a signal
/// handler that interrupts it finds it borrowed and is refused.
struct Leases {
    /// Of the agent that recorded last: most threads have no other.
    current: Option<Lease>,
    others: Vec<Lease>,
}

/// No agent has this id.
const NOBODY: u64 = u64::MAX;

thread_local! {
    static LEASES: RefCell<Leases> = const { RefCell::new(Leases { current: None, others: Vec::new() }) };
}

impl Drop for Leases {
    fn drop(&mut self) {
        for lease in self.current.iter().chain(&self.others) {
            lease.slot.slot.lease().give_back();
        }
    }
}

/// Has the thread that forked look for its agent anew before it records again.
pub(super) fn forget_after_fork() {
    let _ = LEASES.try_with(|leases| {
        if let Ok(mut leases) = leases.try_borrow_mut()
            && let Some(current) = &mut leases.current
        {
            current.id = NOBODY;
        }
    });
}

/// Who wants to record: an agent at hand, or the id of one that may be gone.
pub(super) trait Recorder: Copy {
    fn id(&self) -> u64;
    fn hot(&self) -> Option<Arc<Hot>>;
}

impl Recorder for &Arc<Hot> {
    #[inline(always)]
    fn id(&self) -> u64 {
        self.id
    }

    fn hot(&self) -> Option<Arc<Hot>> {
        Some(Arc::clone(self))
    }
}

/// An agent by its id.
#[derive(Clone, Copy)]
pub(super) struct ById(pub(super) u64);

impl Recorder for ById {
    #[inline(always)]
    fn id(&self) -> u64 {
        self.0
    }

    fn hot(&self) -> Option<Arc<Hot>> {
        registry::find(self.0)
    }
}

/// Makes one record in this thread's slot; `make` returns the ring's position after it.
#[inline(always)]
pub(super) fn record(recorder: impl Recorder, make: impl FnOnce(&Hot, &OwnedSlot) -> u64) {
    let id = recorder.id();
    let reached = LEASES.try_with(|leases| {
        let Ok(mut leases) = leases.try_borrow_mut() else {
            refuse(recorder, "an event was recorded inside a signal handler that interrupted another record");
            return;
        };
        // A signal handler of this thread must find the flag set before anything else happens.
        compiler_fence(Ordering::SeqCst);
        let lease = match &leases.current {
            Some(lease) if lease.id == id => lease,
            _ => match leases.switch_to(recorder) {
                Some(lease) => lease,
                None => return,
            },
        };
        if lease.hot.closed.is_closed() {
            lease.hot.refuse("an event was recorded after its agent was closed");
        } else {
            let position = make(&lease.hot, &lease.slot);
            if position & lease.hot.quarter_mask == 0 {
                lease.hot.wake_if_asleep();
            }
        }
        compiler_fence(Ordering::SeqCst);
    });
    if reached.is_err() {
        refuse(recorder, "an event was recorded while its thread ended");
    }
}

#[cold]
fn refuse(recorder: impl Recorder, why: &'static str) {
    if fork::is_own(recorder.id())
        && let Some(hot) = recorder.hot()
    {
        hot.refuse(why);
    }
}

impl Leases {
    /// Makes the lease of another agent the recent one; takes a slot where this thread has none.
    #[cold]
    fn switch_to(&mut self, recorder: impl Recorder) -> Option<&Lease> {
        let id = recorder.id();
        if !fork::is_own(id) {
            // The parent's agent: its files and its flush thread are not here.
            return None;
        }
        if let Some(place) = self.others.iter().position(|lease| lease.id == id) {
            let lease = self.others.swap_remove(place);
            return Some(self.make_current(lease));
        }
        let hot = recorder.hot()?;
        if hot.closed.is_closed() {
            hot.refuse("an event was recorded after its agent was closed");
            return None;
        }
        // Threads live longer than agents: let go of what belongs to closed ones.
        let is_open = |lease: &Lease| {
            let closed = lease.hot.closed.is_closed();
            if closed {
                lease.slot.slot.lease().give_back();
            }
            !closed
        };
        self.others.retain(is_open);
        self.current.take_if(|lease| !is_open(lease));
        let slot = hot.lease();
        Some(self.make_current(Lease { id, hot, slot }))
    }

    fn make_current(&mut self, lease: Lease) -> &Lease {
        if let Some(before) = self.current.take() {
            self.others.push(before);
        }
        self.current.insert(lease)
    }
}

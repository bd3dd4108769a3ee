//! The slots that a thread has leased: found through a thread-local, given back when the thread ends.

use std::cell::{Cell, RefCell};
use std::ptr;
use std::sync::Arc;
use std::sync::atomic::{Ordering, compiler_fence};

use telering_core::slot::Transfer;

use super::hot::{Hot, OwnedSlot};
use super::registry;
use crate::file::fork;

struct Lease {
    id: u64,
    hot: Arc<Hot>,
    slot: Arc<OwnedSlot>,
}

/// The slots of one thread, given back when it ends.
struct Leases(Vec<Lease>);

/// The lease that recorded last, where it is found at once: no destructor, no borrow, no count.
struct Current {
    id: Cell<u64>,
    /// Point into the lease of this id, which [`LEASES`] holds; never followed under any other id.
    hot: Cell<*const Hot>,
    slot: Cell<*const OwnedSlot>,
    /// A record is being made: a signal handler that interrupts it is refused.
    busy: Cell<bool>,
}

/// No agent has this id.
const NOBODY: u64 = u64::MAX;

thread_local! {
    static CURRENT: Current = const {
        Current {
            id: Cell::new(NOBODY),
            hot: Cell::new(ptr::null()),
            slot: Cell::new(ptr::null()),
            busy: Cell::new(false),
        }
    };
    static LEASES: RefCell<Leases> = const { RefCell::new(Leases(Vec::new())) };
}

impl Current {
    fn set(&self, lease: &Lease) {
        self.hot.set(Arc::as_ptr(&lease.hot));
        self.slot.set(Arc::as_ptr(&lease.slot));
        self.id.set(lease.id);
    }

    fn forget(&self) {
        self.id.set(NOBODY);
    }
}

impl Drop for Leases {
    fn drop(&mut self) {
        CURRENT.with(Current::forget);
        for lease in &self.0 {
            lease.slot.slot.lease().give_back();
        }
    }
}

/// Has the thread that forked look for its agent anew before it records again.
pub(super) fn forget_after_fork() {
    CURRENT.with(Current::forget);
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

/// Makes one record in a slot. A trait, because only functions can be told to be inlined, and the record of a
/// transfer must be.
pub(super) trait Make {
    /// Returns the ring's position after the record.
    fn make(self, hot: &Hot, owned: &OwnedSlot) -> u64;
}

struct By<F>(F);

impl<F: FnOnce(&Hot, &OwnedSlot) -> u64> Make for By<F> {
    #[inline(always)]
    fn make(self, hot: &Hot, owned: &OwnedSlot) -> u64 {
        (self.0)(hot, owned)
    }
}

/// Makes one record by a closure, which returns the ring's position after it.
pub(super) fn record_by(recorder: impl Recorder, make: impl FnOnce(&Hot, &OwnedSlot) -> u64) {
    record(recorder, By(make));
}

/// A finished transfer.
pub(super) struct Record<'a>(pub(super) &'a Transfer);

impl Make for Record<'_> {
    #[inline(always)]
    fn make(self, hot: &Hot, owned: &OwnedSlot) -> u64 {
        owned.slot.transfer(owned.ring(), &hot.buckets, self.0)
    }
}

/// Makes one record in this thread's slot.
#[inline(always)]
pub(super) fn record(recorder: impl Recorder, make: impl Make) {
    // SAFETY: the thread-local needs no initialisation and has no destructor, so it is there as long as its thread,
    // and the reference stays on this thread and in this function.
    let current = unsafe { &*CURRENT.with(ptr::from_ref) };
    if current.busy.replace(true) {
        return refuse(recorder, "an event was recorded inside a signal handler that interrupted another record");
    }
    // A signal handler of this thread must find the flag set before anything else happens.
    compiler_fence(Ordering::SeqCst);
    if current.id.get() == recorder.id() || switch_to(recorder, current) {
        // SAFETY: the pointers are those of the lease with this id, which this thread's LEASES hold. They let
        // go of a lease only in `switch_to` and when the thread ends, and forget it here before; neither can
        // happen while the references live, which do not leave this function.
        let (hot, owned) = unsafe { (&*current.hot.get(), &*current.slot.get()) };
        if hot.closed.is_closed() {
            hot.refuse("an event was recorded after its agent was closed");
        } else {
            let position = make.make(hot, owned);
            if position & hot.quarter_mask == 0 {
                hot.wake_if_asleep();
            }
        }
    }
    compiler_fence(Ordering::SeqCst);
    current.busy.set(false);
}

#[cold]
fn refuse(recorder: impl Recorder, why: &'static str) {
    if fork::is_own(recorder.id())
        && let Some(hot) = recorder.hot()
    {
        hot.refuse(why);
    }
}

/// Makes the lease of another agent the current one; takes a slot where this thread has none.
#[cold]
#[inline(never)]
fn switch_to(recorder: impl Recorder, current: &Current) -> bool {
    let id = recorder.id();
    if !fork::is_own(id) {
        // The parent's agent: its files and its flush thread are not here.
        return false;
    }
    let switched = LEASES.try_with(|leases| {
        let leases = &mut leases.borrow_mut().0;
        if let Some(lease) = leases.iter().find(|lease| lease.id == id) {
            current.set(lease);
            return true;
        }
        let Some(hot) = recorder.hot() else { return false };
        if hot.closed.is_closed() {
            hot.refuse("an event was recorded after its agent was closed");
            return false;
        }
        // Threads live longer than agents: let go of what belongs to closed ones.
        current.forget();
        leases.retain(|lease| {
            let closed = lease.hot.closed.is_closed();
            if closed {
                lease.slot.slot.lease().give_back();
            }
            !closed
        });
        let lease = Lease { id, slot: hot.lease(), hot };
        current.set(&lease);
        leases.push(lease);
        true
    });
    switched.unwrap_or_else(|_| {
        refuse(recorder, "an event was recorded while its thread ended");
        false
    })
}

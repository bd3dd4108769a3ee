//! The flags between recording threads and the flush thread.

use crate::sync::{AtomicU32, Fault, Ordering, faulty, fence_unless, order};

/// Who may write a slot: one thread at a time.
#[derive(Debug, Default)]
pub struct Lease(AtomicU32);

impl Lease {
    /// Takes the slot, with everything its last thread wrote; `false` when another has it.
    pub fn take(&self) -> bool {
        // ORDER lease: pairs with `give_back`.
        let acquire = order(Ordering::Acquire, Fault::LeaseRelaxedTake);
        self.0.compare_exchange(0, 1, acquire, Ordering::Relaxed).is_ok()
    }

    /// Gives the slot back, undrained.
    pub fn give_back(&self) {
        // ORDER lease: the next thread sees this one's position and totals.
        self.0.store(0, order(Ordering::Release, Fault::LeaseRelaxedReturn));
    }

    /// Whether a thread has the slot, for display.
    #[must_use]
    pub fn is_taken(&self) -> bool {
        self.0.load(Ordering::Relaxed) != 0
    }
}

/// The flush thread's announcement that it sleeps for long. A recorder that fills a quarter of its ring
/// meanwhile wakes it, once.
///
/// ```text
/// flush thread   announced = 1; fence(SeqCst); any ring past its quarter? then don't sleep
/// recorder       committed = n; fence(SeqCst); announced? then wake        (at a quarter's end only)
/// ```
/// Of two threads that pass their fences one is the later, and it sees what the other stored before.
#[derive(Debug, Default)]
pub struct SleepFlag(AtomicU32);

impl SleepFlag {
    /// Announces a sleep. Look at the rings *after* this, and sleep only if none is past its quarter.
    pub fn announce(&self) {
        // A swap, as everywhere on this word: its changes form one chain, which a model can follow (loom lets a
        // later swap overlook a plain store that met another thread's swap).
        self.0.swap(1, Ordering::Relaxed);
        // ORDER wake: the announcement comes before the look at the rings.
        fence_unless(Fault::WakeNoSleeperFence, Ordering::SeqCst);
    }

    /// The flush thread is awake again. `false` when a recorder woke it.
    pub fn withdraw(&self) -> bool {
        self.0.swap(0, Ordering::Relaxed) == 1
    }

    /// Called by a recorder that just committed the last record of a quarter: whether it has to wake the
    /// flush thread. `true` for one recorder per announcement.
    pub fn claim_wake_up(&self) -> bool {
        // ORDER wake: the commit comes before the look at the announcement.
        fence_unless(Fault::WakeNoRecorderFence, Ordering::SeqCst);
        self.0.load(Ordering::Relaxed) == 1
            && (faulty(Fault::WakeWithoutClaim) || self.0.swap(0, Ordering::Relaxed) == 1)
    }
}

/// Told once: no more records are wanted. What was recorded before is drained after it.
#[derive(Debug, Default)]
pub struct CloseFlag(AtomicU32);

impl CloseFlag {
    /// Closes. Everything recorded before this call (on this thread, or on threads that this one knows
    /// to be done) is seen by whoever sees the flag.
    pub fn close(&self) {
        // ORDER close: pairs with `is_closed`.
        self.0.store(1, order(Ordering::Release, Fault::CloseRelaxedStore));
    }

    /// Whether it was closed.
    #[must_use]
    pub fn is_closed(&self) -> bool {
        // ORDER close: the final drain comes after this look.
        self.0.load(order(Ordering::Acquire, Fault::CloseRelaxedLoad)) != 0
    }
}

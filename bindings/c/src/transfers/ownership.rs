//! Who may give a place out, and who may take it back.
//!
//! A place has a keeper: the thread that gave it out last. The keeper alone gives it out and takes it back, by plain
//! stores. Another thread that releases the transfer marks it as released and tells the keeper, which then takes the
//! place back. Against the rules both may release one transfer at the same time; still the place is taken back once.
//! `loom-tests` runs these functions in every order, with each [`Fault`] planted in turn.

use super::handle;
use super::sync::{AtomicU64, Ordering, faulty};

/// Marks the handle of a free place: no handle has a kind with this bit.
pub(super) const FREE: u64 = 1 << 63;
/// Marks the keeper of a transfer that another thread released.
const RELEASED: u64 = 1 << 63;
const KEEPER_BITS: u32 = 16;

/// The keeper of a place that has none: whoever releases the transfer takes the place.
pub(super) const NOBODY: u64 = 0;

/// A deliberate fault that a model must see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fault {
    /// The handle of a new transfer is stored relaxed.
    GiveOutRelaxed,
    /// A handle is looked for with a relaxed load.
    LookRelaxed,
    /// The keeper takes back what it has taken back already.
    ReceiveTwice,
    /// A release asks for the keeper, and not for the transfer.
    ReleaseWithoutGeneration,
}

#[derive(Debug)]
pub(super) struct Ownership {
    /// The handle of the transfer that is here, or of the one before it with the free mark. Written by the keeper alone,
    /// and where there is none by whoever released the transfer.
    handle: AtomicU64,
    /// See [`kept`].
    keeper: AtomicU64,
}

/// What stands beside a transfer's handle: its generation, so that nobody marks the one after it, and its keeper.
#[inline(always)]
const fn kept(handle: u64, keeper: u64) -> u64 {
    handle::generation(handle) << KEEPER_BITS | keeper
}

#[inline(always)]
fn unless(fault: Fault, needed: Ordering) -> Ordering {
    if faulty(fault) { Ordering::Relaxed } else { needed }
}

/// A plain store. For loom an exchange: it would let a store come between the two halves of another thread's exchange,
/// which no processor does, so that a mark of the transfer before could end on the new one.
#[inline(always)]
fn set(word: &AtomicU64, value: u64) {
    #[cfg(not(loom))]
    word.store(value, Ordering::Relaxed);
    #[cfg(loom)]
    word.swap(value, Ordering::Relaxed);
}

impl Ownership {
    /// Of a free place whose next handle comes after `handle`.
    pub(super) fn free(handle: u64) -> Ownership {
        Ownership { handle: AtomicU64::new(handle | FREE), keeper: AtomicU64::new(0) }
    }

    /// Whether the transfer of this handle is here, and nobody has released it.
    #[inline(always)]
    pub(super) fn is_of(&self, handle: u64) -> bool {
        // ORDER place-handle: whoever finds a handle finds its transfer's words.
        self.handle.load(unless(Fault::LookRelaxed, Ordering::Acquire)) == handle
            && self.keeper.load(Ordering::Relaxed) & RELEASED == 0
    }

    /// The handle of the next transfer here. For whoever holds the free place.
    #[inline(always)]
    pub(super) fn next_handle(&self) -> u64 {
        handle::next(self.handle.load(Ordering::Relaxed) & !FREE)
    }

    /// Gives the place out to a transfer whose words are written. For whoever holds the free place.
    #[inline(always)]
    pub(super) fn give_out(&self, handle: u64, keeper: u64) {
        set(&self.keeper, kept(handle, keeper));
        // ORDER place-handle: after the words and the keeper.
        self.handle.store(handle, unless(Fault::GiveOutRelaxed, Ordering::Release));
    }

    /// The keeper releases a transfer, and has the place. `false` if it is not the keeper, or another thread was first.
    #[inline(always)]
    pub(super) fn take_back(&self, handle: u64, keeper: u64) -> bool {
        let is_own = keeper != NOBODY && self.keeper.load(Ordering::Relaxed) == kept(handle, keeper);
        if is_own {
            self.handle.store(handle | FREE, Ordering::Relaxed);
        }
        is_own
    }

    /// Another thread releases a transfer. Returns the keeper, which is to be told by a lock's means; [`NOBODY`] where
    /// the place is the caller's now. `None` if somebody was first.
    pub(super) fn release(&self, handle: u64) -> Option<u64> {
        let now = self.keeper.load(Ordering::Relaxed);
        let keeper = now & ((1 << KEEPER_BITS) - 1);
        let kept = if faulty(Fault::ReleaseWithoutGeneration) { now & !RELEASED } else { kept(handle, keeper) };
        // Of several that release it one goes on. What it did to the words before comes to the keeper with the news.
        self.keeper.compare_exchange(kept, kept | RELEASED, Ordering::Relaxed, Ordering::Relaxed).ok()?;
        if keeper == NOBODY {
            self.handle.store(handle | FREE, Ordering::Relaxed);
        }
        Some(keeper)
    }

    /// The keeper was told of a release: whether it has the place now. Not so where it took it back itself; then the
    /// place is free, or has a new transfer.
    pub(super) fn receive(&self, keeper: u64) -> bool {
        let handle = self.handle.load(Ordering::Relaxed);
        let is_out = handle & FREE == 0 || faulty(Fault::ReceiveTwice);
        let is_released = is_out && self.keeper.load(Ordering::Relaxed) == kept(handle, keeper) | RELEASED;
        if is_released {
            self.handle.store(handle | FREE, Ordering::Relaxed);
        }
        is_released
    }
}

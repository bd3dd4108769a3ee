//! The one place that chooses the atomics: `portable-atomic`, and `loom` under `--cfg loom`. With the feature
//! `critical-section`, on a core without 64-bit atomics, words of 64 bits are our own.
//!
//! It also holds the faults of the model tests. Each memory order and each step that a protocol
//! depends on names a [`Fault`]; under loom a test can switch one on and must then see its model
//! fail. In every other build `faulty` is the constant `false` and costs nothing.
//!
//! Pairs of orders carry the same label on both sides: `ORDER ring-commit`, `ORDER ring-intent`,
//! `ORDER lease`, `ORDER wake`, `ORDER close`, `ORDER totals`, `ORDER copies-data`, `ORDER copies-gen`,
//! `ORDER image-magic`, `ORDER nixl-write`; and in the C library `ORDER place-handle`.

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(all(not(loom), any(target_has_atomic = "64", not(feature = "critical-section"))))]
pub use portable_atomic::AtomicU64;
#[cfg(not(loom))]
pub use portable_atomic::{AtomicU32, Ordering, fence};

#[cfg(all(not(loom), feature = "critical-section", not(target_has_atomic = "64")))]
mod one_core;
#[cfg(all(not(loom), feature = "critical-section", not(target_has_atomic = "64")))]
pub use one_core::AtomicU64;

// What lets a mapped file be used as `&[AtomicU64]`.
#[cfg(not(loom))]
static_assertions::assert_eq_size!(AtomicU64, u64);
#[cfg(not(loom))]
static_assertions::const_assert_eq!(core::mem::align_of::<AtomicU64>(), 8);

macro_rules! faults {
    ($($(#[$doc:meta])* $fault:ident,)*) => {
        /// A deliberate fault that a model test switches on to prove that the model would see it.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum Fault {
            $($(#[$doc])* $fault,)*
        }

        #[cfg(loom)]
        impl Fault {
            /// Every fault: each has a model that it breaks.
            pub const ALL: &'static [Fault] = &[$(Fault::$fault,)*];
        }
    };
}

faults! {
    /// The producer leaves out the fence between `intent` and the record words.
    RingNoReleaseFence,
    /// The reader leaves out the fence between the record words and `intent`.
    RingNoAcquireFence,
    /// The producer publishes `committed` with a relaxed store.
    RingRelaxedCommit,
    /// The producer never announces its intent.
    RingNoIntent,
    /// The reader loads `committed` with a relaxed load.
    RingRelaxedCommittedLoad,
    /// The reader asks `committed == next` instead of `committed <= next`.
    RingEmptyByEquality,
    /// Attaching lowers `intent` to `committed`.
    AttachLowersIntent,
    /// Attaching pushes the fillers one at a time instead of publishing them together.
    AttachPushesOneByOne,
    /// A thread returns its slot with a relaxed store.
    LeaseRelaxedReturn,
    /// A thread takes a slot with a relaxed exchange.
    LeaseRelaxedTake,
    /// The recorder leaves out the fence before it looks at the sleep flag.
    WakeNoRecorderFence,
    /// The flush thread leaves out the fence after it announced its sleep.
    WakeNoSleeperFence,
    /// A recorder that finds the announcement wakes without taking it away.
    WakeWithoutClaim,
    /// The closing flag is stored relaxed.
    CloseRelaxedStore,
    /// The closing flag is loaded relaxed.
    CloseRelaxedLoad,
    /// Totals are written after the record is committed.
    TotalsAfterCommit,
    /// The copy of the metrics is written without a fence before it.
    CopiesNoReleaseFence,
    /// The generation of the metrics is published with a relaxed store.
    CopiesRelaxedGeneration,
    /// The reader leaves out the fence between the copy and its second look.
    CopiesNoAcquireFence,
    /// The reader loads the generation with a relaxed load.
    CopiesRelaxedGenerationLoad,
    /// Both generations are written into the same copy.
    CopiesOneCopy,
    /// The magic number of an image is written with a relaxed store.
    ImageRelaxedMagic,
    /// The index for stock readers is written with a relaxed store.
    ImageRelaxedWritePos,
}

#[cfg(loom)]
mod faults {
    use super::Fault;
    use std::cell::Cell;
    extern crate std;

    std::thread_local! {
        // loom runs all threads of a model on the OS thread of the test, so this is per test.
        static ACTIVE: Cell<Option<Fault>> = const { Cell::new(None) };
    }

    /// Switches one fault on for the model tests that this OS thread runs; `None` switches it off.
    pub fn plant(fault: Option<Fault>) {
        ACTIVE.with(|active| active.set(fault));
    }

    pub(crate) fn faulty(fault: Fault) -> bool {
        ACTIVE.with(|active| active.get() == Some(fault))
    }
}

#[cfg(loom)]
pub(crate) use faults::faulty;
#[cfg(loom)]
pub use faults::plant;

/// Whether a model test planted this fault. `false` in every build but loom's.
#[cfg(not(loom))]
#[inline(always)]
pub(crate) const fn faulty(_fault: Fault) -> bool {
    false
}

/// The order a protocol needs, or `Relaxed` where a model test planted `fault`.
#[inline(always)]
pub(crate) fn order(needed: Ordering, fault: Fault) -> Ordering {
    if faulty(fault) { Ordering::Relaxed } else { needed }
}

/// The fence a protocol needs, left out where a model test planted `fault`.
#[inline(always)]
pub(crate) fn fence_unless(fault: Fault, needed: Ordering) {
    if !faulty(fault) {
        fence(needed);
    }
}

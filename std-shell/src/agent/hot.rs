//! What recording threads share with their agent: constants, flags, and the list of slots.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread::Thread;

use telering_core::ring::{Capacity, Ring};
use telering_core::slot::{Buckets, CloseFlag, Group, STAGED_WORDS, SleepFlag, Slot, StagedMemory};
use telering_core::{Name, Status, names};

use super::backend::BackendEvents;
use crate::clock::Clock;
use crate::config::Allowlist;
use crate::warn::{Warner, WarningKind};

/// A slot with the memory of its ring.
#[derive(Debug)]
pub(crate) struct OwnedSlot {
    pub(crate) slot: Slot,
    records: Box<[StagedMemory]>,
    capacity: Capacity,
}

impl OwnedSlot {
    fn new(capacity: Capacity) -> OwnedSlot {
        let records = (0..capacity.records()).map(|_| StagedMemory::default()).collect();
        OwnedSlot { slot: Slot::new(), records, capacity }
    }

    /// The ring over this slot's memory.
    #[inline(always)]
    pub(crate) fn ring(&self) -> Ring<'_, STAGED_WORDS> {
        self.slot.ring_over(&self.records, self.capacity)
    }
}

/// One agent, as its recording threads see it.
#[derive(Debug)]
pub(crate) struct Hot {
    /// Never reused within a process; its upper part says which fork made it.
    pub(crate) id: u64,
    pub(crate) clock: &'static Clock,
    /// Enabled rows of the names table.
    pub(crate) mask: u64,
    /// The events of a write and of a read.
    pub(crate) groups: [Group; 2],
    pub(crate) buckets: Buckets,
    pub(crate) allowlist: Allowlist,
    /// Records of a quarter ring, minus one.
    pub(crate) quarter_mask: u64,
    pub(crate) closed: CloseFlag,
    pub(crate) sleep: SleepFlag,
    /// The flush thread, once there is one.
    pub(crate) flusher: OnceLock<Thread>,
    staging: Capacity,
    slots: Mutex<Vec<Arc<OwnedSlot>>>,
    pub(crate) backends: Mutex<Vec<Arc<BackendEvents>>>,
    pub(crate) refused: AtomicU64,
    pub(crate) names_changed: AtomicU64,
    pub(crate) warner: Warner,
}

/// A poisoned lock still holds good data: nothing here is left half done by a panic.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an agent's constants are made from.
pub(crate) struct HotSettings {
    pub(crate) id: u64,
    pub(crate) clock: &'static Clock,
    pub(crate) allowlist: Allowlist,
    pub(crate) buckets: Buckets,
    pub(crate) staging: Capacity,
    pub(crate) warner: Warner,
}

impl Hot {
    pub(crate) fn new(settings: HotSettings) -> Hot {
        use telering_core::slot::Operation;
        let mask = settings.allowlist.mask();
        Hot {
            id: settings.id,
            clock: settings.clock,
            mask,
            groups: [Group::of_mask(mask, Operation::Write), Group::of_mask(mask, Operation::Read)],
            buckets: settings.buckets,
            allowlist: settings.allowlist,
            quarter_mask: (settings.staging.records() as u64 / 4).max(1) - 1,
            closed: CloseFlag::default(),
            sleep: SleepFlag::default(),
            flusher: OnceLock::new(),
            staging: settings.staging,
            slots: Mutex::default(),
            backends: Mutex::default(),
            refused: AtomicU64::new(0),
            names_changed: AtomicU64::new(0),
            warner: settings.warner,
        }
    }

    /// Whether events of this type are wanted.
    #[inline]
    pub(crate) fn wants(&self, id: u32) -> bool {
        names::index_of(id).is_some_and(|row| self.mask >> row & 1 == 1)
    }

    /// Whether the failure of an operation is wanted, of one kind or another.
    pub(crate) fn wants_errors(&self) -> bool {
        Status::ALL.into_iter().any(|status| self.wants(names::error_id(status)))
    }

    /// Takes a free slot, or makes one.
    pub(crate) fn lease(&self) -> Arc<OwnedSlot> {
        let mut slots = lock(&self.slots);
        if let Some(free) = slots.iter().find(|slot| slot.slot.lease().take()) {
            return Arc::clone(free);
        }
        let new = Arc::new(OwnedSlot::new(self.staging));
        new.slot.lease().take();
        slots.push(Arc::clone(&new));
        new
    }

    /// Slots that `known` doesn't hold yet: the list only grows, in one order.
    pub(crate) fn slots_from(&self, known: usize) -> Vec<Arc<OwnedSlot>> {
        lock(&self.slots)[known..].to_vec()
    }

    /// Called after the last record of a quarter ring.
    #[cold]
    pub(crate) fn wake_if_asleep(&self) {
        if self.sleep.claim_wake_up() {
            self.wake();
        }
    }

    /// Wakes the flush thread, whatever it does.
    pub(crate) fn wake(&self) {
        if let Some(thread) = self.flusher.get() {
            thread.unpark();
        }
    }

    /// Counts a record that could not be made, and says so once.
    #[cold]
    pub(crate) fn refuse(&self, why: &'static str) {
        self.refused.fetch_add(1, Ordering::Relaxed);
        self.warner.once(WarningKind::Recording, why, format!("{why}; such records are counted as refused"));
    }

    /// A clean name, counted if it had to be changed.
    pub(crate) fn name(&self, text: &str) -> Name {
        let (name, changed) = Name::new(text);
        if changed {
            self.names_changed.fetch_add(1, Ordering::Relaxed);
        }
        name
    }
}

//! 64-bit words of a core that has none, each looked at and changed inside a critical section.
//!
//! `portable-atomic` keeps such words whole with locks where the core has compare-and-swap for smaller ones (Cortex-M3
//! and up). An interrupt that meets a lock held by what it interrupted would wait for ever. A critical section keeps the
//! interrupt out instead, and on a chip whose implementation also keeps out the other core, that one too.

use core::cell::Cell;

use critical_section::{CriticalSection, Mutex, with};

use super::Ordering;

/// A 64-bit word, as large and aligned as the real thing. Every order is the strongest: a critical section orders all.
#[repr(C, align(8))]
pub struct AtomicU64 {
    word: Mutex<Cell<u64>>,
}

impl AtomicU64 {
    /// A word.
    #[must_use]
    pub const fn new(value: u64) -> AtomicU64 {
        AtomicU64 { word: Mutex::new(Cell::new(value)) }
    }

    /// The value.
    #[inline]
    pub fn load(&self, _order: Ordering) -> u64 {
        with(|section| self.cell(section).get())
    }

    /// Puts a value there.
    #[inline]
    pub fn store(&self, value: u64, _order: Ordering) {
        with(|section| self.cell(section).set(value));
    }

    /// Puts a value there and gives the one before.
    #[inline]
    pub fn swap(&self, value: u64, _order: Ordering) -> u64 {
        with(|section| self.cell(section).replace(value))
    }

    /// Puts a value there if `current` stands there.
    ///
    /// # Errors
    /// What stands there instead.
    #[inline]
    pub fn compare_exchange(&self, current: u64, new: u64, _success: Ordering, _failure: Ordering) -> Result<u64, u64> {
        with(|section| {
            let cell = self.cell(section);
            let found = cell.get();
            if found != current {
                return Err(found);
            }
            cell.set(new);
            Ok(found)
        })
    }

    fn cell<'a>(&'a self, section: CriticalSection<'a>) -> &'a Cell<u64> {
        self.word.borrow(section)
    }
}

impl Default for AtomicU64 {
    fn default() -> AtomicU64 {
        AtomicU64::new(0)
    }
}

impl core::fmt::Debug for AtomicU64 {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        self.load(Ordering::Relaxed).fmt(f)
    }
}

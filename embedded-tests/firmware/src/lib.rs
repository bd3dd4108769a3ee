//! What the firmware of the tests shares: a clock that is the same in every run, and the way out to the host.

#![no_std]

pub mod core_of;
pub mod semihosting;

// Links its critical sections, also into programs that use nothing else of it.
#[cfg(target_arch = "arm")]
use cortex_m as _;
#[cfg(target_arch = "riscv32")]
use riscv as _;

use core::num::{NonZeroU32, NonZeroU64};
use core::sync::atomic::{AtomicU32, Ordering};

use telering_core::device::Clock;
use telering_core::event::Template;
use telering_core::{Category, Name};

/// Ticks of the clock a second: a watch crystal's.
pub const RATE: NonZeroU32 = NonZeroU32::new(32_768).unwrap();
/// Names the images of these tests. Products take a random number.
pub const INSTANCE: NonZeroU64 = NonZeroU64::new(0x0123_4567_89ab_cdef).unwrap();

/// What the main loop records.
pub static STEP: Template = Template::new(Category::CUSTOM, Name::from_static("main_step"));
/// What the interrupt records.
pub static INTERRUPT: Template = Template::new(Category::CUSTOM, Name::from_static("interrupt"));
/// A built-in event.
pub static SENT: Template = Template::new(Category::TRANSFER, Name::from_static("agent_tx_bytes"));

/// Looks at the clock since boot.
static LOOKS: AtomicU32 = AtomicU32::new(0);

/// A clock for events that are to be the same in every run: each look is 1000 ticks after the one before.
pub fn ticks() -> u64 {
    // No compare-and-swap on a Cortex-M0; it is only called where no interrupt records.
    let looks = LOOKS.load(Ordering::Relaxed).wrapping_add(1);
    LOOKS.store(looks, Ordering::Relaxed);
    u64::from(looks) * 1000
}

/// See [`ticks`].
pub fn clock() -> Clock {
    Clock::new(RATE, ticks)
}

//! Nothing but recording, from the main loop and from an interrupt: what it links is looked at, and what it weighs.
//! It never ends; debuggers read its image while it runs.

#![no_std]
#![no_main]

use core::panic::PanicInfo;
use core::sync::atomic::{AtomicU32, Ordering};

use cortex_m::peripheral::SCB;
use cortex_m_rt::{entry, exception};
use telering_core::device::{Guarded, StaticImage};
use telering_embedded_tests::{INSTANCE, INTERRUPT, STEP, clock};

static TELEMETRY: StaticImage<64> = StaticImage::new();
static RECORDER: Guarded = Guarded::new();
static NEXT: AtomicU32 = AtomicU32::new(0);

/// The next number: in the image the value of a record is its position.
fn next() -> u64 {
    let number = NEXT.load(Ordering::Relaxed);
    NEXT.store(number.wrapping_add(1), Ordering::Relaxed);
    number.into()
}

#[exception]
fn PendSV() {
    RECORDER.record(&INTERRUPT, next());
}

#[entry]
fn main() -> ! {
    if let Ok(recorder) = TELEMETRY.claim(INSTANCE, clock()) {
        RECORDER.put(recorder);
    }
    loop {
        RECORDER.record(&STEP, next());
        SCB::set_pendsv();
        cortex_m::asm::isb();
    }
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    loop {}
}

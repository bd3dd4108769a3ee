//! A fault that must be found: this program can panic while it records, so the code of a panic is linked.

#![no_std]
#![no_main]

use core::panic::PanicInfo;

use cortex_m_rt::entry;
use telering_core::device::StaticImage;
use telering_embedded_tests::{INSTANCE, STEP, clock};

static TELEMETRY: StaticImage<64> = StaticImage::new();

#[entry]
fn main() -> ! {
    let Ok(mut recorder) = TELEMETRY.claim(INSTANCE, clock()) else { loop {} };
    let numbers = [1, 2, 3];
    loop {
        recorder.record(&STEP, numbers[core::hint::black_box(2)]);
    }
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    loop {}
}

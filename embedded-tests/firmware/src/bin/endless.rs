//! Records into a black box for ever, each event's value its position. A debugger stops it anywhere, also between two
//! words of a record, resets it, and reads its memory; after a reset it goes on.

#![no_std]
#![no_main]

use core::panic::PanicInfo;

use telering_core::device::{BlackBox, Claim};
use telering_embedded_tests::core_of::entry;
use telering_embedded_tests::{INSTANCE, STEP, clock};

#[unsafe(link_section = ".uninit.telemetry")]
static BLACK_BOX: BlackBox<16> = BlackBox::new();
static CLAIM: Claim = Claim::new();

#[entry]
fn main() -> ! {
    if let Ok((mut recorder, _)) = BLACK_BOX.attach(&CLAIM, INSTANCE, clock()) {
        loop {
            let position = recorder.written();
            recorder.record(&STEP, position);
        }
    }
    loop {
        core::hint::spin_loop();
    }
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    loop {
        core::hint::spin_loop();
    }
}

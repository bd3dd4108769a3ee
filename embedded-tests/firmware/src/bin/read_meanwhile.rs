//! The main loop reads the ring of a timer's interrupt, which may come between any two instructions, and records into an
//! image of its own. Neither may ever wait for the other.

#![no_std]
#![no_main]

use core::panic::PanicInfo;

use telering_core::device::{Guarded, StaticImage};
use telering_core::event::Record;
use telering_core::ring::{Cursor, Look};
use telering_embedded_tests::core_of::{self, entry};
use telering_embedded_tests::{INSTANCE, INTERRUPT, STEP, clock, semihosting};

static IMAGE: StaticImage<16> = StaticImage::new();
static OWN: StaticImage<64> = StaticImage::new();
static RECORDER: Guarded = Guarded::new();

/// Records after which it is enough.
const ENOUGH: u64 = 10_000;

#[cfg(target_arch = "arm")]
#[cortex_m_rt::exception]
fn SysTick() {
    tick();
}

/// The same on RISC-V.
#[cfg(target_arch = "riscv32")]
#[riscv_rt::core_interrupt(riscv::interrupt::Interrupt::MachineTimer)]
fn timer() {
    core_of::acknowledge_timer();
    tick();
}

fn tick() {
    RECORDER.with(|recorder| {
        let position = recorder.written();
        recorder.record(&INTERRUPT, position);
    });
}

#[entry]
fn main() -> ! {
    let Ok(recorder) = IMAGE.claim(INSTANCE, clock()) else { failed(c"claimed\n") };
    RECORDER.put(recorder);
    let Ok(mut own) = OWN.claim(INSTANCE, clock()) else { failed(c"claimed\n") };
    let Some(ring) = IMAGE.ring() else { failed(c"no ring\n") };
    let mut cursor = Cursor::oldest(&ring);
    if !core_of::start_timer() {
        failed(c"no timer\n");
    }
    let (mut read, mut lost) = (0, 0);
    while cursor.position() < ENOUGH {
        own.record(&STEP, cursor.position());
        match cursor.look(&ring) {
            Look::Empty => {}
            Look::Lost(count) => lost += count,
            Look::Record(position, words) => {
                let record = Record::from_words(&words);
                if !record.fits(position) || record.value != position {
                    failed(c"a record that was never recorded\n");
                }
                read += 1;
            }
        }
    }
    semihosting::exit(read + lost == cursor.position() && read > 0)
}

fn failed(why: &'static core::ffi::CStr) -> ! {
    semihosting::say(why);
    semihosting::exit(false)
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    failed(c"panicked\n")
}

//! Records from an interrupt and from the main loop, goes around the ring, crashes in the middle of a batch, is reset,
//! goes on and dumps its image: once before the crash and once after it.

#![no_std]
#![no_main]

use core::panic::PanicInfo;

use telering_core::device::{BlackBox, Claim, Found, Guarded, StaticImage};
use telering_core::event::{RECORD_WORDS, Timestamp};
use telering_core::ring::{Cursor, Look, Producer};
use telering_embedded_tests::core_of::{self, entry};
use telering_embedded_tests::{INSTANCE, INTERRUPT, SENT, STEP, clock, semihosting};

/// Survives the reset: the start-up code leaves this section alone.
#[unsafe(link_section = ".uninit.telemetry")]
static BLACK_BOX: BlackBox<64> = BlackBox::new();
static CLAIM: Claim = Claim::new();
static RECORDER: Guarded = Guarded::new();
/// Starts anew with each boot.
static SCRATCH: StaticImage<16> = StaticImage::new();

/// Values that the interrupt records, one each time.
const FROM_INTERRUPT: u64 = 1 << 40;

/// Pended by the main loop, so that its place among the events is known.
#[cfg(target_arch = "arm")]
#[cortex_m_rt::exception]
fn PendSV() {
    interrupted();
}

/// The same on RISC-V.
#[cfg(target_arch = "riscv32")]
#[riscv_rt::core_interrupt(riscv::interrupt::Interrupt::MachineSoft)]
fn software_interrupt() {
    core_of::acknowledge();
    interrupted();
}

fn interrupted() {
    RECORDER.with(|recorder| {
        let number = recorder.written();
        recorder.record(&INTERRUPT, FROM_INTERRUPT + number);
    });
}

#[entry]
fn main() -> ! {
    let Ok((recorder, found)) = BLACK_BOX.attach(&CLAIM, INSTANCE, clock()) else { failed(c"claimed\n") };
    if BLACK_BOX.attach(&CLAIM, INSTANCE, clock()).is_ok() {
        failed(c"a second producer\n");
    }
    RECORDER.put(recorder);
    core_of::listen();
    match found {
        Found::Nothing(_) => before_the_crash(),
        Found::Image { interrupted: 3, boots: 1 } => after_the_crash(),
        Found::Image { .. } => failed(c"not what the crash left behind\n"),
    }
}

fn before_the_crash() -> ! {
    let Some(ring) = BLACK_BOX.ring() else { failed(c"no ring\n") };
    let mut reader = Cursor::oldest(&ring);
    // 100 events into 64 places: a reader that sleeps meanwhile loses 36.
    while Cursor::committed(&ring) < 100 {
        let number = Cursor::committed(&ring);
        if number % 4 == 3 {
            core_of::interrupt();
        } else {
            RECORDER.record(&STEP, number);
        }
    }
    if reader.look(&ring) != Look::Lost(36) {
        failed(c"not 36 lost\n");
    }
    let mut read = 0;
    while let Look::Record(..) = reader.look(&ring) {
        read += 1;
    }
    if read != 64 {
        failed(c"not 64 read\n");
    }
    if !semihosting::dump(c"before.bin", BLACK_BOX.words()) {
        failed(c"no dump\n");
    }
    crash()
}

/// Announces three records, finishes one, writes half of the next and is gone.
fn crash() -> ! {
    let Some(ring) = BLACK_BOX.ring() else { failed(c"no ring\n") };
    Producer::resume(ring, Cursor::committed(&ring)).push_batch(3, |position| {
        let words = STEP.sealed(position, Timestamp::new(1), position);
        if position == 101 {
            // The first words of its place, past the five of the header.
            let place = 5 + RECORD_WORDS * (position as usize % 64);
            for (word, value) in BLACK_BOX.words().iter().skip(place).zip(words).take(4) {
                word.store(value, core::sync::atomic::Ordering::Relaxed);
            }
            core_of::reset();
        }
        words
    });
    failed(c"still there after the reset\n")
}

fn after_the_crash() -> ! {
    for number in 0..5 {
        RECORDER.record(&SENT, 1500 + number);
    }
    let Ok(mut recorder) = SCRATCH.claim(INSTANCE, clock()) else { failed(c"scratch\n") };
    for value in 0..7 {
        recorder.record(&STEP, value);
    }
    recorder.close();
    let dumped =
        semihosting::dump(c"after.bin", BLACK_BOX.words()) && semihosting::dump(c"scratch.bin", SCRATCH.words());
    semihosting::exit(dumped)
}

fn failed(why: &'static core::ffi::CStr) -> ! {
    semihosting::say(why);
    semihosting::exit(false)
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    failed(c"panicked\n")
}

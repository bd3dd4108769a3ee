//! What one push costs. The host counts the instructions of each `measured_` function by stepping through it.

#![no_std]
#![no_main]

use core::hint::black_box;
use core::panic::PanicInfo;

use cortex_m_rt::entry;
use telering_core::device::{Clock, Recorder, StaticImage};
use telering_core::event::{RECORD_WORDS, Timestamp};
use telering_embedded_tests::{INSTANCE, RATE, STEP, semihosting};

static IMAGE: StaticImage<64> = StaticImage::new();

/// Time, name, check word, value: the whole of it.
#[inline(never)]
fn measured_record(recorder: &mut Recorder<'_>, ticks: u64, value: u64) {
    recorder.record_at(&STEP, ticks, value);
}

/// The time known already: the check word and the push.
#[inline(never)]
fn measured_checked_push(recorder: &mut Recorder<'_>, us: u64, value: u64) {
    recorder.push(STEP.sealed(recorder.written(), Timestamp::new(us), value));
}

/// The push of words that are there.
#[inline(never)]
fn measured_push(recorder: &mut Recorder<'_>, us: u64, value: u64, name: &[u64; RECORD_WORDS]) {
    let [_, head, a, b, c, tail, _] = *name;
    recorder.push([us, head, a, b, c, tail, value]);
}

#[entry]
fn main() -> ! {
    let Ok(mut recorder) = IMAGE.claim(INSTANCE, Clock::new(RATE, || 0)) else { semihosting::exit(false) };
    let name = STEP.sealed(0, Timestamp::new(0), 0);
    loop {
        measured_record(&mut recorder, black_box(123_456_789), black_box(1500));
        measured_checked_push(&mut recorder, black_box(123_456_789), black_box(1500));
        measured_push(&mut recorder, black_box(123_456_789), black_box(1500), black_box(&name));
    }
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    semihosting::exit(false)
}

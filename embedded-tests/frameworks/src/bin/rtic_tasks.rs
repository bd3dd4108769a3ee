//! RTIC: two tasks share the recorder, and the one of higher priority comes in the middle of the other. The clock is a
//! counter that wraps all the time.

#![no_std]
#![no_main]

use core::cell::Cell;
use core::panic::PanicInfo;

use critical_section::Mutex;
use telering_embedded_tests::semihosting;

static SEEN: Mutex<Cell<u64>> = Mutex::new(Cell::new(0));

/// `raw` gives a counter of so many bits, counting up.
fn widened(bits: u32, raw: impl FnOnce() -> u32) -> u64 {
    critical_section::with(|section| {
        let seen = SEEN.borrow(section);
        let last = seen.get();
        let mut now = last >> bits << bits | u64::from(raw());
        if now < last {
            now += 1 << bits; // it has wrapped since the last look
        }
        seen.set(now);
        now
    })
}

#[rtic::app(device = lm3s6965)]
mod app {
    use core::num::NonZeroU32;

    use cortex_m::peripheral::SYST;
    use cortex_m::peripheral::syst::SystClkSource;
    use lm3s6965::Interrupt;
    use telering_core::device::{Clock, Recorder, StaticImage};
    use telering_embedded_tests::{INSTANCE, INTERRUPT, SENT, STEP, semihosting};

    static TELEMETRY: StaticImage<64> = StaticImage::new();

    /// Bits of the core's timer that are used here. It has 24 and counts down.
    const BITS: u32 = 8;
    const LAST: u32 = (1 << BITS) - 1;
    const RATE: NonZeroU32 = NonZeroU32::new(12_000_000).unwrap();

    fn ticks() -> u64 {
        super::widened(BITS, || LAST - SYST::get_current())
    }

    #[shared]
    struct Shared {
        recorder: Recorder<'static>,
    }

    #[local]
    struct Local {
        round: u64,
    }

    #[init]
    fn init(mut context: init::Context) -> (Shared, Local) {
        context.core.SYST.set_clock_source(SystClkSource::Core);
        context.core.SYST.set_reload(LAST);
        context.core.SYST.clear_current();
        context.core.SYST.enable_counter();
        let recorder = TELEMETRY.claim(INSTANCE, Clock::new(RATE, ticks)).expect("init runs once");
        rtic::pend(Interrupt::GPIOA);
        (Shared { recorder }, Local { round: 0 })
    }

    #[task(binds = GPIOB, priority = 2, shared = [recorder])]
    fn transfer_done(mut context: transfer_done::Context) {
        context.shared.recorder.lock(|recorder| recorder.record(&SENT, 512));
    }

    #[task(binds = GPIOA, priority = 1, shared = [recorder], local = [round])]
    fn slow(mut context: slow::Context) {
        let round = *context.local.round;
        context.shared.recorder.lock(|recorder| {
            // It would come at once; the lock holds it back until both are recorded.
            rtic::pend(Interrupt::GPIOB);
            recorder.record(&STEP, round);
            recorder.record(&STEP, round);
        });
        context.shared.recorder.lock(|recorder| recorder.record(&INTERRUPT, round));
        *context.local.round += 1;
        if round == 24 {
            semihosting::exit(semihosting::dump(c"rtic.bin", TELEMETRY.words()));
        }
        rtic::pend(Interrupt::GPIOA);
    }
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    semihosting::exit(false)
}

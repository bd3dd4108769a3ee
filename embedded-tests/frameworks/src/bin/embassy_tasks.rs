//! Embassy: two tasks and an interrupt handler share the recorder; Embassy's time is the clock.

#![no_std]
#![no_main]

use core::cell::{Cell, RefCell};
use core::num::NonZeroU32;
use core::panic::PanicInfo;
use core::task::Waker;

use cortex_m::peripheral::syst::SystClkSource;
use cortex_m_rt::exception;
use critical_section::Mutex;
use embassy_executor::Spawner;
use embassy_time::Timer;
// Links the table of interrupts.
use lm3s6965 as _;
use telering_core::device::{Clock, Guarded, StaticImage};
use telering_embedded_tests::{INSTANCE, INTERRUPT, SENT, STEP, semihosting};

static TELEMETRY: StaticImage<64> = StaticImage::new();
static RECORDER: Guarded = Guarded::new();
const RATE: NonZeroU32 = NonZeroU32::new(embassy_time::TICK_HZ as u32).unwrap();

#[embassy_executor::main]
async fn main(spawner: Spawner) {
    start_time();
    let clock = Clock::new(RATE, || embassy_time::Instant::now().as_ticks());
    RECORDER.put(TELEMETRY.claim(INSTANCE, clock).expect("main runs once"));
    spawner.spawn(sender().expect("there is one"));
    for number in 0..10 {
        // At 10, 30, 50, ... ms.
        Timer::at(embassy_time::Instant::from_ticks(10 + 20 * number)).await;
        RECORDER.record(&STEP, number);
        cortex_m::peripheral::SCB::set_pendsv();
        cortex_m::asm::isb();
    }
    Timer::after_millis(100).await;
    semihosting::exit(semihosting::dump(c"embassy.bin", TELEMETRY.words()))
}

#[embassy_executor::task]
async fn sender() {
    for number in 0..10 {
        // At 20, 40, 60, ... ms.
        Timer::at(embassy_time::Instant::from_ticks(20 + 20 * number)).await;
        RECORDER.record(&SENT, 1500 + number);
    }
}

#[exception]
fn PendSV() {
    RECORDER.record(&INTERRUPT, 1);
}

/// Embassy has no driver for this board's timers: this one counts milliseconds by the core's own.
struct Milliseconds {
    now: Mutex<Cell<u64>>,
    asleep: Mutex<RefCell<heapless::Vec<(u64, Waker), 8>>>,
}

embassy_time_driver::time_driver_impl!(static TIME: Milliseconds = Milliseconds {
    now: Mutex::new(Cell::new(0)),
    asleep: Mutex::new(RefCell::new(heapless::Vec::new())),
});

impl embassy_time_driver::Driver for Milliseconds {
    fn now(&self) -> u64 {
        critical_section::with(|section| self.now.borrow(section).get())
    }

    fn schedule_wake(&self, at: u64, waker: &Waker) {
        critical_section::with(|section| {
            let mut asleep = self.asleep.borrow_ref_mut(section);
            if asleep.push((at, waker.clone())).is_err() {
                waker.wake_by_ref();
            }
        });
    }
}

#[exception]
fn SysTick() {
    critical_section::with(|section| {
        let now = TIME.now.borrow(section).get() + 1;
        TIME.now.borrow(section).set(now);
        TIME.asleep.borrow_ref_mut(section).retain(|(at, waker)| {
            if *at <= now {
                waker.wake_by_ref();
            }
            *at > now
        });
    });
}

fn start_time() {
    let mut timer = cortex_m::Peripherals::take().expect("main runs once").SYST;
    timer.set_clock_source(SystClkSource::Core);
    timer.set_reload(12_000 - 1);
    timer.clear_current();
    timer.enable_counter();
    timer.enable_interrupt();
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    semihosting::exit(false)
}

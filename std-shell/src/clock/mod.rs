//! Time: raw ticks on the recording threads, microseconds when something has to be said.
//!
//! A tick is the processor's counter where it is invariant and the kernel trusts it, else a nanosecond
//! of the operating system's monotonic clock. Recording threads read ticks and turn *differences* into
//! whole microseconds with one multiplication; the flush thread turns *moments* into Unix time with an
//! anchor that it takes anew at each flush, since the wall clock may be stepped or slewed.

mod counter;
mod test;

use std::sync::OnceLock;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::time::{ClockId, clock_gettime};
use telering_core::snapshot::ClockInfo;

pub use test::TestTime;

/// A source of ticks. Copies are the same clock.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    source: Source,
    /// Microseconds per tick, times 2^64, rounded up: whole numbers of microseconds stay whole.
    us_per_tick: u64,
    rate: u64,
    quality: u32,
}

#[derive(Clone, Copy, Debug)]
enum Source {
    Counter,
    System,
    Test(&'static TestTime),
}

impl Clock {
    fn new(source: Source, rate: u64, quality: u32) -> Clock {
        let us_per_tick = (1_000_000_u128 << 64).div_ceil(u128::from(rate.max(1_000_001)));
        Clock { source, us_per_tick: us_per_tick as u64, rate, quality }
    }

    /// The clock of this process: fixed at the first call.
    #[must_use]
    pub fn of_process() -> Clock {
        static CLOCK: OnceLock<Clock> = OnceLock::new();
        *CLOCK.get_or_init(|| match counter::rate() {
            Some(rate) => Clock::new(Source::Counter, rate.hertz, if rate.told { 2 } else { 1 }),
            None => Clock::system(),
        })
    }

    /// The operating system's monotonic clock.
    #[must_use]
    pub fn system() -> Clock {
        Clock::new(Source::System, 1_000_000_000, 2)
    }

    /// A clock that a test moves by hand.
    #[must_use]
    pub fn test(time: &'static TestTime) -> Clock {
        Clock::new(Source::Test(time), TestTime::RATE, 2)
    }

    /// The time now, in ticks.
    #[inline(always)]
    #[must_use]
    pub fn ticks(&self) -> u64 {
        // Not a `match`: the counter is to be asked for first.
        if matches!(self.source, Source::Counter) {
            return counter::read();
        }
        match self.source {
            Source::Test(time) => time.ticks(),
            Source::Counter | Source::System => system_ticks(),
        }
    }

    /// Whole microseconds from `start` to `end`; 0 where `end` is the smaller one, as it can be between
    /// processors whose counters are not in step.
    #[inline(always)]
    #[must_use]
    pub fn us_between(&self, start: u64, end: u64) -> u64 {
        self.us(end.saturating_sub(start))
    }

    /// Microseconds of a number of ticks.
    #[inline(always)]
    fn us(&self, ticks: u64) -> u64 {
        ((u128::from(ticks) * u128::from(self.us_per_tick)) >> 64) as u64
    }

    /// Ticks of a duration.
    #[must_use]
    pub fn ticks_of(&self, duration: Duration) -> u64 {
        (duration.as_nanos().saturating_mul(u128::from(self.rate)) / 1_000_000_000).min(u128::from(u64::MAX)) as u64
    }

    /// Ticks per second.
    #[must_use]
    pub fn rate(&self) -> u64 {
        self.rate
    }

    /// A pair of readings that ties ticks to Unix time: the tightest of a few tries.
    #[must_use]
    pub fn anchor(&self) -> Anchor {
        let mut best: Option<(u64, Anchor)> = None;
        for _ in 0..4 {
            let before = self.ticks();
            let unix_us = self.unix_us();
            let after = self.ticks();
            let gap = after.saturating_sub(before);
            if best.as_ref().is_none_or(|(smallest, _)| gap < *smallest) {
                best = Some((gap, Anchor { clock: *self, ticks: before + gap / 2, unix_us }));
            }
        }
        match best {
            Some((_, anchor)) => anchor,
            None => Anchor { clock: *self, ticks: self.ticks(), unix_us: self.unix_us() },
        }
    }

    fn unix_us(&self) -> u64 {
        match self.source {
            Source::Test(time) => time.unix_us(),
            _ => SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64),
        }
    }
}

/// Nanoseconds of the monotonic clock. Out of line, so that reading the counter stays one instruction.
#[inline(never)]
fn system_ticks() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    (now.tv_sec as u64).wrapping_mul(1_000_000_000).wrapping_add(now.tv_nsec as u64)
}

/// One moment in ticks and in Unix time.
#[derive(Clone, Copy, Debug)]
pub struct Anchor {
    clock: Clock,
    ticks: u64,
    unix_us: u64,
}

impl Anchor {
    /// Unix microseconds of a moment in ticks, before or after the anchor.
    #[inline]
    #[must_use]
    pub fn unix_us(&self, ticks: u64) -> u64 {
        if ticks >= self.ticks {
            self.unix_us.saturating_add(self.clock.us(ticks - self.ticks))
        } else {
            self.unix_us.saturating_sub(self.clock.us(self.ticks - ticks))
        }
    }

    /// The moment in Unix microseconds.
    #[must_use]
    pub fn now_us(&self) -> u64 {
        self.unix_us
    }

    /// The moment in ticks.
    #[must_use]
    pub fn now_ticks(&self) -> u64 {
        self.ticks
    }

    /// What a telemetry file says about the clock.
    #[must_use]
    pub fn info(&self) -> ClockInfo {
        let source = match self.clock.source {
            Source::System => 1,
            Source::Counter => 2,
            Source::Test(_) => 3,
        };
        ClockInfo {
            source,
            quality: self.clock.quality,
            rate: self.clock.rate,
            anchor_ticks: self.ticks,
            anchor_us: self.unix_us,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_clock_of_the_process_agrees_with_the_system() {
        let clock = Clock::of_process();
        let (start, system) = (clock.ticks(), std::time::Instant::now());
        std::thread::sleep(Duration::from_millis(100));
        let (end, elapsed) = (clock.ticks(), system.elapsed().as_micros() as u64);
        let ours = clock.us_between(start, end);
        // The two pairs of readings are not simultaneous: a preemption between them is seen by one alone.
        assert!(ours.abs_diff(elapsed) < elapsed / 5, "{ours} us against {elapsed} us");
        let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_micros() as u64;
        assert!(clock.anchor().unix_us(clock.ticks()).abs_diff(now) < 1_000_000);
    }

    #[test]
    fn an_end_before_its_start_is_no_duration() {
        // Counters out of step: the later reading is 1.6 s smaller.
        let clock = Clock::of_process();
        let start = clock.ticks();
        assert_eq!(clock.us_between(start, start - clock.ticks_of(Duration::from_millis(1600))), 0);
        assert_eq!(clock.us_between(start, start), 0);
        assert_eq!(clock.us_between(u64::MAX, 0), 0);
    }

    proptest! {
        #[test]
        fn whole_microseconds_stay_whole(us in 0_u64..1 << 50, rate in 1_000_001_u64..8_000_000_000) {
            let clock = Clock::new(Source::System, rate, 0);
            let ticks = (u128::from(us) * u128::from(rate)).div_ceil(1_000_000);
            if let Ok(ticks) = u64::try_from(ticks) {
                prop_assert!(clock.us(ticks).abs_diff(us) <= 1);
            }
            prop_assert_eq!(Clock::system().us(us.wrapping_mul(1000) >> 10 << 3) , (us.wrapping_mul(1000) >> 10 << 3) / 1000);
        }
    }
}

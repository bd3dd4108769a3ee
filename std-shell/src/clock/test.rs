//! A clock that a test moves by hand.

use std::sync::atomic::{AtomicU64, Ordering};

/// Time that stands still until it is moved. One tick is a tenth of a microsecond.
#[derive(Debug)]
pub struct TestTime {
    ticks: AtomicU64,
    epoch_us: AtomicU64,
    /// Benchmarks read this clock as well, for the price of one load.
    #[cfg(test)]
    readings: AtomicU64,
}

impl TestTime {
    /// Ticks per second.
    pub const RATE: u64 = 10_000_000;

    /// A clock that starts at 10 s of ticks and the given Unix time. It lives as long as the process.
    #[must_use]
    pub fn starting_at(unix_us: u64) -> &'static TestTime {
        let ticks = 10 * TestTime::RATE;
        Box::leak(Box::new(TestTime {
            ticks: AtomicU64::new(ticks),
            epoch_us: AtomicU64::new(unix_us.wrapping_sub(ticks / 10)),
            #[cfg(test)]
            readings: AtomicU64::new(0),
        }))
    }

    /// Moves both clocks on.
    pub fn advance_us(&self, us: u64) {
        self.ticks.fetch_add(us * 10, Ordering::SeqCst);
    }

    /// Sets the ticks, backward too.
    pub fn set_ticks(&self, ticks: u64) {
        self.ticks.store(ticks, Ordering::SeqCst);
    }

    /// Steps the wall clock alone, as an administrator does.
    pub fn step_wall_clock_us(&self, by: i64) {
        self.epoch_us.fetch_add(by as u64, Ordering::SeqCst);
    }

    /// The time now, in ticks.
    #[must_use]
    pub fn ticks(&self) -> u64 {
        #[cfg(test)]
        self.readings.fetch_add(1, Ordering::Relaxed);
        self.ticks.load(Ordering::SeqCst)
    }

    /// The time now, in Unix microseconds.
    #[must_use]
    pub fn unix_us(&self) -> u64 {
        self.epoch_us.load(Ordering::SeqCst).wrapping_add(self.ticks() / 10)
    }

    /// How often the ticks were read so far, by whomever.
    #[cfg(test)]
    pub(crate) fn readings(&self) -> u64 {
        self.readings.load(Ordering::Relaxed)
    }
}

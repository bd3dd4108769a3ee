//! Ticks of a counter as microseconds since boot.

use core::num::{NonZeroU32, NonZeroU64};

const MICROSECONDS: u32 = 1_000_000;

/// A counter that starts at boot and never wraps, and its rate.
///
/// A counter of 32 bits or fewer is widened by the firmware: docs/embedded.md shows how.
#[derive(Clone, Copy, Debug)]
pub struct Clock {
    ticks: fn() -> u64,
    rate: NonZeroU32,
    /// Microseconds of `unit` ticks.
    microseconds: u32,
    unit: Unit,
}

/// The fewest ticks that are a whole number of microseconds.
#[derive(Clone, Copy, Debug)]
enum Unit {
    /// A power of two: no division, which small cores do in software.
    Shift(u32),
    Divide(NonZeroU64),
}

impl Clock {
    /// `ticks` gives the counter, which counts `rate` times a second.
    #[must_use]
    pub const fn new(rate: NonZeroU32, ticks: fn() -> u64) -> Clock {
        let (mut a, mut b) = (rate.get(), MICROSECONDS);
        while b != 0 {
            (a, b) = (b, a % b);
        }
        let unit = rate.get() / a;
        let unit = match NonZeroU64::new(unit as u64) {
            Some(ticks) if !unit.is_power_of_two() => Unit::Divide(ticks),
            _ => Unit::Shift(unit.trailing_zeros()),
        };
        Clock { ticks, rate, microseconds: MICROSECONDS / a, unit }
    }

    /// Ticks a second.
    #[must_use]
    pub const fn rate(&self) -> u32 {
        self.rate.get()
    }

    /// What the counter says now.
    #[inline]
    #[must_use]
    pub fn ticks(&self) -> u64 {
        (self.ticks)()
    }

    /// Whole microseconds of so many ticks since boot, exact for any number of them.
    #[inline]
    #[must_use]
    pub fn microseconds(&self, ticks: u64) -> u64 {
        let each = u64::from(self.microseconds);
        let (whole, part) = match self.unit {
            Unit::Shift(shift) => {
                let rest = ticks & !(u64::MAX << shift);
                (ticks >> shift, rest.wrapping_mul(each) >> shift)
            }
            Unit::Divide(unit) => (ticks / unit, (ticks % unit).wrapping_mul(each) / unit),
        };
        whole.wrapping_mul(each).wrapping_add(part)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn clock(rate: u32) -> Clock {
        Clock::new(NonZeroU32::new(rate).unwrap(), || 0)
    }

    proptest! {
        #[test]
        fn microseconds_are_exact_at_any_rate_and_age(rate in 1..u32::MAX, ticks: u64) {
            let exact = u128::from(ticks) * 1_000_000 / u128::from(rate);
            prop_assert_eq!(u128::from(clock(rate).microseconds(ticks)), exact & u128::from(u64::MAX));
        }
    }

    #[test]
    fn usual_rates_need_no_division() {
        for rate in [1, 32_768, 1_000_000, 8_000_000, 16_000_000, 64_000_000, 128_000_000] {
            assert!(matches!(clock(rate).unit, Unit::Shift(_)), "{rate}");
        }
        assert!(matches!(clock(12_000_000).unit, Unit::Divide(_)));
    }

    #[test]
    fn ticks_of_a_watch_crystal_become_whole_microseconds() {
        for (ticks, us) in
            [(0, 0), (1, 30), (32_768, 1_000_000), (32_769, 1_000_030), (u64::MAX, 562_949_953_421_311_999_969)]
        {
            let us: u128 = us;
            assert_eq!(clock(32_768).microseconds(ticks), us as u64, "{ticks}");
        }
    }
}

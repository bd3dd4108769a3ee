//! How long the flush thread may sleep.

use std::time::Duration;

/// The shortest pause between two flushes.
pub(super) const SHORTEST: Duration = Duration::from_millis(1);
/// A longer sleep is announced, so that a recorder can end it.
pub(super) const ANNOUNCED_OVER: Duration = Duration::from_millis(5);

/// The pause after a flush that found `records` in the busiest ring, `elapsed` after the one before:
/// the time in which a quarter of the ring fills at twice that rate, at most the interval.
pub(super) fn pause(interval: Duration, quarter: u64, records: u64, elapsed: Duration) -> Duration {
    if records == 0 {
        return interval;
    }
    let per_record = elapsed.as_nanos() / u128::from(records);
    let fill = per_record.saturating_mul(u128::from(quarter)) / 2;
    Duration::from_nanos(fill.min(u128::from(u64::MAX)) as u64).max(SHORTEST).min(interval)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_ring_is_visited_before_a_quarter_of_it_fills() {
        let interval = Duration::from_millis(100);
        let ms = Duration::from_millis;
        assert_eq!(pause(interval, 4096, 0, ms(100)), interval);
        // A million a second fill a quarter of 16384 in 4.1 ms; at twice that rate in half the time.
        assert_eq!(pause(interval, 4096, 2000, ms(2)), Duration::from_micros(2048));
        assert_eq!(pause(interval, 4096, 1_000_000, ms(2)), SHORTEST);
        assert_eq!(pause(interval, 4096, 10, ms(100)), interval);
        assert_eq!(pause(ms(1), 16, 1, Duration::from_secs(3600)), ms(1));
        assert_eq!(pause(interval, u64::MAX, 1, Duration::MAX), interval);
    }
}

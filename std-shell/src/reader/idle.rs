//! How long to leave a file alone that had nothing new.
//!
//! Nothing tells a reader that something was written: a producer stores into its mapping, of which no system call
//! knows, and so no inotify event is raised either. Files that appear and take each other's names would raise one;
//! but their events wait in their rings, so that finding them half a second later loses nothing, and network and
//! container file systems raise none. So readers look again, seldom when nothing happens and often when much does.

use std::time::Duration;

/// The shortest pause: after a look that found something.
const SHORTEST: Duration = Duration::from_millis(1);
/// The longest pause: what an event waits at the most.
const LONGEST: Duration = Duration::from_millis(100);

/// The pauses of a loop that follows files: an event waits about as long as it was quiet before, and never more than
/// 100 ms; a file that stays quiet is looked at ten times a second.
///
/// ```
/// # use std::time::Duration;
/// let mut idle = telering::reader::Idle::new();
/// assert_eq!(idle.after(0), Some(Duration::from_millis(1)));
/// assert_eq!(idle.after(0), Some(Duration::from_millis(2)));
/// assert_eq!(idle.after(17), None, "there may be more: look again at once");
/// assert_eq!(idle.after(0), Some(Duration::from_millis(1)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    next: Duration,
}

impl Default for Idle {
    fn default() -> Self {
        Idle { next: SHORTEST }
    }
}

impl Idle {
    /// As after a look that found something.
    #[must_use]
    pub fn new() -> Idle {
        Idle::default()
    }

    /// How long to sleep after a look that found so many items; `None` after one that found any, since there may be
    /// more.
    pub fn after(&mut self, found: usize) -> Option<Duration> {
        if found > 0 {
            self.next = SHORTEST;
            return None;
        }
        let pause = self.next;
        self.next = (pause * 2).min(LONGEST);
        Some(pause)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Follows events that come at these times; nothing takes time but sleeping. The looks, and what each event
    /// waited for its own.
    fn follow(events: &[Duration], until: Duration) -> (usize, Vec<Duration>) {
        let (mut idle, mut now, mut looks) = (Idle::new(), Duration::ZERO, 0);
        let (mut waits, mut coming) = (Vec::new(), events.iter().peekable());
        while now < until {
            looks += 1;
            let before = waits.len();
            while let Some(&event) = coming.next_if(|&&event| event <= now) {
                waits.push(now - event);
            }
            if let Some(pause) = idle.after(waits.len() - before) {
                now += pause;
            }
        }
        (looks, waits)
    }

    #[test]
    fn a_quiet_file_is_looked_at_ten_times_a_second() {
        let (looks, _) = follow(&[], Duration::from_secs(60));
        assert!((590..=610).contains(&looks), "{looks}");
    }

    #[test]
    fn an_event_waits_as_long_as_it_was_quiet_and_never_more_than_a_tenth_of_a_second() {
        for quiet in [1, 3, 10, 40, 99, 300, 5000].map(Duration::from_millis) {
            let events: Vec<Duration> =
                (1..50).map(|turn| quiet * turn + Duration::from_micros(13 * u64::from(turn))).collect();
            let (looks, waits) = follow(&events, quiet * 50 + 2 * LONGEST);
            assert_eq!(waits.len(), events.len());
            let longest = waits.iter().max().copied().unwrap();
            assert!(longest <= LONGEST && longest <= quiet + 2 * SHORTEST, "{longest:?} after {quiet:?}");
            // A look that found something, the one after it, and the pauses that double: no spinning.
            let most = 50 * (9 + quiet.as_millis() as usize / 100) + 10;
            assert!(looks <= most, "{looks} looks for events every {quiet:?}");
        }
    }

    #[test]
    fn a_busy_file_is_never_slept_over() {
        let mut idle = Idle::new();
        assert!((0..20).all(|_| idle.after(0).is_some()));
        assert!((1..100).all(|found| idle.after(found).is_none()));
        assert_eq!(idle.after(0), Some(SHORTEST));
    }
}

//! How many records a ring holds: a power of two within limits, whatever was asked for.

/// Events in a telemetry file's ring when nothing else is asked for.
pub const BUFFER_SIZE_DEFAULT: u64 = 4096;
/// The fewest events that a telemetry file's ring holds.
pub const BUFFER_SIZE_MIN: u64 = 64;
/// The most events that a telemetry file's ring holds: 2^24, a file of 896 MiB.
pub const BUFFER_SIZE_MAX: u64 = telering_core::layout::image::CAPACITY_MAX;

/// Records in a staging ring when nothing else is asked for: 1 MiB for each recording thread.
pub const STAGING_RECORDS_DEFAULT: usize = 16_384;
/// The fewest records that a staging ring holds.
pub const STAGING_RECORDS_MIN: usize = 64;
/// The most records that a staging ring holds: 2^20, 64 MiB for each recording thread.
pub const STAGING_RECORDS_MAX: usize = 1 << 20;

/// The ring that a telemetry file gets when `requested` events are asked for, and what to tell the user when
/// that is another number.
///
/// A number that is no power of two is rounded up, one under [`BUFFER_SIZE_MIN`] becomes the minimum; 0 and
/// numbers over [`BUFFER_SIZE_MAX`] give [`BUFFER_SIZE_DEFAULT`].
///
/// ```
/// use telering::config::buffer_capacity;
/// assert_eq!(buffer_capacity(4096), (4096, None));
/// let (events, note) = buffer_capacity(1000);
/// assert_eq!(events, 1024);
/// assert_eq!(note.as_deref(), Some("1000 events are not a power of two; rounded up to 1024"));
/// ```
#[must_use]
pub fn buffer_capacity(requested: u64) -> (u64, Option<String>) {
    BUFFER.fit(requested)
}

/// The staging ring of each recording thread when `requested` records are asked for, and what to tell the
/// user when that is another number. The rules are those of [`buffer_capacity`].
///
/// ```
/// use telering::config::staging_capacity;
/// assert_eq!(staging_capacity(100).0, 128);
/// assert_eq!(staging_capacity(0).0, 16_384);
/// ```
#[must_use]
pub fn staging_capacity(requested: usize) -> (usize, Option<String>) {
    let (records, note) = STAGING.fit(requested as u64);
    (records as usize, note)
}

pub(super) const BUFFER: Limits =
    Limits { noun: "events", min: BUFFER_SIZE_MIN, max: BUFFER_SIZE_MAX, default: BUFFER_SIZE_DEFAULT };

pub(super) const STAGING: Limits = Limits {
    noun: "records",
    min: STAGING_RECORDS_MIN as u64,
    max: STAGING_RECORDS_MAX as u64,
    default: STAGING_RECORDS_DEFAULT as u64,
};

/// The limits of one kind of ring. All three numbers are powers of two.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) noun: &'static str,
    pub(super) min: u64,
    pub(super) max: u64,
    pub(super) default: u64,
}

impl Limits {
    pub(super) fn fit(&self, requested: u64) -> (u64, Option<String>) {
        let Limits { noun, min, max, default } = *self;
        if requested == 0 || requested > max {
            let note = format!("{requested} is not within 1 to {max} {noun}; the default, {default}, is used instead");
            return (default, Some(note));
        }
        if requested < min {
            return (min, Some(format!("{requested} {noun} are too few for a ring; {min} are used instead")));
        }
        if requested.is_power_of_two() {
            return (requested, None);
        }
        // At most `max`, itself a power of two: this can't overflow.
        let rounded = requested.next_power_of_two();
        (rounded, Some(format!("{requested} {noun} are not a power of two; rounded up to {rounded}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_ring_is_a_power_of_two_that_holds_what_was_asked_for(requested in prop_oneof![any::<u64>(), 0..1u64 << 26]) {
            for limits in [BUFFER, STAGING] {
                let (capacity, note) = limits.fit(requested);
                prop_assert!(capacity.is_power_of_two() && (limits.min..=limits.max).contains(&capacity));
                prop_assert_eq!(note.is_none(), capacity == requested);
                if (1..=limits.max).contains(&requested) {
                    prop_assert!(capacity >= requested && (capacity == limits.min || capacity / 2 < requested));
                } else {
                    prop_assert_eq!(capacity, limits.default);
                }
            }
        }
    }
}

//! Handles: a kind, a generation and a place in one number.
//!
//! A place is used again, and gets the next generation then. Whoever holds the number of an object that is gone
//! finds another number in its place.

/// What a handle is of. Never 0, so that no handle is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Kind {
    Agent = 1,
    Transfer = 2,
    Backend = 3,
}

const INDEX_BITS: u32 = 20;
const KIND_SHIFT: u32 = 60;

/// Places that handles of one kind can have.
pub(crate) const INDEX_COUNT: usize = 1 << INDEX_BITS;

/// The handle of the first object in a place.
pub(crate) const fn first(kind: Kind, index: usize) -> u64 {
    (kind as u64) << KIND_SHIFT | index as u64
}

/// The handle of the next object in the place of this one.
#[inline(always)]
pub(crate) const fn next(handle: u64) -> u64 {
    // The generation's 40 bits wrap around below the kind.
    let kind = handle & 15 << KIND_SHIFT;
    let rest = handle.wrapping_add(1 << INDEX_BITS) & !(15 << KIND_SHIFT);
    kind | rest
}

/// The place of a handle, whatever number it is.
#[inline(always)]
pub(crate) const fn index(handle: u64) -> usize {
    handle as usize & (INDEX_COUNT - 1)
}

/// Which of the objects in its place a handle means.
#[inline(always)]
pub(crate) const fn generation(handle: u64) -> u64 {
    handle >> INDEX_BITS & ((1 << (KIND_SHIFT - INDEX_BITS)) - 1)
}

/// Whether a number looks like a handle of this kind.
#[inline(always)]
pub(crate) const fn is(handle: u64, kind: Kind) -> bool {
    handle >> KIND_SHIFT == kind as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_handle_keeps_its_kind_and_place_through_all_generations() {
        for kind in [Kind::Agent, Kind::Transfer, Kind::Backend] {
            let mut handle = first(kind, 4711);
            for _ in 0..1000 {
                let after = next(handle);
                assert!(after != handle && is(after, kind) && index(after) == 4711);
                handle = after;
            }
            let last = first(kind, 4711) | ((1 << 40) - 1) << INDEX_BITS;
            assert_eq!(next(last), first(kind, 4711), "the generation wraps, and nothing else changes");
        }
        assert!(!is(0, Kind::Agent) && !is(u64::MAX, Kind::Transfer));
    }
}

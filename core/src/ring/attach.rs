//! Taking up a ring again after a reset: memory survived, its producer did not.

use super::{Producer, Ring};
use crate::sync::{Fault, Ordering, faulty, order};

/// Why a ring can't be taken up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum AttachError {
    /// The two positions can't both be right: format the memory anew.
    Positions {
        /// Records finished.
        committed: u64,
        /// Records announced.
        intent: u64,
    },
}

impl core::fmt::Display for AttachError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            AttachError::Positions { committed, intent } => write!(
                f,
                "{committed} records finished but {intent} announced: this memory was no running ring, format it anew"
            ),
        }
    }
}

impl core::error::Error for AttachError {}

/// Positions over this are damage: at a record per nanosecond a producer takes 292 years to get there.
const POSITION_MAX: u64 = u64::MAX / 2;

/// Goes on with a ring whose producer was interrupted. Records that it had announced and not finished
/// become fillers, so that no reader ever meets a half-written one. Returns the producer and how many
/// fillers it wrote.
///
/// # Errors
/// [`AttachError::Positions`] unless `committed <= intent <= committed + max_batch`, and for positions over 2^63,
/// which no producer reaches.
pub fn attach<'a, const WORDS: usize>(
    ring: Ring<'a, WORDS>,
    mut filler: impl FnMut(u64) -> [u64; WORDS],
) -> Result<(Producer<'a, WORDS>, u64), AttachError> {
    let committed = u64::from_le(ring.committed.load(Ordering::Relaxed));
    let intent = u64::from_le(ring.intent.load(Ordering::Relaxed));
    let open = intent.wrapping_sub(committed);
    if intent < committed || open > ring.max_batch() || intent > POSITION_MAX {
        return Err(AttachError::Positions { committed, intent });
    }
    if faulty(Fault::AttachLowersIntent) {
        ring.intent.store(committed.to_le(), Ordering::Relaxed);
        return Ok((Producer::resume(ring, committed), 0));
    }
    if faulty(Fault::AttachPushesOneByOne) {
        let mut producer = Producer::resume(ring, committed);
        for position in committed..intent {
            producer.push(filler(position));
        }
        return Ok((producer, open));
    }
    // The intent already covers these records and is never lowered: a reader that copied one of the
    // records they overwrite must go on seeing that it is gone.
    for position in committed..intent {
        let Some(record) = ring.record(position) else { continue };
        for (place, word) in record.iter().zip(filler(position)) {
            place.store(word.to_le(), Ordering::Relaxed);
        }
    }
    // ORDER ring-commit: publishes the fillers together.
    ring.committed.store(intent.to_le(), order(Ordering::Release, Fault::RingRelaxedCommit));
    Ok((Producer::resume(ring, intent), open))
}

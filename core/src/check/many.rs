//! The check words of records in a row, as a reader meets them: nearly all fit, so only the others are named.

use super::{FACTORS, pair, term};
use crate::event::{RECORD_SIZE, Record};

/// What stands at a place instead of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Oddity {
    /// A record whose check word belongs to other bytes or to another place.
    Misfit,
    /// A filler: its producer was interrupted.
    Filler,
}

/// 32-bit words of one record.
const HALVES: usize = RECORD_SIZE / 4;
/// Which of them is the check word.
#[cfg(target_arch = "x86_64")]
pub(super) const CHECK_AT: usize = 11;

/// The factor of each 32-bit word of a record; 0 for the check word itself.
pub(super) const FACTOR_OF: [u32; HALVES] = {
    let f = FACTORS;
    [f[2], f[3], f[4], f[5], f[6], f[7], f[8], f[9], f[10], f[11], f[12], 0, f[13], f[14]]
};

/// What stands instead of an event in a record of `position`; `None` where it is an event.
#[inline]
#[must_use]
pub fn oddity(position: u64, record: &Record) -> Option<Oddity> {
    if check_of(position, record) != record.check {
        Some(Oddity::Misfit)
    } else if record.is_filler() {
        Some(Oddity::Filler)
    } else {
        None
    }
}

/// [`check`](super::check) of a record in memory: one sum over its words, which compilers make vectors of.
#[inline]
fn check_of(position: u64, record: &Record) -> u32 {
    if cfg!(target_endian = "big") {
        return super::check(position, &record.to_words());
    }
    let words: &[u32; HALVES] = bytemuck::cast_ref(record);
    let sum = words
        .iter()
        .zip(FACTOR_OF)
        .fold(pair(position, 0), |sum, (&word, factor)| sum.wrapping_add(term(word, factor)));
    if sum == 0 { 1 } else { sum }
}

/// Names each place in `records` that holds no event, in order. `first` is the position of the first record.
///
/// ```
/// use telering_core::{check::{Oddity, survey}, Category, Name, Record};
/// let event = Record::new(0, Category::CUSTOM, Name::from_static("cache_hit"), 1);
/// let mut found = Vec::new();
/// survey(7, &[event.sealed(7), event.sealed(9), Record::filler().sealed(9)], &mut |at, what| found.push((at, what)));
/// assert_eq!(found, [(1, Oddity::Misfit), (2, Oddity::Filler)]);
/// ```
pub fn survey(first: u64, records: &[Record], tell: &mut impl FnMut(usize, Oddity)) {
    survey_from(first, records, 0, tell);
}

/// The same for the records from `start` on, whose places count from the first.
#[inline]
pub(super) fn survey_from(first: u64, records: &[Record], start: usize, tell: &mut impl FnMut(usize, Oddity)) {
    for (place, record) in records.iter().enumerate().skip(start) {
        if let Some(oddity) = oddity(first.wrapping_add(place as u64), record) {
            tell(place, oddity);
        }
    }
}

#[cfg(test)]
mod tests {
    extern crate std;
    use super::*;
    use crate::event::{Category, RECORD_WORDS};
    use crate::name::Name;
    use proptest::prelude::*;
    use std::vec::Vec;

    /// Word by word as the format says it.
    fn plainly(first: u64, records: &[Record]) -> Vec<(usize, Oddity)> {
        let judge = |(place, record): (usize, &Record)| {
            let fits = super::super::check(first.wrapping_add(place as u64), &record.to_words()) == record.check;
            match (fits, record.category) {
                (false, _) => Some((place, Oddity::Misfit)),
                (true, Category::FILLER) => Some((place, Oddity::Filler)),
                (true, _) => None,
            }
        };
        records.iter().enumerate().filter_map(judge).collect()
    }

    fn both_ways_agree(first: u64, records: &[Record]) {
        let expected = plainly(first, records);
        let mut found = Vec::new();
        survey(first, records, &mut |place, oddity| found.push((place, oddity)));
        assert_eq!(found, expected);
    }

    /// A word that is often one where carries and zeros happen.
    fn word() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), Just(1), Just(0xffff_ffff)]
    }

    proptest! {
        #[test]
        fn records_in_a_row_are_judged_as_each_by_itself(
            first in prop_oneof![any::<u64>(), 0..20_u64, 0xffff_fff0_u64..0x1_0000_0010, u64::MAX - 20..],
            rows in prop::collection::vec((prop::array::uniform7(word()), 0..8_u8), 0..70),
        ) {
            let records: Vec<Record> = rows
                .iter()
                .enumerate()
                .map(|(place, (words, kind)): (usize, &([u64; RECORD_WORDS], u8))| {
                    let record = Record::from_words(words);
                    let position = first.wrapping_add(place as u64);
                    match kind {
                        0 => record,
                        1 => Record { check: 0, ..record },
                        2 => Record::filler().sealed(position),
                        3 => record.sealed(position.wrapping_sub(64)),
                        _ => record.sealed(position),
                    }
                })
                .collect();
            both_ways_agree(first, &records);
        }
    }

    #[test]
    fn a_sum_of_zero_is_written_as_one_and_zero_never_fits() {
        // A record of zeros at position 0 adds up to 0.
        let mut records = [Record::new(0, Category(0), Name::from_bytes([0; 32]), 0); 8];
        for (place, record) in records.iter_mut().enumerate() {
            *record = record.sealed(place as u64);
        }
        assert_eq!(records[0].check, 1);
        both_ways_agree(0, &records);
        assert_eq!(plainly(0, &records), []);
        records[0].check = 0;
        both_ways_agree(0, &records);
        assert_eq!(plainly(0, &records), [(0, Oddity::Misfit)]);
    }
}

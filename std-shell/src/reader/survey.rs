//! Which of a block's records are no events, with the widest vectors that the processor has.

use telering_core::Record;
use telering_core::check::{self, Oddity};

/// Names each place that holds no event, in order. `first` is the position of the first record.
pub(crate) fn survey(first: u64, records: &[Record], tell: &mut impl FnMut(usize, Oddity)) {
    #[cfg(target_arch = "x86_64")]
    if std::arch::is_x86_feature_detected!("avx2") {
        if std::arch::is_x86_feature_detected!("avx512f") {
            // SAFETY: the processor has AVX2 and AVX-512F; both were asked for the lines before.
            return unsafe { check::survey_avx512(first, records, tell) };
        }
        // SAFETY: the processor has AVX2; that was asked for the lines before.
        return unsafe { check::survey_avx2(first, records, tell) };
    }
    check::survey(first, records, tell);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use telering_core::event::RECORD_WORDS;
    use telering_core::{Category, Name};

    /// Record by record, as the format says it.
    fn plainly(first: u64, records: &[Record]) -> Vec<(usize, Oddity)> {
        let judge = |(place, record): (usize, &Record)| {
            let fits = record.fits(first.wrapping_add(place as u64));
            let oddity = if fits { record.is_filler().then_some(Oddity::Filler) } else { Some(Oddity::Misfit) };
            oddity.map(|oddity| (place, oddity))
        };
        records.iter().enumerate().filter_map(judge).collect()
    }

    /// What the widest vectors find, once the narrower ones have found the same.
    fn surveyed(first: u64, records: &[Record]) -> Vec<(usize, Oddity)> {
        let mut widest = Vec::new();
        survey(first, records, &mut |place, oddity| widest.push((place, oddity)));
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            let mut narrower = Vec::new();
            // SAFETY: the processor has AVX2; that was asked the line before.
            unsafe { check::survey_avx2(first, records, &mut |place, oddity| narrower.push((place, oddity))) };
            assert_eq!(narrower, widest);
        }
        widest
    }

    /// Words that carry and vanish more often than others.
    fn word() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), Just(0), Just(u64::MAX), Just(1), Just(0xffff_ffff)]
    }

    /// Positions around which the upper half changes, or begins anew.
    fn position() -> impl Strategy<Value = u64> {
        prop_oneof![any::<u64>(), 0..20_u64, 0xffff_fff0_u64..0x1_0000_0010, u64::MAX - 20..]
    }

    fn record(words: &[u64; RECORD_WORDS], kind: u8, position: u64) -> Record {
        let record = Record::from_words(words);
        match kind {
            0 => record,
            1 => Record { check: 0, ..record },
            2 => Record::filler().sealed(position),
            3 => record.sealed(position.wrapping_sub(64)),
            _ => record.sealed(position),
        }
    }

    proptest! {
        #[test]
        fn the_widest_survey_judges_each_record_as_by_itself(
            first in position(),
            // Rows of events alone are what the vectors are for.
            rows in prop::collection::vec((prop::array::uniform7(word()), prop_oneof![Just(4), 0..40_u8]), 0..70),
        ) {
            let records: Vec<Record> = (0..).zip(&rows)
                .map(|(place, (words, kind))| record(words, *kind, first.wrapping_add(place)))
                .collect();
            prop_assert_eq!(surveyed(first, &records), plainly(first, &records));
        }
    }

    #[test]
    fn one_wrong_bit_in_any_of_many_records_is_found() {
        let first = 4090;
        let event = |place: u64| Record::new(place, Category::CUSTOM, Name::from_static("cache_hit"), place * place);
        let records: Vec<Record> = (0..37).map(|place| event(place).sealed(first + place)).collect();
        assert_eq!(surveyed(first, &records), []);
        for place in 0..records.len() {
            for bit in 0..RECORD_WORDS * 64 {
                let mut words = records[place].to_words();
                words[bit / 64] ^= 1 << (bit % 64);
                let mut changed = records.clone();
                changed[place] = Record::from_words(&words);
                assert_eq!(surveyed(first, &changed), [(place, Oddity::Misfit)], "place {place}, bit {bit}");
            }
        }
    }

    #[test]
    fn the_upper_half_of_a_position_counts_where_it_changes() {
        let first = 0xffff_fff6;
        let event = Record::new(1, Category::CUSTOM, Name::from_static("cache_hit"), 2);
        // From the tenth on they are of positions 0, 1, ... instead.
        let records: Vec<Record> = (first..first + 20).map(|position| event.sealed(position & 0xffff_ffff)).collect();
        assert_eq!(surveyed(first, &records), (10..20).map(|place| (place, Oddity::Misfit)).collect::<Vec<_>>());
    }

    #[test]
    fn a_check_word_of_zero_never_fits() {
        let zeros = [Record::new(0, Category(0), Name::from_bytes([0; 32]), 0); 20];
        let mut records = zeros;
        records.iter_mut().zip(0..).for_each(|(record, position)| *record = record.sealed(position));
        // The sum is 0 at position 0, and written as 1.
        assert_eq!((records[0].check, surveyed(0, &records)), (1, vec![]));
        records[0].check = 0;
        assert_eq!(surveyed(0, &records), [(0, Oddity::Misfit)]);
    }
}

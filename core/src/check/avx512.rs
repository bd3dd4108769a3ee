//! The survey with AVX-512: sixteen records at a time, each in one vector.
//!
//! As in [`avx2`](super::avx2) it tells only that all of a group are events that fit; the rest is judged one by one.

use core::arch::x86_64::*;

use super::avx2::survey_avx2;
use super::many::{CHECK_AT, FACTOR_OF, Oddity, oddity};
use super::{FACTORS, term};
use crate::event::{Category, RECORD_SIZE, Record};

/// Records at a time: one sum for each lane.
const GROUP: usize = 16;
/// Bytes of a vector. It reaches into the next record, whose words have the factor 0.
const VECTOR: usize = 64;
/// Bytes that a group's vectors cover.
const COVERED: usize = (GROUP - 1) * RECORD_SIZE + VECTOR;
const CATEGORY_LANE: usize = 2;

const RECORD_FACTORS: [u32; 16] = {
    let mut factors = [0; 16];
    let mut lane = 0;
    while lane < FACTOR_OF.len() {
        factors[lane] = FACTOR_OF[lane];
        lane += 1;
    }
    factors
};

/// [`survey`](super::survey) with the widest vectors.
///
/// # Safety
/// The processor has AVX-512F and AVX2. Functions compiled for them may call this one without more ado.
#[target_feature(enable = "avx512f,avx2")]
pub fn survey_avx512(first: u64, records: &[Record], tell: &mut impl FnMut(usize, Oddity)) {
    let bytes: &[u8] = bytemuck::cast_slice(records);
    let mut done = 0;
    // The last vector of a group needs a record behind it.
    while let Some(group) = bytes[done * RECORD_SIZE..].first_chunk::<COVERED>() {
        let position = first.wrapping_add(done as u64);
        if !are_events(position, group) {
            for (place, record) in records.iter().enumerate().skip(done).take(GROUP) {
                if let Some(oddity) = oddity(first.wrapping_add(place as u64), record) {
                    tell(place, oddity);
                }
            }
        }
        done += GROUP;
    }
    survey_avx2(first.wrapping_add(done as u64), &records[done..], &mut |place, oddity| tell(done + place, oddity));
}

/// Whether all sixteen are events that fit. May say no where it is hard to tell.
#[inline]
#[target_feature(enable = "avx512f")]
fn are_events(position: u64, group: &[u8; COVERED]) -> bool {
    let factors: __m512i = bytemuck::cast(RECORD_FACTORS);
    let zero = _mm512_setzero_si512();
    // Of all sixteen: the largest and the least word of each lane.
    let (mut largest, mut least) = (zero, _mm512_set1_epi32(-1));
    let mut sums = [zero; GROUP];
    for (place, sum) in sums.iter_mut().enumerate() {
        let words: __m512i = bytemuck::pod_read_unaligned(&group[place * RECORD_SIZE..][..VECTOR]);
        largest = _mm512_max_epu32(largest, words);
        least = _mm512_min_epu32(least, words);
        // The check word is taken off the sum of all others: 0 where it fits.
        *sum = _mm512_mask_sub_epi32(terms(words, factors), 1 << CHECK_AT, zero, words);
    }
    let Some(positions) = position_terms(position) else { return false };
    let wrong = _mm512_test_epi32_mask(_mm512_add_epi32(sum_each(&sums), positions), _mm512_set1_epi32(-1));
    // A filler, whose category is the largest word there is, or a check word of 0, which no record has.
    let fillers = _mm512_mask_cmpeq_epi32_mask(1 << CATEGORY_LANE, largest, _mm512_set1_epi32(Category::FILLER.0));
    let blanks = _mm512_mask_cmpeq_epi32_mask(1 << CHECK_AT, least, zero);
    wrong | fillers | blanks == 0
}

const _: () = assert!(Category::FILLER.0 as u32 == u32::MAX);

#[inline]
#[target_feature(enable = "avx512f")]
fn terms(words: __m512i, factors: __m512i) -> __m512i {
    _mm512_mullo_epi32(_mm512_xor_si512(words, _mm512_srli_epi32::<16>(words)), factors)
}

/// What the positions add to sixteen sums; `None` where their upper halves differ.
#[inline]
#[target_feature(enable = "avx512f")]
fn position_terms(position: u64) -> Option<__m512i> {
    let low = position as u32;
    low.checked_add(GROUP as u32 - 1)?;
    let steps = _mm512_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    let lows = _mm512_add_epi32(_mm512_set1_epi32(low as i32), steps);
    let high = term((position >> 32) as u32, FACTORS[1]);
    Some(_mm512_add_epi32(terms(lows, _mm512_set1_epi32(FACTORS[0] as i32)), _mm512_set1_epi32(high as i32)))
}

/// The sum over each of sixteen vectors, in its lane.
#[inline]
#[target_feature(enable = "avx512f")]
fn sum_each(v: &[__m512i; GROUP]) -> __m512i {
    // Each quarter of a vector: two words of two vectors, then one word of four.
    let pair =
        |at: usize| _mm512_add_epi32(_mm512_unpacklo_epi32(v[at], v[at + 1]), _mm512_unpackhi_epi32(v[at], v[at + 1]));
    let four = |at: usize| {
        let (a, b) = (pair(at), pair(at + 2));
        _mm512_add_epi32(_mm512_unpacklo_epi64(a, b), _mm512_unpackhi_epi64(a, b))
    };
    // The quarters themselves: two of eight vectors, then one of sixteen.
    let eight = |at: usize| {
        let (a, b) = (four(at), four(at + 4));
        _mm512_add_epi32(_mm512_shuffle_i32x4::<0x44>(a, b), _mm512_shuffle_i32x4::<0xee>(a, b))
    };
    let (a, b) = (eight(0), eight(8));
    _mm512_add_epi32(_mm512_shuffle_i32x4::<0x88>(a, b), _mm512_shuffle_i32x4::<0xdd>(a, b))
}

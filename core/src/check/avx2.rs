//! The survey with AVX2: eight records at a time, each in two overlapping vectors.
//!
//! It tells only that all eight are events that fit. Whatever else there is in a group is judged one by one, so
//! that this file can be slow about oddities but never wrong about them.

use core::arch::x86_64::*;

use super::many::{CHECK_AT, FACTOR_OF, Oddity, oddity, survey_from};
use super::{FACTORS, term};
use crate::event::{Category, RECORD_SIZE, Record};

/// Records at a time: one sum for each lane.
const GROUP: usize = 8;
/// The second vector ends with the record; it begins two words before the first one ends.
const TAIL_AT: usize = RECORD_SIZE / 4 - 8;
/// The category in the first vector, the check word in the second.
const CATEGORY_LANE: usize = 2;
const CHECK_LANE: usize = CHECK_AT - TAIL_AT;

const HEAD_FACTORS: [u32; 8] = {
    let mut factors = [0; 8];
    let mut lane = 0;
    while lane < 8 {
        factors[lane] = FACTOR_OF[lane];
        lane += 1;
    }
    factors
};

/// What both vectors hold is added up in the first.
const TAIL_FACTORS: [u32; 8] = {
    let mut factors = [0; 8];
    let mut lane = 8 - TAIL_AT;
    while lane < 8 {
        factors[lane] = FACTOR_OF[TAIL_AT + lane];
        lane += 1;
    }
    factors
};

/// [`survey`](super::survey) with vectors.
///
/// # Safety
/// The processor has AVX2. Functions compiled for it may call this one without more ado.
#[target_feature(enable = "avx2")]
pub fn survey_avx2(first: u64, records: &[Record], tell: &mut impl FnMut(usize, Oddity)) {
    let (groups, rest) = records.as_chunks::<GROUP>();
    for (place, group) in (0..).step_by(GROUP).zip(groups) {
        let position = first.wrapping_add(place as u64);
        if !are_events(position, group) {
            for (more, record) in group.iter().enumerate() {
                if let Some(oddity) = oddity(position.wrapping_add(more as u64), record) {
                    tell(place + more, oddity);
                }
            }
        }
    }
    survey_from(first, records, records.len() - rest.len(), tell);
}

/// Whether all eight are events that fit. May say no where it is hard to tell.
#[inline]
#[target_feature(enable = "avx2")]
fn are_events(position: u64, group: &[Record; GROUP]) -> bool {
    let (head_factors, tail_factors): (__m256i, __m256i) = (bytemuck::cast(HEAD_FACTORS), bytemuck::cast(TAIL_FACTORS));
    let zero = _mm256_setzero_si256();
    // Of all eight: the largest words of the first vector, the least of the second.
    let (mut largest, mut least) = (zero, _mm256_set1_epi32(-1));
    let sums = group.each_ref().map(|record| {
        let bytes = bytemuck::bytes_of(record);
        let head: __m256i = bytemuck::pod_read_unaligned(&bytes[..32]);
        let tail: __m256i = bytemuck::pod_read_unaligned(&bytes[TAIL_AT * 4..]);
        largest = _mm256_max_epu32(largest, head);
        least = _mm256_min_epu32(least, tail);
        // The check word is taken off the sum of all others: 0 where it fits.
        let tail_terms =
            _mm256_blend_epi32::<{ 1 << CHECK_LANE }>(terms(tail, tail_factors), _mm256_sub_epi32(zero, tail));
        _mm256_add_epi32(terms(head, head_factors), tail_terms)
    });
    let Some(positions) = position_terms(position) else { return false };
    let rest = _mm256_add_epi32(sum_each(&sums), positions);
    // A filler, whose category is the largest word there is, or a check word of 0, which no record has.
    let extremes = _mm256_blend_epi32::<{ 1 << CATEGORY_LANE }>(least, largest);
    let odd = _mm256_cmpeq_epi32(extremes, lanes(Category::FILLER.0 as u32, 0));
    let wrong = _mm256_or_si256(rest, _mm256_and_si256(odd, lanes(u32::MAX, u32::MAX)));
    _mm256_testz_si256(wrong, wrong) == 1
}

const _: () = assert!(Category::FILLER.0 as u32 == u32::MAX);

/// A vector of two words, where the category and the check word stand.
#[inline]
#[target_feature(enable = "avx2")]
fn lanes(category: u32, check: u32) -> __m256i {
    let mut words = [0_u32; 8];
    (words[CATEGORY_LANE], words[CHECK_LANE]) = (category, check);
    bytemuck::cast(words)
}

#[inline]
#[target_feature(enable = "avx2")]
fn terms(words: __m256i, factors: __m256i) -> __m256i {
    _mm256_mullo_epi32(_mm256_xor_si256(words, _mm256_srli_epi32::<16>(words)), factors)
}

/// What the positions add to eight sums; `None` where their upper halves differ.
#[inline]
#[target_feature(enable = "avx2")]
fn position_terms(position: u64) -> Option<__m256i> {
    let low = position as u32;
    low.checked_add(GROUP as u32 - 1)?;
    let lows = _mm256_add_epi32(_mm256_set1_epi32(low as i32), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
    let high = term((position >> 32) as u32, FACTORS[1]);
    Some(_mm256_add_epi32(terms(lows, _mm256_set1_epi32(FACTORS[0] as i32)), _mm256_set1_epi32(high as i32)))
}

/// The sum over each of eight vectors, in its lane.
#[inline]
#[target_feature(enable = "avx2")]
fn sum_each(v: &[__m256i; 8]) -> __m256i {
    let quarter =
        |at: usize| _mm256_hadd_epi32(_mm256_hadd_epi32(v[at], v[at + 1]), _mm256_hadd_epi32(v[at + 2], v[at + 3]));
    let (a, b) = (quarter(0), quarter(4));
    _mm256_add_epi32(_mm256_permute2x128_si256::<0x20>(a, b), _mm256_permute2x128_si256::<0x31>(a, b))
}

//! The check word: ties a record's bytes to its place in the ring.
//!
//! A plain copy of a live file (`cp`, `tar`) holds records of several laps and some that were being
//! written. The check word tells them from the right ones. It is no protection against someone who
//! wants to deceive.
//!
//! ```text
//! check = sum over i of mix(w[i]) * K[i]   modulo 2^32, and 1 where that is 0
//! mix(w) = w xor (w >> 16)
//! w     = the position's low and high half, then the record's 32-bit words without the check word itself
//! K[i]  = the first 32 bits of the fractional part of the square root of the i-th prime, made odd
//! ```
//!
//! Each term depends on one word alone, so a producer adds up once what it writes often (a name), a
//! 32-bit core needs no wide multiply, and numpy computes whole columns. Each K is odd and `mix` is a
//! bijection, so a difference in one word alone always shows.

#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod many;

use crate::event::RECORD_WORDS;

#[cfg(target_arch = "x86_64")]
pub use avx2::survey_avx2;
#[cfg(target_arch = "x86_64")]
pub use avx512::survey_avx512;
pub use many::{Oddity, oddity, survey};

/// The factors: square roots of 2, 3, 5, ..., 47.
pub const FACTORS: [u32; 15] = [
    0x6a09_e667,
    0xbb67_ae85,
    0x3c6e_f373,
    0xa54f_f53b,
    0x510e_527f,
    0x9b05_688d,
    0x1f83_d9ab,
    0x5be0_cd19,
    0xcbbb_9d5d,
    0x629a_292b,
    0x9159_015b,
    0x152f_ecd9,
    0x6733_2667,
    0x8eb4_4a87,
    0xdb0c_2e0d,
];

#[inline(always)]
const fn term(word: u32, factor: u32) -> u32 {
    (word ^ (word >> 16)).wrapping_mul(factor)
}

#[inline(always)]
const fn pair(word: u64, at: usize) -> u32 {
    term(word as u32, FACTORS[at]).wrapping_add(term((word >> 32) as u32, FACTORS[at + 1]))
}

/// The part of the check that category and name make: constant for a built-in event.
#[inline(always)]
#[must_use]
pub const fn name_part(words: &[u64; RECORD_WORDS]) -> u32 {
    pair(words[1], 4)
        .wrapping_add(pair(words[2], 6))
        .wrapping_add(pair(words[3], 8))
        .wrapping_add(pair(words[4], 10))
        .wrapping_add(term(words[5] as u32, FACTORS[12]))
}

/// The part of the check that a timestamp makes: the same for the events of one transfer.
#[inline(always)]
#[must_use]
pub const fn time_part(timestamp_us: u64) -> u32 {
    pair(timestamp_us, 2)
}

/// The whole check from its parts.
#[inline(always)]
#[must_use]
pub const fn join(position: u64, time_part: u32, name_part: u32, value: u64) -> u32 {
    let sum = pair(position, 0).wrapping_add(time_part).wrapping_add(name_part).wrapping_add(pair(value, 13));
    if sum == 0 { 1 } else { sum }
}

/// The check word of a record at a position of the ring. The check word among `words` is left out.
#[inline]
#[must_use]
pub const fn check(position: u64, words: &[u64; RECORD_WORDS]) -> u32 {
    join(position, time_part(words[0]), name_part(words), words[6])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::{Category, Record};
    use crate::name::Name;
    use proptest::prelude::*;

    #[test]
    fn factors_are_the_square_roots_they_claim_to_be() {
        let primes = [2_u32, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47];
        for (prime, factor) in primes.into_iter().zip(FACTORS) {
            // The integer square root of prime * 2^64 holds 32 fractional bits.
            let root = (u128::from(prime) << 64).isqrt();
            assert_eq!(root as u32 | 1, factor, "square root of {prime}");
        }
    }

    #[test]
    fn vectors_of_the_format() {
        // FORMAT.md section "Check word" gives the same three.
        let zero = Record::new(0, Category(0), Name::from_bytes([0; 32]), 0);
        assert_eq!(zero.sealed(0).check, 1);
        assert_eq!(zero.sealed(1).check, 0x6a09_e667);
        let record =
            Record::new(1_736_951_425_123_456, Category::TRANSFER, Name::from_static("agent_tx_bytes"), 1_048_576);
        assert_eq!(record.sealed(5_000_000_000).check, VECTOR);
    }

    const VECTOR: u32 = 0xd887_bcd2;

    proptest! {
        #[test]
        fn any_single_change_of_a_word_shows(position: u64, words: [u64; RECORD_WORDS], at in 0..RECORD_WORDS, flip: u64) {
            let mut changed = words;
            changed[at] ^= flip;
            let one_half = flip as u32 == 0 || flip >> 32 == 0;
            let matters = if at == 5 { flip as u32 != 0 } else { flip != 0 };
            if one_half && matters {
                let (a, b) = (check(position, &words), check(position, &changed));
                // 0 and 1 share a value: the one place where a single change can hide.
                prop_assert!(a != b || a == 1);
            }
            prop_assert_ne!(check(position, &words), 0);
        }

        #[test]
        fn an_earlier_lap_never_fits(position in 0..u64::MAX / 4, shift in 1_u32..24, words: [u64; RECORD_WORDS]) {
            let now = check(position, &words);
            for lap in 1..=2 {
                let then = check(position.wrapping_sub(lap << shift), &words);
                prop_assert!(now != then || now == 1);
            }
        }
    }
}

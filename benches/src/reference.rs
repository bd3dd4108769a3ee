//! What the rows are measured against: the machine's own limits.

use std::hint::black_box;

use telering::clock::Clock;
use telering::core::sync::{AtomicU64, Ordering};

use crate::harness::{Body, Reference, timed};

/// Lines of 64 bytes in 256 KiB: more than a first-level cache, less than a second-level one.
pub const LINES: usize = 4096;

/// Records of 64 bytes, each on a cache line of its own: a line that straddles two costs more.
pub struct Lines {
    words: Box<[AtomicU64]>,
    start: usize,
    records: usize,
}

impl Lines {
    /// All zeros, every page touched.
    #[must_use]
    pub fn new(records: usize) -> Lines {
        let words: Box<[AtomicU64]> = (0..(records + 1) * 8).map(|_| AtomicU64::new(0)).collect();
        let start = words.as_ptr().align_offset(64).min(7);
        Lines { words, start, records }
    }

    /// The records.
    #[must_use]
    pub fn records(&self) -> &[[AtomicU64; 8]] {
        self.words[self.start..self.start + self.records * 8].as_chunks().0
    }
}

/// The body of a reference.
#[must_use]
pub fn reference(kind: Reference) -> Body {
    match kind {
        Reference::Raw64 => raw64(),
        Reference::ThreeReads => clock_reads(3),
        Reference::TwoReads => clock_reads(2),
        Reference::Copy56 => copy(LINES),
    }
}

fn raw64() -> Body {
    let lines = Lines::new(LINES);
    let mut next = 0;
    timed(move |operations| {
        let lines = lines.records();
        for turn in 0..operations {
            let value = black_box(turn);
            for (place, word) in lines[next & (LINES - 1)].iter().zip(0..) {
                place.store(value + word, Ordering::Relaxed);
            }
            next += 1;
        }
    })
}

fn clock_reads(reads: u64) -> Body {
    let clock = Clock::of_process();
    timed(move |operations| {
        for _ in 0..operations {
            for _ in 0..reads {
                black_box(clock.ticks());
            }
        }
    })
}

/// Copies `records` records of 56 bytes at a time.
fn copy(records: usize) -> Body {
    let from = vec![1_u8; records * 56];
    let mut to = vec![0_u8; records * 56];
    timed(move |operations| {
        let mut left = operations as usize;
        while left > 0 {
            let bytes = left.min(records) * 56;
            to[..bytes].copy_from_slice(black_box(&from[..bytes]));
            black_box(&mut to);
            left -= bytes / 56;
        }
    })
}

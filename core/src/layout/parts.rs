//! The parts of an image behind its table: identity, losses, notices, metrics, dynamic metrics, clock.
//!
//! Any part may be absent, and a kind that a reader doesn't know is skipped. The structures here only
//! say where things stand; offsets are from the start of the part.

use super::image::{PART_ROW_SIZE, u32_at, u64_at};
use crate::status::STATUS_COUNT;

/// Kind of a part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u32)]
#[non_exhaustive]
pub enum PartKind {
    /// Who writes the image.
    Identity = 1,
    /// Events recorded, exported and lost, by cause.
    Losses = 2,
    /// Things worth knowing that are no loss.
    Notices = 3,
    /// Running totals and histograms of the built-in events, in two copies.
    Metrics = 4,
    /// Running totals of custom and backend events, in two copies.
    Dynamic = 5,
    /// The clock that durations were measured with.
    Clock = 6,
}

impl PartKind {
    /// Every kind that this code writes, in the order of the table.
    pub const ALL: [PartKind; 6] = [
        PartKind::Identity,
        PartKind::Losses,
        PartKind::Notices,
        PartKind::Metrics,
        PartKind::Dynamic,
        PartKind::Clock,
    ];

    /// Version of the part's layout.
    pub const VERSION: u32 = 1;

    /// Bytes of the part as this code writes it, a multiple of 64.
    #[must_use]
    pub const fn size(self) -> u64 {
        match self {
            PartKind::Identity => identity::SIZE,
            PartKind::Losses => losses::SIZE,
            PartKind::Notices => notices::SIZE,
            PartKind::Metrics => metrics::SIZE,
            PartKind::Dynamic => dynamic::SIZE,
            PartKind::Clock => clock::SIZE,
        }
    }
}

/// One row of the table of parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartRow {
    /// Kind, [`PartKind`] where known.
    pub kind: u32,
    /// Version of the part's layout.
    pub version: u32,
    /// Where the part starts, from the start of the image.
    pub offset: u64,
    /// Bytes of the part.
    pub len: u64,
}

impl PartRow {
    /// Reads a row. The offset and length are as the file says: hold them against its real length.
    #[must_use]
    pub fn parse(bytes: &[u8; PART_ROW_SIZE]) -> PartRow {
        PartRow { kind: u32_at(bytes, 0), version: u32_at(bytes, 4), offset: u64_at(bytes, 8), len: u64_at(bytes, 16) }
    }

    /// Whether the part lies inside an image of `len` bytes behind its extension's head.
    #[must_use]
    pub const fn lies_inside(&self, len: u64) -> bool {
        match self.offset.checked_add(self.len) {
            Some(end) => end <= len && self.offset.is_multiple_of(8),
            None => false,
        }
    }
}

/// Who writes the image. Texts are UTF-8, NUL-padded, cut at a character boundary.
pub mod identity {
    /// Bytes of the part.
    pub const SIZE: u64 = 576;
    /// u64 process id.
    pub const PID: usize = 0;
    /// u64 start of the process: clock ticks since boot (field 22 of Linux' `/proc/PID/stat`), 0 unknown.
    pub const PROCESS_START: usize = 8;
    /// 16 bytes: the boot's UUID, 0 unknown.
    pub const BOOT_ID: usize = 16;
    /// u64 counter of agents within the process, from 0.
    pub const AGENT_INSTANCE: usize = 32;
    /// u64 user id.
    pub const UID: usize = 40;
    /// Name and version of the writing library, 48 bytes.
    pub const WRITER: (usize, usize) = (48, 48);
    /// Host name, 128 bytes.
    pub const HOSTNAME: (usize, usize) = (96, 128);
    /// Agent name, 256 bytes.
    pub const AGENT: (usize, usize) = (224, 256);
    /// Rank, 64 bytes.
    pub const RANK: (usize, usize) = (480, 64);
}

/// Events recorded, exported and lost. u64 each, running totals of application events.
pub mod losses {
    /// Bytes of the part.
    pub const SIZE: u64 = 64;
    /// Events that the application recorded.
    pub const RECORDED: usize = 0;
    /// Events that reached the exporter and were accepted.
    pub const EXPORTED: usize = 8;
    /// Lost before the exporter: overwritten in a thread's ring.
    pub const STAGING: usize = 16;
    /// Lost because the exporter refused or could not store them.
    pub const EXPORTER: usize = 24;
    /// Positions whose record was announced and never finished (a reset between).
    pub const INTERRUPTED: usize = 32;
    /// Backend events over the 1000 that a backend keeps between two flushes.
    pub const BACKEND: usize = 40;
    /// Recorded, and not flushed before the time to close ran out.
    pub const CLOSING: usize = 48;

    /// The causes of loss: offset and word.
    pub const CAUSES: [(usize, &str); 5] = [
        (STAGING, "staging"),
        (EXPORTER, "exporter"),
        (INTERRUPTED, "interrupted"),
        (BACKEND, "backend"),
        (CLOSING, "closing"),
    ];
}

/// Things worth knowing that are no loss. u64 each, running totals.
pub mod notices {
    /// Bytes of the part.
    pub const SIZE: u64 = 64;
    /// Names that were cut or cleaned.
    pub const NAMES_CHANGED: usize = 0;
    /// Custom or backend events whose name found no room among the 64 dynamic metrics.
    pub const DYNAMIC_OVERFLOW: usize = 8;
    /// Records refused: made inside a signal handler, while a thread ended, or after close.
    pub const REFUSED: usize = 16;
    /// Times the file was truncated, replaced or unlinked by others.
    pub const FILE_TROUBLE: usize = 24;
}

/// Running totals of the built-in events.
pub mod metrics {
    use super::STATUS_COUNT;

    /// u32 entries, u32 histograms.
    pub const COUNTS: usize = 0;
    /// u32 bounds in use, u32 statuses.
    pub const BOUNDS_AND_STATUSES: usize = 8;
    /// u64 bytes of one copy.
    pub const COPY_SIZE_AT: usize = 16;
    /// Upper bounds in microseconds, inclusive: 32 x u64, unused ones 0.
    pub const BOUNDS: usize = 32;
    /// Bounds at the most.
    pub const BOUNDS_MAX: usize = 32;
    /// Where the first copy starts; the second follows it.
    pub const COPIES: usize = 320;

    /// Bytes of an entry: u64 id, sum, count, last value, time of the last.
    pub const ENTRY_SIZE: usize = 40;
    /// Bytes of a histogram: u64 id, sum, then 33 counts, not cumulative; the one behind the last bound is the overflow.
    pub const HISTOGRAM_SIZE: usize = 8 * (2 + BOUNDS_MAX + 1);
    /// Bytes of an error count: u64 event type, count.
    pub const ERROR_SIZE: usize = 16;

    /// Entries that this code writes: every row of the names table that is no error.
    pub const ENTRIES: usize = crate::names::BUILT_IN.len() - STATUS_COUNT;
    /// Histograms that this code writes: transfer time and post time.
    pub const HISTOGRAMS: usize = 2;
    /// Offset of the entries in a copy, behind its generation.
    pub const COPY_ENTRIES: usize = 8;
    /// Bytes of a copy: generation, entries, histograms, errors, check.
    pub const COPY_SIZE: usize =
        (COPY_ENTRIES + ENTRIES * ENTRY_SIZE + HISTOGRAMS * HISTOGRAM_SIZE + STATUS_COUNT * ERROR_SIZE + 8)
            .next_multiple_of(64);
    /// Bytes of the part.
    pub const SIZE: u64 = (COPIES + 2 * COPY_SIZE) as u64;
}

/// Running totals of custom and backend events.
pub mod dynamic {
    /// u32 room for entries.
    pub const ROOM_AT: usize = 0;
    /// u64 bytes of one copy.
    pub const COPY_SIZE_AT: usize = 8;
    /// Where the first copy starts; the second follows it.
    pub const COPIES: usize = 64;
    /// Entries at the most.
    pub const ROOM: usize = 64;
    /// u64 entries in use, in a copy behind its generation.
    pub const COPY_USED: usize = 8;
    /// Offset of the entries in a copy.
    pub const COPY_ENTRIES: usize = 16;
    /// Bytes of an entry: name 32, i32 category, u32 zero, u64 sum, count, last value, time of the last.
    pub const ENTRY_SIZE: usize = 72;
    /// Bytes of a copy: generation, used, entries, check.
    pub const COPY_SIZE: usize = (COPY_ENTRIES + ROOM * ENTRY_SIZE + 8).next_multiple_of(64);
    /// Bytes of the part.
    pub const SIZE: u64 = (COPIES + 2 * COPY_SIZE) as u64;
}

/// The clock that durations were measured with.
pub mod clock {
    /// Bytes of the part.
    pub const SIZE: u64 = 64;
    /// u32 source: 0 unknown, 1 operating system, 2 processor's counter, 3 test, 4 given by the application.
    pub const SOURCE: usize = 0;
    /// u32 quality: 0 unknown, 1 rate measured, 2 rate told by the processor or the operating system.
    pub const QUALITY: usize = 4;
    /// u64 ticks per second.
    pub const RATE: usize = 8;
    /// u64 ticks of the last anchor.
    pub const ANCHOR_TICKS: usize = 16;
    /// u64 Unix microseconds of the last anchor.
    pub const ANCHOR_US: usize = 24;
}

const _: () = {
    let mut at = 0;
    while at < PartKind::ALL.len() {
        assert!(PartKind::ALL[at].size().is_multiple_of(64));
        at += 1;
    }
    assert!(identity::RANK.0 + identity::RANK.1 <= identity::SIZE as usize);
    assert!(metrics::BOUNDS + metrics::BOUNDS_MAX * 8 <= metrics::COPIES);
    assert!(metrics::ENTRIES == 15);
};

/// The checksum at the end of a metrics copy: over its 32-bit words up to the check itself.
///
/// ```text
/// h = 0x6a09e667;  for each word w: h = (rotl(h, 5) xor w) * 0x9e3779b1;  1 where the end is 0
/// ```
#[derive(Clone, Copy, Debug)]
pub struct CopyCheck(u32);

impl Default for CopyCheck {
    fn default() -> Self {
        CopyCheck(0x6a09_e667)
    }
}

impl CopyCheck {
    /// Adds a 64-bit word: its low half, then its high half.
    #[inline]
    pub const fn add(&mut self, word: u64) {
        self.0 = (self.0.rotate_left(5) ^ word as u32).wrapping_mul(0x9e37_79b1);
        self.0 = (self.0.rotate_left(5) ^ (word >> 32) as u32).wrapping_mul(0x9e37_79b1);
    }

    /// The checksum, never 0.
    #[must_use]
    pub const fn finish(self) -> u64 {
        if self.0 == 0 { 1 } else { self.0 as u64 }
    }

    /// The checksum of a slice of bytes, a multiple of 8 long.
    #[must_use]
    pub fn of_bytes(bytes: &[u8]) -> u64 {
        let mut check = CopyCheck::default();
        for word in bytes.as_chunks::<8>().0 {
            check.add(u64::from_le_bytes(*word));
        }
        check.finish()
    }
}

//! The telemetry image: NIXL's header, the records, our extension. FORMAT.md is the normative text.
//!
//! ```text
//! 0             write_pos read_pos version expected_version capacity mask      NIXL's header
//! 40            capacity x 56-byte records
//! E             head: magic, version, lengths, instance     E = 40 + 56 x capacity, rounded up to 64
//! E + 64        control: intent, committed, ...              on a cache line of its own
//! E + 128       table of parts, then the parts, each aligned to 64
//! ```
//!
//! Everything is little-endian and of fixed width. The functions here work on bytes that a reader
//! copied: nothing is believed before it was held against the real length.

use core::fmt;

use crate::event::RECORD_SIZE;

/// NIXL's header, byte for byte.
pub mod nixl_header {
    /// Bytes of the header.
    pub const SIZE: usize = 40;
    /// Next slot to be written, masked.
    pub const WRITE_POS: usize = 0;
    /// Next slot to be read by a stock reader, masked. The only word that such a reader writes.
    pub const READ_POS: usize = 8;
    /// Layout version, 1.
    pub const VERSION: usize = 16;
    /// The same number again.
    pub const EXPECTED_VERSION: usize = 20;
    /// Slots of the ring.
    pub const CAPACITY: usize = 24;
    /// Slots minus one.
    pub const MASK: usize = 32;
}

/// The bytes `TELERING`, read little-endian.
pub const MAGIC: u64 = u64::from_le_bytes(*b"TELERING");
/// Format version that this code writes. Another major version is refused.
pub const MAJOR: u16 = 1;
/// Minor version: new parts, entries or record values. Readers accept any.
pub const MINOR: u16 = 0;
/// Reads as this number on a machine of the right byte order.
pub const BYTE_ORDER: u32 = 0x0102_0304;
/// Kind of record: NIXL version 1.
pub const RECORD_KIND: u32 = 1;
/// Flag of the head: every record carries its check word.
pub const FLAG_CHECKS: u16 = 1;
/// Records of one batch at the most.
pub const MAX_BATCH: u64 = 256;
/// The smallest capacity of an image.
pub const CAPACITY_MIN: u64 = 2;
/// The largest capacity of an image: 2^24 records, 896 MiB.
pub const CAPACITY_MAX: u64 = 1 << 24;
/// Parts that a reader looks at; more are refused as damaged.
pub const PARTS_MAX: usize = 64;

/// Offsets inside the head, from the start of the extension.
pub mod head {
    /// Bytes of the head.
    pub const SIZE: usize = 64;
    /// Magic number, written last.
    pub const MAGIC: usize = 0;
    /// u16 major, u16 minor, u32 byte-order mark.
    pub const VERSION: usize = 8;
    /// Length of the whole image.
    pub const IMAGE_LEN: usize = 16;
    /// Capacity, once more.
    pub const CAPACITY: usize = 24;
    /// u32 record size, u32 record kind.
    pub const RECORD: usize = 32;
    /// u32 largest batch, u16 number of parts, u16 flags.
    pub const BATCH: usize = 40;
    /// Instance id: random, not 0.
    pub const INSTANCE: usize = 48;
    /// Unix microseconds of creation, 0 where the producer has no wall clock.
    pub const CREATED: usize = 56;
}

/// Offsets inside the control line, from the start of the extension.
pub mod control {
    /// Where the control line starts.
    pub const START: usize = 64;
    /// Bytes of the control line.
    pub const SIZE: usize = 64;
    /// Records announced.
    pub const INTENT: usize = 64;
    /// Records finished.
    pub const COMMITTED: usize = 72;
    /// Generation of the metrics.
    pub const METRICS_GENERATION: usize = 80;
    /// When the metrics were taken.
    pub const METRICS_TIME: usize = 88;
    /// When the producer was last seen.
    pub const HEARTBEAT: usize = 96;
    /// u32 state, u32 clock.
    pub const STATE: usize = 104;
    /// u32 boots, u32 reserved.
    pub const BOOTS: usize = 112;
    /// Where the table of parts starts.
    pub const PART_TABLE: usize = 128;
}

/// Bytes of one row in the table of parts.
pub const PART_ROW_SIZE: usize = 24;

/// The extension's offset for a capacity; `None` where no image can have it.
#[must_use]
pub const fn extension_offset(capacity: u64) -> Option<u64> {
    if capacity < CAPACITY_MIN || capacity > CAPACITY_MAX || !capacity.is_power_of_two() {
        return None;
    }
    Some((nixl_header::SIZE as u64 + RECORD_SIZE as u64 * capacity).next_multiple_of(64))
}

/// The largest batch of a capacity: a sixteenth of it, 1 to 256.
#[must_use]
pub const fn max_batch(capacity: u64) -> u64 {
    let sixteenth = capacity / 16;
    if sixteenth < 1 {
        1
    } else if sixteenth > MAX_BATCH {
        MAX_BATCH
    } else {
        sixteenth
    }
}

const _: () = {
    assert!(matches!(extension_offset(4096), Some(229_440)));
    assert!(matches!(extension_offset(2), Some(192)));
    assert!(extension_offset(3).is_none() && extension_offset(0).is_none() && extension_offset(1 << 25).is_none());
    assert!(max_batch(2) == 1 && max_batch(64) == 4 && max_batch(1 << 20) == 256);
};

/// Little-endian numbers of a byte slice. A number outside the slice reads as 0.
#[must_use]
pub fn u64_at(bytes: &[u8], at: usize) -> u64 {
    let mut number = [0; 8];
    if let Some(found) = bytes.get(at..).and_then(|rest| rest.get(..8)) {
        number.copy_from_slice(found);
    }
    u64::from_le_bytes(number)
}

/// See [`u64_at`].
#[must_use]
pub fn u32_at(bytes: &[u8], at: usize) -> u32 {
    let mut number = [0; 4];
    if let Some(found) = bytes.get(at..).and_then(|rest| rest.get(..4)) {
        number.copy_from_slice(found);
    }
    u32::from_le_bytes(number)
}

/// Why an extension is not one that this code reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HeadError {
    /// The magic number is still 0: the image is being made, or its maker died on the way.
    NotReady,
    /// No image of ours: the magic number is another.
    WrongMagic,
    /// Written on a machine of the other byte order.
    WrongByteOrder,
    /// Another major version.
    UnsupportedVersion {
        /// Major version of the file.
        major: u16,
        /// Minor version of the file.
        minor: u16,
    },
    /// A field contradicts the file's real length or another field.
    Damaged {
        /// Which field.
        field: &'static str,
        /// What stands there.
        found: u64,
        /// What must stand there.
        expected: u64,
    },
}

impl fmt::Display for HeadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            HeadError::NotReady => f.write_str("the image is not finished: its magic number is still 0"),
            HeadError::WrongMagic => f.write_str("no telering image: the magic number is another"),
            HeadError::WrongByteOrder => f.write_str("written on a machine of the other byte order"),
            HeadError::UnsupportedVersion { major, minor } => {
                write!(f, "unsupported image version {major}.{minor} (known {MAJOR}.x)")
            }
            HeadError::Damaged { field, found, expected } => {
                write!(f, "damaged head: {field} is {found}, {expected} expected")
            }
        }
    }
}

impl core::error::Error for HeadError {}

/// The constant fields of an image, validated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Head {
    /// Format version.
    pub major: u16,
    /// Format version, the part that readers may ignore.
    pub minor: u16,
    /// Length of the image in bytes.
    pub image_len: u64,
    /// Slots of the ring, a power of two.
    pub capacity: u64,
    /// Records of one batch at the most.
    pub max_batch: u64,
    /// Rows in the table of parts.
    pub part_count: usize,
    /// Whether every record carries a check word.
    pub checks: bool,
    /// Names this image among all others; not 0.
    pub instance: u64,
    /// Unix microseconds of creation, 0 where unknown.
    pub created_us: u64,
    /// Where the extension starts.
    pub extension: u64,
}

impl Head {
    /// Reads the head. `capacity` is the one of NIXL's header, `len` the real length of the memory or file.
    ///
    /// # Errors
    /// [`HeadError`]; the version is looked at before any length, so that a newer image never reads as damaged.
    pub fn parse(bytes: &[u8; head::SIZE], capacity: u64, len: u64) -> Result<Head, HeadError> {
        let damaged = |field, found, expected| Err(HeadError::Damaged { field, found, expected });
        match u64_at(bytes, head::MAGIC) {
            MAGIC => {}
            0 => return Err(HeadError::NotReady),
            other if other == MAGIC.swap_bytes() => return Err(HeadError::WrongByteOrder),
            _ => return Err(HeadError::WrongMagic),
        }
        match u32_at(bytes, head::VERSION + 4) {
            BYTE_ORDER => {}
            other if other == BYTE_ORDER.swap_bytes() => return Err(HeadError::WrongByteOrder),
            other => return damaged("byte-order mark", other.into(), BYTE_ORDER.into()),
        }
        let version = u32_at(bytes, head::VERSION);
        let (major, minor) = (version as u16, (version >> 16) as u16);
        if major != MAJOR {
            return Err(HeadError::UnsupportedVersion { major, minor });
        }
        let Some(extension) = extension_offset(capacity) else {
            return damaged("capacity of the header", capacity, u64_at(bytes, head::CAPACITY));
        };
        if u64_at(bytes, head::CAPACITY) != capacity {
            return damaged("capacity", u64_at(bytes, head::CAPACITY), capacity);
        }
        let image_len = u64_at(bytes, head::IMAGE_LEN);
        if image_len != len {
            return damaged("image length", image_len, len);
        }
        let record_size = u32_at(bytes, head::RECORD);
        if record_size as usize != RECORD_SIZE {
            return damaged("record size", record_size.into(), RECORD_SIZE as u64);
        }
        let record_kind = u32_at(bytes, head::RECORD + 4);
        if record_kind != RECORD_KIND {
            return damaged("record kind", record_kind.into(), RECORD_KIND.into());
        }
        let batch = u32_at(bytes, head::BATCH);
        if u64::from(batch) != max_batch(capacity) {
            return damaged("largest batch", batch.into(), max_batch(capacity));
        }
        let parts_and_flags = u32_at(bytes, head::BATCH + 4);
        let (part_count, flags) = (parts_and_flags as u16 as usize, (parts_and_flags >> 16) as u16);
        let table_end = extension + (control::PART_TABLE + part_count * PART_ROW_SIZE) as u64;
        if part_count > PARTS_MAX || table_end > len {
            return damaged("number of parts", part_count as u64, PARTS_MAX as u64);
        }
        let instance = u64_at(bytes, head::INSTANCE);
        if instance == 0 {
            return damaged("instance", 0, 1);
        }
        Ok(Head {
            major,
            minor,
            image_len,
            capacity,
            max_batch: batch.into(),
            part_count,
            checks: flags & FLAG_CHECKS != 0,
            instance,
            created_us: u64_at(bytes, head::CREATED),
            extension,
        })
    }
}

/// Whether the producer is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum State {
    /// Being made.
    Formatting,
    /// In use, or its producer died.
    Open,
    /// Closed in good order.
    Closed,
    /// A value that this code doesn't know.
    Other(u32),
}

impl State {
    /// The state behind its number.
    #[must_use]
    pub const fn from_number(number: u32) -> State {
        match number {
            0 => State::Formatting,
            1 => State::Open,
            2 => State::Closed,
            other => State::Other(other),
        }
    }

    /// The number in the image.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            State::Formatting => 0,
            State::Open => 1,
            State::Closed => 2,
            State::Other(other) => other,
        }
    }
}

/// What timestamps count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum TimeBase {
    /// Microseconds since the Unix epoch.
    #[default]
    Unix,
    /// Microseconds since the device booted.
    Boot,
    /// A value that this code doesn't know.
    Other(u32),
}

impl TimeBase {
    /// The time base behind its number.
    #[must_use]
    pub const fn from_number(number: u32) -> TimeBase {
        match number {
            0 => TimeBase::Unix,
            1 => TimeBase::Boot,
            other => TimeBase::Other(other),
        }
    }

    /// The number in the image.
    #[must_use]
    pub const fn number(self) -> u32 {
        match self {
            TimeBase::Unix => 0,
            TimeBase::Boot => 1,
            TimeBase::Other(other) => other,
        }
    }
}

/// One look at the control line. Nothing in it is to be believed without a second look.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Control {
    /// Records announced: everything below `intent - capacity` may be overwritten.
    pub intent: u64,
    /// Records finished.
    pub committed: u64,
    /// Generation of the metrics; the valid copy is the one with this number's lowest bit.
    pub metrics_generation: u64,
    /// When the metrics were taken, in the image's time base.
    pub metrics_time: u64,
    /// When the producer was last seen, in the image's time base.
    pub heartbeat: u64,
    /// Whether the producer is at work.
    pub state: State,
    /// What timestamps count.
    pub time_base: TimeBase,
    /// How often the image was attached after a reset.
    pub boots: u32,
}

impl Control {
    /// Reads the 64 bytes of the control line.
    #[must_use]
    pub fn parse(bytes: &[u8; control::SIZE]) -> Control {
        let at = |field: usize| field - control::START;
        Control {
            intent: u64_at(bytes, at(control::INTENT)),
            committed: u64_at(bytes, at(control::COMMITTED)),
            metrics_generation: u64_at(bytes, at(control::METRICS_GENERATION)),
            metrics_time: u64_at(bytes, at(control::METRICS_TIME)),
            heartbeat: u64_at(bytes, at(control::HEARTBEAT)),
            state: State::from_number(u32_at(bytes, at(control::STATE))),
            time_base: TimeBase::from_number(u32_at(bytes, at(control::STATE) + 4)),
            boots: u32_at(bytes, at(control::BOOTS)),
        }
    }
}

//! The rings that NIXL itself writes: one header of 40 bytes, five record layouts.
//!
//! | layout | releases | version | record |
//! |---|---|---|---|
//! | L1 | 0.5.1 to 1.0.1 | 1 | time u64, category i32, name 32 bytes, padding 4, value u64 = 56 |
//! | L2a | 1.1.0 | 2 | category i32, name 32 bytes, padding 4, value u64 = 48 |
//! | L2b | 1.2.0 | 2 | category i32, type u32, value u64 = 16 |
//! | L3 | 1.3 | 3 | type u32, padding 4, value u64 = 16 |
//! | L4 | 1.4 and later | 4 | like L3, one more type |
//!
//! Two layouts share version 2. The producer makes the file exactly as long as its records need, so the
//! length tells them apart. Padding is never written by NIXL and holds whatever was on its stack: it is
//! never read here.
//!
//! The ring keeps one place free, its positions are wrapped indices, and a full ring refuses the newest
//! event. Numbers are little-endian, as on every machine that NIXL runs on.

use core::fmt;

use crate::event::{Category, RECORD_SIZE};
use crate::name::{NAME_SIZE, Name};
use crate::names;

mod probe;

pub use probe::{Geometry, Header, ProbeError, check_version, probe};

/// Bytes of the header, the same in every version.
pub const HEADER_SIZE: usize = 40;
/// Where the producer's next index stands (u64).
pub const WRITE_POS_AT: usize = 0;
/// Where the consumer's next index stands (u64).
pub const READ_POS_AT: usize = 8;
/// Where the version stands (u32), 0 while the file is being created.
pub const VERSION_AT: usize = 16;
/// Where the capacity stands (u64).
pub const CAPACITY_AT: usize = 24;
/// Where capacity - 1 stands (u64).
pub const MASK_AT: usize = 32;
/// The oldest version that is read here.
pub const FIRST_VERSION: u32 = 1;
/// The newest version that is read here.
pub const LAST_VERSION: u32 = 4;
/// The longest record of any layout.
pub const LONGEST_RECORD: usize = RECORD_SIZE;

/// One of NIXL's record layouts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum NixlLayout {
    /// Version 1, 56 bytes: time, category, name, value.
    L1,
    /// Version 2 with 48 bytes: category, name, value.
    L2a,
    /// Version 2 with 16 bytes: category, type, value.
    L2b,
    /// Version 3, 16 bytes: type, value.
    L3,
    /// Version 4, 16 bytes: type, value.
    L4,
}

impl NixlLayout {
    /// Every layout, oldest first.
    pub const ALL: [NixlLayout; 5] = [NixlLayout::L1, NixlLayout::L2a, NixlLayout::L2b, NixlLayout::L3, NixlLayout::L4];

    /// The number in the header.
    #[must_use]
    pub const fn version(self) -> u32 {
        match self {
            NixlLayout::L1 => 1,
            NixlLayout::L2a | NixlLayout::L2b => 2,
            NixlLayout::L3 => 3,
            NixlLayout::L4 => 4,
        }
    }

    /// Bytes of one record.
    #[must_use]
    pub const fn record_size(self) -> usize {
        match self {
            NixlLayout::L1 => RECORD_SIZE,
            NixlLayout::L2a => 48,
            NixlLayout::L2b | NixlLayout::L3 | NixlLayout::L4 => 16,
        }
    }

    /// The layout's short name: `L1`, `L2a`, `L2b`, `L3`, `L4`.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            NixlLayout::L1 => "L1",
            NixlLayout::L2a => "L2a",
            NixlLayout::L2b => "L2b",
            NixlLayout::L3 => "L3",
            NixlLayout::L4 => "L4",
        }
    }

    /// The NIXL releases that write this layout.
    #[must_use]
    pub const fn releases(self) -> &'static str {
        match self {
            NixlLayout::L1 => "0.5.1 to 1.0.1",
            NixlLayout::L2a => "1.1.0",
            NixlLayout::L2b => "1.2.0",
            NixlLayout::L3 => "1.3",
            NixlLayout::L4 => "1.4 and later",
        }
    }

    /// Whether records carry a time.
    #[must_use]
    pub const fn has_time(self) -> bool {
        matches!(self, NixlLayout::L1)
    }

    /// How long a file of this layout is, `None` where that is beyond 64 bits.
    #[must_use]
    pub const fn file_len(self, capacity: u64) -> Option<u64> {
        match capacity.checked_mul(self.record_size() as u64) {
            Some(records) => records.checked_add(HEADER_SIZE as u64),
            None => None,
        }
    }

    /// The event in one record, `None` if `bytes` is shorter than a record.
    #[must_use]
    pub fn decode(self, bytes: &[u8]) -> Option<NixlEvent> {
        let bytes = bytes.get(..self.record_size())?;
        Some(match self {
            NixlLayout::L1 => NixlEvent {
                timestamp_us: Some(u64_at(bytes, 0)?),
                category: Some(Category(u32_at(bytes, 8)? as i32)),
                kind: Kind::Name(name_at(bytes, 12)?),
                value: u64_at(bytes, 48)?,
            },
            NixlLayout::L2a => NixlEvent {
                timestamp_us: None,
                category: Some(Category(u32_at(bytes, 0)? as i32)),
                kind: Kind::Name(name_at(bytes, 4)?),
                value: u64_at(bytes, 40)?,
            },
            NixlLayout::L2b => NixlEvent {
                timestamp_us: None,
                category: Some(Category(u32_at(bytes, 0)? as i32)),
                kind: Kind::Type(u32_at(bytes, 4)?),
                value: u64_at(bytes, 8)?,
            },
            NixlLayout::L3 | NixlLayout::L4 => NixlEvent {
                timestamp_us: None,
                category: None,
                kind: Kind::Type(u32_at(bytes, 0)?),
                value: u64_at(bytes, 8)?,
            },
        })
    }
}

impl fmt::Display for NixlLayout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

const _: () = {
    assert!(WRITE_POS_AT + 8 == READ_POS_AT && READ_POS_AT + 8 == VERSION_AT);
    assert!(VERSION_AT + 8 == CAPACITY_AT && CAPACITY_AT + 8 == MASK_AT && MASK_AT + 8 == HEADER_SIZE);
    assert!(NixlLayout::L1.record_size() == 8 + 4 + NAME_SIZE + 4 + 8);
    assert!(NixlLayout::L2a.record_size() == 4 + NAME_SIZE + 4 + 8);
    assert!(NixlLayout::L2b.record_size() == 4 + 4 + 8);
    assert!(matches!(NixlLayout::L1.file_len(64), Some(3624)));
    assert!(matches!(NixlLayout::L4.file_len(64), Some(1064)));
    assert!(NixlLayout::L4.file_len(1 << 60).is_none());
};

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn name_at(bytes: &[u8], at: usize) -> Option<Name> {
    Some(Name::from_bytes(*bytes.get(at..)?.first_chunk()?))
}

/// What a record says its event is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A name (L1, L2a).
    Name(Name),
    /// An event type (L2b and later).
    Type(u32),
}

/// One event of a NIXL ring, as its record holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NixlEvent {
    /// Microseconds since the Unix epoch, where the layout has a time (L1).
    pub timestamp_us: Option<u64>,
    /// The stored category (L1, L2a, L2b).
    pub category: Option<Category>,
    /// The stored name or event type.
    pub kind: Kind,
    /// Bytes, a count, or microseconds.
    pub value: u64,
}

impl NixlEvent {
    /// The event type, stored or found by the name; `None` for a name outside the table.
    #[must_use]
    pub fn id(&self) -> Option<u32> {
        match &self.kind {
            Kind::Name(name) => names::by_name(name.text_bytes()).map(|row| row.id),
            Kind::Type(id) => Some(*id),
        }
    }

    /// The name, stored or found by the type; `None` for a type that the table doesn't know.
    #[must_use]
    pub fn name(&self) -> Option<&str> {
        match &self.kind {
            Kind::Name(name) => Some(name.as_str()),
            Kind::Type(id) => names::by_id(*id).map(|row| row.name),
        }
    }

    /// The category, stored or derived from the event type where the layout has none.
    #[must_use]
    pub fn category(&self) -> Option<Category> {
        self.category.or_else(|| Some(names::by_id(self.id()?)?.category))
    }
}

#[cfg(test)]
mod tests;

//! The record of a staging ring: 64 bytes, one per transfer, with raw ticks.
//!
//! | word | transfer | built-in event | named event |
//! |---|---|---|---|
//! | 0 | ticks of completion | ticks | ticks |
//! | 1 | kind 1, operation, group, descriptors | kind 2, id | kind 3, category |
//! | 2 | events after it | events after it | events after it |
//! | 3 | bytes | value | value |
//! | 4 | post duration, us | | name |
//! | 5 | transfer duration, us | | name |
//! | 6, 7 | | | name |
//!
//! "Events after it" is the slot's running number of application events: a gap is what was lost.

use crate::event::Category;
use crate::name::Name;
use crate::names;

/// 64-bit words of a staging record: one cache line.
pub const STAGED_WORDS: usize = 8;

const KIND_TRANSFER: u8 = 1;
const KIND_SINGLE: u8 = 2;
const KIND_NAMED: u8 = 3;

/// Which way the initiator of a transfer moved the bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// To the remote side: `tx`.
    Write = 0,
    /// From the remote side: `rx`.
    Read = 1,
}

/// Which of a transfer's four events are wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Group(u8);

impl Group {
    /// The event of the post duration.
    pub const POST_TIME: Group = Group(1);
    /// The event of the transfer duration.
    pub const XFER_TIME: Group = Group(2);
    /// The event of the bytes.
    pub const BYTES: Group = Group(4);
    /// The event of the request.
    pub const REQUESTS: Group = Group(8);
    /// All four.
    pub const ALL: Group = Group(15);
    /// None.
    pub const NONE: Group = Group(0);

    /// The group that an allowlist leaves: bit i of `enabled` is row i of the names table.
    #[must_use]
    pub const fn of_mask(enabled: u64, operation: Operation) -> Group {
        const fn bit(enabled: u64, id: u32, group: Group) -> u8 {
            if enabled >> id & 1 == 1 { group.0 } else { 0 }
        }
        let (bytes, requests) = match operation {
            Operation::Write => (names::TX_BYTES, names::TX_REQUESTS),
            Operation::Read => (names::RX_BYTES, names::RX_REQUESTS),
        };
        Group(
            bit(enabled, names::XFER_POST_TIME, Group::POST_TIME)
                | bit(enabled, names::XFER_TIME, Group::XFER_TIME)
                | bit(enabled, bytes, Group::BYTES)
                | bit(enabled, requests, Group::REQUESTS),
        )
    }

    /// The group as a number: a bit for each event.
    #[inline(always)]
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The group of a number; bits that mean nothing are left out.
    #[inline(always)]
    #[must_use]
    pub const fn from_bits(bits: u8) -> Group {
        Group(bits & Group::ALL.0)
    }

    /// Whether this group has all of `other`.
    #[inline(always)]
    #[must_use]
    pub const fn has(self, other: Group) -> bool {
        self.0 & other.0 == other.0
    }

    /// Number of events.
    #[inline(always)]
    #[must_use]
    pub const fn events(self) -> u64 {
        self.0.count_ones() as u64
    }
}

/// One finished transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transfer {
    /// Ticks of its completion.
    pub ticks: u64,
    /// Which way.
    pub operation: Operation,
    /// The events that are wanted.
    pub group: Group,
    /// Bytes moved.
    pub bytes: u64,
    /// Microseconds from start until posted.
    pub post_us: u64,
    /// Microseconds from start to completion.
    pub xfer_us: u64,
    /// Descriptors of the request.
    pub descriptors: u32,
}

impl Transfer {
    #[inline(always)]
    pub(super) fn words(&self, events: u64) -> [u64; STAGED_WORDS] {
        let tag = u64::from(KIND_TRANSFER)
            | (self.operation as u64) << 8
            | u64::from(self.group.0) << 16
            | u64::from(self.descriptors) << 32;
        [self.ticks, tag, events, self.bytes, self.post_us, self.xfer_us, 0, 0]
    }
}

pub(super) fn single_words(ticks: u64, id: u32, value: u64, events: u64) -> [u64; STAGED_WORDS] {
    [ticks, u64::from(KIND_SINGLE) | u64::from(id) << 32, events, value, 0, 0, 0, 0]
}

pub(super) fn named_words(ticks: u64, category: Category, name: &Name, value: u64, events: u64) -> [u64; STAGED_WORDS] {
    let mut words = [ticks, u64::from(KIND_NAMED) | u64::from(category.0 as u32) << 32, events, value, 0, 0, 0, 0];
    for (word, bytes) in words[4..].iter_mut().zip(name.as_bytes().as_chunks::<8>().0) {
        *word = u64::from_le_bytes(*bytes);
    }
    words
}

/// What a staging record holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StagedKind {
    /// A finished transfer.
    Transfer(Transfer),
    /// A built-in event; an error has value 1.
    Single {
        /// Event type.
        id: u32,
        /// Its value.
        value: u64,
    },
    /// A custom or backend event.
    Named {
        /// Its category.
        category: Category,
        /// Its name.
        name: Name,
        /// Its value.
        value: u64,
    },
}

/// A staging record, read back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Staged {
    /// Ticks of the event.
    pub ticks: u64,
    /// The slot's number of application events after it.
    pub events_after: u64,
    /// What it holds.
    pub kind: StagedKind,
}

impl Staged {
    /// Reads the eight words of a record; `None` if they were never written by a slot.
    #[inline]
    #[must_use]
    pub fn from_words(words: &[u64; STAGED_WORDS]) -> Option<Staged> {
        let [ticks, tag, events_after, value, ..] = *words;
        let kind = match tag as u8 {
            KIND_TRANSFER => StagedKind::Transfer(Transfer {
                ticks,
                operation: if tag >> 8 & 1 == 0 { Operation::Write } else { Operation::Read },
                group: Group((tag >> 16) as u8 & Group::ALL.0),
                bytes: value,
                post_us: words[4],
                xfer_us: words[5],
                descriptors: (tag >> 32) as u32,
            }),
            KIND_SINGLE => StagedKind::Single { id: (tag >> 32) as u32, value },
            KIND_NAMED => {
                let mut name = [0; 32];
                for (bytes, word) in name.chunks_mut(8).zip(&words[4..]) {
                    bytes.copy_from_slice(&word.to_le_bytes());
                }
                StagedKind::Named { category: Category((tag >> 32) as i32), name: Name::from_bytes(name), value }
            }
            _ => return None,
        };
        Some(Staged { ticks, events_after, kind })
    }

    /// Application events that this record stands for.
    #[inline]
    #[must_use]
    pub fn events(&self) -> u64 {
        match self.kind {
            StagedKind::Transfer(transfer) => transfer.group.events(),
            StagedKind::Single { .. } | StagedKind::Named { .. } => 1,
        }
    }
}

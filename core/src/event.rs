//! The event record of 56 bytes, NIXL's version 1, with our check word in its padding.

use bytemuck::{Pod, Zeroable};

use crate::check;
use crate::name::{NAME_SIZE, Name};

/// What kind of thing an event tells. Values are NIXL's; unknown values stay what they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Pod, Zeroable)]
#[repr(transparent)]
pub struct Category(pub i32);

impl Category {
    /// Registration and deregistration of memory.
    pub const MEMORY: Category = Category(0);
    /// Bytes and requests moved.
    pub const TRANSFER: Category = Category(1);
    /// Connections and metadata exchange.
    pub const CONNECTION: Category = Category(2);
    /// A backend's own events.
    pub const BACKEND: Category = Category(3);
    /// Failed operations and losses.
    pub const ERROR: Category = Category(4);
    /// Durations.
    pub const PERFORMANCE: Category = Category(5);
    /// Start and stop.
    pub const SYSTEM: Category = Category(6);
    /// An application's own events.
    pub const CUSTOM: Category = Category(7);
    /// Not an event: the place of a record whose producer was interrupted (FORMAT.md, "Filler records").
    pub const FILLER: Category = Category(-1);

    /// The eight categories of events.
    pub const ALL: [Category; 8] = [
        Category::MEMORY,
        Category::TRANSFER,
        Category::CONNECTION,
        Category::BACKEND,
        Category::ERROR,
        Category::PERFORMANCE,
        Category::SYSTEM,
        Category::CUSTOM,
    ];

    /// The category's word, `None` for a value that no release defines.
    #[must_use]
    pub const fn as_str(self) -> Option<&'static str> {
        match self.0 {
            0 => Some("MEMORY"),
            1 => Some("TRANSFER"),
            2 => Some("CONNECTION"),
            3 => Some("BACKEND"),
            4 => Some("ERROR"),
            5 => Some("PERFORMANCE"),
            6 => Some("SYSTEM"),
            7 => Some("CUSTOM"),
            _ => None,
        }
    }

    /// The category of a word in any case, with or without the prefix `NIXL_TELEMETRY_`.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Category> {
        const PREFIX: &str = "NIXL_TELEMETRY_";
        let bare = match word.get(..PREFIX.len()) {
            Some(start) if start.eq_ignore_ascii_case(PREFIX) => &word[PREFIX.len()..],
            _ => word,
        };
        Category::ALL.into_iter().find(|category| category.as_str().is_some_and(|name| name.eq_ignore_ascii_case(bare)))
    }
}

impl core::fmt::Display for Category {
    /// The word, or `UNKNOWN_CATEGORY_<n>`.
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self.as_str() {
            Some(word) => f.pad(word),
            None => write!(f, "UNKNOWN_CATEGORY_{}", self.0),
        }
    }
}

impl core::fmt::Debug for Category {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        core::fmt::Display::fmt(self, f)
    }
}

/// Bytes of one record in a telemetry file.
pub const RECORD_SIZE: usize = 56;
/// 64-bit words of one record.
pub const RECORD_WORDS: usize = RECORD_SIZE / 8;

/// One event as a telemetry file stores it.
///
/// Little-endian in a file; [`Record::to_words`] and [`Record::from_words`] work the same on every machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Pod, Zeroable)]
#[repr(C, align(8))]
pub struct Record {
    /// When the operation completed: microseconds since the Unix epoch, or since boot (the image says which).
    pub timestamp_us: u64,
    /// Kind of event.
    pub category: Category,
    /// Name of the event.
    pub name: Name,
    /// Ties the record to its place in the ring ([`check::check`]). NIXL's padding.
    pub check: u32,
    /// Bytes, a count, or microseconds.
    pub value: u64,
}

const _: () = {
    use core::mem::{offset_of, size_of};
    assert!(size_of::<Record>() == RECORD_SIZE);
    assert!(offset_of!(Record, timestamp_us) == 0);
    assert!(offset_of!(Record, category) == 8);
    assert!(offset_of!(Record, name) == 12);
    assert!(offset_of!(Record, check) == 44);
    assert!(offset_of!(Record, value) == 48);
};

impl Record {
    /// A record whose check word is still to be made.
    #[must_use]
    pub const fn new(timestamp_us: u64, category: Category, name: Name, value: u64) -> Record {
        Record { timestamp_us, category, name, check: 0, value }
    }

    /// What stands at a position whose record was announced and never finished.
    #[must_use]
    pub const fn filler() -> Record {
        Record::new(0, Category::FILLER, Name::from_bytes([0; 32]), 0)
    }

    /// Whether this is a filler and not an event.
    #[must_use]
    pub fn is_filler(&self) -> bool {
        self.category == Category::FILLER
    }

    /// The same record with the check word of `position`.
    #[must_use]
    pub fn sealed(self, position: u64) -> Record {
        Record { check: check::check(position, &self.to_words()), ..self }
    }

    /// Whether the check word belongs to `position` and to these bytes.
    #[must_use]
    pub fn fits(&self, position: u64) -> bool {
        check::check(position, &self.to_words()) == self.check
    }

    /// The record as seven 64-bit words, in the order of the file.
    #[must_use]
    pub const fn to_words(&self) -> [u64; RECORD_WORDS] {
        const fn quarter(bytes: &[u8; NAME_SIZE], at: usize) -> u64 {
            u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]) as u64
        }
        let name = self.name.as_bytes();
        [
            self.timestamp_us,
            self.category.0 as u32 as u64 | quarter(name, 0) << 32,
            quarter(name, 4) | quarter(name, 8) << 32,
            quarter(name, 12) | quarter(name, 16) << 32,
            quarter(name, 20) | quarter(name, 24) << 32,
            quarter(name, 28) | (self.check as u64) << 32,
            self.value,
        ]
    }

    /// The record behind seven 64-bit words.
    #[must_use]
    pub fn from_words(words: &[u64; RECORD_WORDS]) -> Record {
        let mut name = [0; 32];
        let (first, rest) = name.split_at_mut(4);
        first.copy_from_slice(&((words[1] >> 32) as u32).to_le_bytes());
        for (bytes, word) in rest.chunks_mut(8).zip(&words[2..6]) {
            let word = word.to_le_bytes();
            bytes.copy_from_slice(&word[..bytes.len()]);
        }
        Record {
            timestamp_us: words[0],
            category: Category(words[1] as u32 as i32),
            name: Name::from_bytes(name),
            check: (words[5] >> 32) as u32,
            value: words[6],
        }
    }

    /// The record in 56 bytes of a file.
    #[must_use]
    pub fn from_file_bytes(bytes: &[u8; RECORD_SIZE]) -> Record {
        if cfg!(target_endian = "little") {
            return bytemuck::pod_read_unaligned(bytes);
        }
        let mut words = [0; RECORD_WORDS];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*bytes);
        }
        Record::from_words(&words)
    }
}

/// Room for records as the bytes of a file. What is written there is in the file's byte order until
/// [`from_file_order`] was called.
#[must_use]
pub fn file_bytes_of(records: &mut [Record]) -> &mut [u8] {
    bytemuck::cast_slice_mut(records)
}

/// Makes records of the bytes that were written into [`file_bytes_of`] them; nothing to do on a little-endian
/// machine.
pub fn from_file_order(records: &mut [Record]) {
    if cfg!(target_endian = "big") {
        for record in records {
            let words: [u64; RECORD_WORDS] = bytemuck::cast(*record);
            *record = Record::from_words(&words.map(u64::from_le));
        }
    }
}

/// The part of a record that all events of one type share: made once, sealed for each event in a few instructions.
#[derive(Clone, Copy, Debug)]
pub struct Template {
    words: [u64; RECORD_WORDS],
    part: u32,
}

impl Template {
    /// What events of this category and name have in common.
    #[must_use]
    pub const fn new(category: Category, name: Name) -> Template {
        Template::of(&Record::new(0, category, name, 0))
    }

    pub(crate) const fn of(record: &Record) -> Template {
        let words = record.to_words();
        Template { words, part: check::name_part(&words) }
    }

    /// The words of one event, the check word of `position` included: what [`Record::sealed`] makes, without a record
    /// in between, whose fields lie across words.
    #[inline(always)]
    #[must_use]
    pub fn sealed(&self, position: u64, time: Timestamp, value: u64) -> [u64; RECORD_WORDS] {
        let check = check::join(position, time.part, self.part, value);
        let [_, head, a, b, c, tail, _] = self.words;
        [time.us, head, a, b, c, tail | u64::from(check) << 32, value]
    }
}

/// A time with its part of the check word, which the events of one transfer share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timestamp {
    us: u64,
    part: u32,
}

impl Timestamp {
    /// The time in microseconds.
    #[inline(always)]
    #[must_use]
    pub const fn new(us: u64) -> Timestamp {
        Timestamp { us, part: check::time_part(us) }
    }

    /// This time if it is the same, else a new one.
    #[inline(always)]
    #[must_use]
    pub const fn or_new(self, us: u64) -> Timestamp {
        if self.us == us { self } else { Timestamp::new(us) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_struct_are_the_same_bytes() {
        let record = Record::new(
            0x0102_0304_0506_0708,
            Category::ERROR,
            Name::new("NIXL_ERR_REMOTE_DISCONNECT!1234").0,
            u64::MAX - 5,
        )
        .sealed(77);
        assert_eq!(Record::from_words(&record.to_words()), record);
        let mut file = [0; RECORD_SIZE];
        for (bytes, word) in file.chunks_mut(8).zip(record.to_words()) {
            bytes.copy_from_slice(&word.to_le_bytes());
        }
        assert_eq!(Record::from_file_bytes(&file), record);
        #[cfg(target_endian = "little")]
        assert_eq!(bytemuck::bytes_of(&record), file);
    }

    #[test]
    fn a_template_makes_the_words_of_a_sealed_record() {
        let (category, name) = (Category::PERFORMANCE, Name::from_static("agent_xfer_time"));
        for (position, time, value) in [(0, 0, 0), (77, 1_736_951_425_123_456, 12), (u64::MAX, u64::MAX, u64::MAX)] {
            let record = Record::new(time, category, name, value).sealed(position);
            assert_eq!(Template::new(category, name).sealed(position, Timestamp::new(time), value), record.to_words());
        }
    }

    #[test]
    fn category_words() {
        assert_eq!(Category::from_word("transfer"), Some(Category::TRANSFER));
        assert_eq!(Category::from_word("NIXL_TELEMETRY_BACKEND"), Some(Category::BACKEND));
        assert_eq!(Category::from_word("nixl_telemetry_"), None);
        assert_eq!(Category::from_word("é"), None);
        extern crate std;
        assert_eq!(std::format!("{}", Category(9)), "UNKNOWN_CATEGORY_9");
    }
}

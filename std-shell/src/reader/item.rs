//! What a reader returns.

use std::fmt;

use telering_core::Name;
use telering_core::event::Category;
use telering_core::layout::nixl::NixlLayout;
use telering_core::names;

/// One thing that a reader found, in the order of the file.
///
/// ```no_run
/// use telering::reader::{Item, Reader};
/// let mut reader = Reader::open("/dev/shm/telemetry/agent")?;
/// while let Some(item) = reader.next_item()? {
///     match item {
///         Item::Event(event) => println!("{} = {}", event.name, event.value),
///         Item::Lost(count) => println!("{count} events were overwritten before they could be read"),
///         _ => {}
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Item {
    /// An event.
    Event(Event),
    /// So many events were overwritten before this reader came to them. In a ring of NIXL's own, where
    /// another consumer took them, it is the least that can be said.
    Lost(u64),
    /// So many places belong to a producer that was interrupted while it wrote; no event is known.
    Interrupted(u64),
    /// So many records failed their check: torn by copying a live file, or overwritten by a stranger.
    Unverified(u64),
    /// The file started over: a new producer run. What follows begins at its oldest event.
    Reset {
        /// The new run's instance, `None` in NIXL's own rings.
        instance: Option<u64>,
    },
}

/// One event, whatever layout it came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Event {
    /// Place of the event: the ring position within one instance; in NIXL's own rings a count of what
    /// this reader returned.
    pub seq: u64,
    /// The producer's run, 0 in NIXL's own rings.
    pub instance: u64,
    /// When the operation completed, in microseconds: since the Unix epoch, or since boot where
    /// [`FileInfo::clock`](crate::reader::FileInfo::clock) says so. `None` where the layout has no time.
    pub timestamp_us: Option<u64>,
    /// Where the layout has no time: when this reader saw the event, in Unix microseconds.
    pub observed_us: Option<u64>,
    /// The category that the record stores, `None` where the layout has none.
    pub category: Option<Category>,
    /// The event type: stored, or found by the name. `None` for a name outside the table.
    pub id: Option<u32>,
    /// The event's name.
    pub name: EventName,
    /// Bytes, a count, or microseconds.
    pub value: u64,
}

impl Event {
    /// The stored category, or the one of the event type where the layout has none.
    #[must_use]
    pub fn known_category(&self) -> Option<Category> {
        self.category.or_else(|| Some(names::by_id(self.id?)?.category))
    }

    /// The time of the event, or of its observation where the layout has none.
    #[must_use]
    pub fn any_time_us(&self) -> Option<u64> {
        self.timestamp_us.or(self.observed_us)
    }
}

/// The name of an event: UTF-8 without control characters, at most 31 bytes.
///
/// An event type that the table doesn't know reads `unknown(21)`.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct EventName(Name);

impl EventName {
    /// A name from a file. Control characters become `_`; what is no UTF-8 ends it.
    #[must_use]
    pub fn of(name: &Name) -> EventName {
        EventName(Name::new(name.as_str()).0)
    }

    /// The name of an event type, `unknown(<type>)` for one outside the table.
    pub(crate) fn of_type(id: u32) -> EventName {
        match names::by_id(id) {
            Some(row) => EventName(Name::new(row.name).0),
            None => EventName(Name::new(&format!("unknown({id})")).0),
        }
    }

    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.as_str()
    }
}

impl fmt::Display for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for EventName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(self.as_str(), f)
    }
}

impl PartialEq<str> for EventName {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for EventName {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

/// Names seen lately, cleaned and looked up once: a file holds few, a reader sees millions.
#[derive(Clone)]
pub(crate) struct NameCache {
    rows: Box<[Option<CachedName>; NameCache::ROWS]>,
}

#[derive(Clone, Copy)]
struct CachedName {
    /// The name's 32 bytes.
    stored: [u64; 4],
    clean: EventName,
    id: Option<u32>,
}

impl NameCache {
    const ROWS: usize = 64;
    const FACTORS: [u64; 4] =
        [0x9e37_79b9_7f4a_7c15, 0xbf58_476d_1ce4_e5b9, 0x94d0_49bb_1331_11eb, 0xd6e8_feb8_6659_fd93];

    pub(crate) fn new() -> NameCache {
        NameCache { rows: Box::new([None; NameCache::ROWS]) }
    }

    /// The clean name and the event type of a stored name.
    #[inline]
    pub(crate) fn look_up(&mut self, name: &Name) -> (EventName, Option<u32>) {
        let words: [u64; 4] = std::array::from_fn(|at| u64::from_le_bytes(name.as_bytes().as_chunks().0[at]));
        // Four products that don't wait for each other.
        let products = words.iter().zip(NameCache::FACTORS).map(|(word, factor)| word.wrapping_mul(factor));
        let row = &mut self.rows[(products.fold(0, u64::wrapping_add) >> 58) as usize % NameCache::ROWS];
        match row {
            Some(cached) if cached.stored == words => (cached.clean, cached.id),
            _ => NameCache::learn(row, name, words),
        }
    }

    #[cold]
    fn learn(row: &mut Option<CachedName>, name: &Name, stored: [u64; 4]) -> (EventName, Option<u32>) {
        let clean = EventName::of(name);
        let id = names::by_name(name.text_bytes()).map(|found| found.id);
        *row = Some(CachedName { stored, clean, id });
        (clean, id)
    }
}

/// How a file lays out its bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Layout {
    /// The image that telering writes.
    Image {
        /// Versions with the same major number can be read by each other's readers.
        major: u16,
        /// Raised by additions that older readers skip.
        minor: u16,
    },
    /// One of the rings that NIXL itself writes.
    Nixl(NixlLayout),
}

impl fmt::Display for Layout {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Layout::Image { major, minor } => write!(f, "telering image {major}.{minor}"),
            Layout::Nixl(layout) => write!(f, "NIXL {layout} (version {})", layout.version()),
        }
    }
}

/// What a reader has returned since it was opened.
///
/// For an image that is read to its end, `events + lost + unverified + interrupted` is the number of
/// places between where the reader started and where the producer stands, summed over resets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Events.
    pub events: u64,
    /// Events overwritten before they were read.
    pub lost: u64,
    /// Records that failed their check.
    pub unverified: u64,
    /// Places of an interrupted producer.
    pub interrupted: u64,
}

impl Counts {
    /// All places that were passed.
    #[must_use]
    pub fn total(&self) -> u64 {
        self.events.saturating_add(self.lost).saturating_add(self.unverified).saturating_add(self.interrupted)
    }

    pub(crate) fn add_all(&mut self, other: &Counts) {
        self.events = self.events.saturating_add(other.events);
        self.lost = self.lost.saturating_add(other.lost);
        self.unverified = self.unverified.saturating_add(other.unverified);
        self.interrupted = self.interrupted.saturating_add(other.interrupted);
    }

    pub(crate) fn add(&mut self, item: &Item) {
        let (count, number) = match item {
            Item::Event(_) => (&mut self.events, 1),
            Item::Lost(number) => (&mut self.lost, *number),
            Item::Unverified(number) => (&mut self.unverified, *number),
            Item::Interrupted(number) => (&mut self.interrupted, *number),
            Item::Reset { .. } => return,
        };
        *count = count.saturating_add(number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_outside_the_table_say_so() {
        for (id, text) in [(21, "unknown(21)"), (255, "unknown(255)"), (u32::MAX, "unknown(4294967295)")] {
            assert_eq!(EventName::of_type(id), text);
        }
        assert_eq!(EventName::of_type(8), "agent_err_not_posted");
    }

    #[test]
    fn a_name_with_control_characters_never_reaches_a_terminal() {
        let mut cache = NameCache::new();
        let mut bytes = [0; 32];
        bytes[..9].copy_from_slice(b"\x1b[31mred\n");
        let (name, id) = cache.look_up(&Name::from_bytes(bytes));
        assert_eq!((name.as_str(), id), ("_[31mred_", None));
        assert_eq!(cache.look_up(&Name::from_bytes(bytes)).0, name);
        let known = Name::from_static("NIXL_ERR_CANCELED");
        assert_eq!(cache.look_up(&known).1, Some(18));
        assert_eq!(cache.look_up(&Name::from_bytes([0xff; 32])).0, "_");
    }
}

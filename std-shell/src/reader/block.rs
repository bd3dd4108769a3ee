//! Many records at once, as they stand in the file: for those who work on columns.

use telering_core::check::Oddity;
use telering_core::event::{self, Category, Record};

use super::item::{Counts, Event, Item, NameCache};
use super::survey::survey;

/// Records of an image that lie one after another, and what is missing before and among them.
///
/// Positions count from 0 within one [instance](Block::instance). The records are copies: nothing changes them
/// any more. Names are as they stand in the file, control characters included; what is to be shown goes through
/// [`EventName::of`](super::EventName::of).
///
/// ```no_run
/// use telering::reader::Reader;
/// let mut reader = Reader::open("/dev/shm/telemetry/agent")?;
/// let (mut bytes, mut lost) = (0, 0);
/// while let Some(block) = reader.read_block()? {
///     lost += block.counts().lost;
///     for (_position, records) in block.runs() {
///         bytes += records.iter().filter(|record| record.name.as_str() == "agent_tx_bytes").map(|record| record.value).sum::<u64>();
///     }
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Copy, Debug)]
pub struct Block<'a> {
    reset: bool,
    lost: u64,
    first: u64,
    instance: u64,
    records: &'a [Record],
    gaps: &'a [Gap],
}

/// A place of a block that holds no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Gap {
    /// Index of the place in [`Block::records`].
    pub place: usize,
    /// Why there is no event.
    pub kind: GapKind,
}

/// Why a place holds no event.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum GapKind {
    /// Its event was overwritten: what a copy of a live file holds there is of another lap.
    Lost,
    /// Its producer was interrupted while it wrote.
    Interrupted,
    /// Its record failed the check.
    Unverified,
}

impl<'a> Block<'a> {
    /// Whether the file started over before this block: what follows is another run of the producer.
    #[must_use]
    pub fn reset(&self) -> bool {
        self.reset
    }

    /// Events overwritten between the last block and this one.
    #[must_use]
    pub fn lost_before(&self) -> u64 {
        self.lost
    }

    /// Position of the first record.
    #[must_use]
    pub fn first(&self) -> u64 {
        self.first
    }

    /// The producer's run that wrote these records.
    #[must_use]
    pub fn instance(&self) -> u64 {
        self.instance
    }

    /// The records, at most 4096, those of [`Block::gaps`] included. None where a block only tells of a reset or
    /// a loss.
    #[must_use]
    pub fn records(&self) -> &'a [Record] {
        self.records
    }

    /// The places among the records that hold no event, in order; mostly none.
    #[must_use]
    pub fn gaps(&self) -> &'a [Gap] {
        self.gaps
    }

    /// The events alone: stretches without a gap, none of them empty, each with its first position.
    pub fn runs(&self) -> impl Iterator<Item = (u64, &'a [Record])> + use<'a> {
        let Block { first, records, gaps, .. } = *self;
        let mut begin = 0;
        let ends = gaps.iter().map(|gap| gap.place).chain([records.len()]);
        ends.filter_map(move |end| {
            let from = std::mem::replace(&mut begin, end + 1);
            let run = records.get(from..end).filter(|run| !run.is_empty())?;
            Some((first + from as u64, run))
        })
    }

    /// What this block adds to [`Reader::counts`](super::Reader::counts).
    #[must_use]
    pub fn counts(&self) -> Counts {
        let events = (self.records.len() - self.gaps.len()) as u64;
        let mut counts = Counts { events, lost: self.lost, ..Counts::default() };
        for gap in self.gaps {
            match gap.kind {
                GapKind::Lost => counts.lost = counts.lost.saturating_add(1),
                GapKind::Interrupted => counts.interrupted += 1,
                GapKind::Unverified => counts.unverified += 1,
            }
        }
        counts
    }

    /// The same as items: gaps of one kind that lie side by side are one.
    pub(crate) fn push_items(&self, names: &mut NameCache, out: &mut Vec<Item>) {
        out.reserve(self.records.len() + 2);
        if self.reset {
            out.push(Item::Reset { instance: Some(self.instance) });
        }
        let mut missing = (self.lost > 0).then_some(Item::Lost(self.lost));
        let mut begin = 0;
        for gap in self.gaps {
            if gap.place > begin {
                out.extend(missing.take());
                self.push_events(begin, gap.place, names, out);
            }
            begin = gap.place + 1;
            missing = Some(match (gap.kind, missing) {
                (GapKind::Lost, Some(Item::Lost(count))) => Item::Lost(count.saturating_add(1)),
                (GapKind::Interrupted, Some(Item::Interrupted(count))) => Item::Interrupted(count + 1),
                (GapKind::Unverified, Some(Item::Unverified(count))) => Item::Unverified(count + 1),
                (kind, before) => {
                    out.extend(before);
                    match kind {
                        GapKind::Lost => Item::Lost(1),
                        GapKind::Interrupted => Item::Interrupted(1),
                        GapKind::Unverified => Item::Unverified(1),
                    }
                }
            });
        }
        out.extend(missing);
        self.push_events(begin, self.records.len(), names, out);
    }

    fn push_events(&self, begin: usize, end: usize, names: &mut NameCache, out: &mut Vec<Item>) {
        let (instance, first) = (self.instance, self.first + begin as u64);
        out.extend(self.records[begin..end].iter().enumerate().map(|(place, record)| {
            let (name, id) = names.look_up(&record.name);
            Item::Event(Event {
                seq: first + place as u64,
                instance,
                timestamp_us: Some(record.timestamp_us),
                observed_us: None,
                category: Some(record.category),
                id,
                name,
                value: record.value,
            })
        }));
    }
}

/// A record is one word shorter than a line, so that one of so many records that follow each other begins anywhere in
/// its line.
const PLACES: usize = 8;

/// What a reader holds between two calls: the room for a block, and what the block says.
#[derive(Default)]
pub(crate) struct Held {
    pub(crate) reset: bool,
    pub(crate) lost: u64,
    /// Never made smaller, so that it is zeroed once.
    room: Vec<Record>,
    /// Where in the room the last copy begins.
    base: usize,
    /// The block's part of the room.
    from: usize,
    to: usize,
    /// Position of the first record in the block.
    first: u64,
    gaps: Vec<Gap>,
}

impl Held {
    /// Forgets everything but the room.
    pub(crate) fn clear(&mut self) {
        (self.reset, self.lost) = (false, 0);
        self.drop_records();
    }

    /// Forgets the records.
    pub(crate) fn drop_records(&mut self) {
        (self.from, self.to) = (0, 0);
        self.gaps.clear();
    }

    /// Room for records of a file, `count` of them, as bytes to be overwritten with those that stand at `offset`.
    ///
    /// It lies in its cache lines as they do in theirs: copying between lines that begin at other places takes longer.
    pub(crate) fn room(&mut self, count: usize, offset: u64) -> &mut [u8] {
        self.drop_records();
        if self.room.len() < count + PLACES - 1 {
            self.room.resize(count + PLACES - 1, Record::filler());
        }
        self.base = (self.room.as_ptr().addr() as u64).wrapping_sub(offset) as usize / size_of::<u64>() % PLACES;
        event::file_bytes_of(&mut self.room[self.base..self.base + count])
    }

    /// Takes the records `from..to` of the last room, the first of which stands at the position `first`.
    pub(crate) fn take(&mut self, from: usize, to: usize, first: u64, verify: bool) {
        (self.from, self.to, self.first) = (self.base + from, self.base + to, first);
        let records = &mut self.room[self.from..self.to];
        event::from_file_order(records);
        let gaps = &mut self.gaps;
        gaps.clear();
        if verify {
            survey(first, records, &mut |place, oddity| {
                let kind = match oddity {
                    Oddity::Misfit => GapKind::Unverified,
                    Oddity::Filler => GapKind::Interrupted,
                };
                gaps.push(Gap { place, kind });
            });
        } else {
            let fillers = records.iter().enumerate().filter(|(_, record)| record.category == Category::FILLER);
            gaps.extend(fillers.map(|(place, _)| Gap { place, kind: GapKind::Interrupted }));
        }
    }

    pub(crate) fn has_unverified(&self) -> bool {
        self.gaps.iter().any(|gap| gap.kind == GapKind::Unverified)
    }

    /// Takes records of an earlier lap as they are: what fits is an event; what doesn't was lost, or, while
    /// nothing was `found` yet, is not spoken of. Position of the first that counts, if any does.
    pub(crate) fn keep_fitting(&mut self, found: bool) -> Option<u64> {
        let strangers = self.gaps.iter().zip(0..);
        let leading = strangers.take_while(|(gap, place)| gap.place == *place && gap.kind == GapKind::Unverified);
        let skipped = if found { 0 } else { leading.count() };
        self.gaps.drain(..skipped);
        for gap in &mut self.gaps {
            gap.place -= skipped;
            if gap.kind == GapKind::Unverified {
                gap.kind = GapKind::Lost;
            }
        }
        self.from += skipped;
        self.first += skipped as u64;
        (self.from < self.to).then_some(self.first)
    }

    /// The block, unless it says nothing.
    pub(crate) fn block(&self, instance: u64) -> Option<Block<'_>> {
        let Held { reset, lost, first, .. } = *self;
        let records = &self.room[self.from..self.to];
        let says_something = reset || lost > 0 || !records.is_empty();
        says_something.then_some(Block { reset, lost, first, instance, records, gaps: &self.gaps })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use telering_core::event::RECORD_SIZE;
    use telering_core::layout::nixl::HEADER_SIZE;

    #[test]
    fn what_is_copied_lies_in_its_lines_as_in_the_file() {
        let mut held = Held::default();
        for count in [1, 7, 64, 4096, 3] {
            for slot in 0..20_u64 {
                let offset = HEADER_SIZE as u64 + slot * RECORD_SIZE as u64;
                let room = held.room(count, offset);
                assert_eq!(room.len(), count * RECORD_SIZE);
                assert_eq!(room.as_ptr().addr() as u64 % 64, offset % 64, "{count} records from {slot} on");
            }
        }
    }
}

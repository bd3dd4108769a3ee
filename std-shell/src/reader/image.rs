//! Reading an image: exact about what was overwritten, in a live file and in a copy of one.
//!
//! Control words, records and control words again come from separate reads, in that order, so that a
//! record which was overwritten while it was copied always shows in the second look.

use telering_core::event::{RECORD_SIZE, Record};
use telering_core::layout::image::{Control, Head, control, head};
use telering_core::layout::nixl::{self, Header};
use telering_core::ring::Window;

use super::item::{Event, Item, NameCache};
use super::life::{Liveness, now_us};
use super::read_at::{ReadAt, read_whole};
use super::trouble::{Refused, Trouble, io_at};
use super::{From, MOST_RECORDS};

/// Looks at control words that contradict each other before the image counts as damaged.
const LOOKS: u32 = 3;
/// Copies that were overtaken by the producer before one call gives up and reports the loss.
const ATTEMPTS: u32 = 8;
/// How far back a copy of a live file may reach: its records can be older than its control words.
const LAPS_BACK: u64 = 2;

pub(crate) struct ImageRing {
    head: Head,
    window: Window,
    verify: bool,
    /// First position that is counted.
    start: u64,
    stage: Stage,
    names: NameCache,
    buffer: Vec<u8>,
}

/// Where a reader stands in its run through the image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stage {
    /// The positions made no sense when the file was opened: still to begin.
    Begin(From),
    /// Begun at the oldest; whether this is a copy with events of earlier laps is still to be seen.
    Oldest,
    /// In a file that nobody writes: places that may hold events of earlier laps, up to where the last lap
    /// begins.
    EarlierLaps { until: u64, found: bool },
    /// The positions that the control words promise.
    Promised,
}

/// Two positions that agree with each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Positions {
    pub(crate) committed: u64,
    pub(crate) intent: u64,
}

impl ImageRing {
    pub(crate) fn open(source: &impl ReadAt, head: Head, from: From, verify: bool) -> ImageRing {
        let mut ring = ImageRing {
            window: Window::new(0, head.capacity),
            verify,
            start: 0,
            stage: Stage::Begin(from),
            names: NameCache::new(),
            buffer: Vec::new(),
            head,
        };
        // Where a reader starts is settled when it opens. Positions that make no sense are the first
        // read's trouble, so that such a file can still be inspected.
        if let Ok(positions) = ring.positions(source) {
            ring.begin(from, positions);
        }
        ring
    }

    pub(crate) fn head(&self) -> &Head {
        &self.head
    }

    fn verifies(&self) -> bool {
        self.verify && self.head.checks
    }

    /// The first position that this reader counts, since the last reset.
    pub(crate) fn start(&self) -> u64 {
        self.start
    }

    /// The next items: at most [`MOST_RECORDS`] records, one loss before them and one reset before that.
    pub(crate) fn read(&mut self, source: &impl ReadAt, out: &mut Vec<Item>) -> Result<(), Trouble> {
        let len = source.byte_len().map_err(io_at("ask for its length"))?;
        if len != self.head.image_len {
            return Err(Trouble::Resized { len, needed: self.head.image_len });
        }
        if !self.check_instance(source, len, out)? {
            return Ok(());
        }
        let mut positions = self.positions(source)?;
        if let Stage::Begin(from) = self.stage {
            self.begin(from, positions);
        }
        if positions.intent < self.window.next() {
            // Once can be a look between two stores of another's repair; twice is another run.
            positions = self.positions(source)?;
            if positions.intent < self.window.next() {
                out.push(Item::Reset { instance: Some(self.head.instance) });
                self.begin(From::Oldest, positions);
            }
        }
        if self.stage == Stage::Oldest {
            self.look_for_earlier(source, positions)?;
        }
        if let Stage::EarlierLaps { until, found } = self.stage
            && self.read_earlier(source, until, found, out)?
        {
            return Ok(());
        }
        self.read_promised(source, positions, out)
    }

    /// Looks whether the image is still the one that was opened. `false`: it is being formatted.
    fn check_instance(&mut self, source: &impl ReadAt, len: u64, out: &mut Vec<Item>) -> Result<bool, Trouble> {
        let mut bytes = [0; head::SIZE];
        if !read_whole(source, self.head.extension, &mut bytes).map_err(io_at("read the head"))? {
            return Err(self.ended(source));
        }
        match Head::parse(&bytes, self.head.capacity, len) {
            Ok(head) if head.instance == self.head.instance => Ok(true),
            Ok(head) => {
                out.push(Item::Reset { instance: Some(head.instance) });
                *self = ImageRing::open(source, head, From::Oldest, self.verify);
                Ok(true)
            }
            Err(error) => match Refused::from(error) {
                Refused::NotReady => Ok(false),
                refused => Err(Trouble::Changed(refused)),
            },
        }
    }

    fn begin(&mut self, from: From, positions: Positions) {
        let capacity = self.head.capacity;
        (self.window, self.stage) = match from {
            From::Oldest => (Window::oldest(positions.intent, capacity), Stage::Oldest),
            From::Newest => (Window::new(positions.committed, capacity), Stage::Promised),
        };
        self.start = self.window.next();
    }

    /// In a file that nobody writes: whether records are missing for which earlier ones may be there.
    fn look_for_earlier(&mut self, source: &impl ReadAt, positions: Positions) -> Result<(), Trouble> {
        let capacity = self.head.capacity;
        self.stage = Stage::Promised;
        if self.verifies() && !self.is_alive(source)? && self.holds_strangers(source, positions.committed)? {
            let until = self.window.next();
            self.window = Window::new(until.saturating_sub(LAPS_BACK * capacity), capacity);
            self.stage = Stage::EarlierLaps { until, found: false };
        }
        Ok(())
    }

    /// Whether any record that the control words promise is another one.
    fn holds_strangers(&mut self, source: &impl ReadAt, committed: u64) -> Result<bool, Trouble> {
        let mut position = self.window.next().max(committed.saturating_sub(self.head.capacity));
        while position < committed {
            let count = self.piece(committed - position);
            self.copy(source, position, count)?;
            if !self.copied(position).all(|(position, record)| record.fits(position)) {
                return Ok(true);
            }
            position += count;
        }
        Ok(false)
    }

    /// One piece of the earlier laps at a time, until one holds an event. `true` if it gave items.
    ///
    /// What stands in a place and fits an earlier position is that event. Before the first one found
    /// nothing is known; from there on, what is missing is lost.
    fn read_earlier(
        &mut self,
        source: &impl ReadAt,
        until: u64,
        mut found: bool,
        out: &mut Vec<Item>,
    ) -> Result<bool, Trouble> {
        let items = out.len();
        while self.window.next() < until {
            let first = self.window.next();
            let count = self.piece(until - first);
            self.copy(source, first, count)?;
            let mut run = Run::default();
            let mut names = std::mem::replace(&mut self.names, NameCache::new());
            let mut start = self.start;
            for (position, record) in self.copied(first) {
                if record.fits(position) {
                    if !found {
                        found = true;
                        start = position;
                    }
                    run.record(&record, position, self.head.instance, &mut names, out);
                } else if found {
                    run.add(Item::Lost(1), out);
                }
            }
            run.end(out);
            self.start = start;
            self.names = names;
            self.window = Window::new(first + count, self.head.capacity);
            self.stage = Stage::EarlierLaps { until, found };
            if out.len() > items {
                return Ok(true);
            }
        }
        self.stage = Stage::Promised;
        Ok(false)
    }

    fn read_promised(
        &mut self,
        source: &impl ReadAt,
        positions: Positions,
        out: &mut Vec<Item>,
    ) -> Result<(), Trouble> {
        let mut run = Run::default();
        let result = self.read_run(source, positions, &mut run, out);
        run.end(out);
        result
    }

    fn read_run(
        &mut self,
        source: &impl ReadAt,
        mut positions: Positions,
        run: &mut Run,
        out: &mut Vec<Item>,
    ) -> Result<(), Trouble> {
        for _ in 0..ATTEMPTS {
            let Some(claim) = self.window.claim(positions.committed, MOST_RECORDS) else { break };
            self.copy(source, claim.first, claim.count)?;
            let intent = self.control(source)?.intent;
            let settled = self.window.settle(claim, intent);
            if settled.lost > 0 {
                run.add(Item::Lost(settled.lost), out);
            }
            if settled.count > 0 {
                self.hand_over(claim.first, settled.skip, run, out);
                break;
            }
            positions = self.positions(source)?;
        }
        Ok(())
    }

    fn hand_over(&mut self, first: u64, skip: u64, run: &mut Run, out: &mut Vec<Item>) {
        let verifies = self.verifies();
        let mut names = std::mem::replace(&mut self.names, NameCache::new());
        for (position, record) in self.copied(first).skip(skip as usize) {
            if verifies && !record.fits(position) {
                run.add(Item::Unverified(1), out);
            } else {
                run.record(&record, position, self.head.instance, &mut names, out);
            }
        }
        self.names = names;
    }

    /// How many records one copy takes of those left.
    fn piece(&self, left: u64) -> u64 {
        left.min(MOST_RECORDS).min(self.head.capacity)
    }

    /// Copies records into the buffer, around the end of the ring if need be.
    fn copy(&mut self, source: &impl ReadAt, first: u64, count: u64) -> Result<(), Trouble> {
        let count = self.piece(count);
        let slot = first & (self.head.capacity - 1);
        self.buffer.resize(count as usize * RECORD_SIZE, 0);
        let until_end = (self.head.capacity - slot).min(count) as usize * RECORD_SIZE;
        let (before, behind) = self.buffer.split_at_mut(until_end);
        let start = nixl::HEADER_SIZE as u64;
        let whole = read_whole(source, start + slot * RECORD_SIZE as u64, before)
            .and_then(|whole| Ok(whole && (behind.is_empty() || read_whole(source, start, behind)?)));
        if whole.map_err(io_at("read records"))? { Ok(()) } else { Err(self.ended(source)) }
    }

    fn copied(&self, first: u64) -> impl Iterator<Item = (u64, Record)> {
        let records = self.buffer.as_chunks::<RECORD_SIZE>().0;
        records.iter().zip(first..).map(|(bytes, position)| (position, Record::from_file_bytes(bytes)))
    }

    fn is_alive(&self, source: &impl ReadAt) -> Result<bool, Trouble> {
        let control = self.control(source)?;
        Ok(Liveness::of_image(source.lock_state(), &control, now_us()).is_alive())
    }

    pub(crate) fn control(&self, source: &impl ReadAt) -> Result<Control, Trouble> {
        let mut bytes = [0; control::SIZE];
        let at = self.head.extension + control::START as u64;
        if !read_whole(source, at, &mut bytes).map_err(io_at("read the control words"))? {
            return Err(self.ended(source));
        }
        Ok(Control::parse(&bytes))
    }

    /// Both positions: `committed`, then `intent`, then `committed` again, until they agree.
    pub(crate) fn positions(&self, source: &impl ReadAt) -> Result<Positions, Trouble> {
        let mut last = Positions { committed: 0, intent: 0 };
        for _ in 0..LOOKS {
            let committed = self.control(source)?.committed;
            let intent = self.control(source)?.intent;
            let again = self.control(source)?.committed;
            last = Positions { committed, intent };
            if committed <= intent && intent <= again.saturating_add(self.head.max_batch) {
                return Ok(last);
            }
        }
        // A plain copy takes the two words one after the other, `intent` first. Checks guard the records.
        let Positions { committed, intent } = last;
        if self.head.checks
            && committed > intent
            && committed - intent <= self.head.capacity
            && !self.is_alive(source)?
        {
            return Ok(Positions { committed, intent: committed });
        }
        Err(Trouble::Damaged(format!("{committed} records finished but {intent} announced")))
    }

    fn ended(&self, source: &impl ReadAt) -> Trouble {
        Trouble::Resized { len: source.byte_len().unwrap_or(0), needed: self.head.image_len }
    }
}

/// Gathers neighbouring counts into one item.
#[derive(Default)]
struct Run(Option<Item>);

impl Run {
    fn record(&mut self, record: &Record, position: u64, instance: u64, names: &mut NameCache, out: &mut Vec<Item>) {
        if record.is_filler() {
            return self.add(Item::Interrupted(1), out);
        }
        self.end(out);
        let (name, id) = names.look_up(&record.name);
        out.push(Item::Event(Event {
            seq: position,
            instance,
            timestamp_us: Some(record.timestamp_us),
            observed_us: None,
            category: Some(record.category),
            id,
            name,
            value: record.value,
        }));
    }

    fn add(&mut self, item: Item, out: &mut Vec<Item>) {
        self.0 = match (self.0, item) {
            (Some(Item::Lost(a)), Item::Lost(b)) => Some(Item::Lost(a + b)),
            (Some(Item::Unverified(a)), Item::Unverified(b)) => Some(Item::Unverified(a + b)),
            (Some(Item::Interrupted(a)), Item::Interrupted(b)) => Some(Item::Interrupted(a + b)),
            (before, item) => {
                out.extend(before);
                Some(item)
            }
        };
    }

    fn end(&mut self, out: &mut Vec<Item>) {
        out.extend(self.0.take());
    }
}

/// The head of an image, or `None` where the file is none of ours.
pub(crate) fn probe(source: &impl ReadAt, header: &Header, len: u64) -> Result<Option<Head>, Refused> {
    use telering_core::layout::image::{HeadError, extension_offset};
    let Some(extension) = extension_offset(header.capacity).filter(|_| header.version == 1) else {
        return Ok(None);
    };
    let mut bytes = [0; head::SIZE];
    if !read_whole(source, extension, &mut bytes).map_err(io_at("read the head"))? {
        return Ok(None);
    }
    match Head::parse(&bytes, header.capacity, len) {
        Ok(head) => Ok(Some(head)),
        Err(HeadError::WrongMagic) => Ok(None),
        Err(error) => Err(error.into()),
    }
}

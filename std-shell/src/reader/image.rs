//! Reading an image: exact about what was overwritten, in a live file and in a copy of one.
//!
//! Control words, records and control words again come from separate reads, in that order, so that a
//! record which was overwritten while it was copied always shows in the second look.

use telering_core::event::RECORD_SIZE;
use telering_core::layout::image::{Control, Head, control, head};
use telering_core::layout::nixl::{self, Header};
use telering_core::ring::Window;

use super::block::{Block, Held};
use super::item::{Item, NameCache};
use super::life::{Liveness, now_us};
use super::read_at::{ReadAt, read_whole};
use super::trouble::{Refused, Trouble, io_at};
use super::{From, MOST_ITEMS};

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
    held: Held,
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
            held: Held::default(),
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

    /// The next block as items, at most [`MOST_ITEMS`].
    pub(crate) fn read(&mut self, source: &impl ReadAt, out: &mut Vec<Item>) -> Result<(), Trouble> {
        let result = self.fill(source);
        if let Some(block) = self.held.block(self.head.instance) {
            block.push_items(&mut self.names, out);
        }
        result
    }

    /// What the last [`ImageRing::fill`] found.
    pub(crate) fn block(&self) -> Option<Block<'_>> {
        self.held.block(self.head.instance)
    }

    /// Reads the next block. What was found before a trouble is in the block all the same.
    pub(crate) fn fill(&mut self, source: &impl ReadAt) -> Result<(), Trouble> {
        self.held.clear();
        let len = source.byte_len().map_err(io_at("ask for its length"))?;
        if len != self.head.image_len {
            return Err(Trouble::Resized { len, needed: self.head.image_len });
        }
        let Some(mut positions) = self.look(source, len)? else { return Ok(()) };
        if let Stage::Begin(from) = self.stage {
            self.begin(from, positions);
        }
        if positions.intent < self.window.next() {
            // Once can be a look between two stores of another's repair; twice is another run.
            positions = self.positions(source)?;
            if positions.intent < self.window.next() {
                self.held.reset = true;
                self.begin(From::Oldest, positions);
            }
        }
        if self.stage == Stage::Oldest
            && positions.committed - self.window.next().min(positions.committed) > self.most()
        {
            // Too much for one block, so that a later one may show what has to be known before the first.
            self.look_for_earlier(source, positions)?;
        }
        if let Stage::EarlierLaps { until, found } = self.stage
            && self.read_earlier(source, until, found)?
        {
            return Ok(());
        }
        self.read_promised(source, positions)
    }

    /// One look that tells whether the image is still the one that was opened and where it stands. `None`: it is
    /// being formatted.
    fn look(&mut self, source: &impl ReadAt, len: u64) -> Result<Option<Positions>, Trouble> {
        // The head, and the control line behind it.
        let mut lines = [[0; head::SIZE], [0; control::SIZE]];
        if !read_whole(source, self.head.extension, lines.as_flattened_mut()).map_err(io_at("read the head"))? {
            return Err(self.ended(source));
        }
        match Head::parse(&lines[0], self.head.capacity, len) {
            Ok(head) if head.instance == self.head.instance => {
                // In one copy the words may come in any order. `committed` only grows and never passes `intent`, so
                // where they agree this way round, `committed` was true, and `intent` too old at the most.
                let Control { committed, intent, .. } = Control::parse(&lines[1]);
                if committed <= intent && intent - committed <= self.head.max_batch {
                    return Ok(Some(Positions { committed, intent }));
                }
            }
            Ok(head) => {
                let held = std::mem::take(&mut self.held);
                *self = ImageRing { held, ..ImageRing::open(source, head, From::Oldest, self.verify) };
                self.held.reset = true;
            }
            Err(error) => match Refused::from(error) {
                Refused::NotReady => return Ok(None),
                refused => return Err(Trouble::Changed(refused)),
            },
        }
        self.positions(source).map(Some)
    }

    /// Begins again at the oldest event, with the next block.
    pub(crate) fn rewind(&mut self) {
        self.stage = Stage::Begin(From::Oldest);
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
        self.stage = Stage::Promised;
        if self.verifies() && !self.is_alive(source)? && self.holds_strangers(source, positions.committed)? {
            self.begin_earlier();
        }
        Ok(())
    }

    fn begin_earlier(&mut self) {
        let (until, capacity) = (self.window.next(), self.head.capacity);
        self.window = Window::new(until.saturating_sub(LAPS_BACK * capacity), capacity);
        self.stage = Stage::EarlierLaps { until, found: false };
    }

    /// Whether any record that the control words promise is another one.
    fn holds_strangers(&mut self, source: &impl ReadAt, committed: u64) -> Result<bool, Trouble> {
        let mut position = self.window.next().max(committed.saturating_sub(self.head.capacity));
        while position < committed {
            let count = self.piece(committed - position);
            self.copy(source, position, count)?;
            self.held.take(0, count as usize, position, true);
            let strangers = self.held.has_unverified();
            self.held.drop_records();
            if strangers {
                return Ok(true);
            }
            position += count;
        }
        Ok(false)
    }

    /// One piece of the earlier laps at a time, until one holds an event. `true` if there is one.
    ///
    /// What stands in a place and fits an earlier position is that event. Before the first one found
    /// nothing is known; from there on, what is missing is lost.
    fn read_earlier(&mut self, source: &impl ReadAt, until: u64, mut found: bool) -> Result<bool, Trouble> {
        while self.window.next() < until {
            let first = self.window.next();
            let count = self.piece(until - first);
            self.copy(source, first, count)?;
            self.held.take(0, count as usize, first, true);
            let begins = self.held.keep_fitting(found);
            if let (false, Some(position)) = (found, begins) {
                self.start = position;
                found = true;
            }
            self.window = Window::new(first + count, self.head.capacity);
            self.stage = Stage::EarlierLaps { until, found };
            if begins.is_some() {
                return Ok(true);
            }
        }
        self.held.drop_records();
        self.stage = Stage::Promised;
        Ok(false)
    }

    fn read_promised(&mut self, source: &impl ReadAt, mut positions: Positions) -> Result<(), Trouble> {
        for _ in 0..ATTEMPTS {
            let before = self.window;
            let skips = positions.committed.saturating_sub(self.head.capacity) > before.next();
            let Some(claim) = before.claim(positions.committed, self.most() - u64::from(skips)) else { break };
            self.copy(source, claim.first, claim.count)?;
            let intent = self.control(source)?.intent;
            let settled = self.window.settle(claim, intent);
            self.held.lost = self.held.lost.saturating_add(settled.lost);
            if settled.count > 0 {
                self.held.take(settled.skip as usize, claim.count as usize, settled.first, self.verifies());
                let is_first = std::mem::replace(&mut self.stage, Stage::Promised) == Stage::Oldest;
                if is_first && self.held.lost == 0 && self.held.has_unverified() && !self.is_alive(source)? {
                    // A copy of a live file. Earlier events come first; these are read once more after them.
                    self.held.drop_records();
                    self.window = before;
                    self.begin_earlier();
                    if self.read_earlier(source, before.next(), false)? {
                        break;
                    }
                    continue;
                }
                break;
            }
            positions = self.positions(source)?;
        }
        Ok(())
    }

    /// How many records the next block may have: a reset and a loss before them are items as well.
    fn most(&self) -> u64 {
        MOST_ITEMS - u64::from(self.held.reset) - u64::from(self.held.lost > 0)
    }

    /// How many records one copy takes of those left.
    fn piece(&self, left: u64) -> u64 {
        left.min(self.most()).min(self.head.capacity)
    }

    /// Copies records into the room for them, around the end of the ring if need be.
    fn copy(&mut self, source: &impl ReadAt, first: u64, count: u64) -> Result<(), Trouble> {
        let count = self.piece(count);
        let slot = first & (self.head.capacity - 1);
        let until_end = (self.head.capacity - slot).min(count) as usize * RECORD_SIZE;
        let start = nixl::HEADER_SIZE as u64;
        let at = start + slot * RECORD_SIZE as u64;
        let (before, behind) = self.held.room(count as usize, at).split_at_mut(until_end);
        let whole = read_whole(source, at, before)
            .and_then(|whole| Ok(whole && (behind.is_empty() || read_whole(source, start, behind)?)));
        if whole.map_err(io_at("read records"))? { Ok(()) } else { Err(self.ended(source)) }
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

//! The producer of an image in the memory of a device.

use core::num::NonZeroU64;

use super::Clock;
use crate::event::{RECORD_WORDS, Record, Template, Timestamp};
use crate::image::{FormatError, ImagePlan, PartSet, TakeUpError};
use crate::layout::image::{MAGIC, State, TimeBase, control, head, nixl_header};
use crate::layout::parts::{PartKind, clock};
use crate::ring::{Producer, Ring, attach};
use crate::sync::{AtomicU64, Fault, Ordering, order};

/// The plan of a device's image of `capacity` records: time since boot, and no part but the clock.
///
/// # Errors
/// [`FormatError::Capacity`] unless it is a power of two from 2 to 2^24.
pub const fn plan(capacity: u64) -> Result<ImagePlan, FormatError> {
    ImagePlan::new(capacity, PartSet::NONE.with(PartKind::Clock), TimeBase::Boot)
}

/// Records events of a device into its image. There is one for each image.
///
/// It needs `&mut`: give it to one interrupt, or share it through `Guarded`. Recording takes no lock of its own,
/// never fails and overwrites the oldest event.
#[derive(Debug)]
pub struct Recorder<'m> {
    producer: Producer<'m, RECORD_WORDS>,
    header: &'m [AtomicU64; HEADER_WORDS],
    control: &'m [AtomicU64; CONTROL_WORDS],
    /// Where a stock NIXL reader of a dump begins, masked.
    read: u32,
    mask: u32,
    clock: Clock,
}

const HEADER_WORDS: usize = nixl_header::SIZE / 8;
const CONTROL_WORDS: usize = control::SIZE / 8;

const fn in_control(field: usize) -> usize {
    (field - control::START) / 8
}

/// What the producer of an image works with, cut out of its memory without a place that could panic.
struct Pieces<'m> {
    header: &'m [AtomicU64; HEADER_WORDS],
    ring: Ring<'m, RECORD_WORDS>,
    control: &'m [AtomicU64; CONTROL_WORDS],
}

impl<'m> Pieces<'m> {
    fn of(memory: &'m [AtomicU64], plan: &ImagePlan) -> Option<Pieces<'m>> {
        let capacity = plan.capacity() as usize;
        let header = memory.first_chunk()?;
        let records = memory.get(HEADER_WORDS..)?.get(..capacity * RECORD_WORDS)?.as_chunks().0;
        let control = memory.get(plan.extension_word() + control::START / 8..)?.first_chunk::<CONTROL_WORDS>()?;
        let [intent, committed, ..] = control;
        let ring = Ring::new(intent, committed, records).ok()?;
        Some(Pieces { header, ring, control })
    }
}

/// The ring of an image that was formatted.
pub(super) fn formatted_ring<'m>(memory: &'m [AtomicU64], plan: &ImagePlan) -> Option<Ring<'m, RECORD_WORDS>> {
    // ORDER image-magic: pairs with the release at the end of formatting.
    let magic = memory.get(plan.extension_word() + head::MAGIC / 8)?.load(Ordering::Acquire);
    (u64::from_le(magic) == MAGIC).then(|| Pieces::of(memory, plan).map(|pieces| pieces.ring))?
}

// The pattern above takes them by their place.
const _: () = assert!(in_control(control::INTENT) == 0 && in_control(control::COMMITTED) == 1);

impl<'m> Recorder<'m> {
    /// Formats memory of any content and records into it. The memory must be as long as [`plan`] says, and nobody
    /// else may have a recorder for it.
    ///
    /// # Errors
    /// [`FormatError`]; the memory is not touched then.
    pub fn format(
        memory: &'m [AtomicU64],
        capacity: u64,
        instance: NonZeroU64,
        clock: Clock,
    ) -> Result<Recorder<'m>, FormatError> {
        Recorder::format_as(&plan(capacity)?, memory, false, instance, clock)
    }

    pub(super) fn format_as(
        plan: &ImagePlan,
        memory: &'m [AtomicU64],
        zeroed: bool,
        instance: NonZeroU64,
        clock: Clock,
    ) -> Result<Recorder<'m>, FormatError> {
        let wrong = FormatError::Length { needed: plan.image_len(), found: memory.len() as u64 * 8 };
        let pieces = match Pieces::of(memory, plan) {
            Some(pieces) if memory.len() == plan.words() => pieces,
            _ => return Err(wrong),
        };
        plan.lay_out(memory, zeroed, instance.get(), 0, || put_clock(memory, plan, &clock));
        Ok(Recorder {
            producer: Producer::resume(pieces.ring, 0),
            header: pieces.header,
            control: pieces.control,
            read: 0,
            mask: plan.capacity() as u32 - 1,
            clock,
        })
    }

    /// Goes on with an image that survived a reset: memory that [`Recorder::format`] formatted before. Returns the
    /// recorder and how many records the reset interrupted.
    ///
    /// # Errors
    /// [`TakeUpError`]: format the memory anew.
    pub fn attach(memory: &'m [AtomicU64], capacity: u64, clock: Clock) -> Result<(Recorder<'m>, u64), TakeUpError> {
        let plan = plan(capacity).map_err(|_| TakeUpError::OtherPlan)?;
        Recorder::attach_as(&plan, memory, clock)
    }

    pub(super) fn attach_as(
        plan: &ImagePlan,
        memory: &'m [AtomicU64],
        clock: Clock,
    ) -> Result<(Recorder<'m>, u64), TakeUpError> {
        if ImagePlan::read(memory)? != *plan {
            return Err(TakeUpError::OtherPlan);
        }
        let pieces = Pieces::of(memory, plan).ok_or(TakeUpError::Short { len: memory.len() as u64 * 8 })?;
        let filler = |position| FILLER.sealed(position, Timestamp::new(0), 0);
        let (producer, interrupted) = attach(pieces.ring, filler).map_err(TakeUpError::Positions)?;
        let mask = plan.capacity() as u32 - 1;
        let [_, read_pos, ..] = pieces.header;
        let read = u64::from_le(read_pos.load(Ordering::Relaxed)) as u32 & mask;
        let mut recorder = Recorder { producer, header: pieces.header, control: pieces.control, read, mask, clock };
        recorder.make_readable();
        // A number that is damaged, or there: "so many or more", never "none".
        let boots = recorder.boots().saturating_add(1);
        recorder.put(in_control(control::BOOTS), u64::from(boots));
        recorder.set_state(State::Open);
        put_clock(memory, plan, &clock);
        Ok((recorder, interrupted))
    }

    /// Records one event that happened now.
    #[inline]
    pub fn record(&mut self, event: &Template, value: u64) {
        self.record_at(event, self.clock.ticks(), value);
    }

    /// Records one event that happened when the clock stood at `ticks`.
    #[inline]
    pub fn record_at(&mut self, event: &Template, ticks: u64, value: u64) {
        let time = Timestamp::new(self.clock.microseconds(ticks));
        self.push(event.sealed(self.producer.position(), time, value));
    }

    /// Records the words of a record that were made elsewhere. Readers leave it out and count it if its check word is
    /// not the one of the position [`Recorder::written`].
    #[inline]
    pub fn push(&mut self, words: [u64; RECORD_WORDS]) {
        self.make_room();
        self.producer.push(words);
        self.make_readable();
    }

    /// Events recorded since the image was formatted, those of earlier boots and interrupted ones included: the
    /// position of the next one.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.producer.position()
    }

    /// How often the image was attached after a reset.
    #[must_use]
    pub fn boots(&self) -> u32 {
        u64::from_le(self.control[in_control(control::BOOTS)].load(Ordering::Relaxed)) as u32
    }

    /// The clock.
    #[must_use]
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// Says in the image that the device is at work. Call it once a second, if anybody watches.
    pub fn heartbeat(&mut self) {
        self.heartbeat_at(self.clock.ticks());
    }

    /// Says that the device was at work when the clock stood at `ticks`.
    pub fn heartbeat_at(&mut self, ticks: u64) {
        self.put(in_control(control::HEARTBEAT), self.clock.microseconds(ticks));
    }

    /// Marks the image as closed in good order: what is read from it is all there was.
    pub fn close(self) {
        let now = self.clock.ticks();
        self.close_at(now);
    }

    /// Marks the image as closed when the clock stood at `ticks`.
    pub fn close_at(mut self, ticks: u64) {
        self.heartbeat_at(ticks);
        self.set_state(State::Closed);
    }

    fn put(&self, word: usize, value: u64) {
        if let Some(word) = self.control.get(word) {
            word.store(value.to_le(), Ordering::Relaxed);
        }
    }

    fn set_state(&mut self, state: State) {
        let word = u64::from(state.number()) | u64::from(TimeBase::Boot.number()) << 32;
        self.put(in_control(control::STATE), word);
    }

    /// FORMAT.md section 19. No stock reader runs beside us on a device, so the index is ours alone; it makes a dump
    /// readable for one.
    #[inline(always)]
    fn make_room(&mut self) {
        let write = self.producer.position() as u32 & self.mask;
        let used = write.wrapping_sub(self.read) & self.mask;
        if used == self.mask {
            let quarter = (self.mask / 4).wrapping_add(1);
            self.read = self.read.wrapping_add(quarter.min(used)) & self.mask;
            let [_, read_pos, ..] = self.header;
            read_pos.store(u64::from(self.read).to_le(), Ordering::Relaxed);
        }
    }

    #[inline(always)]
    fn make_readable(&self) {
        let [write_pos, ..] = self.header;
        let index = self.producer.position() as u32 & self.mask;
        // As in an image of a host: a stock reader that sees this index also sees the records before it.
        write_pos.store(u64::from(index).to_le(), order(Ordering::Release, Fault::ImageRelaxedWritePos));
    }
}

const _: () = assert!(nixl_header::WRITE_POS == 0 && nixl_header::READ_POS == 8 && head::SIZE == control::START);

static FILLER: Template = Template::of(&Record::filler());

fn put_clock(memory: &[AtomicU64], plan: &ImagePlan, info: &Clock) {
    // Given by the application; its rate told, not measured.
    const GIVEN: u64 = 4 | 2 << 32;
    let Some(part) = plan.part_word(PartKind::Clock) else { return };
    for (byte, value) in [(clock::SOURCE, GIVEN), (clock::RATE, u64::from(info.rate()))] {
        if let Some(word) = memory.get(part + byte / 8) {
            word.store(value.to_le(), Ordering::Relaxed);
        }
    }
}

//! The telemetry image in memory: formatted, attached after a reset, written.
//!
//! It works on any `&[AtomicU64]`: a mapped file, a static array, the heap. [`ImageState`] holds what
//! the producer knows for itself; [`ImageState::on`] lays it over the memory for a few writes. Whatever
//! others write into that memory meanwhile, the producer keeps its positions and its bounds.

mod format;
mod publish;

pub use format::{FormatError, Identity, ImagePlan, PartSet};
pub use publish::Prepared;

use static_assertions::{assert_impl_all, assert_not_impl_any};

use crate::event::{RECORD_WORDS, Record};
use crate::layout::image::{self, State, control, nixl_header};
use crate::ring::{AttachError, Producer, Ring, attach};
use crate::sync::{AtomicU64, Fault, Ordering, order};

/// What the producer of an image knows for itself.
#[derive(Debug)]
pub struct ImageState {
    plan: ImagePlan,
    next: u64,
    metrics_generation: u64,
    state: State,
    boots: u32,
}

/// An image, ready to be written.
#[derive(Debug)]
pub struct Image<'m, 's> {
    memory: &'m [AtomicU64],
    state: &'s mut ImageState,
}

// A copy would write from an old position, over records that readers believe to be whole.
assert_not_impl_any!(ImageState: Clone, Copy);
assert_impl_all!(ImageState: Send);

impl ImageState {
    /// Where everything stands.
    #[must_use]
    pub fn plan(&self) -> &ImagePlan {
        &self.plan
    }

    /// Records written since the image was formatted.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.next
    }

    /// Lays the image over its memory; `None` if the memory is not as long as the image.
    pub fn on<'m, 's>(&'s mut self, memory: &'m [AtomicU64]) -> Option<Image<'m, 's>> {
        (memory.len() == self.plan.words()).then_some(Image { memory, state: self })
    }
}

impl Image<'_, '_> {
    fn ring(&self) -> Ring<'_, RECORD_WORDS> {
        let capacity = self.state.plan.capacity() as usize;
        let start = nixl_header::SIZE / 8;
        let records = self.memory[start..start + capacity * RECORD_WORDS].as_chunks().0;
        let at = |field: usize| &self.memory[self.state.plan.extension_word() + field / 8];
        match Ring::new(at(control::INTENT), at(control::COMMITTED), records) {
            Ok(ring) => ring,
            Err(_) => unreachable!("the plan's capacity is a power of two"),
        }
    }

    fn at(&self, byte: usize) -> &AtomicU64 {
        &self.memory[byte / 8]
    }

    fn extension(&self, field: usize) -> &AtomicU64 {
        &self.memory[self.state.plan.extension_word() + field / 8]
    }

    fn put(&self, word: &AtomicU64, value: u64) {
        word.store(value.to_le(), Ordering::Relaxed);
    }

    /// Records that one batch may have.
    #[must_use]
    pub fn max_batch(&self) -> u64 {
        image::max_batch(self.state.plan.capacity())
    }

    /// Writes one event over the oldest.
    pub fn push(&mut self, record: Record) {
        self.push_batch(1, |position| record.sealed(position).to_words());
    }

    /// Writes `count` records that readers see together. `words(position)` gives each, its check word included.
    ///
    /// # Panics
    /// If `count` is more than [`Image::max_batch`].
    pub fn push_batch(&mut self, count: u64, words: impl FnMut(u64) -> [u64; RECORD_WORDS]) {
        self.make_room(count);
        let mut producer = Producer::resume(self.ring(), self.state.next);
        producer.push_batch(count, words);
        self.state.next = producer.position();
        let mask = self.state.plan.capacity() - 1;
        // ORDER nixl-write: a stock reader that sees this index also sees the records before it.
        let write_pos = self.at(nixl_header::WRITE_POS);
        write_pos.store((self.state.next & mask).to_le(), order(Ordering::Release, Fault::ImageRelaxedWritePos));
    }

    /// Records written since the image was formatted: the position of the next one.
    #[must_use]
    pub fn written(&self) -> u64 {
        self.state.next
    }

    /// Writes records that readers see together. They were sealed before, for the positions from
    /// [`Image::written`] on, so that all that is left to do with the shared memory is a copy.
    ///
    /// # Panics
    /// If there are more than [`Image::max_batch`].
    pub fn push_sealed(&mut self, records: &[[u64; RECORD_WORDS]]) {
        let first = self.state.next;
        self.push_batch(records.len() as u64, |position| records[position.wrapping_sub(first) as usize]);
    }

    /// Frees slots for a stock NIXL reader that is behind. Our own readers never look at these indices.
    ///
    /// The reader stores its index without looking, so this can't be exact; it only has to keep both
    /// sides inside the ring. What stands there is masked and believed no further.
    fn make_room(&self, count: u64) {
        let capacity = self.state.plan.capacity();
        let mask = capacity - 1;
        let write = self.state.next & mask;
        let read_pos = self.at(nixl_header::READ_POS);
        for attempt in 0..3 {
            let raw = read_pos.load(Ordering::Acquire);
            let read = u64::from_le(raw) & mask;
            let used = write.wrapping_sub(read) & mask;
            if capacity - 1 - used >= count {
                return;
            }
            let freed = (read + count.max(capacity / 4).min(used)) & mask;
            if attempt == 2 {
                read_pos.store(freed.to_le(), Ordering::Relaxed);
            } else if read_pos.compare_exchange(raw, freed.to_le(), Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return;
            }
        }
    }

    /// Says that the producer is there.
    pub fn set_heartbeat(&mut self, now_us: u64) {
        self.put(self.extension(control::HEARTBEAT), now_us);
    }

    /// Marks the image as closed in good order.
    pub fn close(&mut self, now_us: u64) {
        self.set_heartbeat(now_us);
        self.set_state(State::Closed);
    }

    fn set_state(&mut self, state: State) {
        self.state.state = state;
        let word = u64::from(state.number()) | u64::from(self.state.plan.time_base().number()) << 32;
        self.put(self.extension(control::STATE), word);
    }

    /// Takes up an image that survived a reset: memory that was formatted before. Returns the state and
    /// the number of records that the reset interrupted, each now a filler.
    ///
    /// # Errors
    /// [`TakeUpError`]: format the memory anew.
    pub fn take_up(memory: &[AtomicU64]) -> Result<(ImageState, u64), TakeUpError> {
        let plan = ImagePlan::read(memory)?;
        let mut state = ImageState { plan, next: 0, metrics_generation: 0, state: State::Open, boots: 0 };
        let image = Image { memory, state: &mut state };
        let generation = u64::from_le(image.extension(control::METRICS_GENERATION).load(Ordering::Relaxed));
        let boots = u64::from_le(image.extension(control::BOOTS).load(Ordering::Relaxed)) as u32;
        let filler = |position| Record::filler().sealed(position).to_words();
        let (producer, fillers) = attach(image.ring(), filler).map_err(TakeUpError::Positions)?;
        let next = producer.position();
        state.next = next;
        state.metrics_generation = generation;
        state.boots = boots.saturating_add(1);
        let mut image = Image { memory, state: &mut state };
        let mask = plan.capacity() - 1;
        image.at(nixl_header::WRITE_POS).store((next & mask).to_le(), Ordering::Release);
        image.put(image.extension(control::BOOTS), u64::from(image.state.boots));
        image.set_state(State::Open);
        Ok((state, fillers))
    }
}

/// Why memory can't be taken up after a reset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TakeUpError {
    /// The memory holds no image that this code writes.
    Head(image::HeadError),
    /// The memory is too short for the image it claims to hold.
    Short {
        /// Bytes of memory.
        len: u64,
    },
    /// An image of another capacity, with other parts or another time base: another program's.
    OtherPlan,
    /// The ring's positions contradict each other.
    Positions(AttachError),
}

impl core::fmt::Display for TakeUpError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            TakeUpError::Head(error) => error.fmt(f),
            TakeUpError::Short { len } => write!(f, "{len} bytes hold no image: format the memory anew"),
            TakeUpError::OtherPlan => f.write_str("an image of another shape: format the memory anew"),
            TakeUpError::Positions(error) => error.fmt(f),
        }
    }
}

impl core::error::Error for TakeUpError {}

//! Laying out an image: which parts it has, where they stand, and writing the constant bytes.

use bitset::contains;

use super::{ImageState, TakeUpError};
use crate::layout::image::{
    BYTE_ORDER, FLAG_CHECKS, Head, HeadError, MAGIC, MAJOR, MINOR, PART_ROW_SIZE, RECORD_KIND, State, TimeBase,
    control, extension_offset, head, max_batch, nixl_header,
};
use crate::layout::parts::{PartKind, PartRow, dynamic, identity, metrics};
use crate::sync::{AtomicU64, Fault, Ordering, order};

/// Which parts an image has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartSet(u8);

impl PartSet {
    /// None: the smallest image.
    pub const NONE: PartSet = PartSet(0);
    /// All that this code writes.
    pub const ALL: PartSet = PartSet(0b11_1111);

    /// This set and one part more.
    #[must_use]
    pub const fn with(self, kind: PartKind) -> PartSet {
        PartSet(self.0 | 1 << (kind as u32 - 1))
    }

    /// Whether a part is in the set.
    #[must_use]
    pub const fn has(self, kind: PartKind) -> bool {
        contains(self.0, kind)
    }

    fn kinds(self) -> impl Iterator<Item = PartKind> {
        PartKind::ALL.into_iter().filter(move |&kind| self.has(kind))
    }
}

mod bitset {
    use super::PartKind;

    pub(super) const fn contains(set: u8, kind: PartKind) -> bool {
        set & (1 << (kind as u32 - 1)) != 0
    }
}

/// Where everything stands in one image.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImagePlan {
    capacity: u64,
    extension: u64,
    /// Offset of each part by its place in [`PartKind::ALL`], 0 where absent.
    parts: [u64; PartKind::ALL.len()],
    len: u64,
    time_base: TimeBase,
}

/// Why an image can't be formatted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FormatError {
    /// The capacity is no power of two from 2 to 2^24.
    Capacity {
        /// The capacity asked for.
        capacity: u64,
    },
    /// The memory is not as long as the image.
    Length {
        /// Bytes of the image.
        needed: u64,
        /// Bytes of the memory.
        found: u64,
    },
    /// The instance id is 0.
    Instance,
    /// More histogram bounds than there is room for.
    Bounds {
        /// How many there are.
        bounds: usize,
    },
}

impl core::fmt::Display for FormatError {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        match self {
            FormatError::Capacity { capacity } => {
                write!(f, "a capacity of {capacity} events: it must be a power of two from 2 to 16777216")
            }
            FormatError::Length { needed, found } => {
                write!(f, "the image needs exactly {needed} bytes of memory, {found} were given")
            }
            FormatError::Instance => f.write_str("the instance id must not be 0: give a random number"),
            FormatError::Bounds { bounds } => {
                write!(f, "{bounds} histogram bounds: {} at the most", metrics::BOUNDS_MAX)
            }
        }
    }
}

impl core::error::Error for FormatError {}

/// Who writes an image. Texts that are too long are cut at a character boundary.
#[derive(Clone, Copy, Debug, Default)]
pub struct Identity<'a> {
    /// Process id.
    pub pid: u64,
    /// Start of the process in clock ticks since boot, 0 unknown.
    pub process_start: u64,
    /// UUID of the boot, 0 unknown.
    pub boot_id: [u8; 16],
    /// Counter of agents within the process.
    pub agent_instance: u64,
    /// User id.
    pub uid: u64,
    /// Name and version of the writing library.
    pub writer: &'a str,
    /// Host name.
    pub hostname: &'a str,
    /// Agent name.
    pub agent: &'a str,
    /// Rank, empty where there is none.
    pub rank: &'a str,
}

impl ImagePlan {
    /// Plans an image of `capacity` records.
    ///
    /// # Errors
    /// [`FormatError::Capacity`] unless it is a power of two from 2 to 2^24.
    pub const fn new(capacity: u64, parts: PartSet, time_base: TimeBase) -> Result<ImagePlan, FormatError> {
        let Some(extension) = extension_offset(capacity) else {
            return Err(FormatError::Capacity { capacity });
        };
        let mut plan = ImagePlan { capacity, extension, parts: [0; PartKind::ALL.len()], len: 0, time_base };
        let mut count = 0;
        let mut place = 0;
        while place < PartKind::ALL.len() {
            count += contains(parts.0, PartKind::ALL[place]) as u64;
            place += 1;
        }
        let mut offset = (extension + control::PART_TABLE as u64 + count * PART_ROW_SIZE as u64).next_multiple_of(64);
        place = 0;
        while place < PartKind::ALL.len() {
            if contains(parts.0, PartKind::ALL[place]) {
                plan.parts[place] = offset;
                offset += PartKind::ALL[place].size();
            }
            place += 1;
        }
        plan.len = offset;
        Ok(plan)
    }

    /// Records of the ring.
    #[must_use]
    pub const fn capacity(&self) -> u64 {
        self.capacity
    }

    /// Bytes of the image.
    #[must_use]
    pub const fn image_len(&self) -> u64 {
        self.len
    }

    /// 64-bit words of the image.
    #[must_use]
    pub const fn words(&self) -> usize {
        (self.len / 8) as usize
    }

    /// What timestamps count.
    #[must_use]
    pub const fn time_base(&self) -> TimeBase {
        self.time_base
    }

    pub(crate) const fn extension_word(&self) -> usize {
        (self.extension / 8) as usize
    }

    /// Index of the first word of a part, `None` where the image has none.
    pub(crate) fn part_word(&self, kind: PartKind) -> Option<usize> {
        match self.part_offset(kind) {
            0 => None,
            offset => Some((offset / 8) as usize),
        }
    }

    fn part_offset(&self, kind: PartKind) -> u64 {
        self.parts.get(kind as usize - 1).copied().unwrap_or_default()
    }

    fn part_set(&self) -> PartSet {
        PartKind::ALL.into_iter().filter(|&kind| self.part_word(kind).is_some()).fold(PartSet::NONE, PartSet::with)
    }

    /// Formats memory. `zeroed` says that every word of it is 0 already (a fresh file), which saves
    /// touching the records. The image is open and its magic number written when this returns.
    ///
    /// # Errors
    /// [`FormatError`]; the memory is not touched then.
    pub fn format(
        &self,
        memory: &[AtomicU64],
        zeroed: bool,
        instance: u64,
        created_us: u64,
        identity: &Identity<'_>,
        bounds: &[u64],
    ) -> Result<ImageState, FormatError> {
        if memory.len() != self.words() {
            return Err(FormatError::Length { needed: self.len, found: memory.len() as u64 * 8 });
        }
        if instance == 0 {
            return Err(FormatError::Instance);
        }
        if bounds.len() > metrics::BOUNDS_MAX {
            return Err(FormatError::Bounds { bounds: bounds.len() });
        }
        self.lay_out(memory, zeroed, instance, created_us, || self.put_parts(memory, created_us, identity, bounds));
        Ok(ImageState { plan: *self, next: 0, metrics_generation: 0, state: State::Open, boots: 0 })
    }

    /// Everything of formatting but the parts, which `put_parts` writes. The memory is as long as the image. Without a
    /// place that could panic: firmware links it.
    pub(crate) fn lay_out(
        &self,
        memory: &[AtomicU64],
        zeroed: bool,
        instance: u64,
        created_us: u64,
        put_parts: impl FnOnce(),
    ) {
        let Some(magic) = memory.get(self.extension_word() + head::MAGIC / 8) else { return };
        // The magic goes first and comes last: whoever looks in between sees an unfinished image.
        magic.store(0, Ordering::Release);
        if !zeroed {
            memory.iter().for_each(|word| word.store(0, Ordering::Relaxed));
        }
        let put = |byte: usize, value: u64| {
            if let Some(word) = memory.get(byte / 8) {
                word.store(value.to_le(), Ordering::Relaxed);
            }
        };
        self.put_constants(put, instance, created_us);
        put_parts();
        let state = u64::from(State::Open.number()) | u64::from(self.time_base.number()) << 32;
        put(self.extension as usize + control::STATE, state);
        // ORDER image-magic: whoever sees the magic number sees everything above.
        magic.store(MAGIC.to_le(), order(Ordering::Release, Fault::ImageRelaxedMagic));
    }

    fn put_parts(&self, memory: &[AtomicU64], created_us: u64, identity: &Identity<'_>, bounds: &[u64]) {
        let put = |byte: usize, value: u64| memory[byte / 8].store(value.to_le(), Ordering::Relaxed);
        if let Some(start) = self.part_word(PartKind::Identity) {
            put_identity(&memory[start..], identity);
        }
        if let Some(start) = self.part_word(PartKind::Metrics) {
            let put = |byte: usize, value: u64| put(start * 8 + byte, value);
            put(metrics::COUNTS, metrics::ENTRIES as u64 | (metrics::HISTOGRAMS as u64) << 32);
            let statuses = crate::status::STATUS_COUNT as u64;
            put(metrics::BOUNDS_AND_STATUSES, bounds.len() as u64 | statuses << 32);
            put(metrics::COPY_SIZE_AT, metrics::COPY_SIZE as u64);
            for (place, &bound) in bounds.iter().enumerate() {
                put(metrics::BOUNDS + place * 8, bound);
            }
        }
        if let Some(start) = self.part_word(PartKind::Dynamic) {
            put(start * 8 + dynamic::ROOM_AT, dynamic::ROOM as u64);
            put(start * 8 + dynamic::COPY_SIZE_AT, dynamic::COPY_SIZE as u64);
        }
        if self.time_base == TimeBase::Unix {
            put(self.extension as usize + control::HEARTBEAT, created_us);
        }
    }

    fn put_constants(&self, put: impl Fn(usize, u64), instance: u64, created_us: u64) {
        put(nixl_header::VERSION, 1 | 1 << 32);
        put(nixl_header::CAPACITY, self.capacity);
        put(nixl_header::MASK, self.capacity - 1);
        let start = self.extension as usize;
        let parts = self.part_set();
        let count = parts.kinds().count() as u64;
        put(start + head::VERSION, u64::from(MAJOR) | u64::from(MINOR) << 16 | u64::from(BYTE_ORDER) << 32);
        put(start + head::IMAGE_LEN, self.len);
        put(start + head::CAPACITY, self.capacity);
        put(start + head::RECORD, crate::event::RECORD_SIZE as u64 | u64::from(RECORD_KIND) << 32);
        put(start + head::BATCH, max_batch(self.capacity) | count << 32 | u64::from(FLAG_CHECKS) << 48);
        put(start + head::INSTANCE, instance);
        put(start + head::CREATED, created_us);
        for (row, kind) in parts.kinds().enumerate() {
            let at = start + control::PART_TABLE + row * PART_ROW_SIZE;
            put(at, kind as u64 | u64::from(PartKind::VERSION) << 32);
            put(at + 8, self.part_offset(kind));
            put(at + 16, kind.size());
        }
    }

    /// The plan of memory that was formatted before, as its own head tells it.
    pub(crate) fn read(memory: &[AtomicU64]) -> Result<ImagePlan, TakeUpError> {
        let len = memory.len() as u64 * 8;
        let word = |byte: usize| memory.get(byte / 8).map(|word| u64::from_le(word.load(Ordering::Acquire)));
        let capacity = word(nixl_header::CAPACITY).ok_or(TakeUpError::Short { len })?;
        let start = extension_offset(capacity).unwrap_or(nixl_header::SIZE as u64) as usize;
        let mut bytes = [0; head::SIZE];
        for (place, bytes) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
            *bytes = word(start + place * 8).ok_or(TakeUpError::Short { len })?.to_le_bytes();
        }
        let head = Head::parse(&bytes, capacity, len).map_err(TakeUpError::Head)?;
        let state = word(start + control::STATE).ok_or(TakeUpError::Short { len })?;
        let time_base = TimeBase::from_number((state >> 32) as u32);
        let mut plan = ImagePlan { capacity, extension: head.extension, parts: [0; 6], len, time_base };
        for row in 0..head.part_count {
            let mut bytes = [0; PART_ROW_SIZE];
            for (place, bytes) in bytes.as_chunks_mut().0.iter_mut().enumerate() {
                let at = start + control::PART_TABLE + row * PART_ROW_SIZE + place * 8;
                *bytes = word(at).unwrap_or_default().to_le_bytes();
            }
            let row = PartRow::parse(&bytes);
            let Some(kind) = PartKind::ALL.into_iter().find(|&kind| kind as u32 == row.kind) else { continue };
            let Some(place) = plan.parts.get_mut(kind as usize - 1) else { continue };
            // Readers take the first row of a kind.
            if *place != 0 {
                continue;
            }
            // A part of another shape would go on showing the numbers of the run before as current.
            let behind_table = row.offset >= head.extension + control::PART_TABLE as u64;
            if row.version != PartKind::VERSION || row.len != kind.size() || !row.lies_inside(len) || !behind_table {
                let damaged = HeadError::Damaged { field: "part size", found: row.len, expected: kind.size() };
                return Err(TakeUpError::Head(damaged));
            }
            *place = row.offset;
        }
        Ok(plan)
    }
}

fn put_identity(part: &[AtomicU64], who: &Identity<'_>) {
    let put = |byte: usize, value: u64| part[byte / 8].store(value.to_le(), Ordering::Relaxed);
    let (low, high) = who.boot_id.split_at(8);
    put(identity::PID, who.pid);
    put(identity::PROCESS_START, who.process_start);
    put(identity::BOOT_ID, crate::layout::image::u64_at(low, 0));
    put(identity::BOOT_ID + 8, crate::layout::image::u64_at(high, 0));
    put(identity::AGENT_INSTANCE, who.agent_instance);
    put(identity::UID, who.uid);
    for ((start, size), text) in [
        (identity::WRITER, who.writer),
        (identity::HOSTNAME, who.hostname),
        (identity::AGENT, who.agent),
        (identity::RANK, who.rank),
    ] {
        // A NUL always ends the text, as for any reader in C.
        let text = &text.as_bytes()[..text.floor_char_boundary(size - 1)];
        for (place, bytes) in text.chunks(8).enumerate() {
            let mut word = [0; 8];
            word[..bytes.len()].copy_from_slice(bytes);
            put(start + place * 8, u64::from_le_bytes(word));
        }
    }
}

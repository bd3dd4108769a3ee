//! What the tests of the readers share: rings and images made by hand.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::cell::{Cell, RefCell};
use std::io;
use std::path::Path;

use telering::reader::{Engine, Event, Item, LockState, NixlLayout, ReadAt, ReaderOptions};
use telering_core::event::Record;
use telering_core::image::{Identity, ImagePlan, ImageState, PartSet};
use telering_core::layout::image::TimeBase;
use telering_core::sync::{AtomicU64, Ordering};
use telering_core::{Name, names};

/// A NIXL ring as its producer makes it: it drops the newest when nobody consumes.
#[derive(Clone)]
pub struct NixlFile {
    pub layout: NixlLayout,
    pub bytes: Vec<u8>,
}

impl NixlFile {
    pub fn new(layout: NixlLayout, capacity: u64) -> NixlFile {
        let mut file = NixlFile { layout, bytes: vec![0; layout.file_len(capacity).unwrap() as usize] };
        file.put(24, capacity);
        file.put(32, capacity - 1);
        file.set_version(layout.version());
        file
    }

    pub fn set_version(&mut self, version: u32) {
        self.bytes[16..20].copy_from_slice(&version.to_le_bytes());
        self.bytes[20..24].copy_from_slice(&version.to_le_bytes());
    }

    pub fn put(&mut self, at: usize, number: u64) {
        self.bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
    }

    pub fn get(&self, at: usize) -> u64 {
        u64::from_le_bytes(self.bytes[at..at + 8].try_into().unwrap())
    }

    /// Sets both indices back, as a producer that starts again does; old records stay.
    pub fn restart(&mut self) {
        self.put(0, 0);
        self.put(8, 0);
    }

    /// `false` when the ring is full.
    pub fn push(&mut self, id: u32, value: u64) -> bool {
        let (write, read, capacity) = (self.get(0), self.get(8), self.get(24));
        let next = (write + 1) & (capacity - 1);
        if next == read {
            return false;
        }
        let size = self.layout.record_size();
        let at = 40 + write as usize * size;
        let row = names::by_id(id);
        let category = row.map_or(9, |row| row.category.0).to_le_bytes();
        let name = *Name::new(row.map_or("backend thing", |row| row.file_name())).0.as_bytes();
        let record = &mut self.bytes[at..at + size];
        match self.layout {
            NixlLayout::L1 => {
                record[..8].copy_from_slice(&(1_000_000 + value).to_le_bytes());
                record[8..12].copy_from_slice(&category);
                record[12..44].copy_from_slice(&name);
            }
            NixlLayout::L2a => {
                record[..4].copy_from_slice(&category);
                record[4..36].copy_from_slice(&name);
            }
            NixlLayout::L2b => {
                record[..4].copy_from_slice(&category);
                record[4..8].copy_from_slice(&id.to_le_bytes());
            }
            NixlLayout::L3 | NixlLayout::L4 => record[..4].copy_from_slice(&id.to_le_bytes()),
        }
        record[size - 8..].copy_from_slice(&value.to_le_bytes());
        self.put(0, next);
        true
    }

    /// Writes the bytes into the same inode.
    pub fn write_to(&self, path: &Path) {
        std::fs::write(path, &self.bytes).unwrap();
    }
}

/// An image in memory and its producer.
pub struct TestImage {
    pub memory: Vec<AtomicU64>,
    pub state: ImageState,
}

pub const AGENT: &str = "agent \"one\"";

/// The event that stands at a position: everything about it is a function of the position.
pub fn record_at(position: u64) -> Record {
    let id = (position % 21) as u32;
    let row = names::by_id(id).unwrap();
    Record::new(
        1_700_000_000_000_000 + position,
        row.category,
        Name::new(row.file_name()).0,
        position.wrapping_mul(0x9e37_79b9_7f4a_7c15),
    )
}

/// Whether an event is the one of its position.
pub fn is_own(event: &Event) -> bool {
    let record = record_at(event.seq);
    event.timestamp_us == Some(record.timestamp_us)
        && event.category == Some(record.category)
        && event.name == record.name.as_str()
        && event.value == record.value
        && event.id == Some((event.seq % 21) as u32)
}

impl TestImage {
    pub fn new(capacity: u64, instance: u64) -> TestImage {
        TestImage::with_parts(capacity, instance, PartSet::ALL)
    }

    pub fn with_parts(capacity: u64, instance: u64, parts: PartSet) -> TestImage {
        let plan = ImagePlan::new(capacity, parts, TimeBase::Unix).unwrap();
        let memory: Vec<AtomicU64> = (0..plan.words()).map(|_| AtomicU64::new(0)).collect();
        let identity = Identity {
            pid: 4242,
            agent: AGENT,
            hostname: "host",
            rank: "3",
            writer: "telering test",
            boot_id: [7; 16],
            ..Identity::default()
        };
        let state = plan.format(&memory, true, instance, 1_700_000_000_000_000, &identity, &[10, 100, 1000]).unwrap();
        TestImage { memory, state }
    }

    /// Writes the next `count` events.
    pub fn push(&mut self, count: u64) {
        for _ in 0..count {
            let position = self.state.written();
            self.state.on(&self.memory).unwrap().push(record_at(position));
        }
    }

    /// Writes `count` events as one batch.
    pub fn push_batch(&mut self, count: u64) {
        let words = |position| record_at(position).sealed(position).to_words();
        self.state.on(&self.memory).unwrap().push_batch(count, words);
    }

    pub fn written(&self) -> u64 {
        self.state.written()
    }

    pub fn extension(&self) -> usize {
        let capacity = self.state.plan().capacity();
        telering_core::layout::image::extension_offset(capacity).unwrap() as usize
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.memory.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
    }

    pub fn read_word(&self, word: usize) -> [u8; 8] {
        self.memory[word].load(Ordering::Acquire).to_ne_bytes()
    }
}

/// A word of a dumped image.
pub fn put(bytes: &mut [u8], at: usize, number: u64) {
    bytes[at..at + 8].copy_from_slice(&number.to_le_bytes());
}

pub fn events(items: &[Item]) -> Vec<Event> {
    items.iter().filter_map(|item| if let Item::Event(event) = item { Some(*event) } else { None }).collect()
}

/// A live image whose producer writes between any two words that a reader copies.
pub struct Live<'a> {
    pub image: &'a RefCell<TestImage>,
    /// Events written per word copied, and how many words apart.
    pub pace: Cell<(u64, u64)>,
    pub words: Cell<u64>,
    pub lock: LockState,
}

impl<'a> Live<'a> {
    pub fn new(image: &'a RefCell<TestImage>) -> Live<'a> {
        Live { image, pace: Cell::new((0, 1)), words: Cell::new(0), lock: LockState::Held }
    }
}

impl ReadAt for &Live<'_> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        for (place, bytes) in into.chunks_mut(8).enumerate() {
            let words = self.words.replace(self.words.get() + 1);
            let (events, apart) = self.pace.get();
            if words.is_multiple_of(apart) {
                self.image.borrow_mut().push(events);
            }
            bytes.copy_from_slice(&self.image.borrow().read_word(offset as usize / 8 + place)[..bytes.len()]);
        }
        Ok(into.len())
    }

    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.image.borrow().state.plan().image_len())
    }

    fn lock_state(&self) -> LockState {
        self.lock
    }
}

pub fn engine<S: ReadAt>(source: S) -> Engine<S> {
    Engine::open(source, Path::new("image"), &ReaderOptions::new()).unwrap()
}

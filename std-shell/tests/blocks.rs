//! Blocks say the same as items, and are as exact.

#![allow(clippy::unwrap_used)]

mod material;

use std::cell::{Cell, RefCell};
use std::fs;
use std::io;
use std::path::Path;

use material::{Live, NixlFile, TestImage, engine, record_at};
use proptest::prelude::*;
use telering::reader::{Block, Engine, GapKind, Item, LockState, NixlLayout, ReadAt, ReadError, Reader, ReaderOptions};
use telering_core::image::Image;
use telering_core::layout::image::{control, head};
use telering_core::sync::Ordering;

/// What is the same in an item and in a place of a block. Counts are apart, so that both are compared one by one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Said {
    Reset(Option<u64>),
    Lost,
    Interrupted,
    Unverified,
    Event(u64, u64, u64),
}

fn said_by_items(items: &[Item]) -> Vec<Said> {
    let mut said = Vec::new();
    for item in items {
        let (what, count) = match *item {
            Item::Event(event) => (Said::Event(event.seq, event.timestamp_us.unwrap(), event.value), 1),
            Item::Lost(count) => (Said::Lost, count),
            Item::Interrupted(count) => (Said::Interrupted, count),
            Item::Unverified(count) => (Said::Unverified, count),
            Item::Reset { instance } => (Said::Reset(instance), 1),
            _ => panic!("{item:?}"),
        };
        said.extend((0..count).map(|_| what));
    }
    said
}

fn say_block(block: &Block<'_>, said: &mut Vec<Said>) {
    if block.reset() {
        said.push(Said::Reset(Some(block.instance())));
    }
    said.extend((0..block.lost_before()).map(|_| Said::Lost));
    let mut gaps = block.gaps().iter().peekable();
    for (place, record) in block.records().iter().enumerate() {
        said.push(match gaps.next_if(|gap| gap.place == place).map(|gap| gap.kind) {
            None => Said::Event(block.first() + place as u64, record.timestamp_us, record.value),
            Some(GapKind::Lost) => Said::Lost,
            Some(GapKind::Interrupted) => Said::Interrupted,
            Some(GapKind::Unverified) => Said::Unverified,
            Some(other) => panic!("{other:?}"),
        });
    }
    assert_eq!(gaps.next(), None, "no gap is outside its block");
    let events: usize = block.runs().map(|(_, records)| records.len()).sum();
    assert_eq!(events as u64, block.counts().events);
    assert!(block.runs().all(|(position, records)| {
        let begin = (position - block.first()) as usize;
        !records.is_empty() && records == &block.records()[begin..begin + records.len()]
    }));
}

fn said_by_blocks<S: ReadAt>(engine: &mut Engine<S>) -> Vec<Said> {
    let mut said = Vec::new();
    while let Some(block) = engine.read_block().unwrap() {
        say_block(&block, &mut said);
    }
    said
}

fn both_ways(bytes: &[u8], verify: bool) -> usize {
    let options = ReaderOptions::new().verify(verify);
    let open = || Engine::open(bytes, Path::new("image"), &options).unwrap();
    let (mut by_items, mut by_blocks) = (open(), open());
    let mut items = Vec::new();
    while by_items.read(&mut items).unwrap() > 0 {}
    let said = said_by_blocks(&mut by_blocks);
    assert_eq!(said, said_by_items(&items));
    assert_eq!((by_blocks.counts(), by_blocks.start()), (by_items.counts(), by_items.start()));
    said.len()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn blocks_and_items_of_any_file_say_the_same(
        shift in 1..7_u32,
        written in 0..300_u64,
        fillers in 0..3_u64,
        spoilt in prop::collection::vec((0..128_u64, any::<u64>()), 0..8),
        older in prop::collection::vec(0..128_u64, 0..8),
        verify: bool,
    ) {
        let capacity = 1 << shift;
        let mut image = TestImage::new(capacity, 9);
        image.push(written);
        let intent = image.extension() / 8 + control::INTENT / 8;
        image.memory[intent].store((written + fillers.min(capacity / 16)).to_le(), Ordering::Relaxed);
        if let Ok((state, _)) = Image::take_up(&image.memory) {
            image.state = state;
        }
        // What a copy of a live file holds: records of one lap earlier.
        for place in older {
            let position = written.saturating_sub(1 + place % capacity);
            if let Some(earlier) = position.checked_sub(capacity) {
                let words = record_at(earlier).sealed(earlier).to_words();
                let at = 5 + (position % capacity) as usize * 7;
                words.iter().zip(&image.memory[at..]).for_each(|(word, place)| place.store(*word, Ordering::Relaxed));
            }
        }
        for (place, word) in spoilt {
            image.memory[5 + (place % capacity) as usize * 7 + 6].store(word, Ordering::Relaxed);
        }
        both_ways(&image.bytes(), verify);
    }
}

#[test]
fn a_large_copy_of_a_live_file_is_the_same_in_blocks() {
    // More than one block, with a producer between any two words of the copy.
    for capacity in [4096, 1 << 14] {
        for pace in [(1, 3), (1, 20)] {
            let image = RefCell::new(TestImage::new(capacity, 9));
            image.borrow_mut().push(3 * capacity / 2);
            let live = Live::new(&image);
            live.pace.set(pace);
            let mut bytes = vec![0; (&&live).byte_len().unwrap() as usize];
            (&live).read_at(0, &mut bytes).unwrap();
            assert!(both_ways(&bytes, true) as u64 > capacity);
        }
    }
}

#[test]
fn a_producer_in_the_middle_of_every_copy_is_read_exactly_in_blocks() {
    for (verify, capacity) in [(true, 64), (true, 2), (false, 256)] {
        for pace in [(1, 1), (1, 7), (3, 2), (1, 50), (1, 900)] {
            let image = RefCell::new(TestImage::new(capacity, 9));
            let live = Live::new(&image);
            let options = ReaderOptions::new().verify(verify);
            let mut engine = Engine::open(&live, Path::new("image"), &options).unwrap();
            let mut next = 0;
            let mut read = |block: Option<Block<'_>>| {
                let Some(block) = block else { return false };
                for (position, records) in block.runs() {
                    assert!(position >= next);
                    next = position;
                    for record in records {
                        assert_eq!(*record, record_at(next).sealed(next), "capacity {capacity} pace {pace:?}");
                        next += 1;
                    }
                }
                true
            };
            live.pace.set(pace);
            for _ in 0..15 {
                read(engine.read_block().unwrap());
            }
            live.pace.set((0, 1));
            while read(engine.read_block().unwrap()) {}
            assert_eq!((engine.counts().unverified, engine.counts().total()), (0, image.borrow().written()));
        }
    }
}

/// Counts the looks at a file's bytes.
struct Counting<'a>(&'a [u8], Cell<usize>);

impl ReadAt for &Counting<'_> {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        self.1.set(self.1.get() + 1);
        self.0.read_at(offset, into)
    }

    fn byte_len(&self) -> io::Result<u64> {
        self.0.byte_len()
    }

    fn lock_state(&self) -> LockState {
        panic!("nobody needs to know who lives while every record fits")
    }
}

#[test]
fn a_whole_file_is_one_block_and_three_looks() {
    let mut image = TestImage::new(4096, 9);
    image.push(4096);
    let bytes = image.bytes();
    let source = Counting(&bytes, Cell::new(0));
    let mut engine = engine(&source);
    source.1.set(0);
    assert_eq!(engine.read_block().unwrap().unwrap().records().len(), 4096);
    assert_eq!(source.1.get(), 3, "control, records, control");
    assert!(engine.read_block().unwrap().is_none());
    assert_eq!(source.1.get(), 4);
}

#[test]
fn a_reset_and_a_loss_leave_less_room_for_records() {
    let image = RefCell::new(TestImage::new(1 << 14, 9));
    let live = Live::new(&image);
    let mut engine = engine(&live);
    image.borrow_mut().push(10);
    assert_eq!(engine.read_block().unwrap().unwrap().records().len(), 10);
    image.borrow_mut().push(1 << 15);
    let block = engine.read_block().unwrap().unwrap();
    assert_eq!((block.lost_before(), block.records().len()), (1 << 14, 4095));
    while engine.read_block().unwrap().is_some() {}
    image.replace(TestImage::new(1 << 14, 10)).push(0);
    image.borrow_mut().push(1 << 15);
    let block = engine.read_block().unwrap().unwrap();
    assert_eq!((block.reset(), block.instance(), block.lost_before(), block.records().len()), (true, 10, 0, 4095));
}

#[test]
fn what_was_found_before_a_trouble_is_handed_over_first() {
    let image = RefCell::new(TestImage::new(64, 9));
    image.borrow_mut().push(50);
    let live = Live::new(&image);
    let mut engine = engine(&live);
    while engine.read_block().unwrap().is_some() {}
    image.replace(TestImage::new(64, 10));
    let intent = (image.borrow().extension() + control::INTENT) / 8;
    image.borrow().memory[intent].store(u64::MAX, Ordering::Relaxed);
    let block = engine.read_block().unwrap().unwrap();
    assert_eq!((block.reset(), block.instance(), block.records().len()), (true, 10, 0));
    assert!(matches!(engine.read_block(), Err(ReadError::Damaged { .. })));
}

#[test]
fn what_has_no_blocks_says_so() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut ring = NixlFile::new(NixlLayout::L4, 64);
    ring.push(0, 4096);
    ring.write_to(&path);
    let mut reader = Reader::open(&path).unwrap();
    assert!(matches!(reader.read_block(), Err(ReadError::NotInBlocks { .. })));
    assert_eq!(reader.read(&mut Vec::new()).unwrap(), 1);

    let mut image = TestImage::new(64, 9);
    image.push(3);
    fs::write(&path, image.bytes()).unwrap();
    let mut reader = Reader::open(&path).unwrap();
    assert!(reader.next_item().unwrap().is_some());
    let error = reader.read_block().err().unwrap();
    assert!(error.to_string().contains("come first"), "{error}");
    assert_eq!(reader.read(&mut Vec::new()).unwrap(), 2);
    assert!(reader.read_block().unwrap().is_none());
}

#[test]
fn records_without_check_words_are_taken_as_they_are() {
    let mut image = TestImage::new(64, 9);
    image.push(5);
    for place in 0..5 {
        image.memory[5 + place * 7 + 5].fetch_and(u64::from(u32::MAX).to_le(), Ordering::Relaxed);
    }
    let mut bytes = image.bytes();
    // The last two bytes of "largest batch, parts, flags": bit 0 says that there are check words.
    bytes[image.extension() + head::BATCH + 6] &= !1;
    assert_eq!(both_ways(&bytes, true), 5);
    let mut engine = engine(&bytes[..]);
    assert_eq!(engine.read_block().unwrap().unwrap().gaps(), []);
    bytes[image.extension() + head::BATCH + 6] |= 1;
    let mut engine = engine_of(&bytes);
    assert_eq!(engine.read_block().unwrap().unwrap().counts().unverified, 5);
}

fn engine_of(bytes: &[u8]) -> Engine<&[u8]> {
    engine(bytes)
}

//! Images under a reader: exact losses, torn copies, resets, refusals.

#![allow(clippy::unwrap_used)]

mod material;

use std::cell::RefCell;
use std::fs;
use std::path::Path;

use material::{Live, TestImage, engine, events, is_own, put};
use telering::reader::{Engine, From, Item, Layout, OpenError, Positions, ReadAt, ReadError, Reader, ReaderOptions};
use telering_core::layout::image::{control, head};
use telering_core::sync::Ordering;

fn read_all<S: ReadAt>(engine: &mut Engine<S>) -> Vec<Item> {
    let mut items = Vec::new();
    while engine.read(&mut items).unwrap() > 0 {}
    items
}

#[test]
fn three_events_in_a_large_ring_are_three_events() {
    let mut image = TestImage::new(4096, 9);
    image.push(3);
    let bytes = image.bytes();
    let mut engine = engine(&bytes[..]);
    assert_eq!(engine.layout(), Layout::Image { major: 1, minor: 0 });
    let items = read_all(&mut engine);
    assert_eq!(items.len(), 3);
    assert!(events(&items).iter().all(|event| is_own(event) && event.instance == 9 && event.observed_us.is_none()));
    assert_eq!((engine.counts().events, engine.counts().total(), engine.start()), (3, 3, 0));
}

#[test]
fn a_reader_that_was_away_gets_one_loss_and_then_every_event_still_there() {
    for capacity in [64, 4096] {
        for late in [1, capacity, 1_000_000] {
            let image = RefCell::new(TestImage::new(capacity, 9));
            let live = Live::new(&image);
            image.borrow_mut().push(10);
            let mut engine = engine(&live);
            assert_eq!(read_all(&mut engine).len(), 10);
            image.borrow_mut().push(capacity + late);
            let items = read_all(&mut engine);
            assert_eq!(items[0], Item::Lost(late));
            let found = events(&items);
            assert_eq!(found.len() as u64, capacity);
            assert_eq!(items.len(), found.len() + 1);
            assert!(found.iter().all(is_own));
            assert!(found.iter().zip(10 + late..).all(|(event, seq)| event.seq == seq));
            assert_eq!(engine.counts().total(), image.borrow().written());
        }
    }
}

#[test]
fn what_a_new_reader_never_saw_is_not_lost() {
    let mut image = TestImage::new(64, 9);
    image.push(1000);
    let bytes = image.bytes();
    let mut engine = engine(&bytes[..]);
    let found = events(&read_all(&mut engine));
    assert_eq!((found.len(), found[0].seq, engine.start()), (64, 936, 936));
    assert_eq!(engine.counts().lost, 0);
    let newest = ReaderOptions::new().from(From::Newest);
    let mut engine = Engine::open(&bytes[..], Path::new("image"), &newest).unwrap();
    assert_eq!((read_all(&mut engine), engine.start()), (vec![], 1000));
}

#[test]
fn a_producer_in_the_middle_of_every_copy_is_read_exactly() {
    // Two words of a record are always of different moments here; only the second look tells.
    for (verify, capacity) in [(true, 64), (true, 2), (false, 64), (false, 256)] {
        for pace in [(1, 1), (1, 7), (3, 2), (1, 50), (1, 900)] {
            let image = RefCell::new(TestImage::new(capacity, 9));
            let live = Live::new(&image);
            let options = ReaderOptions::new().verify(verify);
            let mut engine = Engine::open(&live, Path::new("image"), &options).unwrap();
            let mut items = Vec::new();
            live.pace.set(pace);
            for _ in 0..15 {
                engine.read(&mut items).unwrap();
            }
            live.pace.set((0, 1));
            while engine.read(&mut items).unwrap() > 0 {}
            let found = events(&items);
            assert!(found.iter().all(is_own), "verify {verify} capacity {capacity} pace {pace:?}");
            assert!(found.is_sorted_by(|a, b| a.seq < b.seq));
            assert_eq!((engine.counts().unverified, engine.counts().total()), (0, image.borrow().written()));
        }
    }
}

#[test]
fn no_call_gives_more_than_4096_items() {
    let image = RefCell::new(TestImage::new(1 << 14, 9));
    let live = Live::new(&image);
    let mut engine = engine(&live);
    image.borrow_mut().push(1 << 15);
    let mut items = Vec::new();
    while engine.read(&mut items).unwrap() > 0 {
        assert!(items.len() <= 4096);
        items.clear();
    }
    assert_eq!(engine.counts().total(), 1 << 15);
}

/// A plain copy of a live file: front to back, the producer writing all the while.
fn slow_copy(image: &RefCell<TestImage>, pace: (u64, u64)) -> Vec<u8> {
    let live = Live::new(image);
    live.pace.set(pace);
    let mut bytes = vec![0; (&&live).byte_len().unwrap() as usize];
    (&live).read_at(0, &mut bytes).unwrap();
    bytes
}

#[test]
fn a_copy_of_a_live_file_never_holds_an_event_that_was_not() {
    let (mut earlier, mut foreign_unchecked) = (0, 0);
    for capacity in [64, 256] {
        for pace in [(1, 1), (1, 3), (1, 8), (2, 9), (1, 20), (1, 300), (7, 1)] {
            for before in [0, 10, 500] {
                let image = RefCell::new(TestImage::new(capacity, 9));
                image.borrow_mut().push(before);
                let bytes = slow_copy(&image, pace);
                let mut engine = engine(&bytes[..]);
                let items = read_all(&mut engine);
                let found = events(&items);
                assert!(found.iter().all(is_own), "capacity {capacity} pace {pace:?} before {before}");
                assert!(found.is_sorted_by(|a, b| a.seq < b.seq), "in order, each once");
                let Positions::Image { committed, intent } = engine.info().unwrap().positions else { panic!() };
                assert_eq!(engine.counts().total(), committed - engine.start());
                earlier += found.iter().filter(|event| event.seq + capacity < intent).count();

                let unchecked = ReaderOptions::new().verify(false);
                let mut engine = Engine::open(&bytes[..], Path::new("copy"), &unchecked).unwrap();
                foreign_unchecked += events(&read_all(&mut engine)).iter().filter(|event| !is_own(event)).count();
            }
        }
    }
    // The test can see what it looks for: without check words there are foreign events, and events of
    // earlier laps are really there to be found.
    assert!(foreign_unchecked > 1000, "{foreign_unchecked}");
    assert!(earlier > 100, "{earlier}");
}

#[test]
fn a_copy_with_intent_taken_before_committed_is_still_read() {
    let mut image = TestImage::new(64, 9);
    image.push(100);
    let mut bytes = image.bytes();
    put(&mut bytes, image.extension() + control::INTENT, 97);
    let mut engine = engine(&bytes[..]);
    assert_eq!(events(&read_all(&mut engine)).len(), 64);
}

#[test]
fn a_stranger_s_bytes_are_counted_and_stepped_over() {
    let image = RefCell::new(TestImage::new(64, 9));
    let live = Live::new(&image);
    image.borrow_mut().push(50);
    for position in [10, 11, 12, 30] {
        image.borrow().memory[5 + position * 7 + 6].store(77, Ordering::Relaxed);
    }
    let mut engine = engine(&live);
    let items = read_all(&mut engine);
    assert_eq!(items[10], Item::Unverified(3));
    assert_eq!(events(&items).len(), 46);
    assert_eq!((engine.counts().unverified, engine.counts().total()), (4, 50));
}

#[test]
fn fillers_are_interrupted_places() {
    let mut image = TestImage::new(64, 9);
    image.push(20);
    let intent = image.extension() + control::INTENT;
    image.memory[intent / 8].store(23_u64.to_le(), Ordering::Relaxed);
    let (state, fillers) = telering_core::image::Image::take_up(&image.memory).unwrap();
    assert_eq!(fillers, 3);
    image.state = state;
    image.push(5);
    let bytes = image.bytes();
    let mut engine = engine(&bytes[..]);
    let items = read_all(&mut engine);
    assert_eq!(items[20], Item::Interrupted(3));
    assert_eq!((events(&items).len(), engine.counts().interrupted, engine.counts().total()), (25, 3, 28));
}

#[test]
fn a_new_instance_in_the_same_memory_is_said_once() {
    let image = RefCell::new(TestImage::new(64, 9));
    image.borrow_mut().push(50);
    let live = Live::new(&image);
    let mut engine = engine(&live);
    assert_eq!(read_all(&mut engine).len(), 50);
    image.replace(TestImage::new(64, 10)).push(0);
    image.borrow_mut().push(4);
    let items = read_all(&mut engine);
    assert_eq!(items[0], Item::Reset { instance: Some(10) });
    let found = events(&items);
    assert_eq!((found.len(), found[0].seq, found[0].instance, items.len()), (4, 0, 10, 5));
    assert_eq!(read_all(&mut engine), []);
}

#[test]
fn positions_that_went_back_are_a_reset() {
    let image = RefCell::new(TestImage::new(64, 9));
    image.borrow_mut().push(50);
    let live = Live::new(&image);
    let mut engine = engine(&live);
    read_all(&mut engine);
    image.replace(TestImage::new(64, 9));
    image.borrow_mut().push(3);
    let items = read_all(&mut engine);
    assert_eq!((items[0], items.len()), (Item::Reset { instance: Some(9) }, 4));
}

#[test]
fn positions_that_contradict_each_other_are_damage() {
    let image = RefCell::new(TestImage::new(64, 9));
    image.borrow_mut().push(50);
    let live = Live::new(&image);
    let mut engine = engine(&live);
    let intent = (image.borrow().extension() + control::INTENT) / 8;
    for wrong in [49, 55, u64::MAX, 0] {
        image.borrow().memory[intent].store(wrong, Ordering::Relaxed);
        let error = engine.read(&mut Vec::new()).unwrap_err();
        assert!(matches!(error, ReadError::Damaged { .. }), "{wrong}: {error}");
    }
    image.borrow().memory[intent].store(50, Ordering::Relaxed);
    assert_eq!(read_all(&mut engine).len(), 50);
}

#[test]
fn a_batch_that_is_announced_but_not_finished_is_no_damage() {
    let mut image = TestImage::new(64, 9);
    image.push(40);
    image.push_batch(4);
    let intent = (image.extension() + control::INTENT) / 8;
    image.memory[intent].store(48, Ordering::Relaxed);
    let image = RefCell::new(image);
    assert_eq!(read_all(&mut engine(&Live::new(&image))).len(), 44);
}

#[test]
fn another_major_version_is_named_and_the_file_left_alone() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let image = TestImage::new(64, 9);
    let mut bytes = image.bytes();
    bytes[image.extension() + head::VERSION] = 2;
    fs::write(&path, &bytes).unwrap();
    let error = Reader::open(&path).err().unwrap();
    assert!(matches!(error, OpenError::UnsupportedVersion { .. }), "{error}");
    assert!(error.to_string().contains("2.0") && error.to_string().contains("known 1.x"), "{error}");
    assert_eq!(fs::read(&path).unwrap(), bytes);
    // Minor versions are for readers to ignore.
    bytes[image.extension() + head::VERSION] = 1;
    bytes[image.extension() + head::VERSION + 2] = 9;
    fs::write(&path, &bytes).unwrap();
    assert_eq!(Reader::open(&path).unwrap().layout(), Layout::Image { major: 1, minor: 9 });
    put(&mut bytes, image.extension(), 0);
    fs::write(&path, &bytes).unwrap();
    assert!(matches!(Reader::open(&path), Err(OpenError::NotReady { .. })));
}

#[test]
fn an_image_gives_nothing_to_consume() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    fs::write(&path, TestImage::new(64, 9).bytes()).unwrap();
    let error = ReaderOptions::new().consume(true).open(&path).err().unwrap();
    assert!(matches!(error, OpenError::NothingToConsume { .. }), "{error}");
}

#[test]
fn a_cut_image_is_an_error_and_never_a_signal() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut image = TestImage::new(64, 9);
    image.push(10);
    for len in [0, 20, 100, 3700] {
        fs::write(&path, image.bytes()).unwrap();
        let mut reader = Reader::open(&path).unwrap();
        assert_eq!(reader.read(&mut Vec::new()).unwrap(), 10);
        fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(len).unwrap();
        assert!(matches!(reader.read(&mut Vec::new()), Err(ReadError::Resized { .. })));
        assert!(matches!(reader.info(), Err(ReadError::Resized { .. })));
        assert!(Reader::open(&path).is_err());
    }
}

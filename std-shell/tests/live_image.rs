//! A mapped file, a producer at full speed, readers and plain copies beside it.

#![allow(clippy::unwrap_used)]

mod material;

use std::fs;
use std::io::Read;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use material::{events, is_own, record_at};
use memmap2::MmapRaw;
use telering::reader::{Reader, ReaderOptions};
use telering_core::image::{Identity, ImagePlan, PartSet};
use telering_core::layout::image::TimeBase;
use telering_core::sync::AtomicU64;

/// Writes events until `stop`, `burst` at a time with `pause` between. Returns how many.
fn produce(path: &Path, capacity: u64, ready: &AtomicBool, stop: &AtomicBool, burst: u64, pause: Duration) -> u64 {
    let plan = ImagePlan::new(capacity, PartSet::ALL, TimeBase::Unix).unwrap();
    let file = fs::File::options().read(true).write(true).create_new(true).open(path).unwrap();
    file.set_len(plan.image_len()).unwrap();
    file.lock().unwrap();
    let map = MmapRaw::map_raw(&file).unwrap();
    // SAFETY: the mapping is page-aligned, as long as the image, and lives to the end of this function; it is
    // only looked at through atomics.
    let memory = unsafe { std::slice::from_raw_parts(map.as_mut_ptr().cast::<AtomicU64>(), plan.words()) };
    let mut state = plan.format(memory, true, 77, 0, &Identity::default(), &[]).unwrap();
    ready.store(true, Ordering::Release);
    while !stop.load(Ordering::Relaxed) {
        let mut image = state.on(memory).unwrap();
        for _ in 0..burst {
            image.push_batch(4, |position| record_at(position).sealed(position).to_words());
        }
        if !pause.is_zero() {
            thread::sleep(pause);
        }
    }
    state.written()
}

/// Reads until everything of `written` was passed; checks each event.
fn read_to_the_end(path: &Path, written: &AtomicU64) -> Reader {
    let mut reader = Reader::open(path).unwrap();
    let mut items = Vec::new();
    while reader.start() + reader.counts().total() < written.load(Ordering::Acquire) {
        if reader.read(&mut items).unwrap() == 0 {
            thread::yield_now();
        }
        let found = events(&items);
        assert!(found.iter().all(is_own));
        assert!(found.is_sorted_by(|a, b| a.seq < b.seq));
        items.clear();
    }
    reader
}

#[test]
fn readers_beside_a_producer_at_full_speed_are_exact() {
    for capacity in [64, 4096, 1 << 16] {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("agent");
        let (ready, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        let written = AtomicU64::new(u64::MAX);
        thread::scope(|scope| {
            let producer = scope.spawn(|| produce(&path, capacity, &ready, &stop, 64, Duration::ZERO));
            while !ready.load(Ordering::Acquire) {
                thread::yield_now();
            }
            let readers = [0, 1].map(|_| scope.spawn(|| read_to_the_end(&path, &written)));
            thread::sleep(Duration::from_millis(400));
            stop.store(true, Ordering::Relaxed);
            written.store(producer.join().unwrap(), Ordering::Release);
            for reader in readers {
                let reader = reader.join().unwrap();
                let counts = reader.counts();
                assert_eq!(reader.start() + counts.total(), written.load(Ordering::Acquire), "capacity {capacity}");
                assert_eq!((counts.unverified, counts.interrupted), (0, 0));
                assert!(counts.events > 0);
            }
        });
    }
}

/// Copies as a slow pipe does, and as `cp` does.
fn copies(path: &Path, to: &Path, slow: bool) {
    if !slow {
        fs::copy(path, to).unwrap();
        return;
    }
    let mut source = fs::File::open(path).unwrap();
    let mut bytes = Vec::new();
    let mut piece = vec![0; 16 << 10];
    loop {
        let count = source.read(&mut piece).unwrap();
        if count == 0 {
            break;
        }
        bytes.extend_from_slice(&piece[..count]);
        thread::sleep(Duration::from_micros(200));
    }
    fs::write(to, bytes).unwrap();
}

#[test]
fn plain_copies_of_a_live_file_hold_no_foreign_event() {
    let mut foreign_unchecked = 0;
    // About 4 thousand events a second, and as many as it takes.
    for (burst, pause) in [(1, Duration::from_millis(1)), (64, Duration::ZERO)] {
        let directory = tempfile::tempdir().unwrap();
        let (path, copy) = (directory.path().join("agent"), directory.path().join("copy"));
        let (ready, stop) = (AtomicBool::new(false), AtomicBool::new(false));
        thread::scope(|scope| {
            let producer = scope.spawn(|| produce(&path, 4096, &ready, &stop, burst, pause));
            while !ready.load(Ordering::Acquire) {
                thread::yield_now();
            }
            for round in 0..60 {
                copies(&path, &copy, round % 2 == 0);
                let mut reader = Reader::open(&copy).unwrap();
                let mut items = Vec::new();
                while reader.read(&mut items).unwrap() > 0 {}
                assert!(events(&items).iter().all(is_own), "round {round}");
                assert!(events(&items).is_sorted_by(|a, b| a.seq < b.seq));
                items.clear();
                let mut unchecked = ReaderOptions::new().verify(false).open(&copy).unwrap();
                while unchecked.read(&mut items).unwrap() > 0 {}
                foreign_unchecked += events(&items).iter().filter(|event| !is_own(event)).count();
            }
            stop.store(true, Ordering::Relaxed);
            producer.join().unwrap();
        });
    }
    assert!(foreign_unchecked > 0, "without check words there are foreign events: the test can see them");
}

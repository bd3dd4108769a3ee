//! What an image says about itself: parts, metrics, whether its writer lives.

#![allow(clippy::unwrap_used)]

mod material;

use std::cell::RefCell;
use std::fs;

use material::{AGENT, Live, TestImage, engine, put};
use telering::reader::{Liveness, LockState, Positions, Reader};
use telering_core::image::{ImageState, PartSet};
use telering_core::layout::image::{State, control};
use telering_core::snapshot::{ClockInfo, DynamicTotal, Flow, Losses, Notices, Snapshot, Total};
use telering_core::{Category, Name, names};

fn total(sum: u64) -> Total {
    Total { sum, count: sum / 10, last: 7, last_us: 1_700_000_000_000_001 }
}

fn full_image() -> (TestImage, Snapshot, [DynamicTotal; 2]) {
    let mut image = TestImage::new(64, 9);
    let mut snapshot = Snapshot::default();
    *snapshot.entry_mut(names::TX_BYTES).unwrap() = total(u64::MAX - 3);
    *snapshot.entry_mut(names::CONNECTED).unwrap() = total(30);
    snapshot.errors[10] = 5;
    snapshot.histograms[0].sum = 1234;
    snapshot.histograms[0].buckets[..4].copy_from_slice(&[1, 2, 3, 4]);
    let dynamic = [
        DynamicTotal { name: Name::from_static("cache_hit"), category: Category::CUSTOM, total: total(100) },
        DynamicTotal { name: Name::from_static("retries"), category: Category::BACKEND, total: total(20) },
    ];
    let mut on = image.state.on(&image.memory).unwrap();
    for round in 0..3 {
        *snapshot.entry_mut(names::RX_BYTES).unwrap() = total(round);
        on.publish(&snapshot, &dynamic, 1_700_000_000_000_123 + round);
    }
    let lost = Losses { staging: 3, exporter: 1, ..Losses::default() };
    on.set_flow(&Flow { recorded: 30, exported: 26, lost });
    on.set_notices(&Notices { names_changed: 2, ..Notices::default() });
    on.set_clock(&ClockInfo { source: 2, quality: 1, rate: 3_000_000_000, ..ClockInfo::default() });
    on.set_heartbeat(1_700_000_000_000_777);
    (image, snapshot, dynamic)
}

#[test]
fn a_file_says_everything_about_itself() {
    let (mut image, snapshot, dynamic) = full_image();
    image.push(100);
    let bytes = image.bytes();
    let info = engine(&bytes[..]).info().unwrap();
    assert_eq!(info.positions, Positions::Image { committed: 100, intent: 100 });
    assert_eq!((info.positions.held(64), info.capacity, info.len), (64, 64, bytes.len() as u64));
    let identity = info.identity.unwrap();
    assert_eq!((identity.agent.as_str(), identity.pid, identity.rank.as_deref()), (AGENT, 4242, Some("3")));
    assert_eq!((info.writer.as_deref(), identity.boot_id), (Some("telering test"), [7; 16]));
    let flow = info.flow.unwrap();
    assert_eq!((flow.recorded, flow.exported + flow.lost.total(), flow.lost.staging), (30, 30, 3));
    assert_eq!(info.notices.unwrap().names_changed, 2);
    assert_eq!(info.clock.unwrap().rate, 3_000_000_000);
    let metrics = info.metrics.unwrap();
    assert_eq!(metrics.generation, 3);
    for (id, entry) in telering_core::snapshot::ENTRY_IDS.into_iter().zip(snapshot.entries) {
        assert_eq!(metrics.entry(id), Some(&entry));
    }
    assert_eq!((metrics.error_count(), metrics.errors[10]), (5, (names::error_id(telering_core::Status::Canceled), 5)));
    assert_eq!(metrics.bounds, [10, 100, 1000]);
    let histogram = metrics.histogram(names::XFER_TIME).unwrap();
    assert_eq!((histogram.buckets.as_slice(), histogram.count(), histogram.sum), (&[1, 2, 3, 4][..], 10, 1234));
    let found = info.dynamic.unwrap();
    assert_eq!(found.len(), 2);
    assert_eq!((found[0].name.as_str(), found[1].category), ("cache_hit", Category::BACKEND));
    assert_eq!(found[1].total, dynamic[1].total);
    assert_eq!((info.metrics_time, info.heartbeat), (Some(1_700_000_000_000_125), Some(1_700_000_000_000_777)));
    assert_eq!((info.state, info.liveness, info.parts.len()), (Some(State::Open), Liveness::Dead, 6));
}

#[test]
fn half_a_copy_of_the_metrics_is_not_taken_for_a_whole_one() {
    let (image, ..) = full_image();
    let mut bytes = image.bytes();
    let metrics = engine(&bytes[..]).info().unwrap().parts[3];
    // Generation 3 stands in the second half: the first entry's sum changes, its check does not.
    let copy = metrics.offset as usize + 320 + telering_core::layout::parts::metrics::COPY_SIZE;
    put(&mut bytes, copy + 16, 1);
    let found = engine(&bytes[..]).info().unwrap().metrics.unwrap();
    assert_eq!((found.generation, found.entry(names::RX_BYTES).unwrap().sum), (2, 1));
    put(&mut bytes, metrics.offset as usize + 320 + 16, 1);
    assert_eq!(engine(&bytes[..]).info().unwrap().metrics, None);
}

#[test]
fn absent_and_unknown_parts_are_none_and_nothing_worse() {
    let mut image = TestImage::with_parts(64, 9, PartSet::NONE);
    image.push(5);
    let bytes = image.bytes();
    let info = engine(&bytes[..]).info().unwrap();
    assert!(info.identity.is_none() && info.metrics.is_none() && info.dynamic.is_none() && info.flow.is_none());

    let (image, ..) = full_image();
    let mut bytes = image.bytes();
    let table = image.extension() + control::PART_TABLE;
    bytes[table] = 77;
    put(&mut bytes, table + 24 + 8, u64::MAX - 7);
    put(&mut bytes, table + 48 + 16, u64::MAX);
    put(&mut bytes, table + 72 + 8, 0);
    let info = engine(&bytes[..]).info().unwrap();
    assert!(info.identity.is_none() && info.flow.is_none() && info.notices.is_none() && info.metrics.is_none());
    assert_eq!((info.parts[0].kind, info.dynamic.unwrap().len()), (77, 2));
}

#[test]
fn a_held_lock_is_a_live_writer() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("agent");
    let mut image = TestImage::new(64, 9);
    fs::write(&path, image.bytes()).unwrap();
    let writer = fs::File::open(&path).unwrap();
    writer.lock().unwrap();
    let reader = Reader::open(&path).unwrap();
    for _ in 0..3 {
        assert_eq!(reader.info().unwrap().liveness, Liveness::Alive);
    }
    // Asking never took the lock away.
    assert!(fs::File::open(&path).unwrap().try_lock_shared().is_err());
    drop(writer);
    assert_eq!(reader.info().unwrap().liveness, Liveness::Dead);
    image.state.on(&image.memory).unwrap().close(5);
    fs::write(&path, image.bytes()).unwrap();
    assert_eq!(reader.info().unwrap().liveness, Liveness::Closed);
    assert_eq!(fs::read(&path).unwrap(), image.bytes());
}

#[test]
fn without_locks_the_heartbeat_tells() {
    let image = RefCell::new(TestImage::new(64, 9));
    let live = Live { lock: LockState::Unknown, ..Live::new(&image) };
    assert_eq!(engine(&live).info().unwrap().liveness, Liveness::Unknown);
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as u64;
    let beat = |at: u64| {
        let mut image = image.borrow_mut();
        let TestImage { memory, state } = &mut *image;
        let state: &mut ImageState = state;
        state.on(memory).unwrap().set_heartbeat(at);
    };
    beat(now - 2_000_000);
    assert_eq!(engine(&live).info().unwrap().liveness, Liveness::AliveByHeartbeat);
    beat(now - 30_000_000);
    assert_eq!(engine(&live).info().unwrap().liveness, Liveness::Unknown);
}

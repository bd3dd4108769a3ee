//! What the trait promises, shown for the exporters of this library.

use std::fs;
use std::os::unix::fs::FileExt as _;
use std::path::Path;

use telering_core::layout::image::State;
use telering_core::names;
use telering_core::snapshot::{ClockInfo, DynamicTotal, Flow, Losses, Notices, Snapshot, Total};
use telering_core::{Category, Name};

use super::shm::batch_len;
use super::{Event, Exporter, Nop, Shm, ShmSettings, Totals, Who};
use crate::file::tests::{Heard, names_in};
use crate::reader::{Item, Liveness, Reader};

fn settings(directory: &Path, capacity: u64) -> ShmSettings {
    ShmSettings {
        directory: directory.to_owned(),
        capacity,
        file_mode: 0o644,
        bounds: vec![10, 100],
        who: Who::of_this_process("agent", 5, "rank 3"),
    }
}

fn event(value: u64, group: u8) -> Event {
    let name = Name::new("agent_tx_bytes").0;
    Event { timestamp_us: value + 1_000, value, id: names::TX_BYTES, category: Category::TRANSFER, name, group }
}

fn events(values: std::ops::Range<u64>) -> Vec<Event> {
    values.map(|value| event(value, 1)).collect()
}

/// Everything that a reader finds in a file from its oldest event on.
fn values_in(path: &Path) -> Vec<u64> {
    let mut reader = Reader::open(path).unwrap();
    let mut items = Vec::new();
    while reader.read(&mut items).unwrap() > 0 {}
    assert_eq!(reader.counts().unverified, 0);
    items
        .iter()
        .map(|item| match item {
            Item::Event(event) => {
                assert_eq!((event.timestamp_us, event.name.as_str()), (Some(event.value + 1_000), "agent_tx_bytes"));
                event.value
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

/// Numbers that can be told apart.
fn with_totals<R>(sum: u64, then: impl FnOnce(&Totals<'_>) -> R) -> R {
    let mut snapshot = Snapshot::default();
    *snapshot.entry_mut(names::TX_BYTES).unwrap() = Total { sum, count: 2, last: 3, last_us: 4 };
    let total = Total { sum: sum + 1, count: 1, last: 1, last_us: 1 };
    let dynamic = [DynamicTotal { name: Name::new("own").0, category: Category::CUSTOM, total }];
    then(&Totals {
        snapshot: &snapshot,
        dynamic: &dynamic,
        flow: Flow { recorded: sum, exported: sum - 1, lost: Losses { exporter: 1, ..Losses::default() } },
        notices: Notices { names_changed: 7, ..Notices::default() },
        clock: ClockInfo { source: 1, ..ClockInfo::default() },
        now_us: 1_000_000,
    })
}

fn shows_totals(path: &Path, sum: u64) {
    let info = Reader::open(path).unwrap().info().unwrap();
    let entry = *info.metrics.unwrap().entry(names::TX_BYTES).unwrap();
    assert_eq!((entry.sum, entry.count), (sum, 2));
    assert_eq!(info.dynamic.unwrap()[0].total.sum, sum + 1);
    assert_eq!(info.flow.unwrap().recorded, sum);
    assert_eq!(info.notices.unwrap().names_changed, 7);
}

fn truncate(path: &Path, len: u64) {
    fs::OpenOptions::new().write(true).open(path).unwrap().set_len(len).unwrap();
}

#[test]
fn nop_takes_everything() {
    let mut nop = Nop;
    assert!(nop.export(&events(0..9)).is_ok());
    with_totals(1, |totals| nop.publish(totals));
    nop.housekeep(1);
    nop.close(2);
    assert_eq!((nop.path(), nop.file_trouble()), (None, 0));
}

#[test]
fn events_and_numbers_come_back_from_the_file() {
    for capacity in [2, 4, 64, 4096] {
        let directory = tempfile::tempdir().unwrap();
        let heard = Heard::new();
        let mut shm = Shm::new(settings(directory.path(), capacity), &heard.warner).unwrap();
        let path = shm.path().unwrap();
        assert!(values_in(&path).is_empty());
        for start in [0, 10, 20] {
            shm.export(&events(start..start + 10)).unwrap();
        }
        assert_eq!(values_in(&path), (30 - capacity.min(30)..30).collect::<Vec<_>>());
        with_totals(40, |totals| shm.publish(totals));
        shows_totals(&path, 40);
        let info = Reader::open(&path).unwrap().info().unwrap();
        let identity = info.identity.unwrap();
        assert_eq!(
            (identity.agent.as_str(), identity.rank.as_deref(), identity.agent_instance),
            ("agent", Some("rank 3"), 5)
        );
        assert_eq!((info.liveness, info.heartbeat), (Liveness::Alive, Some(1_000_000)));
        shm.housekeep(2_000_000);
        assert_eq!(Reader::open(&path).unwrap().info().unwrap().heartbeat, Some(2_000_000));
        assert!(heard.take().is_empty());
    }
}

#[test]
fn a_batch_never_takes_a_transfer_apart_where_it_fits() {
    let group = [4, 3, 2, 1].map(|left| event(0, left));
    let single = [event(0, 1)];
    assert_eq!(batch_len(&group, 4), 4);
    assert_eq!(batch_len(&[&single[..], &group[..]].concat(), 4), 1);
    assert_eq!(batch_len(&[&group[..], &group[..]].concat(), 7), 4);
    assert_eq!(batch_len(&[&group[..], &group[..]].concat(), 256), 8);
    // A ring too small for a transfer takes what fits.
    assert_eq!(batch_len(&group, 1), 1);
    assert_eq!(batch_len(&group, 2), 2);
}

#[test]
fn a_file_truncated_before_each_batch_200_times_costs_neither_host_nor_numbers() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let mut shm = Shm::new(settings(directory.path(), 4096), &heard.warner).unwrap();
    let path = shm.path().unwrap();
    with_totals(99, |totals| shm.publish(totals));
    let mut instances = std::collections::HashSet::new();
    for round in 0..200 {
        truncate(&path, [0, 100, 5000][round as usize % 3]);
        shm.export(&events(round * 3..round * 3 + 3)).unwrap();
        assert_eq!(shm.path().unwrap(), path);
        assert_eq!(values_in(&path), [round * 3, round * 3 + 1, round * 3 + 2]);
        shows_totals(&path, 99);
        assert!(instances.insert(Reader::open(&path).unwrap().instance()));
    }
    assert_eq!(shm.file_trouble(), 200);
    assert!(heard.only().contains("changed its size"));
    with_totals(100, |totals| shm.publish(totals));
    assert_eq!(Reader::open(&path).unwrap().info().unwrap().notices.unwrap().file_trouble, 200);
}

#[test]
fn a_nixl_agent_of_the_same_name_gets_the_name_and_both_go_on() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let mut shm = Shm::new(settings(directory.path(), 4096), &heard.warner).unwrap();
    let path = shm.path().unwrap();
    shm.export(&events(0..3)).unwrap();
    // A version 4 ring of 4096 events, in the same inode.
    let theirs = fs::OpenOptions::new().write(true).open(&path).unwrap();
    theirs.set_len(40 + 4096 * 16).unwrap();
    let mut header = [0; 40];
    header[16..24].copy_from_slice(&[4, 0, 0, 0, 4, 0, 0, 0]);
    header[24..40].copy_from_slice(&[[0, 16, 0, 0, 0, 0, 0, 0], [255, 15, 0, 0, 0, 0, 0, 0]].concat());
    theirs.write_all_at(&header, 0).unwrap();
    let before = fs::read(&path).unwrap();
    shm.export(&events(3..6)).unwrap();
    let beside = directory.path().join(format!("agent@{}", std::process::id()));
    assert_eq!(shm.path().unwrap(), beside);
    assert_eq!(values_in(&beside), [3, 4, 5]);
    assert_eq!(fs::read(&path).unwrap(), before, "not a byte of it is touched");
    assert!(heard.only().contains("NIXL agent of the same name"));
    // Its end is its own.
    shm.close(7);
    assert_eq!(fs::read(&path).unwrap(), before);
}

#[test]
fn events_that_no_file_can_take_are_refused_and_counted_until_there_is_one() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("d");
    let heard = Heard::new();
    let mut shm = Shm::new(settings(&directory, 64), &heard.warner).unwrap();
    shm.export(&events(0..3)).unwrap();
    fs::remove_dir_all(&directory).unwrap();
    fs::write(&directory, "in the way").unwrap();
    let error = shm.export(&events(3..10)).unwrap_err();
    assert_eq!(error.lost, 7);
    assert!(error.message.contains(directory.to_str().unwrap()), "{}", error.message);
    with_totals(8, |totals| shm.publish(totals));
    fs::remove_file(&directory).unwrap();
    // Not asked again with every batch: once a second, and less and less often.
    assert_eq!(shm.export(&events(10..11)).unwrap_err(), super::ExportError { lost: 1, message: error.message });
    shm.housekeep(1);
    shm.export(&events(11..13)).unwrap();
    let path = shm.path().unwrap();
    assert_eq!(values_in(&path), [11, 12]);
    shows_totals(&path, 8);
    assert_eq!(shm.file_trouble(), 1);
}

#[test]
fn a_clean_close_marks_the_file_lets_go_of_it_and_leaves_it() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let mut shm = Shm::new(settings(directory.path(), 64), &heard.warner).unwrap();
    let path = shm.path().unwrap();
    shm.export(&events(0..3)).unwrap();
    fs::remove_file(&path).unwrap();
    shm.close(5);
    let info = Reader::open(&path).unwrap().info().unwrap();
    assert_eq!((info.state, info.liveness, info.heartbeat), (Some(State::Closed), Liveness::Closed, Some(5)));
    assert_eq!(values_in(&path), [0, 1, 2]);
    assert_eq!(shm.export(&events(3..5)).unwrap_err().lost, 2);
    with_totals(8, |totals| shm.publish(totals));
    shm.housekeep(6);
    assert_eq!(values_in(&path), [0, 1, 2]);
    // A new start takes the name though the closed exporter still exists.
    let again = Shm::new(settings(directory.path(), 64), &heard.warner).unwrap();
    assert_eq!(again.path().unwrap(), path);
    assert_eq!(names_in(directory.path()).len(), 3);
}

#[test]
fn a_file_that_can_not_be_made_leaves_nothing_and_is_told_by_nobody_else() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    for capacity in [0, 1, 3, 1 << 25, u64::MAX] {
        let error = Shm::new(settings(directory.path(), capacity), &heard.warner).err().unwrap().to_string();
        assert!(error.contains(&capacity.to_string()), "{error}");
    }
    let mut many = settings(directory.path(), 64);
    many.bounds = (0..33).collect();
    assert!(Shm::new(many, &heard.warner).is_err());
    assert!(names_in(directory.path()).is_empty());
    assert!(heard.take().is_empty());
}

#[test]
fn random_bytes_written_into_the_live_file_do_not_stop_the_producer() {
    let directory = tempfile::tempdir().unwrap();
    let heard = Heard::new();
    let mut shm = Shm::new(settings(directory.path(), 64), &heard.warner).unwrap();
    let path = shm.path().unwrap();
    let vandal = fs::OpenOptions::new().write(true).open(&path).unwrap();
    let len = vandal.metadata().unwrap().len();
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    for round in 0..500 {
        let noise: Vec<u8> = (0..len)
            .map(|_| {
                random ^= random << 13;
                random ^= random >> 7;
                random ^= random << 17;
                random as u8
            })
            .collect();
        vandal.write_all_at(&noise, 0).unwrap();
        shm.export(&events(round * 7..round * 7 + 7)).unwrap();
        with_totals(round + 1, |totals| shm.publish(totals));
        shm.housekeep(round);
    }
    shm.close(1);
    assert_eq!(vandal.metadata().unwrap().len(), len);
}

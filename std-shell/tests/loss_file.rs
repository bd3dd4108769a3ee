//! Losses are exact from the recording threads to the reader of the file: what was read and what was lost, by
//! cause, add up to what was recorded.

#![allow(clippy::unwrap_used)]

mod acceptance;

use std::fs;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use acceptance::{Judge, TRANSFERS_ONLY, agent, drain, transfer};
use telering::reader::{Counts, Follower, Item, Positions, Reader};
use telering::{Status, Telemetry};

const THREADS: u64 = 8;

/// Eight threads record; thread t the transfers whose number's remainder is t.
fn flood(agent: &Telemetry, each: u64) {
    std::thread::scope(|scope| {
        for lane in 0..THREADS {
            scope.spawn(move || {
                for round in 1..=each {
                    agent.record_transfer(&transfer(round * THREADS + lane));
                    // Short rests, or nearly all would be lost before the file and little be shown behind it.
                    if round % 128 == 0 {
                        std::thread::sleep(Duration::from_micros(100));
                    }
                }
            });
        }
    });
}

/// Reads while `work` runs, resting after each look, and then to the end.
fn read_slowly(reader: &mut Reader, rest: Duration, work: impl FnOnce() + Send) -> (Judge, Vec<Item>) {
    let done = AtomicBool::new(false);
    let mut judge = Judge::of_lanes(THREADS as usize);
    let mut others = Vec::new();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            work();
            done.store(true, Ordering::Release);
        });
        while !done.load(Ordering::Acquire) {
            let mut items = Vec::new();
            reader.read(&mut items).unwrap();
            judge.items(&items);
            others.extend(items.into_iter().filter(|item| !matches!(item, Item::Event(_))));
            std::thread::sleep(rest);
        }
    });
    others.extend(drain(&mut judge, |items| reader.read(items)).unwrap());
    (judge, others)
}

fn losses_add_up(each: u64) {
    let directory = tempfile::tempdir().unwrap();
    let agent = agent("flood")
        .dir(directory.path())
        .buffer_size(1024)
        .staging_records(256)
        .metrics(TRANSFERS_ONLY)
        .close_patience(Duration::from_secs(60))
        .build();
    let mut reader = Reader::open(agent.path().unwrap()).unwrap();
    let mut flow = None;
    let (judge, others) = read_slowly(&mut reader, Duration::from_millis(3), || {
        flood(&agent, each);
        flow = Some(agent.close());
    });
    let (flow, counts) = (flow.unwrap(), reader.counts());
    println!("{flow:?} {counts:?} {judge:?}");
    assert_eq!(judge.foreign, 0, "{:?}", judge.first_foreign);
    assert_eq!(judge.own, 0, "nothing of our own was wanted");
    assert_eq!((counts.unverified, counts.interrupted), (0, 0));
    assert_eq!(counts.events, judge.events);
    let said: u64 =
        others.iter().map(|item| if let Item::Lost(lost) = item { *lost } else { panic!("{item:?}") }).sum();
    assert_eq!(said, counts.lost, "each loss stands in the stream");
    // Each cause by itself, and all of them together.
    assert_eq!(flow.recorded, THREADS * each * 4);
    assert_eq!(counts.events + counts.lost, flow.exported);
    assert_eq!(flow.exported + flow.lost.staging, flow.recorded);
    assert_eq!(flow.lost.total(), flow.lost.staging, "by no other cause");
    assert_eq!(flow.lost.staging % 4, 0, "a transfer's events are lost together");
    assert!(flow.lost.staging > 0 && counts.lost > 0 && counts.events > 0, "this test wants both losses");
    // The file itself says the same.
    let info = reader.info().unwrap();
    assert_eq!(info.flow, Some(flow));
    assert!(matches!(info.positions, Positions::Image { committed, .. } if committed == flow.exported));
}

#[test]
fn eight_threads_with_small_rings_and_a_slow_reader_lose_exactly_what_is_said() {
    losses_add_up(20_000);
}

#[test]
#[ignore = "takes some seconds: ten million events"]
fn ten_million_events_of_eight_threads_are_read_or_lost_by_a_cause() {
    losses_add_up(312_500);
}

#[test]
fn what_no_file_took_is_lost_by_that_cause() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("d");
    let agent = agent("homeless")
        .dir(&directory)
        .metrics(TRANSFERS_ONLY)
        // Only the flushes below: between them nothing is lost or written.
        .run_interval(Duration::from_secs(3600))
        .on_warning(|_| {})
        .build();
    let mut follower = Follower::open(agent.path().unwrap()).unwrap();
    let (mut judge, mut number) = (Judge::new(), 0);
    let mut record = |count: u64| {
        (0..count).for_each(|_| {
            number += 1;
            agent.record_transfer(&transfer(number));
        });
        assert!(agent.flush_now(Duration::from_secs(60)));
    };
    record(100);
    drain(&mut judge, |items| follower.poll(items)).unwrap();
    // The directory goes away and something stands in its place.
    fs::remove_dir_all(&directory).unwrap();
    fs::write(&directory, "in the way").unwrap();
    record(50);
    assert_eq!(agent.counts().lost.exporter, 200);
    fs::remove_file(&directory).unwrap();
    // The file is back once the next try is due.
    acceptance::eventually("a new file", Duration::from_secs(60), || {
        record(1);
        directory.join("homeless").exists()
    });
    record(100);
    let flow = agent.close();
    drain(&mut judge, |items| follower.poll(items)).unwrap();
    assert_eq!(judge.foreign, 0, "{:?}", judge.first_foreign);
    assert_eq!((judge.events, follower.counts().lost), (flow.exported, 0));
    assert_eq!(flow.recorded, 4 * number);
    assert_eq!(flow.exported + flow.lost.exporter, flow.recorded);
    assert_eq!(flow.lost.total(), flow.lost.exporter);
}

#[test]
fn a_reader_that_was_lapped_hears_the_exact_loss_once_and_goes_on_with_the_oldest() {
    const CAPACITY: u64 = 4096;
    let directory = tempfile::tempdir().unwrap();
    let agent = agent("lapped")
        .dir(directory.path())
        .buffer_size(CAPACITY)
        .staging_records(1 << 16)
        .metrics("agent_err_*,tick")
        .build();
    let mut reader = Reader::open(agent.path().unwrap()).unwrap();
    let mut pushed = 0;
    let mut push = |count: u64| {
        for _ in 0..count {
            agent.event("tick", pushed);
            pushed += 1;
            if pushed.is_multiple_of(8192) {
                assert!(agent.flush_now(Duration::from_secs(60)));
            }
        }
        assert!(agent.flush_now(Duration::from_secs(60)));
    };
    let mut next = 0;
    for behind in [1, CAPACITY, 1_000_000] {
        // It had all there was; now it is stopped while so many come.
        push(CAPACITY + behind);
        let mut items = Vec::new();
        while reader.read(&mut items).unwrap() > 0 {}
        assert_eq!(items[0], Item::Lost(behind), "first what was lost");
        assert_eq!(items.len() as u64, 1 + CAPACITY, "once, and then all that is still there");
        next += behind;
        for item in &items[1..] {
            let Item::Event(event) = item else { panic!("{item:?}") };
            assert_eq!((event.seq, event.value, event.name.as_str()), (next, next, "tick"));
            next += 1;
        }
    }
    let Counts { events, lost, .. } = reader.counts();
    agent.error(Status::Backend);
    let flow = agent.close();
    assert_eq!((events + lost + 1, flow.lost.total()), (flow.recorded, 0));
}

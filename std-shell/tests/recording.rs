//! What is recorded comes out: in order, whole, counted.

mod common;

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use common::{Collector, agent};
use telering::{Category, Mode, Operation, Status, Telemetry, TransferRecord};

#[test]
fn each_kind_of_event_comes_out_once_with_its_name_and_category() {
    let (collector, seen) = Collector::new(true);
    let agent = agent("kinds").exporter(collector).build();
    assert_eq!(agent.mode(), Mode::Exported);
    agent.memory_registered(4096);
    agent.metadata_sent(100);
    agent.connected();
    let mut write = agent.begin_transfer(Operation::Write, 1000, 2);
    write.posted();
    write.finish();
    write.finish();
    let record = TransferRecord {
        operation: Operation::Read,
        bytes: 77,
        descriptors: 1,
        post_duration: Duration::from_micros(5),
        xfer_duration: Duration::from_micros(9),
    };
    agent.record_transfer(&record);
    agent.begin_transfer(Operation::Write, 5, 1).fail(Status::Backend);
    drop(agent.begin_transfer(Operation::Read, 5, 1));
    agent.event("kv_cache_hit", 3);
    let backend = agent.backend();
    backend.add_event("rail_switch", 9);
    let flow = agent.close();
    let events = seen.events.lock().expect("unpoisoned");
    let shown: Vec<_> =
        events.iter().map(|event| (event.category.as_str().unwrap_or("?"), event.name.as_str(), event.value)).collect();
    assert!(shown[4].2 <= shown[5].2, "the transfer's time includes its post: {shown:?}");
    let expected = [
        ("SYSTEM", "agent_started", 1),
        ("MEMORY", "agent_memory_registered", 4096),
        ("CONNECTION", "agent_metadata_sent", 100),
        ("CONNECTION", "agent_connected", 1),
        ("PERFORMANCE", "agent_xfer_post_time", shown[4].2),
        ("PERFORMANCE", "agent_xfer_time", shown[5].2),
        ("TRANSFER", "agent_tx_bytes", 1000),
        ("TRANSFER", "agent_tx_requests_num", 1),
        ("PERFORMANCE", "agent_xfer_post_time", 5),
        ("PERFORMANCE", "agent_xfer_time", 9),
        ("TRANSFER", "agent_rx_bytes", 77),
        ("TRANSFER", "agent_rx_requests_num", 1),
        ("ERROR", "NIXL_ERR_BACKEND", 1),
        ("ERROR", "NIXL_ERR_CANCELED", 1),
        ("CUSTOM", "kv_cache_hit", 3),
        ("BACKEND", "rail_switch", 9),
        ("SYSTEM", "agent_stopped", 1),
    ];
    assert_eq!(shown, expected);
    assert!(events.is_sorted_by_key(|event| event.timestamp_us));
    let groups: Vec<_> = events[4..8].iter().map(|event| (event.group, event.timestamp_us)).collect();
    let time = groups[0].1;
    assert_eq!(groups, [(4, time), (3, time), (2, time), (1, time)]);
    // agent_started and agent_stopped are ours, outside the books.
    assert_eq!((flow.recorded, flow.exported, flow.lost.total()), (15, 15, 0));
    assert!(seen.closed.load(Ordering::SeqCst));
}

#[test]
fn a_transfer_may_finish_on_another_thread() {
    let (collector, seen) = Collector::new(true);
    let agent = agent("two threads").exporter(collector).build();
    let mut transfer = agent.begin_transfer(Operation::Write, 1 << 40, 1);
    thread::spawn(move || {
        transfer.posted();
        transfer.finish();
        assert_eq!(transfer.telemetry().map(|telemetry| telemetry.total_bytes), Some(1 << 40));
    })
    .join()
    .expect("no panic");
    assert_eq!(agent.close().exported, 4);
    assert_eq!(seen.events.lock().expect("unpoisoned").len(), 6);
}

#[test]
fn telemetry_of_a_transfer_is_there_when_it_is_done_and_wanted_and_else_is_none() {
    // Known case 30: asking must never look like a failed transfer.
    let off = Telemetry::builder("off").ignore_environment(true).build();
    assert_eq!(off.mode(), Mode::Off);
    let mut transfer = off.begin_transfer(Operation::Write, 1, 1);
    transfer.posted();
    transfer.finish();
    assert_eq!(transfer.telemetry(), None);

    let captured = Telemetry::builder("captured").ignore_environment(true).capture_telemetry(true).build();
    assert_eq!((captured.mode(), captured.path()), (Mode::Captured, None));
    let mut transfer = captured.begin_transfer(Operation::Read, 4096, 3);
    assert_eq!(transfer.telemetry(), None);
    transfer.posted();
    thread::sleep(Duration::from_millis(2));
    assert_eq!(transfer.telemetry(), None);
    transfer.finish();
    let telemetry = transfer.telemetry().expect("finished");
    assert_eq!((telemetry.total_bytes, telemetry.descriptor_count), (4096, 3));
    assert!(telemetry.xfer_duration >= Duration::from_millis(2) && telemetry.post_duration <= telemetry.xfer_duration);
    let age = telemetry.start.elapsed().expect("in the past");
    assert!(age >= telemetry.xfer_duration && age < Duration::from_secs(60), "{age:?}");

    let mut failed = captured.begin_transfer(Operation::Read, 1, 1);
    failed.fail(Status::NotFound);
    failed.finish();
    assert_eq!(failed.telemetry(), None);
    assert_eq!(captured.snapshot().errors[Status::NotFound.index()], 1);
}

#[test]
fn a_metric_that_is_off_is_neither_recorded_nor_timed() {
    let (collector, seen) = Collector::new(true);
    let agent = agent("masked").exporter(collector).metrics("agent_tx_bytes, NIXL_ERR_CANCELED, mine*").build();
    let mut write = agent.begin_transfer(Operation::Write, 10, 1);
    write.finish();
    agent.begin_transfer(Operation::Read, 10, 1).finish();
    drop(agent.begin_transfer(Operation::Write, 10, 1));
    agent.error(Status::NotFound);
    agent.memory_registered(5);
    agent.event("mine_too", 1);
    agent.event("not_mine", 1);
    agent.backend().add_event("not_mine", 1);
    assert_eq!(agent.close().recorded, 3);
    let names: Vec<_> = seen.events.lock().expect("unpoisoned").iter().map(|event| event.name).collect();
    let names: Vec<_> = names.iter().map(|name| name.as_str()).collect();
    assert_eq!(names, ["agent_tx_bytes", "NIXL_ERR_CANCELED", "mine_too"]);
    let snapshot = agent.snapshot();
    assert_eq!(snapshot.entry(telering::core::names::TX_BYTES).map(|total| (total.sum, total.count)), Some((10, 1)));
    assert_eq!(snapshot.histograms[0].count(), 0);
}

#[test]
fn failures_that_alone_are_wanted_are_exported() {
    let (collector, seen) = Collector::new(true);
    let agent = agent("failures").exporter(collector).metrics("agent_err_*,NIXL_ERR_*").build();
    for operation in [Operation::Write, Operation::Read] {
        let mut transfer = agent.begin_transfer(operation, 10, 1);
        transfer.posted();
        transfer.finish();
    }
    let mut transfer = agent.begin_transfer(Operation::Write, 10, 1);
    transfer.posted();
    transfer.fail(Status::NotFound);
    drop(agent.begin_transfer(Operation::Read, 10, 1));
    let flow = agent.close();
    assert_eq!((flow.recorded, flow.exported), (2, 2));
    let events = seen.events.lock().expect("unpoisoned");
    let names: Vec<_> = events.iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["NIXL_ERR_NOT_FOUND", "NIXL_ERR_CANCELED"]);
}

#[test]
fn names_are_cut_and_cleaned_and_counted() {
    let (collector, seen) = Collector::new(true);
    let agent = agent("names").exporter(collector).build();
    agent.event("a name that is longer than thirty-one bytes", 1);
    agent.event("line\nfeed\0", 1);
    agent.event("", 1);
    agent.event("fine", 1);
    agent.close();
    assert_eq!(agent.notices().names_changed, 3);
    let events = seen.events.lock().expect("unpoisoned");
    let names: Vec<_> = events[1..5].iter().map(|event| event.name.as_str()).collect();
    assert_eq!(names, ["a name that is longer than thir", "line_feed_", "_", "fine"]);
    assert!(events[1..5].iter().all(|event| event.category == Category::CUSTOM));
}

#[test]
fn a_backend_keeps_a_thousand_events_and_counts_the_excess() {
    let (collector, seen) = Collector::new(false);
    let agent = agent("backend").exporter(collector).run_interval(Duration::from_secs(3600)).build();
    assert!(agent.flush_now(Duration::from_secs(10)));
    let backend = agent.backend();
    for value in 0..1005 {
        backend.add_event("rail", value);
    }
    let flow = agent.close();
    assert_eq!((flow.recorded, flow.exported, flow.lost.backend), (1005, 1000, 5));
    assert_eq!(seen.count.load(Ordering::SeqCst), 1002);
    assert!(backend.events().is_empty());
    assert_eq!(agent.notices().refused, 0);
    backend.add_event("late", 1);
    assert!(backend.events().is_empty());
}

#[test]
fn many_short_lived_threads_reuse_slots_and_lose_nothing() {
    let (collector, _seen) = Collector::new(false);
    let agent = agent("threads").exporter(collector).staging_records(1024).build();
    let threads = 5_000_u64;
    for _ in 0..threads / 2 {
        let pair: Vec<_> = (0..2)
            .map(|_| {
                let agent = agent.clone();
                thread::spawn(move || agent.begin_transfer(Operation::Write, 3, 1).finish())
            })
            .collect();
        pair.into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
    let flow = agent.close();
    assert_eq!((flow.recorded, flow.exported), (4 * threads, 4 * threads));
    let total = agent.snapshot().entry(telering::core::names::TX_BYTES).copied().unwrap_or_default();
    assert_eq!((total.sum, total.count), (3 * threads, threads));
}

#[test]
fn flush_now_exports_what_was_recorded_before_it() {
    let (collector, seen) = Collector::new(false);
    let agent = agent("flush").exporter(collector).run_interval(Duration::from_secs(3600)).build();
    for round in 1..=20 {
        agent.event("one", 1);
        let start = Instant::now();
        assert!(agent.flush_now(Duration::from_secs(10)));
        assert!(start.elapsed() < Duration::from_secs(10));
        assert_eq!(agent.counts().exported, round);
        assert_eq!(seen.count.load(Ordering::SeqCst), round + 1);
    }
}

//! Losses are exact, per cause; totals count what the rings overwrite.

mod common;

use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use common::{Collector, agent};
use telering::core::names;
use telering::exporter::{Event, ExportError, Exporter};
use telering::{Operation, TransferRecord};

const TRANSFER: TransferRecord = TransferRecord {
    operation: Operation::Write,
    bytes: 8,
    descriptors: 1,
    post_duration: Duration::from_micros(1),
    xfer_duration: Duration::from_micros(2),
};

#[test]
fn eight_threads_ten_million_events_small_rings_and_a_slow_exporter() {
    let (collector, seen) = Collector::slow(Duration::from_millis(1));
    let agent = agent("flood").exporter(collector).staging_records(256).build();
    let per_thread = 312_500;
    let threads: Vec<_> = (0..8)
        .map(|_| {
            let agent = agent.clone();
            thread::spawn(move || (0..per_thread).for_each(|_| agent.record_transfer(&TRANSFER)))
        })
        .collect();
    threads.into_iter().for_each(|thread| thread.join().expect("no panic"));
    let flow = agent.close();
    assert_eq!(flow.recorded, 8 * per_thread * 4);
    assert!(flow.lost.staging > 0, "this test wants losses");
    assert_eq!(flow.lost.staging % 4, 0, "a transfer's events are lost together");
    assert_eq!(flow.recorded, flow.exported + flow.lost.total());
    assert_eq!(flow.lost.total(), flow.lost.staging);
    let totals = agent.snapshot();
    let bytes = totals.entry(names::TX_BYTES).copied().unwrap_or_default();
    assert_eq!((bytes.sum, bytes.count), (8 * per_thread * 8, 8 * per_thread));
    assert_eq!(totals.histograms[0].count(), 8 * per_thread);
    // Each report of losses is an event of our own; what came out is what the books say.
    assert!(seen.count.load(Ordering::SeqCst) >= flow.exported + 3);
}

#[test]
fn the_reports_of_losses_add_up_to_the_losses() {
    let (collector, seen) = Collector::new(true);
    let agent = agent("reports").exporter(collector).staging_records(64).build();
    for _ in 0..200_000 {
        agent.record_transfer(&TRANSFER);
    }
    let flow = agent.close();
    let events = seen.events.lock().expect("unpoisoned");
    let reported: u64 = events.iter().filter(|event| event.id == names::EVENTS_DROPPED).map(|event| event.value).sum();
    assert_eq!(reported, flow.lost.staging);
    let ours = [names::EVENTS_DROPPED, names::STARTED, names::STOPPED];
    let application = events.iter().filter(|event| !ours.contains(&event.id)).count() as u64;
    assert_eq!(application, flow.exported);
    // Groups are whole: post time, transfer time, bytes, request.
    let transfers: Vec<_> = events.iter().filter(|event| !ours.contains(&event.id)).collect();
    for group in transfers.chunks(4) {
        let ids: Vec<_> = group.iter().map(|event| event.id).collect();
        assert_eq!(ids, [names::XFER_POST_TIME, names::XFER_TIME, names::TX_BYTES, names::TX_REQUESTS]);
    }
}

/// Refuses every other batch.
struct Picky(bool);

impl Exporter for Picky {
    fn export(&mut self, events: &[Event]) -> Result<(), ExportError> {
        self.0 = !self.0;
        let lost = if self.0 { events.len() as u64 } else { 0 };
        if lost == 0 { Ok(()) } else { Err(ExportError::new(lost, "picky: no room")) }
    }
}

#[test]
fn what_an_exporter_refuses_is_lost_by_that_cause() {
    let warnings = std::sync::Arc::new(std::sync::Mutex::new(Vec::new()));
    let heard = std::sync::Arc::clone(&warnings);
    let agent = agent("picky")
        .exporter(Box::new(Picky(false)))
        .on_warning(move |warning| heard.lock().expect("unpoisoned").push(warning.message.clone()))
        .build();
    for round in 0..10 {
        agent.event("one", round);
        agent.event("two", round);
        agent.flush_now(Duration::from_secs(10));
    }
    let flow = agent.close();
    assert_eq!(flow.recorded, 20);
    assert_eq!(flow.exported + flow.lost.exporter, 20);
    assert!(flow.lost.exporter >= 8 && flow.exported >= 8, "{flow:?}");
    assert!(warnings.lock().expect("unpoisoned").iter().all(|message| message == "picky: no room"));
}

#[test]
fn an_idle_agent_is_woken_before_a_ring_overflows() {
    let (collector, _) = Collector::new(false);
    let agent = agent("woken").exporter(collector).run_interval(Duration::from_secs(3600)).build();
    thread::sleep(Duration::from_millis(50));
    // Three quarters of the default ring, then a rest: without a wake-up nothing would come out for an hour.
    (0..12_288).for_each(|_| agent.record_transfer(&TRANSFER));
    let start = Instant::now();
    while agent.counts().exported < 8_192 * 4 && start.elapsed() < Duration::from_secs(5) {
        thread::sleep(Duration::from_millis(1));
    }
    assert!(agent.counts().exported >= 8_192 * 4, "{:?}", agent.counts());
    assert_eq!(agent.close().lost.total(), 0);
}

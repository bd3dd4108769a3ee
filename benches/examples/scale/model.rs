//! The model: what the code says about bytes and counts, and a few measured costs.

use std::fmt::Write as _;

use telering::config::{BUFFER_SIZE_DEFAULT, RUN_INTERVAL_DEFAULT, STAGING_RECORDS_DEFAULT};
use telering::core::event::RECORD_SIZE;
use telering::core::image::{ImagePlan, PartSet};
use telering::core::layout::image::TimeBase;
use telering::core::slot::{Slot, Staged, StagedMemory};

/// Processes of a node, one for each rank.
pub(crate) const RANKS: usize = 8;
/// Threads of a process that record.
pub(crate) const THREADS: usize = 4;
/// Nodes of the cluster.
const NODES: u64 = 1_000;
/// Transfers a second and thread in the tables for process, node and cluster.
const RATE: u64 = 2_500;
/// Seconds between two scrapes.
const SCRAPE_INTERVAL: u64 = 15;
/// Events of one transfer.
pub(crate) const EVENTS: u64 = 4;
/// Records that the flush thread takes out of a slot at a time.
const CHUNK: u64 = 256;

const PAGE: u64 = 4096;

/// Bytes of the staging ring of one thread.
pub(crate) fn ring_bytes() -> u64 {
    STAGING_RECORDS_DEFAULT as u64 * size_of::<StagedMemory>() as u64
}

/// Bytes that one recording thread adds to its process: ring, totals, what the flush thread keeps for it, and the page
/// in which the C library notes the length of the ring.
pub(crate) fn thread_bytes() -> u64 {
    ring_bytes() + size_of::<Slot>() as u64 + drain_bytes() + PAGE
}

/// Bytes in which the flush thread holds records of one thread; they get their pages when many records arrive at once.
pub(crate) fn drain_bytes() -> u64 {
    CHUNK * size_of::<Staged>() as u64
}

/// Bytes of a telemetry file.
pub(crate) fn file_bytes() -> u64 {
    match ImagePlan::new(BUFFER_SIZE_DEFAULT, PartSet::ALL, TimeBase::Unix) {
        Ok(plan) => plan.image_len(),
        Err(error) => unreachable!("the default is a capacity: {error}"),
    }
}

/// Bytes in whole pages.
pub(crate) fn pages(bytes: u64) -> u64 {
    bytes.next_multiple_of(PAGE)
}

/// How often the flush thread wakes up in a second while its busiest thread records `rate` transfers in that second:
/// once each RUN_INTERVAL, or twice as often as a quarter of the ring fills; once for its housekeeping; and about each
/// second time that a quarter fills, the recorder is there first and wakes it.
pub(crate) fn wake_ups(rate: f64) -> f64 {
    let quarters = rate / (STAGING_RECORDS_DEFAULT as f64 / 4.0);
    (1.0 / RUN_INTERVAL_DEFAULT.as_secs_f64()).max(2.0 * quarters) + 1.0 + quarters / 2.0
}

/// What was measured in this run and can't be read off the code.
#[derive(Default)]
pub(crate) struct Constants {
    /// Private memory of an agent that nobody has recorded for.
    pub(crate) agent_bytes: u64,
    /// Processor time of a transfer over that of eight stores into the next line of a buffer.
    pub(crate) transfer: f64,
    /// Share of a processor for one wake-up a second, the first slot included.
    pub(crate) wake_up: f64,
    /// The same, for each further slot.
    pub(crate) slot: f64,
    /// Share of a processor for one event a second.
    pub(crate) event: f64,
    /// Bytes of a page without agents, and what each agent adds.
    pub(crate) page: u64,
    pub(crate) page_of_agent: u64,
    /// Series of such a page, and of each agent.
    pub(crate) page_series: u64,
    pub(crate) series: u64,
    /// Nanoseconds of a scrape, and what each agent adds.
    pub(crate) scrape: f64,
    pub(crate) scrape_of_agent: f64,
}

impl Constants {
    /// Series of a page of so many agents.
    pub(crate) fn series_of(&self, agents: u64) -> u64 {
        self.page_series + agents * self.series
    }

    /// Bytes of that page.
    pub(crate) fn page_of(&self, agents: u64) -> u64 {
        self.page + agents * self.page_of_agent
    }

    /// What one takes to make.
    pub(crate) fn scrape_ns(&self, agents: u64) -> f64 {
        self.scrape + agents as f64 * self.scrape_of_agent
    }

    /// Share of a processor that a flush thread takes.
    pub(crate) fn share(&self, slots: usize, wake_ups: f64, events: f64) -> f64 {
        let slots = slots.saturating_sub(1) as f64;
        wake_ups * (self.wake_up + slots * self.slot) + events * self.event
    }
}

/// From one transfer to a cluster.
pub(crate) fn cluster(constants: &Constants) -> String {
    let ranks = RANKS as u64;
    let threads = THREADS as u64;
    let rate = RATE * threads;
    let wake_ups = wake_ups(RATE as f64);
    let share = constants.share(THREADS, wake_ups, (EVENTS * rate) as f64);
    let mut text = format!(
        "{RATE} transfers a second and thread, {THREADS} threads a process, {RANKS} processes a node, {NODES} nodes\n\
         {:<44} {:>12} {:>14} {:>14} {:>18}\n",
        "", "thread", "process", "node", "cluster"
    );
    let mut counts = |what: &str, thread: u64, process: u64| {
        let (node, all) = (process * ranks, process * ranks * NODES);
        let _ = writeln!(text, "{what:<44} {thread:>12} {process:>14} {node:>14} {all:>18}");
    };
    counts("transfers a second", RATE, rate);
    counts("events a second", EVENTS * RATE, EVENTS * rate);
    counts("bytes a second into staging rings", RATE * 64, rate * 64);
    let record = RECORD_SIZE as u64 * EVENTS;
    counts("bytes a second into telemetry files", RATE * record, rate * record);
    let memory = constants.agent_bytes + threads * thread_bytes();
    counts("bytes of private memory", thread_bytes(), memory);
    counts("bytes of telemetry files", 0, pages(file_bytes()));
    counts("telemetry files, flush threads", 0, 1);
    counts("wake-ups of flush threads a second", 0, wake_ups.round() as u64);
    let _ = writeln!(
        text,
        "{:<44} {:>12} {:>13.3}% {:>13.3}% {:>18}",
        "flush threads, of one processor of their node",
        "",
        share * 100.0,
        share * 100.0 * RANKS as f64,
        ""
    );
    let (series, page) = (constants.series_of(ranks), constants.page_of(ranks));
    let _ = writeln!(
        text,
        "{:<44} {:>12} {:>14} {:>14} {:>18}",
        "series, one endpoint a node",
        "",
        "",
        series,
        series * NODES
    );
    let _ = writeln!(text, "{:<44} {:>12} {:>14} {:>14} {:>18}", "bytes a scrape", "", "", page, "");
    let scrapes = NODES as f64 / SCRAPE_INTERVAL as f64;
    let _ = writeln!(
        text,
        "{:<44} {:>12} {:>14} {:>14.3} {:>18.1}",
        format!("scrapes a second, one in {SCRAPE_INTERVAL} s"),
        "",
        "",
        scrapes / NODES as f64,
        scrapes
    );
    let bytes = page * NODES / SCRAPE_INTERVAL;
    let _ =
        writeln!(text, "{:<44} {:>12} {:>14} {:>14} {:>18}", "bytes a second of scrapes", "", "", bytes / NODES, bytes);
    let share = constants.scrape_ns(ranks) / SCRAPE_INTERVAL as f64 / 1e7;
    let _ = writeln!(
        text,
        "{:<44} {:>12} {:>14} {:>13.5}% {:>18}",
        "scrapes, of one processor of their node", "", "", share, ""
    );
    let _ = writeln!(
        text,
        "one transfer: {EVENTS} events, one record of {} bytes, {record} bytes in the file, {:.1} x eight stores",
        size_of::<StagedMemory>(),
        constants.transfer
    );
    text
}

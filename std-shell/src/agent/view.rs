//! An agent as a scrape sees it: its numbers of the moment, straight from its slots.
//!
//! A scrape doesn't wait for the flush thread's rhythm: the totals of built-in events are added up when they are asked
//! for and hold every record that was made before, however far behind the history is. Only what the flush thread alone
//! knows (losses, custom events) is as of its last flush, and one is asked for first.

use std::fmt;
use std::net::SocketAddr;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use telering_core::snapshot::Snapshot;

use super::hot::Hot;
use super::registry;
use crate::exporter::WRITER;
use crate::file::fork;
use crate::flush::{FlushHandle, Published, add_up};
use crate::prometheus::multiproc::Seat;
use crate::prometheus::{Exposition, Labels, Sample, dynamic_of, metrics_of};

/// How long a scrape waits for the flushes that it asked for, all together.
const FLUSH_PATIENCE: Duration = Duration::from_millis(50);
/// How often the slots are added up until few events came in between.
const TRIES: usize = 8;
/// So many.
const MEANWHILE_FINE: u64 = 40;

/// What a scrape needs of an agent. It keeps no agent alive.
#[derive(Debug)]
pub(crate) struct View {
    pub(crate) hot: Arc<Hot>,
    pub(crate) flush: Option<Arc<FlushHandle>>,
    pub(crate) labels: Labels,
    /// When the agent was made: Unix microseconds.
    pub(crate) start_us: u64,
    /// Where the process's endpoint shows this agent, if it does.
    pub(crate) endpoint: Option<Place>,
}

/// Where an agent is shown to Prometheus.
#[derive(Clone)]
pub(crate) enum Place {
    /// At the endpoint that the agents of this process share.
    Process(SocketAddr),
    /// Through its file, by whichever process serves the directory.
    Directory(Weak<Seat>),
}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Place").field(&self.address()).finish()
    }
}

impl Place {
    /// The address, if this process serves it.
    pub(crate) fn address(&self) -> Option<SocketAddr> {
        match self {
            Place::Process(address) => Some(*address),
            Place::Directory(seat) => seat.upgrade()?.address(),
        }
    }
}

/// The labels of an agent of this process, as NIXL's exporter has them. Of several agents of one name the first has
/// these alone; the others have the label `agent_instance`, so that each keeps its own series for as long as it lives.
pub(super) fn labels(name: &str, instance: u64, taken: bool) -> Labels {
    let node = rustix::system::uname();
    let node = node.nodename().to_string_lossy();
    let hostname = if node.is_empty() { "unknown" } else { &*node };
    let labels = Labels::new().with("agent_name", name).with("hostname", hostname);
    if taken { labels.with(INSTANCE, instance.to_string()) } else { labels }
}

const INSTANCE: &str = "agent_instance";

impl View {
    pub(super) fn is_closed(&self) -> bool {
        self.hot.closed.is_closed()
    }

    pub(super) fn has_plain_labels_of(&self, name: &str) -> bool {
        self.labels.get("agent_name") == Some(name) && self.labels.get(INSTANCE).is_none()
    }

    /// Running totals of the built-in events as of now.
    ///
    /// Threads that record meanwhile are not stopped, so the transfers of that very moment may be in one sum and not
    /// yet in another. Of a few tries the one with the fewest counts: this thread may have been interrupted for long.
    pub(super) fn snapshot(&self) -> Snapshot {
        let slots = self.hot.slots_from(0);
        let events = || slots.iter().fold(0_u64, |sum, owned| sum.wrapping_add(owned.slot.totals().events()));
        let anchor = self.hot.clock.anchor();
        let mut best = (u64::MAX, Snapshot::default());
        for _ in 0..TRIES {
            let before = events();
            let totals = slots.iter().map(|owned| owned.slot.totals());
            let snapshot = add_up(totals, self.hot.mask, &anchor);
            let meanwhile = events().wrapping_sub(before);
            if meanwhile < best.0 {
                best = (meanwhile, snapshot);
            }
            if best.0 <= MEANWHILE_FINE {
                break;
            }
        }
        best.1
    }

    fn sample(&self) -> Sample {
        let mut sample = Sample::new(self.labels.clone());
        sample.start_us = Some(self.start_us);
        sample.writer = Some(WRITER.to_owned());
        let mut snapshot = self.snapshot();
        if let Some(flush) = &self.flush {
            let Published { own, dynamic, flow, notices } = flush.published();
            for (id, total) in own {
                if let Some(entry) = snapshot.entry_mut(id) {
                    *entry = total;
                }
            }
            sample.dynamic = dynamic.iter().map(dynamic_of).collect();
            sample.flow = Some(flow);
            sample.notices = Some(notices);
        }
        sample.metrics = metrics_of(&snapshot, self.hot.buckets.bounds());
        sample
    }
}

/// Writes a page with these agents.
pub(super) fn write(views: &[Arc<View>], out: &mut (impl fmt::Write + ?Sized)) -> fmt::Result {
    let views: Vec<_> = views.iter().filter(|view| fork::is_own(view.hot.id)).collect();
    let flushes = views.iter().filter_map(|view| Some((view, view.flush.as_ref()?)));
    let asked: Vec<_> = flushes.map(|(view, flush)| (flush, flush.ask(&view.hot))).collect();
    let deadline = Instant::now() + FLUSH_PATIENCE;
    for (flush, number) in asked {
        if let Some(number) = number {
            flush.wait_for(number, deadline.saturating_duration_since(Instant::now()));
        }
    }
    let samples: Vec<Sample> = views.iter().map(|view| view.sample()).collect();
    let mut exposition = Exposition::new();
    for sample in &samples {
        exposition.add(sample);
    }
    exposition.write(out)
}

/// Writes a page with all agents of this process that are at work.
pub(crate) fn write_process(out: &mut (impl fmt::Write + ?Sized)) -> fmt::Result {
    write(&registry::views(), out)
}

/// Writes the page of the process's endpoint: the agents with the exporter `prometheus`.
pub(crate) fn write_endpoint(page: &mut String) {
    let views: Vec<_> =
        registry::views().into_iter().filter(|view| matches!(view.endpoint, Some(Place::Process(_)))).collect();
    // A String takes everything.
    let _ = write(&views, page);
}

//! The flush thread's rounds: sleep, take what was recorded, export it, add up the totals, tell.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread;
use std::time::{Duration, Instant};

use telering_core::Category;
use telering_core::names;
use telering_core::slot::{Staged, StagedKind};
use telering_core::snapshot::{Notices, Total};

use super::handle::Shared;
use super::outlet::Outlet;
use super::source::{Source, merge};
use super::{add_up, latency, pace};
use crate::agent::Waiting;
use crate::agent::hot::{Hot, lock};
use crate::clock::Anchor;
use crate::exporter::{Exporter, Totals};

/// How often the exporter looks after its house.
const HOUSEKEEPING: Duration = Duration::from_secs(1);
/// How often one flush looks for what backends add while it looks. One that adds without a pause must not hold it up.
const LOOKS: u32 = 8;

/// The flush thread's own state.
pub(super) struct Flusher {
    pub(super) hot: Arc<Hot>,
    pub(super) shared: Arc<Shared>,
    pub(super) outlet: Outlet,
    pub(super) sources: Vec<Source>,
    pub(super) interval: Duration,
    pub(super) last_flush: Instant,
    pub(super) last_housekeeping: Instant,
    pub(super) longest_gap: Duration,
    pub(super) backend_events: u64,
    pub(super) started_us: u64,
    /// Totals of our own events, which no slot counts.
    pub(super) own: BTreeMap<u32, Total>,
}

impl std::fmt::Debug for Flusher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flusher").field("sources", &self.sources.len()).finish_non_exhaustive()
    }
}

impl Flusher {
    pub(super) fn new(hot: Arc<Hot>, shared: Arc<Shared>, exporter: Box<dyn Exporter>, interval: Duration) -> Flusher {
        let anchor = hot.clock.anchor();
        let outlet = Outlet::new(exporter, hot.warner.clone(), anchor);
        let now = Instant::now();
        Flusher {
            hot,
            shared,
            outlet,
            sources: Vec::new(),
            interval,
            last_flush: now,
            last_housekeeping: now,
            longest_gap: Duration::ZERO,
            backend_events: 0,
            started_us: anchor.now_us(),
            own: BTreeMap::new(),
        }
    }

    pub(super) fn run(mut self) {
        latency::ask_for_short_slices();
        let now_us = self.started_us;
        self.own_event(names::STARTED, 1, now_us);
        let mut pause = Duration::ZERO;
        let mut due = true;
        loop {
            // Looked at before the drain: what was recorded before the close is drained after it.
            let closing = self.hot.closed.is_closed();
            let wanted = lock(&self.shared.told).wanted;
            if due || closing || wanted > lock(&self.shared.told).done {
                pause = self.flush(closing);
            }
            if closing {
                return self.finish(wanted);
            }
            if self.last_housekeeping.elapsed() >= HOUSEKEEPING {
                self.last_housekeeping = Instant::now();
                let now_us = self.hot.clock.anchor().now_us();
                self.outlet.housekeep(now_us);
            }
            self.tell(wanted, false);
            due = self.sleep(self.last_flush + pause);
        }
    }

    /// Sleeps until the next flush or the next housekeeping; returns whether a flush is due.
    fn sleep(&self, next_flush: Instant) -> bool {
        let now = Instant::now();
        let flush_in = next_flush.saturating_duration_since(now);
        let housekeeping_in = (self.last_housekeeping + HOUSEKEEPING).saturating_duration_since(now);
        let pause = flush_in.min(housekeeping_in);
        if pause <= pace::ANNOUNCED_OVER {
            // Short enough that no ring can overflow by surprise; only a close or a flush ends it early.
            thread::park_timeout(pause);
            return Instant::now() >= next_flush;
        }
        self.hot.sleep.announce();
        let quarter = self.hot.quarter_mask + 1;
        let full = self.sources.iter().any(|source| source.is_past_quarter(quarter));
        if !full && !self.new_slots() {
            thread::park_timeout(pause);
        }
        let woken = !self.hot.sleep.withdraw();
        woken || full || Instant::now() >= next_flush
    }

    /// Whether there are slots that the last flush did not know, with records in them.
    fn new_slots(&self) -> bool {
        let quarter = self.hot.quarter_mask + 1;
        self.hot.slots_from(self.sources.len()).iter().any(|owned| owned.ring().committed_relaxed() >= quarter)
    }

    /// One flush; returns how long the next one can wait.
    pub(super) fn flush(&mut self, last: bool) -> Duration {
        self.flush_with(last, || {})
    }

    /// The same; `meanwhile` is called wherever a thread that records could come in between two looks. For tests.
    pub(super) fn flush_with(&mut self, last: bool, meanwhile: impl FnMut()) -> Duration {
        let now = Instant::now();
        let before = std::mem::replace(&mut self.last_flush, now);
        let elapsed = now.duration_since(before);
        let (extra, busiest) = self.gather(meanwhile);
        let anchor = self.hot.clock.anchor();
        let outlet = &mut self.outlet;
        outlet.set_anchor(anchor);
        let mut lost = merge(&mut self.sources, extra, |staged| outlet.take(staged));
        outlet.ship();
        // What was recorded after the last flush had begun waits until this one is through.
        if busiest > 0 {
            self.longest_gap = self.longest_gap.max(before.elapsed());
        }
        if last {
            // Nothing is recorded any more: what did not come out was overwritten.
            lost += self.sources.iter_mut().map(Source::give_up).sum::<u64>();
        }
        let flow = &mut self.outlet.flow;
        flow.lost.staging += lost;
        flow.recorded = self.sources.iter().map(Source::events_seen).sum::<u64>() + self.backend_events;
        if lost > 0 {
            self.own_event(names::EVENTS_DROPPED, lost, anchor.now_us());
        }
        if last {
            self.own_event(names::STOPPED, 1, anchor.now_us());
        }
        self.publish(&anchor);
        pace::pause(self.interval, self.hot.quarter_mask + 1, busiest, elapsed)
    }

    /// Takes the events of the backends and fixes how far each slot is drained; the records of the busiest slot. What
    /// one thread does keeps its order, whether it records, adds to a backend, or both in turn.
    ///
    /// The backends come before the slots: whatever a thread recorded before its backend's event is there by then, in
    /// a slot that is this new as well. If a backend has another event after that, its thread may have recorded more
    /// behind it, so both are looked at again.
    fn gather(&mut self, mut meanwhile: impl FnMut()) -> (Vec<Staged>, u64) {
        let (mut events, mut busiest) = (Vec::new(), 0);
        for _ in 0..LOOKS {
            self.take_backend_events(&mut events);
            meanwhile();
            let new = self.hot.slots_from(self.sources.len());
            self.sources.extend(new.into_iter().map(Source::new));
            busiest = self.sources.iter_mut().map(Source::fix_limit).max().unwrap_or(0);
            meanwhile();
            if busiest == 0 || lock(&self.hot.backends).iter().all(|backend| backend.is_empty()) {
                break;
            }
        }
        events.sort_by_key(|event| event.ticks);
        (events, busiest)
    }

    /// Takes the events of all backends that wait now.
    fn take_backend_events(&mut self, into: &mut Vec<Staged>) {
        let staged = |event: Waiting| Staged {
            ticks: event.ticks,
            events_after: 0,
            kind: StagedKind::Named { category: Category::BACKEND, name: event.name, value: event.value },
        };
        let (before, mut excess) = (into.len(), 0);
        let mut backends = lock(&self.hot.backends);
        for backend in backends.iter() {
            let (taken, more) = backend.take();
            into.extend(taken.into_iter().map(staged));
            excess += more;
        }
        // Handles that are gone add nothing more; what they added since it was taken is still to come.
        backends.retain(|backend| Arc::strong_count(backend) > 1 || !backend.is_empty());
        drop(backends);
        self.backend_events += (into.len() - before) as u64 + excess;
        self.outlet.flow.lost.backend += excess;
    }

    fn publish(&mut self, anchor: &Anchor) {
        // ORDER totals: after the drain. `fix_limit` loaded each slot's `committed` with Acquire, and no record behind
        // that was exported; so whatever was exported is in these numbers, although they are loaded relaxed.
        let totals = self.sources.iter().map(|source| source.owned().slot.totals());
        let mut snapshot = add_up(totals, self.hot.mask, anchor);
        let now_us = anchor.now_us();
        for (id, total) in &self.own {
            if let Some(entry) = snapshot.entry_mut(*id) {
                *entry = *total;
            }
        }
        let notices = self.notices();
        let flow = self.outlet.flow;
        let dynamic: Vec<_> = self.outlet.dynamic.iter().collect();
        let totals = Totals { snapshot: &snapshot, dynamic: &dynamic, flow, notices, clock: anchor.info(), now_us };
        self.outlet.publish(&totals);
        let mut told = lock(&self.shared.told);
        told.own.clear();
        told.own.extend(self.own.iter().map(|(id, total)| (*id, *total)));
        told.dynamic = dynamic;
    }

    fn notices(&mut self) -> Notices {
        Notices {
            names_changed: self.hot.names_changed.load(Ordering::Relaxed),
            dynamic_overflow: self.outlet.dynamic.overflow(),
            refused: self.hot.refused.load(Ordering::Relaxed),
            file_trouble: self.outlet.file_trouble(),
        }
    }

    /// An event of our own, if it is wanted.
    fn own_event(&mut self, id: u32, value: u64, now_us: u64) {
        if self.hot.wants(id) {
            let total = self.own.entry(id).or_default();
            *total = Total { sum: total.sum + value, count: total.count + 1, last: value, last_us: now_us };
            self.outlet.ship_own(id, value, now_us);
        }
    }

    pub(super) fn tell(&mut self, done: u64, finished: bool) {
        let notices = self.notices();
        let path = self.outlet.path();
        let mut told = lock(&self.shared.told);
        // A closer that lost its patience has written the books off; they stay as it told them.
        let written_off = told.flow.lost.closing > 0 && told.flow.recorded >= self.outlet.flow.recorded;
        if !written_off {
            told.flow = self.outlet.flow;
        }
        told.notices = notices;
        told.longest_gap = self.longest_gap;
        told.done = done;
        told.finished = finished;
        if path.is_some() || !finished {
            told.path = path;
        }
        drop(told);
        self.shared.changed.notify_all();
    }

    pub(super) fn finish(mut self, wanted: u64) {
        let now_us = self.hot.clock.anchor().now_us();
        self.outlet.close(now_us);
        self.tell(wanted, true);
    }
}

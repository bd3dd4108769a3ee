//! The flush thread of an agent: takes records out of the slots, exports them, adds up the totals.
//!
//! It times itself. While records arrive it sleeps for as long as a quarter of the busiest ring takes to
//! fill at twice the last rate; when it sleeps for long, the recorder that fills a quarter wakes it.

mod latency;
mod opening;
mod outlet;
mod pace;
mod source;
mod sums;

pub(crate) use sums::add_up;

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Condvar, Mutex, OnceLock, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use telering_core::Category;
use telering_core::names;
use telering_core::slot::{Staged, StagedKind};
use telering_core::snapshot::{DynamicTotal, Flow, Notices, Total};

use crate::agent::hot::{Hot, lock};
use crate::clock::Anchor;
use crate::exporter::{AgentContext, Exporter, Totals};
use opening::Opening;
use outlet::Outlet;
use source::{Source, merge};

/// How often the exporter looks after its house.
const HOUSEKEEPING: Duration = Duration::from_secs(1);

/// What the flush thread tells.
#[derive(Debug, Default)]
struct Told {
    opening: Opening,
    /// Flushes asked for, and the last of them that is done.
    wanted: u64,
    done: u64,
    finished: bool,
    flow: Flow,
    notices: Notices,
    /// Totals of our own events, which no slot counts.
    own: Vec<(u32, Total)>,
    dynamic: Vec<DynamicTotal>,
    path: Option<PathBuf>,
    longest_gap: Duration,
}

/// What the flush thread alone knows, as of its last flush.
pub(crate) struct Published {
    /// Totals of our own events, by event type.
    pub(crate) own: Vec<(u32, Total)>,
    pub(crate) dynamic: Vec<DynamicTotal>,
    pub(crate) flow: Flow,
    pub(crate) notices: Notices,
}

#[derive(Debug, Default)]
struct Shared {
    told: Mutex<Told>,
    changed: Condvar,
}

/// An agent's hold on its flush thread.
#[derive(Debug)]
pub(crate) struct FlushHandle {
    shared: Arc<Shared>,
    patience: Duration,
    /// Until when closing waits, from the first call on: closing again, or dropping what was closed, waits no longer.
    /// `None` in it is for ever.
    close_by: OnceLock<Option<Instant>>,
}

impl FlushHandle {
    /// Starts the flush thread, which opens the exporter first. `patience` bounds the wait for it when the agent
    /// closes.
    ///
    /// # Errors
    /// Why nothing is exported: the exporter can't open, or the operating system gives no thread.
    pub(crate) fn start(
        hot: &Arc<Hot>,
        exporter: Box<dyn Exporter>,
        context: AgentContext,
        interval: Duration,
        patience: Duration,
    ) -> Result<FlushHandle, String> {
        let shared = Arc::new(Shared::default());
        let flusher = Flusher::new(Arc::clone(hot), Arc::clone(&shared), exporter, interval);
        let thread = thread::Builder::new()
            .name("telering-flush".into())
            .spawn(move || flusher.open_and_run(&context))
            .map_err(|error| format!("telemetry is not exported: no thread for its flushes: {error}"))?;
        let _ = hot.flusher.set(thread.thread().clone());
        let handle = FlushHandle { shared, patience, close_by: OnceLock::new() };
        handle.wait_for_opening()?;
        Ok(handle)
    }

    /// The same without a thread: nothing is flushed until the second part is told to.
    ///
    /// # Errors
    /// Why the exporter can't open.
    pub(crate) fn by_hand(
        hot: &Arc<Hot>,
        exporter: Box<dyn Exporter>,
        context: &AgentContext,
        interval: Duration,
        patience: Duration,
    ) -> Result<(FlushHandle, ByHand), String> {
        let shared = Arc::new(Shared::default());
        let mut flusher = Flusher::new(Arc::clone(hot), Arc::clone(&shared), exporter, interval);
        flusher.outlet.open(context)?;
        lock(&shared.told).path = flusher.outlet.path();
        Ok((FlushHandle { shared, patience, close_by: OnceLock::new() }, ByHand(flusher)))
    }

    pub(crate) fn flow(&self) -> Flow {
        lock(&self.shared.told).flow
    }

    pub(crate) fn notices(&self) -> Notices {
        lock(&self.shared.told).notices
    }

    pub(crate) fn path(&self) -> Option<PathBuf> {
        lock(&self.shared.told).path.clone()
    }

    pub(crate) fn longest_gap(&self) -> Duration {
        lock(&self.shared.told).longest_gap
    }

    pub(crate) fn published(&self) -> Published {
        let told = lock(&self.shared.told);
        Published { own: told.own.clone(), dynamic: told.dynamic.clone(), flow: told.flow, notices: told.notices }
    }

    /// Asks for a flush and waits for it.
    pub(crate) fn flush_now(&self, hot: &Hot, patience: Duration) -> bool {
        let wanted = self.want(hot);
        self.wait_for(wanted, patience)
    }

    /// Asks for a flush. Returns its number, `None` where no thread would make it.
    pub(crate) fn ask(&self, hot: &Hot) -> Option<u64> {
        hot.flusher.get()?;
        Some(self.want(hot))
    }

    fn want(&self, hot: &Hot) -> u64 {
        let mut told = lock(&self.shared.told);
        told.wanted += 1;
        let wanted = told.wanted;
        drop(told);
        hot.wake();
        wanted
    }

    /// Waits for a flush that was asked for.
    pub(crate) fn wait_for(&self, number: u64, patience: Duration) -> bool {
        self.wait(patience, |told| told.done >= number || told.finished)
    }

    /// Waits for the final flush of an agent that was closed. What is not out by then is lost.
    pub(crate) fn close(&self, hot: &Hot) -> Flow {
        hot.wake();
        let close_by = self.close_by.get_or_init(|| Instant::now().checked_add(self.patience));
        let patience = close_by.map_or(Duration::MAX, |end| end.saturating_duration_since(Instant::now()));
        if !self.wait(patience, |told| told.finished) {
            let recorded: u64 = hot.slots_from(0).iter().map(|owned| owned.slot.totals().events()).sum();
            let mut told = lock(&self.shared.told);
            if !told.finished {
                let flow = &mut told.flow;
                flow.recorded = recorded.max(flow.recorded);
                // What an earlier call wrote off is among it.
                flow.lost.closing = 0;
                flow.lost.closing = flow.recorded.saturating_sub(flow.exported + flow.lost.total());
            }
        }
        self.flow()
    }

    fn wait(&self, patience: Duration, until: impl Fn(&Told) -> bool) -> bool {
        let told = lock(&self.shared.told);
        let (told, _) = self
            .shared
            .changed
            .wait_timeout_while(told, patience, |told| !until(told))
            .unwrap_or_else(PoisonError::into_inner);
        until(&told)
    }
}

/// A flush thread's work without the thread, for benchmarks that time single flushes. Finish it before
/// the agent closes, which would wait for its last flush otherwise.
#[doc(hidden)]
#[derive(Debug)]
pub struct ByHand(Flusher);

impl ByHand {
    /// One flush of everything that was recorded so far.
    pub fn flush(&mut self) {
        self.0.flush(false);
        self.0.tell(0, false);
    }

    /// The last flush; closes the exporter.
    pub fn finish(mut self) {
        self.0.hot.closed.close();
        self.0.flush(true);
        self.0.finish(0);
    }
}

impl std::fmt::Debug for Flusher {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Flusher").field("sources", &self.sources.len()).finish_non_exhaustive()
    }
}

/// The flush thread's own state.
struct Flusher {
    hot: Arc<Hot>,
    shared: Arc<Shared>,
    outlet: Outlet,
    sources: Vec<Source>,
    interval: Duration,
    last_flush: Instant,
    last_housekeeping: Instant,
    longest_gap: Duration,
    backend_events: u64,
    started_us: u64,
    /// Totals of our own events, which no slot counts.
    own: BTreeMap<u32, Total>,
}

impl Flusher {
    fn new(hot: Arc<Hot>, shared: Arc<Shared>, exporter: Box<dyn Exporter>, interval: Duration) -> Flusher {
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

    fn run(mut self) {
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
    fn flush(&mut self, last: bool) -> Duration {
        let now = Instant::now();
        let before = std::mem::replace(&mut self.last_flush, now);
        let elapsed = now.duration_since(before);
        // Before the slots: what a thread recorded before its backend's event then comes out with it, in its order, also
        // if the thread's slot is this new.
        let extra = self.take_backend_events();
        let new = self.hot.slots_from(self.sources.len());
        self.sources.extend(new.into_iter().map(Source::new));
        let busiest = self.sources.iter_mut().map(Source::fix_limit).max().unwrap_or(0);
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

    /// Takes the events of all backends, in the order of their time.
    fn take_backend_events(&mut self) -> Vec<Staged> {
        let mut backends = lock(&self.hot.backends);
        let mut events = Vec::new();
        let mut excess = 0;
        for backend in backends.iter() {
            let (taken, more) = backend.take();
            events.extend(taken);
            excess += more;
        }
        // Handles that are gone add nothing more; what they added since it was taken is still to come.
        backends.retain(|backend| Arc::strong_count(backend) > 1 || !backend.is_empty());
        drop(backends);
        events.sort_by_key(|event| event.ticks);
        self.backend_events += events.len() as u64 + excess;
        self.outlet.flow.lost.backend += excess;
        let staged = |event: crate::agent::Waiting| Staged {
            ticks: event.ticks,
            events_after: 0,
            kind: StagedKind::Named { category: Category::BACKEND, name: event.name, value: event.value },
        };
        events.into_iter().map(staged).collect()
    }

    fn publish(&mut self, anchor: &Anchor) {
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

    fn tell(&mut self, done: u64, finished: bool) {
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

    fn finish(mut self, wanted: u64) {
        let now_us = self.hot.clock.anchor().now_us();
        self.outlet.close(now_us);
        self.tell(wanted, true);
    }
}

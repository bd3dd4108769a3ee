//! From staging records to events in an exporter's hands, and the books about it.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;

use telering_core::Name;
use telering_core::dynamic::DynamicTotals;
use telering_core::names::{self, BUILT_IN};
use telering_core::slot::{Group, Operation, Staged, StagedKind, Transfer};
use telering_core::snapshot::Flow;

use crate::clock::Anchor;
use crate::exporter::{AgentContext, Event, ExportError, Exporter, Totals};
use crate::warn::{Warner, WarningKind};

/// Events handed to an exporter at once.
const BATCH: usize = 1024;
/// An anchor may move the wall clock back by so much without a step being suspected.
const JITTER_US: u64 = 10_000;

/// Names of the built-in events, as a telemetry file has them.
const NAMES: [Name; BUILT_IN.len()] = {
    let mut all = [Name::from_static(""); BUILT_IN.len()];
    let mut row = 0;
    while row < BUILT_IN.len() {
        all[row] = Name::from_static(BUILT_IN[row].file_name());
        row += 1;
    }
    all
};

/// The four events of a transfer, but for their time and values: by far most of what is flushed is copied from here.
const WRITE: [Event; 4] = events_of(names::TX_BYTES, names::TX_REQUESTS);
const READ: [Event; 4] = events_of(names::RX_BYTES, names::RX_REQUESTS);

const fn events_of(bytes: u32, requests: u32) -> [Event; 4] {
    const fn event(id: u32, group: u8) -> Event {
        match built_in(0, id, 0, group) {
            Some(event) => event,
            None => panic!("the events of a transfer are in the table"),
        }
    }
    [event(names::XFER_POST_TIME, 4), event(names::XFER_TIME, 3), event(bytes, 2), event(requests, 1)]
}

/// Turns staging records into events, exports them and keeps the books.
pub(super) struct Outlet {
    exporter: Option<Box<dyn Exporter>>,
    warner: Warner,
    batch: Vec<Event>,
    anchor: Anchor,
    /// Time of the last event, so that a new anchor never turns time back.
    last: (u64, u64),
    pub(super) flow: Flow,
    pub(super) dynamic: DynamicTotals,
    failing: bool,
}

impl Outlet {
    pub(super) fn new(exporter: Box<dyn Exporter>, warner: Warner, anchor: Anchor) -> Outlet {
        Outlet {
            exporter: Some(exporter),
            warner,
            batch: Vec::with_capacity(BATCH),
            anchor,
            last: (0, 0),
            flow: Flow::default(),
            dynamic: DynamicTotals::new(),
            failing: false,
        }
    }

    pub(super) fn set_anchor(&mut self, anchor: Anchor) {
        self.anchor = anchor;
    }

    /// Unix time of a moment; never earlier than that of an earlier moment because of a new anchor.
    fn unix_us(&mut self, ticks: u64) -> u64 {
        let (last_ticks, last_us) = self.last;
        let mut us = self.anchor.unix_us(ticks);
        if ticks >= last_ticks {
            if us < last_us && last_us - us < JITTER_US {
                us = last_us;
            }
            self.last = (ticks, us);
        }
        us
    }

    /// Takes one staging record.
    pub(super) fn take(&mut self, staged: Staged) {
        let timestamp_us = self.unix_us(staged.ticks);
        match staged.kind {
            StagedKind::Transfer(transfer) => self.take_transfer(timestamp_us, &transfer),
            StagedKind::Single { id, value } => self.put(timestamp_us, id, value, 1),
            StagedKind::Named { category, name, value } => {
                self.dynamic.add(category, name, value, timestamp_us);
                let event = Event { timestamp_us, value, id: Event::NAMED, category, name, group: 1 };
                self.batch.push(event);
            }
            // A kind that a later core stages and this shell doesn't know.
            _ => self.flow.lost.exporter += staged.events(),
        }
        if self.batch.len() > BATCH - 4 {
            self.ship();
        }
    }

    fn take_transfer(&mut self, timestamp_us: u64, transfer: &Transfer) {
        let events = match transfer.operation {
            Operation::Write => &WRITE,
            Operation::Read => &READ,
        };
        let values = [transfer.post_us, transfer.xfer_us, transfer.bytes, 1];
        if transfer.group == Group::ALL {
            let before = self.batch.len();
            self.batch.extend_from_slice(events);
            for (event, value) in self.batch[before..].iter_mut().zip(values) {
                (event.timestamp_us, event.value) = (timestamp_us, value);
            }
            return;
        }
        let parts = [Group::POST_TIME, Group::XFER_TIME, Group::BYTES, Group::REQUESTS];
        let mut group = transfer.group.events() as u8;
        for ((event, part), value) in events.iter().zip(parts).zip(values) {
            if transfer.group.has(part) {
                self.batch.push(Event { timestamp_us, value, group, ..*event });
                group -= 1;
            }
        }
    }

    fn put(&mut self, timestamp_us: u64, id: u32, value: u64, group: u8) {
        if let Some(event) = built_in(timestamp_us, id, value, group) {
            self.batch.push(event);
        }
    }

    /// Exports what waits. Application events that were refused are counted as lost.
    pub(super) fn ship(&mut self) {
        if self.batch.is_empty() {
            return;
        }
        let batch = std::mem::take(&mut self.batch);
        let lost = self.export(&batch);
        self.flow.exported += batch.len() as u64 - lost;
        self.flow.lost.exporter += lost;
        self.batch = batch;
        self.batch.clear();
    }

    /// Exports an event of our own, which stands outside the books.
    pub(super) fn ship_own(&mut self, id: u32, value: u64, now_us: u64) {
        if let Some(event) = built_in(now_us, id, value, 1) {
            self.export(&[event]);
        }
    }

    /// Returns how many of the events were lost.
    fn export(&mut self, events: &[Event]) -> u64 {
        let all = events.len() as u64;
        let Some(result) = self.call(|exporter| exporter.export(events)) else { return all };
        match result {
            Ok(()) => {
                self.failing = false;
                0
            }
            Err(ExportError { lost, message }) => {
                if !std::mem::replace(&mut self.failing, true) && !message.is_empty() {
                    self.warner.warn(WarningKind::Exporter, message);
                }
                lost.min(all)
            }
        }
    }

    /// Calls the exporter; one that panics is never called again.
    fn call<T>(&mut self, call: impl FnOnce(&mut dyn Exporter) -> T) -> Option<T> {
        let exporter = self.exporter.as_mut()?;
        match catch_unwind(AssertUnwindSafe(|| call(exporter.as_mut()))) {
            Ok(value) => Some(value),
            Err(_) => {
                // Its destructor may panic again: leave it where it is.
                std::mem::forget(self.exporter.take());
                self.warner.warn(
                    WarningKind::Exporter,
                    "the exporter panicked: it is not called again and its events are counted as lost; \
                     the transfers go on",
                );
                None
            }
        }
    }

    /// Opens the exporter. One that can't open is gone.
    pub(super) fn open(&mut self, context: &AgentContext) -> Result<(), String> {
        let Some(exporter) = self.exporter.as_mut() else { return Ok(()) };
        let message = match catch_unwind(AssertUnwindSafe(|| exporter.open(context))) {
            Ok(Ok(())) => return Ok(()),
            Ok(Err(error)) => match catch_unwind(AssertUnwindSafe(|| error.to_string())) {
                Ok(message) => {
                    self.drop_exporter();
                    message
                }
                Err(_) => "the exporter failed to open, and to say why".into(),
            },
            Err(_) => "the exporter panicked when it was opened".into(),
        };
        // One that panicked may panic again in its destructor: it is left where it is.
        std::mem::forget(self.exporter.take());
        Err(format!("{message}; nothing is exported, and the transfers go on"))
    }

    fn drop_exporter(&mut self) {
        if let Some(exporter) = self.exporter.take() {
            let _ = catch_unwind(AssertUnwindSafe(|| drop(exporter)));
        }
    }

    pub(super) fn warn(&self, message: String) {
        self.warner.warn(WarningKind::Exporter, message);
    }

    pub(super) fn publish(&mut self, totals: &Totals<'_>) {
        self.call(|exporter| exporter.publish(totals));
    }

    pub(super) fn housekeep(&mut self, now_us: u64) {
        self.call(|exporter| exporter.housekeep(now_us));
    }

    pub(super) fn close(&mut self, now_us: u64) {
        self.call(|exporter| exporter.close(now_us));
        self.drop_exporter();
    }

    pub(super) fn path(&mut self) -> Option<PathBuf> {
        self.call(|exporter| exporter.path()).flatten()
    }

    pub(super) fn file_trouble(&mut self) -> u64 {
        self.call(|exporter| exporter.file_trouble()).unwrap_or_default()
    }
}

const fn built_in(timestamp_us: u64, id: u32, value: u64, group: u8) -> Option<Event> {
    let Some(row) = names::index_of(id) else { return None };
    Some(Event { timestamp_us, value, id, category: BUILT_IN[row].category, name: NAMES[row], group })
}

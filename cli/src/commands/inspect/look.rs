//! One look at a file: what it says about itself, and what its ring holds.

use std::path::Path;

use telering::reader::{Counts, FileInfo, Item, Place, Positions, ReaderOptions};
use telering_core::layout::image::TimeBase;
use telering_core::names::{RX_BYTES, TX_BYTES};

use crate::source::{Label, places_of};

/// What was seen.
pub(super) struct Look {
    pub(super) info: FileInfo,
    pub(super) label: Label,
    pub(super) held: Held,
}

/// What the ring holds now.
#[derive(Default)]
pub(super) struct Held {
    pub(super) counts: Counts,
    /// Time of the oldest and the newest event, where the layout has times.
    pub(super) span: Option<(u64, u64)>,
    /// Bytes of the transfers whose events are there.
    pub(super) written: u64,
    pub(super) read: u64,
    /// Time and bytes (written, read) of each, for the rate of several files together.
    moved: Vec<(u64, u64, u64)>,
}

impl Look {
    /// Looks at a file, or at an image inside it.
    pub(super) fn at(path: &Path, within: Option<Place>) -> anyhow::Result<Look> {
        let options = ReaderOptions::new();
        let mut reader = within.map_or(options, |place| options.within(place)).open(path)?;
        let info = reader.info()?;
        let end = match info.positions {
            Positions::Image { committed, .. } => committed.saturating_sub(reader.start()),
            Positions::Nixl { waiting, .. } => waiting,
            _ => u64::MAX,
        };
        let mut held = Held::default();
        let mut items = Vec::new();
        // A busy producer doesn't keep us: what was there when the look began is enough.
        while reader.counts().total() < end && reader.read(&mut items)? > 0 {
            for item in items.drain(..) {
                if let Item::Event(event) = item {
                    held.add(event.timestamp_us, event.id, event.value);
                }
            }
        }
        held.counts = reader.counts();
        Ok(Look { label: Label::of(&info), info, held })
    }

    /// Looks at each image inside a file.
    pub(super) fn inside(path: &Path) -> Vec<anyhow::Result<Look>> {
        match places_of(path) {
            Ok(places) => places.into_iter().map(|place| Look::at(path, Some(place))).collect(),
            Err(error) => vec![Err(error)],
        }
    }

    /// Records that were written and are no longer there: a ring keeps the newest. `None` where it can't be known.
    pub(super) fn overwritten(&self) -> Option<u64> {
        match self.info.positions {
            Positions::Image { committed, .. } => Some(committed - self.info.positions.held(self.info.capacity)),
            _ => None,
        }
    }

    /// One of NIXL's rings that nobody consumes and that drops what comes.
    pub(super) fn is_full(&self) -> bool {
        matches!(self.info.positions, Positions::Nixl { waiting, .. } if waiting + 1 >= self.info.capacity)
    }
}

impl Held {
    fn add(&mut self, timestamp_us: Option<u64>, id: Option<u32>, value: u64) {
        let (written, read) = match id {
            Some(TX_BYTES) => (value, 0),
            Some(RX_BYTES) => (0, value),
            _ => (0, 0),
        };
        self.written = self.written.saturating_add(written);
        self.read = self.read.saturating_add(read);
        let Some(time) = timestamp_us else { return };
        let (oldest, newest) = self.span.unwrap_or((time, time));
        self.span = Some((oldest.min(time), newest.max(time)));
        if written | read != 0 {
            self.moved.push((time, written, read));
        }
    }

    /// How much time the ring covers, in microseconds.
    pub(super) fn covers_us(&self) -> Option<u64> {
        self.span.map(|(oldest, newest)| newest - oldest)
    }
}

/// Bytes per second.
pub(super) fn per_second(bytes: u64, us: u64) -> Option<u64> {
    (us > 0).then(|| u64::try_from(u128::from(bytes) * 1_000_000 / u128::from(us)).unwrap_or(u64::MAX))
}

/// Several agents in the time that all their rings cover.
///
/// Each agent's own rate is over its own ring's time; such rates don't add up. Bytes of one common time do.
pub(super) struct Together {
    pub(super) files: usize,
    pub(super) us: u64,
    pub(super) written: u64,
    pub(super) read: u64,
}

impl Together {
    pub(super) fn of(looks: &[Look]) -> Option<Together> {
        let timed: Vec<_> =
            looks.iter().filter(|look| look.info.time_base == TimeBase::Unix && look.held.span.is_some()).collect();
        let spans = timed.iter().filter_map(|look| Some((look.held.span?, look.overwritten() != Some(0))));
        let (mut earliest, mut from, mut to) = (u64::MAX, 0, 0);
        for ((oldest, newest), wrapped) in spans {
            earliest = earliest.min(oldest);
            to = to.max(newest);
            // Of a ring that lost nothing yet, all is known from its beginning.
            from = if wrapped { from.max(oldest) } else { from };
        }
        let from = from.max(earliest);
        if timed.len() < 2 || to <= from {
            return None;
        }
        let inside = || timed.iter().flat_map(|look| &look.held.moved).filter(|(time, ..)| (from..=to).contains(time));
        let sum = |of: fn(&(u64, u64, u64)) -> u64| inside().map(of).fold(0, u64::saturating_add);
        Some(Together { files: timed.len(), us: to - from, written: sum(|moved| moved.1), read: sum(|moved| moved.2) })
    }
}

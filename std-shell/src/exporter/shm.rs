//! The exporter that writes telemetry files.
//!
//! Before every batch the file is looked at. One that others resized is never touched again: a new one takes its
//! place, with the numbers that this side kept for itself.

use std::hash::{BuildHasher as _, Hasher as _, RandomState};
use std::path::PathBuf;
use std::time::{SystemTime, UNIX_EPOCH};

use telering_core::Name;
use telering_core::event::{RECORD_WORDS, Template, Timestamp};
use telering_core::image::{Image, ImagePlan, ImageState, PartSet, Prepared};
use telering_core::layout::image::{MAX_BATCH, TimeBase, max_batch};
use telering_core::layout::parts::metrics::BOUNDS_MAX;
use telering_core::names::{self, BUILT_IN};
use telering_core::snapshot::{ClockInfo, DynamicTotal, Flow, Notices, Snapshot};
use telering_core::sync::AtomicU64;

use super::identity::Who;
use super::{Event, ExportError, Exporter, Totals};
use crate::file::FileError;
use crate::file::create::create;
use crate::file::life::{Check, ImageFile, Loss};
use crate::file::upkeep::Housekeeping;
use crate::warn::Warner;

/// What a telemetry file is made from.
#[derive(Clone, Debug)]
pub(crate) struct ShmSettings {
    pub(crate) directory: PathBuf,
    /// Events in the ring: a power of two that an image can have, see [`ImagePlan::new`].
    pub(crate) capacity: u64,
    /// Permission bits of the file.
    pub(crate) file_mode: u32,
    /// Upper bounds of the latency histograms in microseconds.
    pub(crate) bounds: Vec<u64>,
    pub(crate) who: Who,
}

/// Writes an agent's events and numbers into its telemetry file.
pub(crate) struct Shm {
    maker: Maker,
    file: ImageFile,
    state: ImageState,
    /// The numbers as last published: what a new file starts with.
    kept: Kept,
    /// Of the names table's rows.
    templates: Vec<Template>,
    /// Memory for the records of a batch.
    sealed: Vec<[u64; RECORD_WORDS]>,
    trouble: u64,
    /// Seconds until a new file is tried again, and how long the last pause was.
    retry: Retry,
    closed: bool,
}

/// The numbers of an agent, owned.
#[derive(Default)]
struct Kept {
    snapshot: Snapshot,
    dynamic: Vec<DynamicTotal>,
    counts: Counts,
}

/// Those of them that stand in the image as single words.
#[derive(Clone, Copy, Default)]
struct Counts {
    flow: Flow,
    notices: Notices,
    clock: ClockInfo,
    now_us: u64,
}

impl Counts {
    fn write(&self, image: &mut Image<'_, '_>, prepared: &Prepared) {
        image.publish_prepared(prepared, self.now_us);
        image.set_flow(&self.flow);
        image.set_notices(&self.notices);
        image.set_clock(&self.clock);
    }
}

/// Pauses between tries to make a new file: a full file system is asked less and less often.
#[derive(Default)]
struct Retry {
    wait: u32,
    pause: u32,
    message: String,
}

const PAUSE_MAX: u32 = 60;

/// Formats images.
struct Maker {
    plan: ImagePlan,
    bounds: Vec<u64>,
    who: Who,
}

impl Maker {
    /// Formats fresh memory, all zeros. The magic number comes last.
    fn format(&self, words: &[AtomicU64], kept: Option<&Kept>) -> Option<ImageState> {
        let identity = self.who.as_identity();
        let mut state = self.plan.format(words, true, random_instance(), unix_us(), &identity, &self.bounds).ok()?;
        if let Some(kept) = kept {
            let prepared = state.prepare(&kept.snapshot, &kept.dynamic);
            state.on(words).iter_mut().for_each(|image| kept.counts.write(image, &prepared));
        }
        Some(state)
    }
}

impl Shm {
    /// Makes the file.
    ///
    /// # Errors
    /// [`FileError`]; nothing was left behind then, and nobody was told.
    pub(crate) fn new(settings: ShmSettings, warner: &Warner) -> Result<Shm, FileError> {
        let ShmSettings { directory, capacity, file_mode, bounds, who } = settings;
        let invalid = |source| {
            FileError::io(
                &directory,
                "given a telemetry file",
                std::io::Error::new(std::io::ErrorKind::InvalidInput, source),
            )
        };
        let plan =
            ImagePlan::new(capacity, PartSet::ALL, TimeBase::Unix).map_err(|error| invalid(error.to_string()))?;
        if bounds.len() > BOUNDS_MAX {
            return Err(invalid(format!("{} histogram bounds: {BOUNDS_MAX} at the most", bounds.len())));
        }
        let maker = Maker { plan, bounds, who };
        let mut state = None;
        let file = create(&directory, &maker.who.agent, plan.image_len(), file_mode, warner, |words| {
            state = maker.format(words, None);
        })?;
        let Some(state) = state else {
            unreachable!("the memory is as long as the plan, the rest was looked at above")
        };
        let templates =
            BUILT_IN.iter().map(|row| Template::new(row.category, Name::from_static(row.file_name()))).collect();
        Ok(Shm {
            maker,
            file,
            state,
            kept: Kept::default(),
            templates,
            sealed: Vec::with_capacity(MAX_BATCH as usize),
            trouble: 0,
            retry: Retry::default(),
            closed: false,
        })
    }

    /// The image, once its file was looked at. If the file was lost, a new one.
    fn image(&mut self) -> Result<Image<'_, '_>, ()> {
        if self.closed {
            "the telemetry file is closed".clone_into(&mut self.retry.message);
            return Err(());
        }
        match self.file.check() {
            Check::Sound | Check::Unlinked => {}
            Check::Lost(Loss::Forked) => {
                "the telemetry file belongs to the parent process".clone_into(&mut self.retry.message);
                return Err(());
            }
            Check::Lost(loss) => self.renew(loss)?,
        }
        self.state.on(self.file.words()).ok_or(())
    }

    /// Writes one batch. The records are ready before the file is looked at: between the look and the end of the
    /// batch there is a copy and nothing else, since a truncation in between would end the process.
    fn write(&mut self, batch: &[Event]) -> Result<(), ()> {
        let mut sealed = std::mem::take(&mut self.sealed);
        let mut written = Ok(false);
        while written == Ok(false) {
            let first = self.state.written();
            sealed.clear();
            let mut time = Timestamp::new(0);
            sealed.extend(batch.iter().zip(first..).map(|(event, position)| {
                let template = match names::index_of(event.id) {
                    Some(row) => &self.templates[row],
                    None => &Template::new(event.category, event.name),
                };
                time = time.or_new(event.timestamp_us);
                template.sealed(position, time, event.value)
            }));
            written = self.image().map(|mut image| {
                // A file that was made anew begins at position 0: then once more.
                let fits = image.written() == first;
                if fits {
                    image.push_sealed(&sealed);
                }
                fits
            });
        }
        self.sealed = sealed;
        written.map(|_| ())
    }

    fn renew(&mut self, loss: Loss) -> Result<(), ()> {
        if self.retry.wait > 0 {
            return Err(());
        }
        if self.retry.pause == 0 {
            self.trouble += 1;
            self.kept.counts.notices.file_trouble = self.trouble;
        }
        let mut state = None;
        let (maker, kept) = (&self.maker, &self.kept);
        let published = self.file.publish_anew(loss, |words| state = maker.format(words, Some(kept)));
        match (published, state) {
            (Ok(()), Some(state)) => {
                self.state = state;
                self.retry = Retry::default();
                Ok(())
            }
            (published, _) => {
                self.retry.pause = (self.retry.pause * 2).clamp(1, PAUSE_MAX);
                self.retry.wait = self.retry.pause;
                self.retry.message = published.err().map(|error| error.to_string()).unwrap_or_default();
                Err(())
            }
        }
    }
}

impl Exporter for Shm {
    fn export(&mut self, events: &[Event]) -> Result<(), ExportError> {
        let max_batch = max_batch(self.maker.plan.capacity()) as usize;
        let mut rest = events;
        while !rest.is_empty() {
            let (batch, after) = rest.split_at(batch_len(rest, max_batch));
            if self.write(batch).is_err() {
                return Err(ExportError { lost: rest.len() as u64, message: self.retry.message.clone() });
            }
            rest = after;
        }
        Ok(())
    }

    fn publish(&mut self, totals: &Totals<'_>) {
        self.kept.snapshot = *totals.snapshot;
        self.kept.dynamic.clear();
        self.kept.dynamic.extend_from_slice(totals.dynamic);
        let counts = Counts {
            flow: totals.flow,
            notices: Notices { file_trouble: self.trouble, ..totals.notices },
            clock: totals.clock,
            now_us: totals.now_us,
        };
        self.kept.counts = counts;
        // Ready before the file is looked at, like a batch. A file made anew meanwhile has got the numbers already.
        let prepared = self.state.prepare(&self.kept.snapshot, &self.kept.dynamic);
        if let Ok(mut image) = self.image() {
            counts.write(&mut image, &prepared);
            image.set_heartbeat(counts.now_us);
        }
    }

    fn housekeep(&mut self, now_us: u64) {
        self.retry.wait = self.retry.wait.saturating_sub(1);
        if let Ok(mut image) = self.image() {
            image.set_heartbeat(now_us);
        }
        if self.file.housekeep() != Housekeeping::Nothing {
            self.trouble += 1;
        }
    }

    fn close(&mut self, now_us: u64) {
        if let Ok(mut image) = self.image() {
            image.close(now_us);
        }
        // A name that was unlinked a moment ago should be there to be found.
        self.file.housekeep();
        self.file.release();
        self.closed = true;
    }

    fn path(&self) -> Option<PathBuf> {
        Some(self.file.path().to_owned())
    }

    fn file_trouble(&self) -> u64 {
        self.trouble
    }
}

/// How many events go into the next batch: as many as fit without taking a group apart, where that is possible.
pub(super) fn batch_len(events: &[Event], max: usize) -> usize {
    let most = events.len().min(max);
    let whole = (1..=most).rev().find(|&len| events[len - 1].group <= 1);
    whole.unwrap_or(most)
}

/// A number that no other image has: random, not 0.
fn random_instance() -> u64 {
    let mut hasher = RandomState::new().build_hasher();
    hasher.write_u64(unix_us());
    hasher.write_u32(std::process::id());
    hasher.finish().max(1)
}

fn unix_us() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_micros() as u64)
}

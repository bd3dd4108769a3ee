//! Reading telemetry files, live or after a crash: the images of this library and the five layouts that
//! NIXL's releases write.
//!
//! Readers copy, they don't map: a file that is truncated, replaced or unlinked under a reader ends in an
//! error or in a fresh start, never in a signal. Read permission is enough, and nothing is written, except
//! when consuming one of NIXL's own rings was asked for.

use std::fmt;
use std::path::{Path, PathBuf};

mod block;
mod dump;
mod engine;
mod error;
mod file;
mod follow;
mod idle;
mod image;
mod info;
mod item;
mod life;
mod nixl;
mod parts;
mod read_at;
mod survey;
pub(crate) mod tail;
mod trouble;

pub(crate) use error::Shown;
pub(crate) use file::Links;
pub(crate) use life::now_us;
pub(crate) use nixl::NixlRing;
pub(crate) use trouble::{Refused, Trouble};

pub use block::{Block, Gap, GapKind};
#[doc(hidden)]
pub use dump::fuzz_scan;
pub use dump::{Dump, Place, Swapped, scan_dump};
#[doc(hidden)]
pub use engine::{Engine, fuzz_open};
pub use error::{OpenError, ReadError};
pub use follow::Follower;
pub use idle::Idle;
pub use info::{DynamicMetric, FileInfo, HistogramOf, Identity, Metric, MetricsSnapshot, Positions};
pub use item::{Counts, Event, EventName, Item, Layout};
pub use life::Liveness;
#[doc(hidden)]
pub use read_at::{LockState, ReadAt};
pub use telering_core::layout::nixl::NixlLayout;

/// Items that one call gives at the most.
const MOST_ITEMS: u64 = 4096;
/// Records that one call copies out of one of NIXL's own rings: a reset and a loss may come before them.
const MOST_RECORDS: u64 = MOST_ITEMS - 2;

/// Where a reader starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum From {
    /// At the oldest event that is still there.
    #[default]
    Oldest,
    /// Behind the newest event: only what comes from now on.
    Newest,
}

/// How a file is read. By default from the oldest event, changing nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReaderOptions {
    pub(crate) from: From,
    pub(crate) consume: bool,
    pub(crate) verify: bool,
    pub(crate) within: Option<Place>,
}

impl Default for ReaderOptions {
    fn default() -> Self {
        ReaderOptions { from: From::Oldest, consume: false, verify: true, within: None }
    }
}

impl ReaderOptions {
    /// From the oldest event, changing nothing.
    #[must_use]
    pub fn new() -> ReaderOptions {
        ReaderOptions::default()
    }

    /// Where to start.
    #[must_use]
    pub fn from(self, from: From) -> ReaderOptions {
        ReaderOptions { from, ..self }
    }

    /// Whether events are taken out of one of NIXL's own rings, so that its producer has room for more.
    ///
    /// The index that says so is written when the next call asks for more (or the reader is dropped): what a
    /// crash keeps from being handed on is still there. One consumer at a time.
    #[must_use]
    pub fn consume(self, consume: bool) -> ReaderOptions {
        ReaderOptions { consume, ..self }
    }

    /// Reads an image inside a larger file, which [`scan_dump`] found. In messages the file's name has the offset
    /// behind it: `ram.bin+0x1f40`.
    #[must_use]
    pub fn within(self, place: Place) -> ReaderOptions {
        ReaderOptions { within: Some(place), ..self }
    }

    /// Whether check words are looked at. Without them a copy of a live file gives events that never were.
    #[doc(hidden)]
    #[must_use]
    pub fn verify(self, verify: bool) -> ReaderOptions {
        ReaderOptions { verify, ..self }
    }

    /// Opens a file.
    ///
    /// # Errors
    /// [`OpenError`] says what is wrong with the file and what to do.
    pub fn open(&self, path: impl AsRef<Path>) -> Result<Reader, OpenError> {
        self.open_with(path.as_ref(), Links::Follow)
    }

    pub(crate) fn open_with(&self, path: &Path, links: Links) -> Result<Reader, OpenError> {
        let (file, identity) = file::open(path, links, self.consume).map_err(|refused| refused.at(path))?;
        let shown = match self.within {
            Some(place) => {
                let mut name = path.as_os_str().to_owned();
                name.push(format!("+{:#x}", place.offset));
                PathBuf::from(name)
            }
            None => path.to_path_buf(),
        };
        let engine = Engine::open(dump::Piece { file, place: self.within }, &shown, self)?;
        Ok(Reader { engine, path: path.to_path_buf(), identity, waiting: Vec::new() })
    }
}

/// Reads one telemetry file.
///
/// ```no_run
/// use telering::reader::{Item, Reader};
/// let mut reader = Reader::open("/dev/shm/telemetry/agent")?;
/// let mut items = Vec::new();
/// while reader.read(&mut items)? > 0 {
///     for item in items.drain(..) {
///         if let Item::Event(event) = item {
///             println!("{:?} {} = {}", event.timestamp_us, event.name, event.value);
///         }
///     }
/// }
/// assert_eq!(reader.counts().lost, 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Reader {
    engine: Engine<dump::Piece>,
    path: PathBuf,
    identity: file::Identity,
    /// Items that [`Reader::next_item`] has not given yet, the next one last.
    waiting: Vec<Item>,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader")
            .field("path", &self.path)
            .field("layout", &self.layout())
            .field("counts", &self.counts())
            .finish_non_exhaustive()
    }
}

impl Reader {
    /// Opens a file, to read from its oldest event without changing anything.
    ///
    /// # Errors
    /// See [`ReaderOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Reader, OpenError> {
        ReaderOptions::new().open(path)
    }

    /// Appends what is new to `out`, at most 4096 items, and returns how many: 0 when nothing is new now.
    ///
    /// # Errors
    /// [`ReadError`] when the file is gone wrong under the reader. Everything returned before stands.
    pub fn read(&mut self, out: &mut Vec<Item>) -> Result<usize, ReadError> {
        if !self.waiting.is_empty() {
            let count = self.waiting.len();
            out.extend(self.waiting.drain(..).rev());
            return Ok(count);
        }
        self.engine.read(out)
    }

    /// The next records of an image in one piece, `None` when nothing is new now: as exact as [`Reader::read`] and
    /// several times faster, since nothing is made of the records.
    ///
    /// # Errors
    /// [`ReadError`] when the file is gone wrong under the reader; [`ReadError::NotInBlocks`] for one of NIXL's own
    /// rings, and while items wait that [`Reader::next_item`] fetched.
    pub fn read_block(&mut self) -> Result<Option<Block<'_>>, ReadError> {
        if self.waiting.is_empty() {
            return self.engine.read_block();
        }
        let reason = "items that next_item fetched come first";
        Err(ReadError::NotInBlocks { path: self.path.clone(), reason })
    }

    /// The next item, `None` when nothing is new now.
    ///
    /// # Errors
    /// See [`Reader::read`].
    pub fn next_item(&mut self) -> Result<Option<Item>, ReadError> {
        if self.waiting.is_empty() {
            let mut waiting = std::mem::take(&mut self.waiting);
            let result = self.engine.read(&mut waiting);
            waiting.reverse();
            self.waiting = waiting;
            result?;
        }
        Ok(self.waiting.pop())
    }

    /// Begins an image again at its oldest event, with the buffers that are there: for benchmarks.
    #[doc(hidden)]
    pub fn rewind(&mut self) {
        self.engine.rewind();
    }

    /// What was read since the file was opened.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.engine.counts()
    }

    /// First position of an image that this reader counts, since the last reset; 0 for NIXL's own rings.
    #[must_use]
    pub fn start(&self) -> u64 {
        self.engine.start()
    }

    /// A fresh look at all that the file says about itself.
    ///
    /// # Errors
    /// [`ReadError`] if the file can't be read or was resized.
    pub fn info(&self) -> Result<FileInfo, ReadError> {
        self.engine.info()
    }

    /// The file's name, as it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// How the file lays out its bytes.
    #[must_use]
    pub fn layout(&self) -> Layout {
        self.engine.layout()
    }

    /// The producer's run that wrote an image; `None` for NIXL's own rings.
    #[must_use]
    pub fn instance(&self) -> Option<u64> {
        self.engine.instance()
    }

    /// Whether the file's name now leads to another file, or to none.
    #[must_use]
    pub fn replaced(&self) -> bool {
        !self.identity.is_at(&self.path)
    }

    pub(crate) fn brief(&self) -> Result<(Option<Identity>, Liveness), ReadError> {
        self.engine.brief()
    }
}

impl Drop for Reader {
    fn drop(&mut self) {
        // Everything was handed over: a consuming reader leaves nothing to be read twice.
        if self.waiting.is_empty() {
            let _ = self.engine.save();
        }
    }
}

//! Following a name: through restarts of the producer, truncation and replacement of the file.

use std::fmt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::error::{OpenError, ReadError};
use super::item::{Counts, Item};
use super::{From, Reader, ReaderOptions};

/// How long a file may be broken before that is an error: a producer whose file was truncated is back
/// within 2 s.
const PATIENCE: Duration = Duration::from_secs(5);

/// Reads a file for as long as its name lives. When the name leads to a new file (a producer that started
/// again), the old one is read to its end first.
///
/// ```no_run
/// use telering::reader::{Follower, Idle};
/// let mut follower = Follower::open("/dev/shm/telemetry/agent")?;
/// let (mut items, mut idle) = (Vec::new(), Idle::new());
/// loop {
///     let found = follower.poll(&mut items)?;
///     items.drain(..).for_each(|item| println!("{item:?}"));
///     if let Some(pause) = idle.after(found) {
///         std::thread::sleep(pause);
///     }
/// }
/// # #[allow(unreachable_code)]
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Follower {
    path: PathBuf,
    options: ReaderOptions,
    reader: Reader,
    /// What earlier files gave.
    before: Counts,
    broken_since: Option<Instant>,
    patience: Duration,
}

impl fmt::Debug for Follower {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Follower").field("reader", &self.reader).field("counts", &self.counts()).finish_non_exhaustive()
    }
}

impl Follower {
    /// Opens a file, to follow it from its oldest event.
    ///
    /// # Errors
    /// See [`ReaderOptions::open`].
    pub fn open(path: impl AsRef<Path>) -> Result<Follower, OpenError> {
        Follower::with(&ReaderOptions::new(), path)
    }

    /// Opens a file with options. A file that later takes its name is always read from its oldest event.
    ///
    /// # Errors
    /// See [`ReaderOptions::open`].
    pub fn with(options: &ReaderOptions, path: impl AsRef<Path>) -> Result<Follower, OpenError> {
        let path = path.as_ref().to_path_buf();
        let reader = options.open(&path)?;
        let options = options.from(From::Oldest);
        Ok(Follower { path, options, reader, before: Counts::default(), broken_since: None, patience: PATIENCE })
    }

    /// Appends what is new to `out`, at most 4096 items, and returns how many: 0 when nothing is new now.
    /// Never waits.
    ///
    /// # Errors
    /// [`ReadError`] when the file stays broken for 5 s and its name leads to no other.
    pub fn poll(&mut self, out: &mut Vec<Item>) -> Result<usize, ReadError> {
        match self.reader.read(out) {
            Ok(0) if self.reader.replaced() => {
                self.broken_since = None;
                // The producer may have written between the two looks.
                match self.reader.read(out) {
                    Ok(0) | Err(_) => Ok(self.move_on(out)),
                    read => read,
                }
            }
            Ok(count) => {
                self.broken_since = None;
                Ok(count)
            }
            Err(error) => {
                let moved = self.move_on(out);
                if moved > 0 {
                    return Ok(moved);
                }
                let since = *self.broken_since.get_or_insert_with(Instant::now);
                if since.elapsed() < self.patience { Ok(0) } else { Err(error) }
            }
        }
    }

    /// Opens what the name leads to now; 0 while that is nothing readable.
    fn move_on(&mut self, out: &mut Vec<Item>) -> usize {
        let opened = match self.options.open(&self.path) {
            // A ring that was consumed gave way to an image, which needs none to do so.
            Err(OpenError::NothingToConsume { .. }) => self.options.consume(false).open(&self.path),
            opened => opened,
        };
        let Ok(reader) = opened else { return 0 };
        // The same broken file, opened again, would be broken again.
        if reader.info().is_err() {
            return 0;
        }
        let old = std::mem::replace(&mut self.reader, reader).counts();
        self.before.add_all(&old);
        self.broken_since = None;
        out.push(Item::Reset { instance: self.reader.instance() });
        1
    }

    /// How long a broken file is waited for.
    #[doc(hidden)]
    pub fn set_patience(&mut self, patience: Duration) {
        self.patience = patience;
    }

    /// The reader of the file that is read now.
    #[must_use]
    pub fn reader(&self) -> &Reader {
        &self.reader
    }

    /// What was read since the follower was opened, over all files.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let mut counts = self.before;
        counts.add_all(&self.reader.counts());
        counts
    }

    /// The name that is followed.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }
}

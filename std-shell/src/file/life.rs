//! The file of a running writer.
//!
//! Its flush thread asks [`ImageFile::check`] before every batch: a file whose size changed must never be touched
//! again, for the pages that went away kill whoever touches them. What it wrote lives on in private memory, and
//! [`ImageFile::publish_anew`] makes a new file from that.

use std::fs;
use std::path::{Path, PathBuf};

use rustix::fs::fstat;
use telering_core::sync::AtomicU64;

use super::FileError;
use super::create::{Renewal, create_noting};
use super::fork::Descriptor;
use super::mapping::Mapping;
use super::probe::Inode;
use super::upkeep::Upkeep;
use crate::warn::{Warner, WarningKind};

/// A telemetry file that this process writes. Dropping it lets go of the lock and leaves the file.
pub(crate) struct ImageFile {
    pub(super) origin: Origin,
    pub(super) path: PathBuf,
    /// The second link, where the file system has links.
    pub(super) hidden: Option<PathBuf>,
    pub(super) inode: Inode,
    pub(super) len: u64,
    /// Gone once the file was abandoned.
    pub(super) holding: Option<Holding>,
    pub(super) upkeep: Upkeep,
}

/// What a writer holds of its file.
pub(super) struct Holding {
    pub(super) file: Descriptor,
    pub(super) mapping: Mapping,
    pub(super) locked: bool,
}

/// Whose file it is, and what it takes to make another one.
pub(super) struct Origin {
    pub(super) directory: PathBuf,
    pub(super) agent: String,
    pub(super) encoded: String,
    pub(super) pid: u32,
    pub(super) mode: u32,
    pub(super) warner: Warner,
}

/// How a file stands, see [`ImageFile::check`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[must_use]
pub(crate) enum Check {
    /// As it was made.
    Sound,
    /// A name is missing. The file may be written; [`ImageFile::housekeep`] sees to the name.
    Unlinked,
    /// Not to be touched again.
    Lost(Loss),
}

/// Why a file is not to be touched again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Loss {
    /// Somebody gave it another size, in bytes.
    Resized(u64),
    /// No name is left, so no reader can find it, and none can be given to it.
    Nameless,
    /// The host closed our descriptor, and the number may be another file's.
    DescriptorClosed,
    /// It was abandoned before.
    Abandoned,
    /// This is a forked child; the file is its parent's.
    Forked,
}

impl ImageFile {
    /// The image. Empty after [`abandon`](Self::abandon) and in a forked child.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        self.holding.as_ref().map_or(&[], |holding| holding.mapping.words())
    }

    /// The name that readers look for. It changes when others take the name.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at the file, by one `fstat`. To be called before every batch; after [`Check::Lost`] the file must not
    /// be written, and is abandoned already.
    #[allow(clippy::unnecessary_cast, reason = "signed or narrower on other systems")]
    pub(crate) fn check(&mut self) -> Check {
        let loss = match &self.holding {
            None => Loss::Abandoned,
            Some(holding) if !holding.file.is_of_this_generation() => Loss::Forked,
            // `fstat` itself, and not the `statx` of std, which costs twice as much: this is once per batch.
            Some(holding) => match fstat(holding.file.file()) {
                Ok(now) if Inode::of_stat(&now) != self.inode => Loss::DescriptorClosed,
                Ok(now) if now.st_size as u64 != self.len => Loss::Resized(now.st_size as u64),
                Ok(now) if now.st_nlink == 0 => Loss::Nameless,
                Ok(now) if (now.st_nlink as u64) < 1 + u64::from(self.hidden.is_some()) => return Check::Unlinked,
                Ok(_) => return Check::Sound,
                Err(_) => Loss::DescriptorClosed,
            },
        };
        match loss {
            // The descriptor stays open for `publish_anew`, which must know the inode again.
            Loss::Resized(_) | Loss::Nameless | Loss::Abandoned | Loss::Forked => {}
            Loss::DescriptorClosed => {
                if let Some(mut holding) = self.holding.take() {
                    holding.file.disown();
                }
            }
        }
        Check::Lost(loss)
    }

    /// Lets go of a file in good order: lock, descriptor and mapping. The file stays, with all its names.
    pub(crate) fn release(&mut self) {
        self.holding = None;
    }

    /// Lets go of a file that others changed, and of the second link, which would point at what the others make
    /// of it. Not a byte of it is touched.
    pub(crate) fn abandon(&mut self) {
        self.remove_hidden();
        self.holding = None;
    }

    /// Abandons the file and makes a new one for the same agent, which takes this one's place. If the old name is
    /// another's now, it is `NAME@PID`. One warning tells the first time of each kind.
    ///
    /// # Errors
    /// [`FileError`]; nobody was told, and the call may be tried again later.
    pub(crate) fn publish_anew(&mut self, loss: Loss, initialise: impl FnOnce(&[AtomicU64])) -> Result<(), FileError> {
        // The old inode is held until the new file is there: while it lives, no other file can have its number.
        let renewal = Renewal { abandoned: self.holding.as_ref().map(|_| self.inode) };
        let Origin { directory, agent, mode, warner, .. } = &self.origin;
        let (new, note) = create_noting(directory, agent, self.len, *mode, warner, Some(renewal), initialise)?;
        let mut old = std::mem::replace(self, new);
        old.abandon();
        let before = old.path;

        let (key, what) = match loss {
            Loss::Resized(_) => ("file-resized", "another process changed its size"),
            Loss::Nameless => ("file-removed", "another process removed it"),
            _ => ("file-closed", "its descriptor was closed by the program"),
        };
        let place =
            if self.path == before { "under the same name".to_owned() } else { format!("as {}", self.path.display()) };
        let mut message = format!(
            "{}: {what}; a new telemetry file goes on {place} with the same totals, earlier events are not in it",
            before.display()
        );
        if let Some(note) = note {
            message = format!("{message}. {note}");
        }
        self.origin.warner.once(WarningKind::File, key, message);
        Ok(())
    }

    fn remove_hidden(&mut self) {
        if let Some(hidden) = self.hidden.take()
            && self.holding.as_ref().is_some_and(|holding| holding.file.is_ours())
            && self.inode.is_at(&hidden)
        {
            let _ = fs::remove_file(hidden);
        }
    }
}

impl Drop for Holding {
    fn drop(&mut self) {
        // Unlocked rather than only closed: a child forked in the wrong moment may hold a copy of the descriptor.
        if self.locked && self.file.is_ours() {
            let _ = self.file.file().unlock();
        }
    }
}

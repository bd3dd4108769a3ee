//! Who lives: the lock on an image, and the lock on a directory while a file is made in it.
//!
//! A writer holds `flock(LOCK_EX)` on its image as long as it lives; the kernel lets go of it when the
//! process ends, however it ends. Everybody else opens the file anew, tries a shared lock without waiting,
//! and closes. Nobody but the writer ever unlocks: an unlock would take the lock from whoever shares the
//! descriptor.

use std::fs::{File, OpenOptions, TryLockError};
use std::io;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::time::{Duration, Instant};

use super::fork::Descriptor;

/// How long a new file waits for another one to be made in the same directory.
const DIRECTORY_WAIT: Duration = Duration::from_secs(1);
/// How often it looks.
const DIRECTORY_LOOK: Duration = Duration::from_millis(2);

/// Whether somebody holds the lock of a file.
#[derive(Debug)]
pub(crate) enum LockState {
    /// Nobody: the writer closed it or died.
    Free,
    /// A living writer.
    Held,
    /// Locks don't work on this file system.
    Unsupported,
}

/// Opens a file of which nothing is known: never follows a link, never waits for a FIFO, never becomes a terminal's.
pub(crate) fn open_unknown(path: &Path) -> io::Result<File> {
    OpenOptions::new().read(true).custom_flags(libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY).open(path)
}

/// Whether somebody holds the lock of the file at `path`.
#[cfg(test)]
pub(crate) fn lock_state(path: &Path) -> io::Result<LockState> {
    open_unknown(path).map(|file| lock_state_of(&file))
}

/// Whether somebody else holds the lock of a file that the caller opened for this question. The shared lock
/// that this may leave on the descriptor goes with it: close it soon.
pub(crate) fn lock_state_of(file: &File) -> LockState {
    match retried(|| file.try_lock_shared()) {
        Ok(()) => LockState::Free,
        Err(TryLockError::WouldBlock) => LockState::Held,
        Err(TryLockError::Error(_)) => LockState::Unsupported,
    }
}

/// Takes the writer's lock on an image that nobody else knows yet.
pub(crate) fn own(file: &File) -> io::Result<()> {
    retried(|| file.try_lock()).map_err(io::Error::from)
}

fn retried(mut attempt: impl FnMut() -> Result<(), TryLockError>) -> Result<(), TryLockError> {
    loop {
        match attempt() {
            Err(TryLockError::Error(source)) if source.kind() == io::ErrorKind::Interrupted => {}
            other => return other,
        }
    }
}

/// A directory in which nobody else of ours makes, replaces or removes a file meanwhile.
pub(crate) struct DirectoryLock {
    directory: Descriptor,
    /// Why the lock isn't held.
    pub(crate) missing: Option<MissingLock>,
}

/// Why a directory's lock isn't held.
#[derive(Debug)]
pub(crate) enum MissingLock {
    /// Somebody held it for longer than we wait.
    TimedOut,
    /// Locks don't work on this file system.
    Unsupported(io::Error),
}

impl DirectoryLock {
    /// Waits at most a second for the lock. A file is made without it too: two files of one name that are made at
    /// once then end as one under the name and one beside it.
    pub(crate) fn take(directory: &Path) -> io::Result<DirectoryLock> {
        let file = OpenOptions::new().read(true).custom_flags(libc::O_DIRECTORY).open(directory)?;
        let directory = Descriptor::new(file);
        let until = Instant::now() + DIRECTORY_WAIT;
        let missing = loop {
            match retried(|| directory.file().try_lock()) {
                Ok(()) => break None,
                Err(TryLockError::WouldBlock) if Instant::now() >= until => break Some(MissingLock::TimedOut),
                Err(TryLockError::WouldBlock) => std::thread::sleep(DIRECTORY_LOOK),
                Err(TryLockError::Error(source)) => break Some(MissingLock::Unsupported(source)),
            }
        };
        Ok(DirectoryLock { directory, missing })
    }

    pub(crate) fn is_held(&self) -> bool {
        self.missing.is_none()
    }
}

impl Drop for DirectoryLock {
    fn drop(&mut self) {
        // Unlocked rather than only closed: a child forked meanwhile may hold a copy of the descriptor.
        if self.is_held() && self.directory.is_ours() {
            let _ = self.directory.file().unlock();
        }
    }
}

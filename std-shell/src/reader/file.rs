//! Opening files that may be anything: never waiting, never following what was not named.

use std::fs::{File, FileType, Metadata, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;

use super::read_at::LockState;
use super::trouble::{Refused, io_at};
use crate::file::lock;

/// Which file a name led to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Identity {
    device: u64,
    inode: u64,
}

impl Identity {
    fn of(metadata: &Metadata) -> Identity {
        Identity { device: metadata.dev(), inode: metadata.ino() }
    }

    /// Whether `path` still leads to this file.
    pub(crate) fn is_at(&self, path: &Path) -> bool {
        std::fs::metadata(path).is_ok_and(|metadata| Identity::of(&metadata) == *self)
    }
}

/// Whether a symbolic link is followed: only one that the user named.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Links {
    Follow,
    Refuse,
}

/// Opens a regular file.
pub(crate) fn open(path: &Path, links: Links, write: bool) -> Result<(File, Identity), Refused> {
    // Looked at before it is opened: opening a device can do things.
    let metadata = match links {
        Links::Follow => std::fs::metadata(path),
        Links::Refuse => std::fs::symlink_metadata(path),
    };
    check_kind(metadata.map_err(io_at("look at it"))?.file_type())?;
    let no_follow = if links == Links::Refuse { libc::O_NOFOLLOW } else { 0 };
    let file = OpenOptions::new()
        .read(true)
        .write(write)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC | no_follow)
        .open(path)
        .map_err(|error| refused_open(error, write))?;
    // Looked at again: the name may lead elsewhere by now.
    let metadata = file.metadata().map_err(io_at("look at it"))?;
    check_kind(metadata.file_type())?;
    Ok((file, Identity::of(&metadata)))
}

fn refused_open(error: io::Error, write: bool) -> Refused {
    match error.raw_os_error() {
        Some(libc::ELOOP) => Refused::NotTelemetry("a symbolic link".into()),
        Some(libc::EACCES | libc::EPERM | libc::EROFS) if write => Refused::NeedsWrite(error),
        _ => Refused::Io("open it for reading", error),
    }
}

fn check_kind(kind: FileType) -> Result<(), Refused> {
    let kind = match kind {
        kind if kind.is_file() => return Ok(()),
        kind if kind.is_dir() => "a directory",
        kind if kind.is_symlink() => "a symbolic link",
        kind if kind.is_fifo() => "a FIFO",
        kind if kind.is_socket() => "a socket",
        _ => "a device",
    };
    Err(Refused::NotTelemetry(kind.into()))
}

/// Asks for the lock that a live writer holds, on a descriptor of its own that is closed at once. Never
/// unlocks: an unlock on a shared descriptor would be the writer's.
pub(crate) fn lock_state(file: &File) -> LockState {
    let own = OpenOptions::new()
        .read(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_NOCTTY | libc::O_CLOEXEC)
        .open(format!("/proc/self/fd/{}", file.as_raw_fd()));
    match own.map(|own| lock::lock_state_of(&own)) {
        Ok(lock::LockState::Free) => LockState::Free,
        Ok(lock::LockState::Held) => LockState::Held,
        Ok(lock::LockState::Unsupported) | Err(_) => LockState::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn consuming_what_may_only_be_read_says_so() {
        for code in [libc::EACCES, libc::EROFS] {
            let error = || io::Error::from_raw_os_error(code);
            assert!(matches!(refused_open(error(), true), Refused::NeedsWrite(_)));
            assert!(matches!(refused_open(error(), false), Refused::Io(..)));
        }
    }
}

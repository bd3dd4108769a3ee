//! Where bytes come from: a file by `pread`, or a slice in memory.

use std::fs::File;
use std::io::{self, Seek, SeekFrom};
use std::os::unix::fs::FileExt;
use std::sync::atomic::{Ordering, fence};

/// Who holds the lock that a live writer of ours keeps on its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockState {
    /// Someone: the writer lives.
    Held,
    /// Nobody.
    Free,
    /// This file system has no locks, or the question was refused.
    Unknown,
}

/// Bytes at offsets. A reader copies out of it and checks the copy; what stands there may change at any
/// moment.
pub trait ReadAt {
    /// Copies what there is from `offset` on into `into`; fewer bytes than asked for at the end.
    ///
    /// # Errors
    /// What the system says.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize>;

    /// How many bytes there are now.
    ///
    /// # Errors
    /// What the system says.
    fn byte_len(&self) -> io::Result<u64>;

    /// Whether a writer holds the file's lock.
    fn lock_state(&self) -> LockState {
        LockState::Free
    }

    /// Writes `bytes` at `offset`. Only consuming needs it.
    ///
    /// # Errors
    /// What the system says; [`io::ErrorKind::Unsupported`] where nothing can be written.
    fn write_at(&self, _offset: u64, _bytes: &[u8]) -> io::Result<()> {
        Err(io::ErrorKind::Unsupported.into())
    }
}

/// Fills `into` wholly. `false` if the bytes end before.
///
/// Each call is its own look at the file: what is read by the next call is not older than what this one
/// read. Between control words and records that order is what makes a copy trustworthy.
pub(crate) fn read_whole(source: &impl ReadAt, mut offset: u64, mut into: &mut [u8]) -> io::Result<bool> {
    fence(Ordering::SeqCst);
    while !into.is_empty() {
        match source.read_at(offset, into) {
            Ok(0) => return Ok(false),
            Ok(count) => {
                let count = count.min(into.len());
                offset = offset.saturating_add(count as u64);
                into = &mut into[count..];
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    fence(Ordering::SeqCst);
    Ok(true)
}

impl ReadAt for &[u8] {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        let rest = usize::try_from(offset).ok().and_then(|offset| self.get(offset..)).unwrap_or_default();
        let count = rest.len().min(into.len());
        into[..count].copy_from_slice(&rest[..count]);
        Ok(count)
    }

    fn byte_len(&self) -> io::Result<u64> {
        Ok(self.len() as u64)
    }
}

impl ReadAt for File {
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<usize> {
        FileExt::read_at(self, into, offset)
    }

    fn byte_len(&self) -> io::Result<u64> {
        // A third of what asking for all metadata costs. Reads have offsets of their own and don't care where the
        // file stands.
        Seek::seek(&mut &*self, SeekFrom::End(0))
    }

    fn lock_state(&self) -> LockState {
        super::file::lock_state(self)
    }

    fn write_at(&self, offset: u64, bytes: &[u8]) -> io::Result<()> {
        FileExt::write_all_at(self, bytes, offset)
    }
}

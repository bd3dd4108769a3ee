//! The names in a directory, and opening one of them: never waiting, never following a link.

use std::ffi::{OsStr, OsString};
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, Dir, FileType, Mode, OFlags, Stat, fstat, openat, statat};

use crate::file::probe::Inode;

/// Names that are looked at in one directory. Who has more has another problem; the rest is counted.
pub(super) const NAMES_MAX: usize = 200_000;

/// An open directory.
pub(super) struct Open(OwnedFd);

/// What is told apart without opening.
pub(super) struct Entry {
    pub(super) name: OsString,
    pub(super) is_file: bool,
}

/// What an open file is, as far as it decides whether it is still the one from before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stamp {
    pub(super) inode: Inode,
    pub(super) len: u64,
    /// The owner.
    pub(super) uid: u32,
    /// Seconds and nanoseconds of the last change to the inode.
    changed: (i64, i64),
}

#[allow(clippy::unnecessary_cast, reason = "signed or narrower on other systems")]
impl Stamp {
    fn of(stat: &Stat) -> Stamp {
        Stamp {
            inode: Inode::of_stat(stat),
            len: stat.st_size as u64,
            uid: stat.st_uid,
            changed: (stat.st_ctime as i64, stat.st_ctime_nsec as i64),
        }
    }
}

impl Open {
    /// Opens the directory. The user named it: a link is followed here, and nowhere else.
    pub(super) fn new(path: &Path) -> io::Result<Open> {
        let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
        Ok(Open(openat(CWD, path, flags, Mode::empty())?))
    }

    /// Every name without a leading dot that is no directory. Says how many were left out for want of room.
    pub(super) fn list(&self, into: &mut Vec<Entry>) -> io::Result<usize> {
        into.clear();
        let mut left_out = 0;
        for entry in Dir::read_from(&self.0)? {
            let entry = entry?;
            let name = entry.file_name().to_bytes();
            if name.starts_with(b".") || entry.file_type() == FileType::Directory {
                continue;
            }
            if into.len() == NAMES_MAX {
                left_out += 1;
                continue;
            }
            // A file system that doesn't tell is asked for this name alone.
            let is_file = match entry.file_type() {
                FileType::Unknown => self.is_file(entry.file_name()),
                known => known == FileType::RegularFile,
            };
            into.push(Entry { name: OsStr::from_bytes(name).to_owned(), is_file });
        }
        Ok(left_out)
    }

    fn is_file(&self, name: &std::ffi::CStr) -> bool {
        statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)
            .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile)
    }

    /// What stands under a name now, without opening it.
    pub(super) fn stamp(&self, name: &OsStr) -> io::Result<Stamp> {
        Ok(Stamp::of(&statat(&self.0, name, AtFlags::SYMLINK_NOFOLLOW)?))
    }

    /// Opens a regular file; `None` if it is something else by now.
    pub(super) fn file(&self, name: &OsStr, write: bool) -> io::Result<Option<(File, Stamp)>> {
        let access = if write { OFlags::RDWR } else { OFlags::RDONLY };
        let flags = access | OFlags::NOFOLLOW | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
        let file = File::from(openat(&self.0, name, flags, Mode::empty())?);
        let stat = fstat(&file)?;
        let is_file = FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile;
        Ok(is_file.then(|| (file, Stamp::of(&stat))))
    }

    /// When the directory's list of names last changed.
    pub(super) fn changed(&self) -> io::Result<Stamp> {
        Ok(Stamp::of(&fstat(&self.0)?))
    }
}

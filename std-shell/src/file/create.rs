//! How an image gets its file.
//!
//! Everything happens under a temporary name, and the name that readers look for appears last, on a finished
//! image. Whatever goes wrong before leaves nothing behind.

use std::fs::{self, File, OpenOptions, Permissions};
use std::io;
use std::os::unix::fs::{FileExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, RenameFlags, renameat_with};
use telering_core::sync::AtomicU64;

use super::FileError;
use super::earlier::remove_earlier;
use super::fork::Descriptor;
use super::life::{Holding, ImageFile, Origin};
use super::lock::{DirectoryLock, LockState, MissingLock, lock_state_of, open_unknown, own};
use super::mapping::Mapping;
use super::name::{self, FileName};
use super::probe::{Inode, Standing, is_of_this_user, standing};
use super::upkeep::Upkeep;
use crate::config::FILE_MODE_DEFAULT;
use crate::warn::{Warner, WarningKind};

/// Names and numbers that are tried before giving up.
const ATTEMPTS: u64 = 1000;

/// Makes the telemetry file of an agent.
///
/// `initialise` formats the image, which is all zeros, and writes its magic number last. `mode` are permission
/// bits: to [`FILE_MODE_DEFAULT`] the process' umask applies, as to NIXL's own files; others were chosen and are
/// set as they are. If the name belongs to other telemetry, the file is `NAME@PID`, and one
/// warning says so.
///
/// # Errors
/// [`FileError`]; nothing was left behind then, and nobody was told.
pub(crate) fn create(
    directory: &Path,
    agent: &str,
    image_len: u64,
    mode: u32,
    warner: &Warner,
    initialise: impl FnOnce(&[AtomicU64]),
) -> Result<ImageFile, FileError> {
    let (file, note) = create_noting(directory, agent, image_len, mode, warner, None, initialise)?;
    if let Some(note) = note {
        warner.warn(WarningKind::File, note);
    }
    Ok(file)
}

/// A running writer whose file was lost makes another one.
#[derive(Clone, Copy)]
pub(crate) struct Renewal {
    /// The inode that was given up a moment ago: it may be replaced.
    pub(crate) abandoned: Option<Inode>,
}

/// The same. The note that the name belongs to others is handed back rather than told. A running writer keeps
/// having a file: to its renewal any file under its name is another's, and it takes a name beside it.
pub(crate) fn create_noting(
    directory: &Path,
    agent: &str,
    image_len: u64,
    mode: u32,
    warner: &Warner,
    renewal: Option<Renewal>,
    initialise: impl FnOnce(&[AtomicU64]),
) -> Result<(ImageFile, Option<String>), FileError> {
    let encoded = name::encode(agent)?;
    let directory = std::path::absolute(directory).map_err(|source| unusable(directory, "opened", source))?;
    check_limit(&directory.join(&encoded), image_len)?;
    fs::create_dir_all(&directory).map_err(|source| unusable(&directory, "made", source))?;
    let lock = DirectoryLock::take(&directory).map_err(|source| unusable(&directory, "opened", source))?;
    match &lock.missing {
        Some(MissingLock::TimedOut) => _ = warner.once(
            WarningKind::File,
            "directory-lock",
            format!(
                "the lock of the directory {} was held by another process for over a second; the telemetry file is made \
                 without it",
                directory.display()
            ),
        ),
        Some(MissingLock::Unsupported(source)) => no_locks(&directory, source, warner),
        None => {}
    }

    // Judged first: nothing is written where there is no name to be had.
    let pid = std::process::id();
    let mut choice = Choice::first(&directory, &encoded, pid, renewal)?;
    if lock.is_held() {
        remove_stale_temporaries(&directory);
    }

    let (mut temporary, file) = Temporary::make(&directory, &encoded, pid, mode)?;
    reserve(file.file(), image_len, true).map_err(|source| match source.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            FileError::NoRoom { path: choice.path.clone(), wanted: image_len, source }
        }
        _ => FileError::io(&choice.path, "given its size", source),
    })?;
    let locked = match own(file.file()) {
        Ok(()) => true,
        Err(source) => {
            no_locks(&directory, &source, warner);
            false
        }
    };
    let mapping = Mapping::new(file.file(), image_len).map_err(|source| FileError::Unsuited {
        directory: directory.clone(),
        call: "mmap",
        source,
    })?;
    let metadata = file.file().metadata().map_err(|source| FileError::io(&choice.path, "looked at", source))?;
    initialise(mapping.words());

    if lock.is_held() {
        remove_earlier(&directory, &encoded, pid, file.file(), choice.replaces);
    }
    let hidden = link_hidden(&temporary.path, &directory, &encoded, pid);
    if let Err(error) = choice.settle(&temporary.path, &directory, &encoded, pid, renewal) {
        hidden.iter().for_each(|hidden| _ = fs::remove_file(hidden));
        return Err(error);
    }
    temporary.renamed = true;
    let Choice { path, note, .. } = choice;
    let image = ImageFile {
        path,
        hidden,
        holding: Some(Holding { file, mapping, locked }),
        inode: Inode::of(&metadata),
        len: image_len,
        upkeep: Upkeep::default(),
        origin: Origin { directory, agent: agent.to_owned(), encoded, pid, mode, warner: warner.clone() },
    };
    Ok((image, note))
}

fn unusable(directory: &Path, what: &'static str, source: io::Error) -> FileError {
    FileError::Directory { directory: directory.to_owned(), what, source }
}

fn no_locks(directory: &Path, source: &io::Error, warner: &Warner) {
    warner.once(
        WarningKind::File,
        "no-flock",
        format!(
            "flock doesn't work in the directory {}: {source}; readers tell a living writer by its heartbeat only. Name a \
             local file system (tmpfs, such as /dev/shm, is best) in NIXL_TELEMETRY_DIR",
            directory.display()
        ),
    );
}

/// A file over the process' limit is not only refused: the kernel sends SIGXFSZ, which kills.
fn check_limit(path: &Path, wanted: u64) -> Result<(), FileError> {
    match rustix::process::getrlimit(rustix::process::Resource::Fsize).current {
        Some(limit) if limit < wanted => Err(FileError::OverLimit { path: path.to_owned(), wanted, limit }),
        _ => Ok(()),
    }
}

/// The name that the image gets.
struct Choice {
    path: PathBuf,
    attempt: u64,
    /// What the name is to replace.
    replaces: Option<Inode>,
    note: Option<String>,
}

impl Choice {
    fn first(directory: &Path, encoded: &str, pid: u32, renewal: Option<Renewal>) -> Result<Choice, FileError> {
        let mut choice = Choice { path: directory.join(encoded), attempt: 0, replaces: None, note: None };
        choice.look(directory, encoded, pid, renewal)?;
        Ok(choice)
    }

    /// Goes on to the first name from the present attempt on that may be taken.
    fn look(&mut self, directory: &Path, encoded: &str, pid: u32, renewal: Option<Renewal>) -> Result<(), FileError> {
        let plain = directory.join(encoded);
        let mut reason: Option<String> = None;
        let abandoned = renewal.and_then(|renewal| renewal.abandoned);
        while self.attempt < ATTEMPTS {
            self.path = directory.join(name::visible(encoded, pid, self.attempt));
            let found =
                standing(&self.path, abandoned).map_err(|source| FileError::io(&self.path, "looked at", source))?;
            match found {
                Standing::Nothing => self.replaces = None,
                Standing::Replaceable(inode) => self.replaces = Some(inode),
                Standing::Telemetry(what) => {
                    reason.get_or_insert(what.to_owned());
                    self.attempt += 1;
                    continue;
                }
                Standing::Foreign(what) if self.attempt == 0 && renewal.is_some() => {
                    reason.get_or_insert(what);
                    self.attempt += 1;
                    continue;
                }
                Standing::Foreign(what) if self.attempt == 0 => return Err(FileError::Occupied { path: plain, what }),
                Standing::Foreign(_) => {
                    self.attempt += 1;
                    continue;
                }
            }
            if let (Some(what), None) = (&reason, &self.note) {
                self.note = Some(format!(
                    "{} is {what}; this agent's telemetry file is {}. Give each agent a name of its own",
                    plain.display(),
                    self.path.display()
                ));
            }
            return Ok(());
        }
        Err(FileError::Occupied { path: plain, what: format!("taken, and so are {ATTEMPTS} names beside it,") })
    }

    /// Gives the finished image its name.
    fn settle(
        &mut self,
        temporary: &Path,
        directory: &Path,
        encoded: &str,
        pid: u32,
        renewal: Option<Renewal>,
    ) -> Result<(), FileError> {
        for _ in 0..ATTEMPTS {
            let renamed = match self.replaces {
                Some(inode) if inode.is_at(&self.path) => fs::rename(temporary, &self.path),
                Some(_) => Err(io::Error::from(io::ErrorKind::AlreadyExists)),
                None => rename_to_nothing(temporary, &self.path),
            };
            match renamed {
                Ok(()) => return Ok(()),
                // Somebody who takes no locks was here since we looked: NIXL, or a user.
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                    self.note = None;
                    self.attempt += u64::from(self.attempt > 0);
                    self.look(directory, encoded, pid, renewal)?;
                }
                Err(source) => return Err(FileError::io(&self.path, "named", source)),
            }
        }
        // A file system that says so of a free name would keep the host here for ever.
        Err(FileError::Occupied { path: self.path.clone(), what: format!("taken anew at each of {ATTEMPTS} tries") })
    }
}

/// Renames without replacing, where the file system can.
fn rename_to_nothing(from: &Path, to: &Path) -> io::Result<()> {
    match renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE).map_err(io::Error::from) {
        Err(error) if matches!(error.raw_os_error(), Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP)) => {
            if Inode::at(to)?.is_some() {
                return Err(io::Error::from(io::ErrorKind::AlreadyExists));
            }
            fs::rename(from, to)
        }
        other => other,
    }
}

/// A temporary name; removed again unless the file got its own.
struct Temporary {
    path: PathBuf,
    renamed: bool,
}

impl Temporary {
    fn make(directory: &Path, encoded: &str, pid: u32, mode: u32) -> Result<(Temporary, Descriptor), FileError> {
        // Without the owner's bit the next start couldn't tell its own file.
        let mode = mode & 0o777 | 0o400;
        let mut attempt = 1;
        loop {
            let path = directory.join(name::temporary(encoded, pid, attempt));
            let mut options = OpenOptions::new();
            options.read(true).write(true).create_new(true).mode(mode).custom_flags(libc::O_NOFOLLOW);
            let file = match options.open(&path) {
                Ok(file) => Descriptor::new(file),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists && attempt < ATTEMPTS => {
                    attempt += 1;
                    continue;
                }
                Err(source) => return Err(FileError::io(directory.join(encoded), "made", source)),
            };
            let temporary = Temporary { path, renamed: false };
            if mode != FILE_MODE_DEFAULT {
                file.file()
                    .set_permissions(Permissions::from_mode(mode))
                    .map_err(|source| FileError::io(directory.join(encoded), "given its permissions", source))?;
            }
            return Ok((temporary, file));
        }
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.renamed {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Gives a file its size, with every block reserved: a full file system is an error here and not a signal later.
pub(super) fn reserve(file: &File, len: u64, by_fallocate: bool) -> io::Result<()> {
    #[cfg(target_os = "linux")]
    if by_fallocate {
        // Signals (a profiler's timer) can interrupt it again and again; then zeros are written instead.
        for _ in 0..16 {
            match rustix::fs::fallocate(file, rustix::fs::FallocateFlags::empty(), 0, len) {
                Ok(()) => return Ok(()),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::OPNOTSUPP | rustix::io::Errno::NOSYS) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    let zeros = [0; 64 << 10];
    let mut at = 0;
    while at < len {
        let piece = (len - at).min(zeros.len() as u64) as usize;
        file.write_all_at(&zeros[..piece], at)?;
        at += piece as u64;
    }
    Ok(())
}

/// The second link, from which an unlinked name comes back. Not every file system has links: then there is none.
fn link_hidden(temporary: &Path, directory: &Path, encoded: &str, pid: u32) -> Option<PathBuf> {
    for attempt in 1..ATTEMPTS {
        let hidden = directory.join(name::hidden(encoded, pid, attempt));
        match fs::hard_link(temporary, &hidden) {
            Ok(()) => return Some(hidden),
            // An earlier run with this process id, as in containers, where it is always 1. Its records stay.
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(_) => return None,
        }
    }
    None
}

/// Removes what makers left that died before their file had its name. Called under the directory's lock: no maker
/// of ours is at work here but this one.
fn remove_stale_temporaries(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten() {
        let is_temporary = entry
            .file_name()
            .to_str()
            .is_some_and(|name| matches!(FileName::parse(name), Some(FileName::Temporary { .. })));
        if is_temporary {
            // What can't be removed now, the next one tries again.
            let _ = remove_stale_temporary(&entry.path());
        }
    }
}

/// Removes a temporary file if it is one of ours and nobody holds it. Says whether it did.
pub(crate) fn remove_stale_temporary(path: &Path) -> io::Result<bool> {
    match stale_temporary(path)? {
        // The descriptor keeps the inode, so that its number isn't another file's meanwhile.
        Some((_file, inode)) if inode.is_at(path) => fs::remove_file(path).map(|()| true),
        _ => Ok(false),
    }
}

/// Whether a file with a temporary's name was left by a dead maker of this user's.
pub(crate) fn stale_temporary(path: &Path) -> io::Result<Option<(File, Inode)>> {
    if !path.symlink_metadata()?.is_file() {
        return Ok(None);
    }
    let file = open_unknown(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || !is_of_this_user(&metadata) || !starts_as_ours(&file, metadata.len())? {
        return Ok(None);
    }
    Ok(matches!(lock_state_of(&file), LockState::Free).then(|| (file, Inode::of(&metadata))))
}

/// Whether a file is empty, starts with zeros, or with the header that we write.
fn starts_as_ours(file: &File, len: u64) -> io::Result<bool> {
    let mut start = [0; 24];
    let there = start.len().min(len as usize);
    file.read_exact_at(&mut start[..there], 0)?;
    let version = &start[16..];
    Ok(start.iter().all(|byte| *byte == 0) || *version == [1, 0, 0, 0, 1, 0, 0, 0])
}

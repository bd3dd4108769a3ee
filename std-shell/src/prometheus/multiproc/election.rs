//! Who of many processes serves their directory: whoever holds the lock of a file named after the address.
//!
//! The kernel lets go of a lock when its process ends, however it ends, so there is always room for the next.

use std::fs::{File, OpenOptions};
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use crate::file::fork::Descriptor;
use crate::file::lock::{self, LockState};
use crate::file::probe::{Inode, is_of_this_user};
use crate::reader::Shown;

const PREFIX: &str = ".telering-owner.";
const SUFFIX: &str = ".lock";

/// How an election ended.
pub(super) enum Election {
    /// This process is the owner as long as it holds this.
    Won(Mandate),
    /// Another process is.
    Lost,
    /// There can be no election. This process serves, and may find the address taken.
    Void(String),
}

/// The lock of an owner.
pub(super) struct Mandate {
    file: Descriptor,
    path: PathBuf,
}

impl Mandate {
    /// Whether others who stand for election find this lock.
    pub(super) fn is_in_place(&self) -> bool {
        let ours = self.file.file().metadata().map(|metadata| Inode::of(&metadata));
        matches!((ours, Inode::at(&self.path)), (Ok(ours), Ok(Some(there))) if ours == there)
    }
}

impl Drop for Mandate {
    fn drop(&mut self) {
        // Unlocked rather than only closed: a child forked in the wrong moment may hold a copy of the descriptor.
        if self.file.is_ours() {
            let _ = self.file.file().unlock();
        }
    }
}

/// The lock file of an address. It is never removed: who removes a file that others lock splits them.
pub(super) fn lock_path(directory: &Path, addresses: &[SocketAddr]) -> PathBuf {
    let address = addresses.first().map(ToString::to_string).unwrap_or_default();
    directory.join(format!("{PREFIX}{}{SUFFIX}", address.replace('/', "_")))
}

/// Tries to become the owner; doesn't wait.
pub(super) fn stand(directory: &Path, addresses: &[SocketAddr]) -> Election {
    let path = lock_path(directory, addresses);
    let void = |what: &str| {
        Election::Void(format!(
            "{}: {what}; this process serves without an election, and all but one of its kind will find the address \
             taken. Remove that file, or name a private directory on a local file system in \
             NIXL_TELEMETRY_MULTIPROC_DIR",
            Shown(&path)
        ))
    };
    let file = match open(&path) {
        Ok(file) => file,
        Err(error) => return void(&format!("the lock file can't be opened ({error})")),
    };
    match file.file().metadata() {
        Ok(metadata) if !metadata.is_file() => return void("the lock file is no regular file"),
        Ok(metadata) if !is_of_this_user(&metadata) => {
            return void(&format!("the lock file belongs to another user ({})", metadata.uid()));
        }
        Ok(_) => {}
        Err(error) => return void(&format!("the lock file can't be looked at ({error})")),
    }
    match lock::own(file.file()) {
        Ok(()) => Election::Won(Mandate { file, path }),
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Election::Lost,
        Err(error) => void(&format!("the lock file can't be locked: flock says {error}")),
    }
}

fn open(path: &Path) -> io::Result<Descriptor> {
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .custom_flags(flags)
        .open(path)?;
    Ok(Descriptor::new(file))
}

/// Another lock file of the directory that is held: there are ranks that want another address.
pub(super) fn other_owner(directory: &Path, mandate: &Mandate) -> Option<PathBuf> {
    let entries = std::fs::read_dir(directory).ok()?;
    entries.flatten().map(|entry| entry.path()).find(|path| {
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        let is_lock = name.starts_with(PREFIX) && name.ends_with(SUFFIX);
        is_lock && *path != mandate.path && is_held(path)
    })
}

/// A shared lock is asked for, and only for a moment: who stands for election in that moment tries again soon.
fn is_held(path: &Path) -> bool {
    let is_regular = |file: &File| file.metadata().is_ok_and(|metadata| metadata.is_file());
    lock::open_unknown(path)
        .is_ok_and(|file| is_regular(&file) && matches!(lock::lock_state_of(&file), LockState::Held))
}

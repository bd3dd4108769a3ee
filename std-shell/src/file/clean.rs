//! Removing what dead writers left.
//!
//! Only images of ours are ever removed: the magic number is right, nobody holds the lock, the file belongs to
//! this user. NIXL's own files have no lock; whether their writer lives can't be known, so they stay.

use std::collections::HashSet;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use telering_core::layout::image::TimeBase;

use super::create::stale_temporary;
use super::lock::{DirectoryLock, LockState, lock_state_of, open_unknown};
use super::name::FileName;
use super::probe::{Content, Inode, content, is_of_this_user, read_control};
use crate::reader::now_us;

/// A file that may be removed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Removal {
    /// The file.
    pub path: PathBuf,
    /// Why it may be removed.
    pub reason: &'static str,
    inode: Inode,
}

/// Lists what may be removed from a directory, sorted by name. Removes nothing; subdirectories aren't looked into.
///
/// # Errors
/// If the directory can't be read. Single files that can't be looked at are left out.
pub fn plan(directory: &Path) -> io::Result<Vec<Removal>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        // A file that went away meanwhile, or that we may not read, isn't ours to remove.
        let Ok(path) = entry.map(|entry| entry.path()) else { continue };
        if let Ok(Some((_file, inode, reason))) = judge(&path) {
            found.push(Removal { path, reason, inode });
        }
    }
    found.sort_by(|one, other| one.path.cmp(&other.path));
    Ok(found)
}

/// The same for those alone whose writer was last seen longer ago than `ttl`, and before `before_us`. What is in `kept`
/// stays, and so does an image whose clock is not this one's.
pub(crate) fn plan_older(directory: &Path, ttl: Duration, before_us: u64, kept: &[Inode]) -> io::Result<Vec<Removal>> {
    let ttl_us = u64::try_from(ttl.as_micros()).unwrap_or(u64::MAX);
    let kept: HashSet<Inode> = kept.iter().copied().collect();
    let mut plan = Vec::new();
    for entry in fs::read_dir(directory)? {
        let Ok(path) = entry.map(|entry| entry.path()) else { continue };
        let Ok(Some((file, inode, reason))) = judge(&path) else { continue };
        let seen_us = file.metadata().and_then(|metadata| last_seen_us(&file, metadata.len()));
        let Ok(Some(seen_us)) = seen_us else { continue };
        // A time to come was no time of this clock: long ago, for all that is known.
        let age_us = now_us().checked_sub(seen_us).unwrap_or(u64::MAX);
        if age_us > ttl_us && (seen_us < before_us || age_us == u64::MAX) && !kept.contains(&inode) {
            plan.push(Removal { path, reason, inode });
        }
    }
    Ok(plan)
}

/// When an image's writer was last seen; `None` where that can't be said in Unix time. A file that was never finished
/// has no such time.
fn last_seen_us(file: &File, len: u64) -> io::Result<Option<u64>> {
    let Content::Image(head) = content(file, len)? else { return Ok(None) };
    let control = read_control(file, &head)?;
    Ok((control.time_base == TimeBase::Unix).then_some(control.heartbeat.max(head.created_us)))
}

/// Removes one file of a plan, if it is still the same file and everything that was found still holds. Says
/// whether it did.
///
/// # Errors
/// If the directory can't be locked (another file is being made in it: try again), or the file can't be removed.
pub fn remove(removal: &Removal) -> io::Result<bool> {
    let directory = match removal.path.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    };
    let lock = DirectoryLock::take(directory)?;
    if !lock.is_held() {
        return Err(io::Error::new(io::ErrorKind::WouldBlock, "the directory's lock can't be had; try again later"));
    }
    // `_file` holds a shared lock and the inode until the name is gone.
    match judge(&removal.path)? {
        Some((_file, inode, _)) if inode == removal.inode && inode.is_at(&removal.path) => {
            fs::remove_file(&removal.path).map(|()| true)
        }
        _ => Ok(false),
    }
}

/// Whether a file may be removed, and why.
fn judge(path: &Path) -> io::Result<Option<(File, Inode, &'static str)>> {
    let Some(name) = path.file_name().and_then(|name| name.to_str()).and_then(FileName::parse) else {
        return Ok(None);
    };
    if let FileName::Temporary { .. } = name {
        return Ok(stale_temporary(path)?.map(|(file, inode)| (file, inode, "its maker died before it was finished")));
    }
    if !path.symlink_metadata()?.is_file() {
        return Ok(None);
    }
    let file = open_unknown(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() || !is_of_this_user(&metadata) {
        return Ok(None);
    }
    let is_image = matches!(content(&file, metadata.len())?, Content::Image(_));
    if !is_image || !matches!(lock_state_of(&file), LockState::Free) {
        return Ok(None);
    }
    let reason = match name {
        FileName::Hidden { .. } => "second link of an image whose writer closed it or died",
        _ => "its writer closed it or died",
    };
    Ok(Some((file, Inode::of(&metadata), reason)))
}

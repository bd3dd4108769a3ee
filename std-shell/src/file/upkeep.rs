//! The names of a running writer's file.
//!
//! Newer NIXL readers unlink a file whose version they don't know. The image then still has its second link, and
//! once a second its name is linked back: the same inode, so readers that have it open notice nothing. A name that
//! another file took is never taken back; the image gets a name beside it.

use std::fs;
use std::io;
use std::os::fd::AsRawFd as _;
use std::path::Path;
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, linkat};

use super::life::ImageFile;
use super::name;
use super::probe::Inode;
use crate::warn::WarningKind;

/// How often a name is linked back before the image moves to another one.
const RETURNS_MAX: u32 = 10;
/// How often the image moves to another name.
const MOVES_MAX: u32 = 10;
/// A name that stays this long is at peace: the next trouble counts from the start.
const PEACE: Duration = Duration::from_secs(60);
/// Names beside the plain one that are tried in one go.
const NAMES_MAX: u64 = 100;

/// What happened to a file's names so far.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    returns: u32,
    moves: u32,
    last_return: Option<Instant>,
    not_before: Option<Instant>,
    given_up: bool,
}

/// What [`ImageFile::housekeep`] did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Housekeeping {
    /// Nothing was to be done, or it wasn't yet time.
    Nothing,
    /// The name was gone and was linked back.
    LinkedBack,
    /// The image has another name now: see [`ImageFile::path`].
    Moved,
}

impl ImageFile {
    /// Sees to the names. To be called once a second, and touches no byte of the image.
    ///
    /// A missing name is linked back, at once the first time, then after pauses of 1, 3, 7, ... seconds; after ten
    /// times, or if another file took the name, the image becomes `NAME@PID`. One warning tells of each kind.
    pub(crate) fn housekeep(&mut self) -> Housekeeping {
        self.housekeep_at(Instant::now())
    }

    pub(super) fn housekeep_at(&mut self, now: Instant) -> Housekeeping {
        if self.upkeep.given_up || !self.holding.as_ref().is_some_and(|holding| holding.file.is_ours()) {
            return Housekeeping::Nothing;
        }
        self.renew_hidden();
        match Inode::at(&self.path) {
            Ok(Some(found)) if found == self.inode => {
                if self.upkeep.last_return.is_some_and(|last| now.saturating_duration_since(last) >= PEACE) {
                    self.upkeep = Upkeep { moves: self.upkeep.moves, ..Upkeep::default() };
                }
                Housekeeping::Nothing
            }
            Ok(Some(_)) => self.move_beside("another file took its name"),
            Ok(None) if self.upkeep.returns >= RETURNS_MAX => self.move_beside("it was unlinked again and again"),
            Ok(None) if self.upkeep.not_before.is_some_and(|time| now < time) => Housekeeping::Nothing,
            Ok(None) => self.link_back(now),
            // The directory can't be looked into just now.
            Err(_) => Housekeeping::Nothing,
        }
    }

    fn link_back(&mut self, now: Instant) -> Housekeeping {
        let linked = self.link_to(&self.path);
        if matches!(&linked, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            return Housekeeping::Nothing;
        }
        let pause = Duration::from_secs((1 << self.upkeep.returns) - 1);
        self.upkeep.returns += 1;
        self.upkeep.last_return = Some(now);
        self.upkeep.not_before = Some(now + pause);
        if linked.is_err() {
            return Housekeeping::Nothing;
        }
        self.origin.warner.once(
            WarningKind::File,
            "file-unlinked",
            format!(
                "{}: another process unlinked it (NIXL's readers do so with a version that they don't know); it was linked \
                 back, which is done {RETURNS_MAX} times. Read it with `telering read` instead",
                self.path.display()
            ),
        );
        Housekeeping::LinkedBack
    }

    /// Gives the image a name beside the plain one. Whatever stands there stays.
    fn move_beside(&mut self, why: &str) -> Housekeeping {
        self.upkeep.moves += 1;
        if self.upkeep.moves <= MOVES_MAX {
            for attempt in 1..NAMES_MAX {
                let name = name::visible(&self.origin.encoded, self.origin.pid, attempt);
                let path = self.origin.directory.join(name);
                if path == self.path {
                    continue;
                }
                match self.link_to(&path) {
                    Ok(()) => {}
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists && self.inode.is_at(&path) => {}
                    Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                    Err(_) => break,
                }
                self.upkeep = Upkeep { moves: self.upkeep.moves, ..Upkeep::default() };
                let before = std::mem::replace(&mut self.path, path);
                self.origin.warner.once(
                    WarningKind::File,
                    "file-moved",
                    format!("{}: {why}; the telemetry file goes on as {}", before.display(), self.path.display()),
                );
                return Housekeeping::Moved;
            }
        }
        self.upkeep.given_up = true;
        self.origin.warner.once(
            WarningKind::File,
            "file-given-up",
            format!(
                "{}: {why}, and no other name could be had; the telemetry file goes on {}",
                self.path.display(),
                match &self.hidden {
                    Some(hidden) => format!("as {} only", hidden.display()),
                    None => "without a name".to_owned(),
                }
            ),
        );
        Housekeeping::Nothing
    }

    /// Links the image to another name, from the name that it still has. Never replaces anything.
    fn link_to(&self, to: &Path) -> io::Result<()> {
        let named = [self.hidden.as_deref(), Some(self.path.as_path())];
        if let Some(from) = named.into_iter().flatten().find(|from| self.inode.is_at(from)) {
            fs::hard_link(from, to)?;
            if self.inode.is_at(to) {
                return Ok(());
            }
            // Replaced between the look and the link: this link is ours, what it points to isn't.
            let _ = fs::remove_file(to);
        }
        // By the descriptor, while any other link is left.
        let holding = self.holding.as_ref().ok_or(io::ErrorKind::NotFound)?;
        let from = format!("/proc/self/fd/{}", holding.file.file().as_raw_fd());
        linkat(CWD, from.as_str(), CWD, to, AtFlags::SYMLINK_FOLLOW).map_err(io::Error::from)
    }

    /// Makes the second link again if somebody removed it.
    fn renew_hidden(&mut self) {
        let Some(hidden) = &self.hidden else { return };
        if Inode::at(hidden).is_ok_and(|found| found.is_none()) {
            // Where it can't be had any more, `check` must not count it.
            if self.link_to(hidden).is_err() && self.inode.is_at(&self.path) {
                self.hidden = None;
            }
        }
    }
}

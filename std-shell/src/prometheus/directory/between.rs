//! What is done between two pages: emptying rings, and removing what dead writers left.

use std::ffi::OsString;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use super::list::Open;
use super::{Directory, Known, LabelSet, What};
use crate::file::clean;
use crate::file::probe::Inode;

/// How often the list of names is read for new rings when nothing says that it changed.
const LIST_AGAIN: Duration = Duration::from_secs(1);

impl Directory {
    /// Takes events out of those of NIXL's rings that are due, so that none fills up between two pages. Returns when
    /// to call again.
    pub(crate) fn drain(&mut self) -> Instant {
        let now = Instant::now();
        let Some(open) = self.open() else { return now + LIST_AGAIN };
        let is_as_listed = self.listed.is_some_and(|(stamp, when)| {
            now.saturating_duration_since(when) < LIST_AGAIN && open.changed().is_ok_and(|changed| changed == stamp)
        });
        if !is_as_listed && self.options.consume {
            self.find_new(&open);
        }
        let due: Vec<OsString> =
            self.files.iter().filter(|(_, known)| known.is_due(now)).map(|(name, _)| name.clone()).collect();
        for name in due {
            let Some(Known { what: What::Ring(ring), look }) = self.files.remove(&name) else { continue };
            let what = self.visit(&open, &name, ring, now);
            self.files.insert(name, Known { what, look });
        }
        let next = self
            .files
            .values()
            .filter_map(|known| if let What::Ring(ring) = &known.what { Some(ring.due) } else { None });
        next.min().unwrap_or(now + LIST_AGAIN).clamp(now + Duration::from_millis(5), now + Duration::from_millis(100))
    }

    /// Looks at names that weren't there, at those whose file wasn't finished, and for sums that go on at those that
    /// another file has by now: of an agent that lives between two pages nothing must be missed.
    fn find_new(&mut self, open: &Open) {
        let times = self.times();
        self.list(open, times.now);
        let entries = std::mem::take(&mut self.entries);
        for entry in &entries {
            let wanted = match self.files.get(&entry.name) {
                None => true,
                Some(known) => match &known.what {
                    What::Unfinished | What::Unreadable | What::Locked | What::Shut(_) => true,
                    What::Image(image) if self.options.labels == LabelSet::Stable => {
                        open.stamp(&entry.name).is_ok_and(|now| now.inode != image.stamp.inode)
                    }
                    _ => false,
                },
            };
            if wanted && entry.is_file {
                self.look_at(open, entry, &times);
            }
        }
        self.entries = entries;
    }

    /// Files of dead writers whose time is over, and which were published. To be removed without the caller holding
    /// this directory's lock.
    pub(crate) fn overdue(&self) -> Overdue {
        let kept = self.files.values().filter_map(|known| match &known.what {
            What::Image(image) if !image.expired => Some(image.stamp.inode),
            _ => None,
        });
        Overdue {
            path: self.path.clone(),
            ttl: self.options.ttl,
            kept: kept.collect(),
            before_us: if self.looks == 0 { 0 } else { self.before_us },
        }
    }
}

impl Known {
    fn is_due(&self, now: Instant) -> bool {
        matches!(&self.what, What::Ring(ring) if ring.due <= now)
    }
}

/// Which files of a directory may be removed, see [`Directory::overdue`].
pub(crate) struct Overdue {
    path: PathBuf,
    ttl: Duration,
    /// Files whose numbers are published, or will be.
    kept: Vec<Inode>,
    /// When the directory was last looked at: what was written after that is not known here.
    before_us: u64,
}

impl Overdue {
    /// Removes them. Only images of ours, of this user, whose lock is free.
    pub(crate) fn remove(&self) -> usize {
        let Ok(plan) = clean::plan_older(&self.path, self.ttl, self.before_us, &self.kept) else { return 0 };
        plan.iter().filter(|removal| clean::remove(removal).unwrap_or(false)).count()
    }
}

//! One look at one name: what it is, what it says, and what it was before.

use std::ffi::OsStr;
use std::io;
use std::time::{Duration, Instant};

use super::image::{Image, Look};
use super::list::{Entry, Open, Stamp};
use super::ring::{self, Ring};
use super::{Directory, Known, LabelSet, Times, What, sums};
use crate::prometheus::{Labels, Sample};
use crate::reader::{OpenError, Refused, Shown, tail};

/// Looks at rings in a second at the most.
const VISITS_PER_SECOND: u32 = 20_000;

impl Directory {
    pub(super) fn look_at(&mut self, open: &Open, entry: &Entry, times: &Times) {
        let what = if entry.is_file {
            let known = self.files.remove(&entry.name).map(|known| known.what);
            self.look_at_file(open, &entry.name, known, times)
        } else {
            What::Foreign
        };
        self.files.insert(entry.name.clone(), Known { what, look: self.looks });
    }

    fn look_at_file(&mut self, open: &Open, name: &OsStr, known: Option<What>, times: &Times) -> What {
        let known = match known {
            Some(What::Shut(before)) => Some(*before),
            other => other,
        };
        let known = match known {
            // Nobody writes it any more. Another file under the name has another inode, or was changed later.
            Some(What::Image(image)) if image.is_settled() && open.stamp(name).is_ok_and(|now| now == image.stamp) => {
                return What::Image(image);
            }
            other => other,
        };
        let (file, stamp) = match open.file(name, false) {
            Ok(Some(found)) => found,
            Ok(None) => {
                known.into_iter().for_each(|known| self.forget(name, known));
                return What::Foreign;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                known.into_iter().for_each(|known| self.forget(name, known));
                return What::Foreign;
            }
            // It may be opened again later, and must not be added to a sum twice.
            Err(error) => {
                let refused = self.refused(name, Refused::Io("open it for reading", error));
                return known.map_or(refused, |known| What::Shut(Box::new(known)));
            }
        };
        if self.options.only_own && !is_of_this_user(&stamp) {
            known.into_iter().for_each(|known| self.forget(name, known));
            let path = self.path.join(name);
            let message = format!("{}: it belongs to another user ({}) and is left alone", Shown(&path), stamp.uid);
            self.told.file(&self.options.warner, &path, &message);
            return What::Foreign;
        }
        match known {
            Some(What::Image(mut image)) => match image.look(&file, stamp, &mut self.buffer, times) {
                Look::Same => return self.counted(image),
                Look::Other => self.forget(name, What::Image(image)),
            },
            Some(What::Ring(ring)) => {
                if stamp.inode == ring.stamp.inode {
                    return self.visit(open, name, ring, times.now);
                }
                self.forget(name, What::Ring(ring));
            }
            _ => {}
        }
        match tail::kind(&file, stamp.len) {
            Ok(tail::Kind::Image(head)) => self.new_image(open, name, &file, stamp, head, times),
            Ok(tail::Kind::Other) => self.new_ring(open, name, times),
            Err(refused) => self.refused(name, refused),
        }
    }

    /// Gives an image its labels. Where another one has them (two containers on one host, each with a process 1) it
    /// gets one more, so that both are there and apart.
    pub(super) fn label(&mut self, name: &OsStr, image: &mut Image) {
        if image.identity.agent.is_empty() {
            image.identity.agent = super::agents::name_of(name);
        }
        if self.options.labels == LabelSet::Stable {
            image.sample.labels = image.stable_labels();
            return;
        }
        let plain = image.labels();
        image.apart |= self.taken.contains(&plain);
        let instance = || format!("{:016x}", image.instance());
        let labels = if image.apart { plain.with("file_instance", instance()) } else { plain };
        self.taken.insert(labels.clone());
        image.sample.labels = labels;
    }

    /// Adds what an image's numbers grew to the sums.
    pub(super) fn counted(&mut self, mut image: Box<Image>) -> What {
        if self.options.labels == LabelSet::Stable && !(image.expired && image.added.is_none()) {
            self.add(&mut image);
        }
        if image.expired {
            self.taken.remove(&image.sample.labels);
        }
        What::Image(image)
    }

    pub(super) fn add(&mut self, image: &mut Image) {
        // An old copy may stand for an agent for a while: what it lacks must not be added again later.
        let is_new = |added: &Sample| *added != image.sample && sums::events(added) <= sums::events(&image.sample);
        if image.added.as_ref().is_none_or(is_new) {
            self.sums.add(&image.stable_labels(), image.added.as_ref(), &image.sample);
            image.added = Some(image.sample.clone());
        }
    }

    fn new_ring(&mut self, open: &Open, name: &OsStr, times: &Times) -> What {
        // Looked at for reading first: of a file that is no ring nobody must hear that it can't be written.
        let probed = open
            .file(name, false)
            .ok()
            .flatten()
            .map(|(file, _)| crate::reader::NixlRing::open(&file, crate::reader::From::Oldest, false).map(|_| ()));
        match probed {
            Some(Ok(())) => {}
            Some(Err(refused)) => return self.refused(name, refused),
            None => return What::Unfinished,
        }
        if !self.options.consume {
            return What::Locked;
        }
        let (file, stamp) = match open.file(name, true) {
            Ok(Some(found)) => found,
            Ok(None) => return What::Foreign,
            Err(error) => return self.refused(name, Refused::NeedsWrite(error)),
        };
        let claimed = self.rings().filter(|ring| ring.is_claimed()).count();
        let claim = if claimed < claims_max() { ring::claim(&file) } else { Ok(None) };
        let Ok(claim) = claim else {
            self.told.claimed(&self.options.warner, &self.path.join(name));
            return What::Locked;
        };
        let (gone, options, hostname) = (&mut self.gone, &self.options, &self.hostname);
        let new = || ring::Sums::new(ring::labels(hostname, name), &options.bounds, times.now_us);
        let sums = || gone.take_ring(name).unwrap_or_else(new);
        match Ring::new(&file, stamp, claim, sums, times.now) {
            Ok(ring) => self.visit_open(name, Box::new(ring), &file, stamp, times.now),
            Err(refused) => self.refused(name, refused),
        }
    }

    pub(super) fn visit(&mut self, open: &Open, name: &OsStr, ring: Box<Ring>, now: Instant) -> What {
        match open.file(name, true) {
            Ok(Some((file, stamp))) if stamp.inode == ring.stamp.inode => {
                self.visit_open(name, ring, &file, stamp, now)
            }
            // Replaced this very moment: the next look finds what it is.
            Ok(_) => What::Ring(ring),
            Err(error) => {
                self.refused(name, Refused::NeedsWrite(error));
                What::Shut(Box::new(What::Ring(ring)))
            }
        }
    }

    fn visit_open(
        &mut self,
        name: &OsStr,
        mut ring: Box<Ring>,
        file: &std::fs::File,
        stamp: Stamp,
        now: Instant,
    ) -> What {
        let rings = self.files.len() as u32;
        let longest = Duration::from_secs(1) * rings / VISITS_PER_SECOND;
        let (rivals, taken) = (ring.rivals(), ring.sums.taken_by_others);
        let result = ring.visit(file, stamp, &mut self.items, now, longest);
        self.taken_by_others += ring.sums.taken_by_others - taken;
        if ring.rivals() > rivals {
            self.told.rival(&self.options.warner, &self.path.join(name));
        }
        if self.options.labels == LabelSet::Stable
            && ring.sums.added.as_ref().is_none_or(|added| *added != ring.sums.sample)
        {
            let labels = Labels::new().with("hostname", self.hostname.as_str());
            self.sums.add(&labels, ring.sums.added.as_ref(), &ring.sums.sample);
            ring.sums.added = Some(ring.sums.sample.clone());
        }
        match result {
            Ok(()) => What::Ring(ring),
            Err(trouble) => {
                self.forget(name, What::Ring(ring));
                let path = self.path.join(name);
                self.told.file(&self.options.warner, &path, &trouble.at(&path).to_string());
                What::Unreadable
            }
        }
    }

    /// What a file is that can't be read, told once.
    fn refused(&mut self, name: &OsStr, refused: Refused) -> What {
        let path = self.path.join(name);
        let error = refused.at(&path);
        match &error {
            // Gone between the list and the look.
            OpenError::Io { source, .. } if source.kind() == io::ErrorKind::NotFound => return What::Foreign,
            OpenError::NotTelemetry { .. } => return What::Foreign,
            OpenError::NotReady { .. } => return What::Unfinished,
            _ => {}
        }
        self.told.file(&self.options.warner, &path, &error.to_string());
        if matches!(error, OpenError::NeedsWrite { .. }) { What::Locked } else { What::Unreadable }
    }
}

/// Rings that are claimed at the most: each claim takes a descriptor, and others of this process need theirs.
fn claims_max() -> usize {
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    limit.map_or(usize::MAX, |limit| usize::try_from(limit / 4).unwrap_or(usize::MAX))
}

pub(super) fn is_of_this_user(stamp: &Stamp) -> bool {
    stamp.uid == rustix::process::geteuid().as_raw()
}

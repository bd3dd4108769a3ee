//! Which file is which agent's.
//!
//! A file may be renamed, copied, linked, taken away and brought back, and an agent that lost its file goes on in a new
//! one with the same totals. Whatever happens to files, one agent has one place here, and is added to a sum once.

use std::ffi::OsStr;
use std::fs::File;
use std::io;

use telering_core::layout::image::Head;

use super::gone::Memory;
use super::image::{Agent, Image, Look};
use super::list::{Open, Stamp};
use super::{Directory, LabelSet, Times, What};
use crate::file::lock::{LockState, lock_state_of};
use crate::file::name::{self, FileName};

/// Second links of one name that are looked at. They are filled from the lowest number on.
const LINKS_MAX: u64 = 4;

impl Directory {
    /// An image under a name that had none, or another one.
    pub(super) fn new_image(
        &mut self,
        open: &Open,
        name: &OsStr,
        file: &File,
        stamp: Stamp,
        head: Head,
        times: &Times,
    ) -> What {
        let mut image = Box::new(Image::new(stamp, head));
        if matches!(image.look(file, stamp, &mut self.buffer, times), Look::Other) {
            return What::Unfinished;
        }
        if !self.comes_first(open, name, &mut image) {
            return What::Foreign;
        }
        match self.gone.take_image(&image.agent) {
            Memory::Kept(mut before) if before.instance() == image.instance() => {
                before.stamp = stamp;
                if matches!(before.look(file, stamp, &mut self.buffer, times), Look::Other) {
                    self.gone.keep_image(*before);
                    return What::Unfinished;
                }
                image = before;
            }
            Memory::Kept(before) => {
                image.added = before.added;
                image.apart = before.apart;
            }
            // From here on; what it grew by while it was away is lost rather than added twice.
            Memory::Known => image.added = Some(image.sample.clone()),
            Memory::None => {}
        }
        self.label(name, &mut image);
        self.agents.insert(image.agent.clone(), name.to_owned());
        self.predecessors(open, &image, times);
        self.counted(image)
    }

    /// Whether an image is the one that counts for its agent; then whoever stood for the agent before is forgotten.
    fn comes_first(&mut self, open: &Open, name: &OsStr, image: &mut Image) -> bool {
        let Some(other) = self.agents.get(&image.agent).filter(|other| *other != name).cloned() else { return true };
        let Some(held) = self.files.get(&other).and_then(|known| known.what.image()) else { return true };
        if open.stamp(&other).is_ok_and(|now| now.inode == held.stamp.inode) {
            if held.instance() != image.instance() {
                // Two containers that started in one moment, each with a process 1, or two libraries in one process.
                image.agent = Agent::of_file(image.instance());
                return self.comes_first(open, name, image);
            }
            let is_link = held.stamp.inode == image.stamp.inode;
            let lives = is_held(open, &other).unwrap_or_else(|_| held.liveness.is_alive());
            if is_link || (lives, held.progress()) >= (image.liveness.is_alive(), image.progress()) {
                return false;
            }
        }
        if let Some(known) = self.files.get_mut(&other) {
            let held = std::mem::replace(&mut known.what, What::Foreign);
            self.forget(&other, held);
        }
        true
    }

    /// Agents of this name that the process closed before, perhaps since the last look: their numbers belong into the
    /// sum. They stay under their second link alone.
    fn predecessors(&mut self, open: &Open, successor: &Image, times: &Times) {
        for (file, stamp) in self.second_links(open, &successor.identity) {
            let Ok(crate::reader::tail::Kind::Image(head)) = crate::reader::tail::kind(&file, stamp.len) else {
                continue;
            };
            let mut image = Image::new(stamp, head);
            if matches!(image.look(&file, stamp, &mut self.buffer, times), Look::Other)
                || image.expired
                || image.liveness.is_alive()
                || self.agents.contains_key(&image.agent)
                || self.gone.knows(&image.agent)
            {
                continue;
            }
            self.sums.add(&image.stable_labels(), None, &image.sample);
            image.added = Some(image.sample.clone());
            self.gone.keep_image(image);
        }
    }

    /// A replaced image stays under its second link: its last numbers belong into the sum.
    pub(super) fn last_words(&mut self, image: &mut Image) {
        if image.expired {
            return;
        }
        let Ok(open) = Open::new(&self.path) else { return };
        let times = self.times();
        let link = self.second_links(&open, &image.identity).into_iter().find(|(_, stamp)| {
            // The same file; its owner may have been changed.
            stamp.inode == image.stamp.inode
        });
        if let Some((file, stamp)) = link
            && matches!(image.look(&file, stamp, &mut self.buffer, &times), Look::Same)
        {
            self.add(image);
        } else if image.liveness.is_alive() {
            self.unheard += 1;
        }
    }

    /// The second links of an agent's images, open. None unless there are sums to be added to.
    fn second_links(&self, open: &Open, who: &crate::reader::Identity) -> Vec<(File, Stamp)> {
        let encoded = (self.options.labels == LabelSet::Stable).then(|| name::encode(&who.agent).ok()).flatten();
        let (Some(encoded), Ok(pid)) = (encoded, u32::try_from(who.pid)) else { return Vec::new() };
        let mut links = Vec::new();
        for attempt in 1..=LINKS_MAX {
            match open.file(OsStr::new(&name::hidden(&encoded, pid, attempt)), false) {
                Ok(Some((_, stamp))) if self.options.only_own && !super::look::is_of_this_user(&stamp) => {}
                Ok(link) => links.extend(link),
                Err(error) if error.kind() == io::ErrorKind::NotFound => break,
                Err(_) => {}
            }
        }
        links
    }
}

/// Whether somebody holds the lock of a file.
fn is_held(open: &Open, name: &OsStr) -> io::Result<bool> {
    match open.file(name, false)? {
        Some((file, _)) => match lock_state_of(&file) {
            LockState::Held => Ok(true),
            LockState::Free => Ok(false),
            LockState::Unsupported => Err(io::ErrorKind::Unsupported.into()),
        },
        None => Ok(false),
    }
}

/// The agent's name in a file's name, for an image that doesn't say it.
pub(super) fn name_of(name: &OsStr) -> String {
    let name = name.to_string_lossy();
    FileName::parse(&name).map_or_else(|| name.clone().into_owned(), |parsed| parsed.agent().to_owned())
}

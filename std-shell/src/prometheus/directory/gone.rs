//! Files that are gone, and may come back: a directory that is moved away for a while, a file system that is mounted
//! again. Their numbers must not be added to a sum twice.

use std::collections::VecDeque;
use std::ffi::{OsStr, OsString};
use std::hash::{DefaultHasher, Hash as _, Hasher as _};

use super::image::{Agent, Image};
use super::ring::Sums;

/// Files whose numbers are kept at the least. More are kept where more were there at once: all of them may go, and
/// come back, together.
const KEPT: usize = 256;
/// Agents that are known after that, but not by how much they were added.
const KNOWN: usize = 16_384;

/// What is remembered of them, the oldest first.
#[derive(Default)]
pub(super) struct Gone {
    images: VecDeque<Image>,
    /// Sums of rings, by the ring's name.
    rings: VecDeque<(OsString, Sums)>,
    /// Agents whose numbers are no longer kept, by a short form of them.
    known: VecDeque<u64>,
    /// Files that were there at once.
    most: usize,
}

/// What is known of an agent that is there again.
pub(super) enum Memory {
    Kept(Box<Image>),
    /// It was added to the sums before; how much is not known any more.
    Known,
    None,
}

impl Gone {
    /// So many files are there now.
    pub(super) fn there_are(&mut self, files: usize) {
        self.most = self.most.max(files);
    }

    pub(super) fn keep_image(&mut self, image: Image) {
        self.images.push_back(image);
        while self.images.len() > KEPT.max(self.most) {
            let Some(image) = self.images.pop_front() else { return };
            if self.known.capacity() < KNOWN {
                // Once and for all, so that it never has to grow.
                self.known.reserve_exact(KNOWN);
            }
            if self.known.len() == KNOWN {
                self.known.pop_front();
            }
            self.known.push_back(short(&image.agent));
        }
    }

    pub(super) fn keep_ring(&mut self, name: &OsStr, sums: Sums) {
        self.rings.push_back((name.to_owned(), sums));
        while self.rings.len() > KEPT.max(self.most) {
            self.rings.pop_front();
        }
    }

    /// Whether an agent was there before.
    pub(super) fn knows(&self, agent: &Agent) -> bool {
        self.images.iter().any(|image| image.agent == *agent) || self.known.contains(&short(agent))
    }

    /// An agent is there that wasn't at the last look.
    pub(super) fn take_image(&mut self, agent: &Agent) -> Memory {
        // The last one is the one that knows most.
        if let Some(place) = self.images.iter().rposition(|image| image.agent == *agent) {
            return self.images.remove(place).map_or(Memory::None, |image| Memory::Kept(Box::new(image)));
        }
        let short = short(agent);
        match self.known.iter().position(|known| *known == short) {
            Some(place) => {
                self.known.remove(place);
                Memory::Known
            }
            None => Memory::None,
        }
    }

    /// A ring of this name is there that wasn't at the last look.
    pub(super) fn take_ring(&mut self, name: &OsStr) -> Option<Sums> {
        let place = self.rings.iter().position(|(other, _)| other == name)?;
        self.rings.remove(place).map(|(_, sums)| sums)
    }
}

fn short(agent: &Agent) -> u64 {
    let mut hasher = DefaultHasher::new();
    agent.hash(&mut hasher);
    hasher.finish()
}

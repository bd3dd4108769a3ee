//! The numbers of every telemetry file in a directory: images of ours, and NIXL's own rings.
//!
//! A [`Directory`] is looked at again and again. It keeps between two looks what the files don't tell twice: sums over
//! processes that are gone, what was taken out of NIXL's rings, and who was published last. Whatever stands in the
//! directory, a look neither fails nor waits: what can't be read is counted and told once.
//!
//! | module | what it knows |
//! |---|---|
//! | [`list`](self) | names, and opening them |
//! | [`look`](self) | one name at one look |
//! | [`image`](self) | one image between two looks; how long it is published |
//! | [`agents`](self) | which file is which agent's |
//! | [`ring`](self) | one of NIXL's rings: taking its events out and adding them up |
//! | [`sums`](self) | sums that never step back, for stable labels |
//! | [`gone`](self) | files that are gone, and may come back |
//! | [`options`](self) | how a directory is looked at |
//! | [`between`](self) | between two pages: emptying rings, removing what dead writers left |
//! | [`page`](self) | all of it as one page |
//! | [`told`](self) | saying once what is wrong with which file |
//! | [`service`](self) | a directory behind a port: what `telering serve` and the exporter `prometheus_mp` share |

mod agents;
mod between;
mod gone;
mod image;
mod list;
mod look;
mod options;
mod page;
mod ring;
mod service;
mod sums;
mod told;

use std::collections::{HashMap, HashSet};
use std::ffi::{OsStr, OsString};
use std::io;
use std::path::{Path, PathBuf};
use std::time::Instant;

pub use options::{DirectoryOptions, LabelSet};
pub use service::Service;

use crate::reader::{Item, now_us};
use gone::Gone;
use image::{Agent, Image};
use list::{Entry, Open, Stamp};
use ring::Ring;
use sums::Sums;
use told::Told;

/// The telemetry files of a directory and what they said so far.
///
/// ```
/// use telering::prometheus::{Directory, DirectoryOptions};
/// let mut directory = Directory::new("/dev/shm/telemetry", DirectoryOptions::default());
/// let mut page = String::new();
/// directory.render(&mut page);
/// assert!(page.contains("telering_processes{state=\"alive\"} "));
/// ```
pub struct Directory {
    path: PathBuf,
    options: DirectoryOptions,
    files: HashMap<OsString, Known>,
    sums: Sums,
    gone: Gone,
    /// The name whose image stands for an agent.
    agents: HashMap<Agent, OsString>,
    /// Agents that were alive at a look and gone at the next, with what they counted in between.
    unheard: u64,
    /// Labels of the images that are published.
    taken: HashSet<super::Labels>,
    told: Told,
    hostname: String,
    boot_id: [u8; 16],
    /// When the directory was last looked at.
    before_us: u64,
    listed: Option<(Stamp, Instant)>,
    /// Why the directory can't be read now.
    trouble: Option<io::Error>,
    left_out: usize,
    rivals: u64,
    taken_by_others: u64,
    looks: u64,
    entries: Vec<Entry>,
    buffer: Vec<u8>,
    items: Vec<Item>,
}

impl std::fmt::Debug for Directory {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Directory").field("path", &self.path).field("files", &self.files.len()).finish_non_exhaustive()
    }
}

/// One name, as of the last look.
struct Known {
    what: What,
    /// The look that saw it last.
    look: u64,
}

enum What {
    Image(Box<Image>),
    Ring(Box<Ring>),
    /// A ring that may not be consumed.
    Locked,
    /// Being made.
    Unfinished,
    /// Telemetry that can't be read.
    Unreadable,
    /// A file that can't be opened now, with what was known of it.
    Shut(Box<What>),
    /// Something else.
    Foreign,
}

/// What time it is, for one look.
struct Times {
    now: Instant,
    now_us: u64,
    before_us: u64,
    ttl_us: u64,
    boot_id: [u8; 16],
}

impl Directory {
    /// A directory, which need not be there yet. Nothing is looked at before the first [`render`](Self::render).
    #[must_use]
    pub fn new(path: impl AsRef<Path>, options: DirectoryOptions) -> Directory {
        let who = crate::exporter::Who::of_this_process("", 0, "");
        Directory {
            path: path.as_ref().to_path_buf(),
            options,
            files: HashMap::new(),
            sums: Sums::default(),
            gone: Gone::default(),
            agents: HashMap::new(),
            unheard: 0,
            taken: HashSet::new(),
            told: Told::default(),
            hostname: who.hostname,
            boot_id: who.boot_id,
            before_us: now_us(),
            listed: None,
            trouble: None,
            left_out: 0,
            rivals: 0,
            taken_by_others: 0,
            looks: 0,
            entries: Vec::new(),
            buffer: Vec::new(),
            items: Vec::new(),
        }
    }

    /// The directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Looks at every file and appends one page in the text format 0.0.4. Numbers that are on a page count as
    /// published.
    pub fn render(&mut self, page: &mut String) {
        self.look();
        self.write(page);
    }

    fn times(&self) -> Times {
        Times {
            now: Instant::now(),
            now_us: now_us(),
            before_us: self.before_us,
            ttl_us: u64::try_from(self.options.ttl.as_micros()).unwrap_or(u64::MAX),
            boot_id: self.boot_id,
        }
    }

    /// Looks at every file.
    fn look(&mut self) {
        let times = self.times();
        self.looks += 1;
        if let Some(open) = self.open() {
            self.list(&open, times.now);
            let entries = std::mem::take(&mut self.entries);
            for entry in &entries {
                self.look_at(&open, entry, &times);
            }
            self.entries = entries;
            self.forget_the_gone();
        }
        self.before_us = times.now_us;
    }

    fn open(&mut self) -> Option<Open> {
        match Open::new(&self.path) {
            Ok(open) => {
                self.trouble = None;
                Some(open)
            }
            Err(error) => {
                if error.kind() == io::ErrorKind::NotFound {
                    // The directory was removed, with everything in it.
                    self.looks += 1;
                    self.forget_the_gone();
                }
                self.trouble = Some(error);
                None
            }
        }
    }

    fn list(&mut self, open: &Open, now: Instant) {
        let changed = open.changed();
        match open.list(&mut self.entries) {
            Ok(left_out) => self.left_out = left_out,
            // What was listed so far is looked at; the next look lists again.
            Err(error) => self.trouble = Some(error),
        }
        self.listed = changed.ok().map(|changed| (changed, now));
    }

    /// Names that this look didn't find are gone.
    fn forget_the_gone(&mut self) {
        if self.trouble.as_ref().is_some_and(|error| error.kind() != io::ErrorKind::NotFound) {
            return;
        }
        self.gone.there_are(self.files.len());
        let looks = self.looks;
        let gone: Vec<_> = self.files.extract_if(|_, known| known.look != looks).collect();
        for (name, known) in gone {
            self.forget(&name, known.what);
        }
    }

    /// Remembers the numbers of a file that is no longer under its name: it may come back, and must not be added
    /// to a sum twice.
    fn forget(&mut self, name: &OsStr, what: What) {
        match what {
            What::Image(mut image) => {
                if self.options.labels == LabelSet::Stable {
                    self.last_words(&mut image);
                }
                self.taken.remove(&image.sample.labels);
                if self.agents.get(&image.agent).is_some_and(|holder| holder == name) {
                    self.agents.remove(&image.agent);
                }
                self.gone.keep_image(*image);
            }
            What::Shut(before) => self.forget(name, *before),
            What::Ring(ring) => {
                self.rivals += ring.rivals();
                self.gone.keep_ring(name, ring.sums);
            }
            _ => {}
        }
    }
}

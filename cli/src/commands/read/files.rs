//! The files of `telering read`: opened, found in directories, waited for, given up.

use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

use super::super::Outcome;
use crate::args::{ReadArguments, Start};
use crate::merge::Merge;
use crate::source::{FileStream, Options, has_times, is_nothing_to_consume, is_still_to_come, places_of};
use crate::terminal;

/// The files that are read, and those still to come.
pub(super) struct Files {
    pub(super) merge: Merge<FileStream>,
    options: Options,
    transfers: bool,
    /// The files are dumps with images in them.
    inside: bool,
    timed: bool,
    directories: Vec<PathBuf>,
    /// Files to be followed that are not there yet.
    awaited: Vec<PathBuf>,
    open: HashSet<PathBuf>,
    /// What was said about a file that can't be read, so that it is said once.
    told: HashMap<PathBuf, String>,
    pub(super) outcome: Outcome,
    pub(super) incomplete: u64,
}

impl Files {
    pub(super) fn new(arguments: &ReadArguments, timed: bool) -> Files {
        let options = Options {
            follow: arguments.follow,
            newest: arguments.from == Start::Newest,
            consume: arguments.consume,
            within: None,
        };
        Files {
            merge: Merge::new(),
            options,
            transfers: arguments.transfers,
            inside: arguments.scan,
            timed,
            directories: Vec::new(),
            awaited: Vec::new(),
            open: HashSet::new(),
            told: HashMap::new(),
            outcome: Outcome::Done,
            incomplete: 0,
        }
    }

    pub(super) fn has_directories(&self) -> bool {
        !self.directories.is_empty()
    }

    /// Whether there is something to read, now or later.
    pub(super) fn has_prospects(&self) -> bool {
        self.merge.streams().next().is_some()
            || (self.options.follow && (self.has_directories() || !self.awaited.is_empty()))
    }

    pub(super) fn open_all(&mut self, paths: &[PathBuf]) {
        for path in paths {
            if path.is_dir() {
                self.directories.push(path.clone());
                self.scan(path);
            } else if self.inside {
                if let Err(error) = self.open_inside(path) {
                    terminal::complain(terminal::causes(&error));
                    self.outcome = Outcome::NotDone;
                }
            } else if let Err(error) = self.open(path, false) {
                if self.options.follow && is_still_to_come(&error) {
                    terminal::complain(format_args!("{}: not there yet; waiting for it", terminal::path(path)));
                    self.awaited.push(path.clone());
                } else {
                    terminal::complain(terminal::causes(&error));
                    self.outcome = Outcome::NotDone;
                }
            }
        }
        // From here on, a new file is new from its first event.
        self.options.newest = false;
    }

    fn open_inside(&mut self, path: &Path) -> anyhow::Result<()> {
        for place in places_of(path)? {
            let stream = FileStream::open(path, Options { within: Some(place), ..self.options });
            // One that is damaged doesn't hide the others.
            if let Err(error) = stream.and_then(|stream| self.add(stream)) {
                terminal::complain(terminal::causes(&error));
                self.outcome = Outcome::NotDone;
            }
        }
        Ok(())
    }

    pub(super) fn scan_all(&mut self) {
        for directory in self.directories.clone() {
            self.scan(&directory);
        }
        for path in std::mem::take(&mut self.awaited) {
            match self.open(&path, false) {
                Ok(()) => {}
                Err(error) => {
                    if !is_still_to_come(&error) {
                        self.tell(&path, terminal::causes(&error));
                    }
                    self.awaited.push(path);
                }
            }
        }
    }

    fn scan(&mut self, directory: &Path) {
        let scan = match telering::source::scan(directory) {
            Ok(scan) => scan,
            Err(error) => {
                self.tell(directory, error.to_string());
                self.outcome = self.outcome.max(Outcome::NotDone);
                return;
            }
        };
        for found in scan.found {
            if let Err(error) = self.open(&found.path, true) {
                self.tell(&found.path, format!("left out: {}", terminal::causes(&error)));
            }
        }
        for ignored in scan.ignored {
            self.tell(&ignored.path, format!("left out: {}: {}", terminal::path(&ignored.path), ignored.reason));
        }
    }

    fn tell(&mut self, path: &Path, message: String) {
        if self.told.get(path) != Some(&message) {
            terminal::complain(&message);
            self.told.insert(path.to_owned(), message);
        }
    }

    /// Opens a file, unless it is open. Where a directory was named, what can't be asked of a file isn't.
    fn open(&mut self, path: &Path, of_directory: bool) -> anyhow::Result<()> {
        let key = path.canonicalize().unwrap_or_else(|_| path.to_owned());
        if self.open.contains(&key) {
            return Ok(());
        }
        let stream = match FileStream::open(path, self.options) {
            Err(error) if of_directory && is_nothing_to_consume(&error) => {
                FileStream::open(path, Options { consume: false, ..self.options })
            }
            other => other,
        }?;
        self.add(stream)?;
        self.open.insert(key);
        Ok(())
    }

    fn add(&mut self, stream: FileStream) -> anyhow::Result<()> {
        let path = &stream.path;
        if self.transfers && !has_times(stream.layout) {
            anyhow::bail!(
                "{}: no transfers to be had from {}: its records carry no time, so nobody can say when a transfer started or ended. Read its events without --transfers",
                terminal::path(path),
                stream.layout
            );
        }
        if self.timed && stream.label.since_boot {
            anyhow::bail!(
                "{}: its times count from the boot of the device, --since and --until don't. Read it without",
                terminal::path(path)
            );
        }
        if self.options.follow && !self.options.consume && stream.is_nixl_ring() {
            terminal::complain(format_args!(
                "{}: a ring of NIXL's own: unless somebody consumes it (--consume), it fills up and drops the newest events",
                terminal::path(path)
            ));
        }
        self.merge.add(stream);
        Ok(())
    }

    /// Says what became of the files that failed.
    pub(super) fn settle_failures(&mut self) {
        for failure in self.merge.take_failures() {
            self.tell(&failure.stream.path, terminal::causes(&failure.error));
            self.outcome = self.outcome.max(Outcome::Wrong);
            self.incomplete += failure.stream.grouper.incomplete();
            let path = failure.stream.path;
            self.open.remove(&path.canonicalize().unwrap_or(path));
        }
    }
}

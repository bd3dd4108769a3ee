//! `telering read` and `telering tail`.

use std::collections::{HashMap, HashSet};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use telering::reader::Item;

use super::Outcome;
use crate::args::{ReadArguments, Start};
use crate::filter::{Filter, TimeSpan};
use crate::merge::Merge;
use crate::output::{Notice, Output, Style};
use crate::source::{FileStream, Options, has_times, is_nothing_to_consume};
use crate::{terminal, time};

/// How long new files of a followed directory stay unseen at the most.
const SCAN_EVERY: Duration = Duration::from_millis(500);
/// A busy file doesn't keep the others waiting longer than this.
const ROUND: Duration = Duration::from_millis(100);
/// How long a followed file that has nothing new is left alone: from, to.
const IDLE: (Duration, Duration) = (Duration::from_millis(1), Duration::from_millis(100));

pub(super) fn run(arguments: ReadArguments) -> anyhow::Result<Outcome> {
    if arguments.from == Start::Newest && !arguments.follow {
        anyhow::bail!("--from newest shows only what is recorded from now on: add --follow, or leave it out");
    }
    let zone = time::zone(arguments.utc);
    let now_us = time::now_us();
    let moment = |text: &Option<String>, flag: &str| {
        text.as_deref()
            .map(|text| time::parse_moment(text, now_us, &zone))
            .transpose()
            .map_err(|error| anyhow::anyhow!("{flag}: {error}"))
    };
    let times = TimeSpan { since: moment(&arguments.since, "--since")?, until: moment(&arguments.until, "--until")? };
    let filter = Filter { categories: arguments.category.clone(), events: arguments.event.clone(), times };

    let mut files = Files::new(&arguments, !times.is_everything());
    files.open_all(&arguments.paths);
    if files.merge.streams().next().is_none() && !(arguments.follow && files.has_directories()) {
        if files.outcome == Outcome::Done {
            terminal::complain("there is no telemetry file to read. Give the directory that NIXL_TELEMETRY_DIR names");
        }
        return Ok(Outcome::NotDone);
    }
    let several =
        arguments.paths.len() > 1 || files.merge.streams().count() > 1 || (arguments.follow && files.has_directories());
    let style = Style {
        format: arguments.format,
        transfers: arguments.transfers,
        several,
        utc: arguments.utc,
        strings: arguments.strings,
        terminal: terminal::is_terminal(),
    };
    let printer = Printer {
        to: BufWriter::with_capacity(64 * 1024, io::stdout()),
        output: style.output(),
        filter,
        transfers: arguments.transfers,
        left: arguments.limit.unwrap_or(u64::MAX),
    };
    Session { files, printer, options: arguments }.run()
}

/// The files that are read, and those still to come.
struct Files {
    merge: Merge<FileStream>,
    options: Options,
    transfers: bool,
    timed: bool,
    directories: Vec<PathBuf>,
    open: HashSet<PathBuf>,
    /// What was said about a file that can't be read, so that it is said once.
    told: HashMap<PathBuf, String>,
    outcome: Outcome,
    incomplete: u64,
}

impl Files {
    fn new(arguments: &ReadArguments, timed: bool) -> Files {
        let options =
            Options { follow: arguments.follow, newest: arguments.from == Start::Newest, consume: arguments.consume };
        Files {
            merge: Merge::new(),
            options,
            transfers: arguments.transfers,
            timed,
            directories: Vec::new(),
            open: HashSet::new(),
            told: HashMap::new(),
            outcome: Outcome::Done,
            incomplete: 0,
        }
    }

    fn has_directories(&self) -> bool {
        !self.directories.is_empty()
    }

    fn open_all(&mut self, paths: &[PathBuf]) {
        for path in paths {
            if path.is_dir() {
                self.directories.push(path.clone());
                self.scan(path);
            } else if let Err(error) = self.open(path, false) {
                terminal::complain(terminal::causes(&error));
                self.outcome = Outcome::NotDone;
            }
        }
        // From here on, a new file is new from its first event.
        self.options.newest = false;
    }

    fn scan_all(&mut self) {
        for directory in self.directories.clone() {
            self.scan(&directory);
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
        self.open.insert(key);
        Ok(())
    }

    /// Says what became of the files that failed.
    fn settle_failures(&mut self) {
        for failure in self.merge.take_failures() {
            self.tell(&failure.stream.path, terminal::causes(&failure.error));
            self.outcome = self.outcome.max(Outcome::Wrong);
            self.incomplete += failure.stream.grouper.incomplete();
            let path = failure.stream.path;
            self.open.remove(&path.canonicalize().unwrap_or(path));
        }
    }
}

/// Prints what the filter takes, up to the limit.
struct Printer {
    to: BufWriter<io::Stdout>,
    output: Box<dyn Output>,
    filter: Filter,
    transfers: bool,
    left: u64,
}

impl Printer {
    fn item(&mut self, item: Item, stream: &mut FileStream) -> io::Result<()> {
        let notice = match item {
            Item::Event(event) => {
                if self.transfers {
                    let finished = stream.grouper.event(&event);
                    if let Some(transfer) = finished.filter(|transfer| self.filter.times.holds(Some(transfer.end_us))) {
                        self.left -= 1;
                        self.output.transfer(&mut self.to, &transfer, &stream.label)?;
                    }
                } else if self.filter.takes(&event) {
                    self.left -= 1;
                    self.output.event(&mut self.to, &event, &stream.label)?;
                }
                return Ok(());
            }
            Item::Lost(count) => Notice::Lost(count),
            Item::Unverified(count) => Notice::Unverified(count),
            Item::Interrupted(count) => Notice::Interrupted(count),
            Item::Reset { instance } => {
                stream.started_over();
                Notice::Reset { instance }
            }
            _ => return Ok(()),
        };
        stream.grouper.gap();
        self.output.notice(&mut self.to, notice, &stream.label)
    }
}

struct Session {
    files: Files,
    printer: Printer,
    options: ReadArguments,
}

impl Session {
    fn run(mut self) -> anyhow::Result<Outcome> {
        let stop = Arc::new(AtomicBool::new(false));
        if self.options.follow || self.options.consume {
            super::watch_signals(&stop)?;
        }
        let result = self.print_all(&stop);
        if let Err(error) = result {
            // What was taken out of a ring and not printed is left in it: the streams don't get to say that
            // they are done.
            std::mem::forget(self.files);
            return Err(error);
        }
        Ok(self.finish())
    }

    fn print_all(&mut self, stop: &AtomicBool) -> anyhow::Result<()> {
        self.printer.output.begin(&mut self.printer.to)?;
        let (mut scanned, mut idle) = (Instant::now(), IDLE.0);
        loop {
            let printed = self.round(stop)?;
            self.printer.to.flush()?;
            if !self.options.follow || self.printer.left == 0 || stop.load(Ordering::Relaxed) || self.is_over() {
                return Ok(());
            }
            if scanned.elapsed() >= SCAN_EVERY {
                self.files.scan_all();
                scanned = Instant::now();
            }
            if self.files.merge.streams().next().is_none() && !self.files.has_directories() {
                return Ok(());
            }
            idle = if printed { IDLE.0 } else { (idle * 2).min(IDLE.1) };
            if !printed {
                thread::sleep(idle);
            }
        }
    }

    /// Prints what is there now. Whether there was anything.
    fn round(&mut self, stop: &AtomicBool) -> anyhow::Result<bool> {
        let Session { files, printer, options } = self;
        let (began, mut count) = (Instant::now(), 0_u64);
        files.merge.begin_round();
        while printer.left > 0 {
            if options.consume && files.merge.is_hungry() {
                // The next look tells the producer that these events are out. Then they must be.
                printer.to.flush()?;
            }
            let Some((item, stream)) = files.merge.next() else { break };
            printer.item(item, stream)?;
            count += 1;
            if count.is_multiple_of(256)
                && (stop.load(Ordering::Relaxed) || (options.follow && began.elapsed() > ROUND))
            {
                break;
            }
        }
        files.settle_failures();
        Ok(count > 0)
    }

    /// Whether the time of `--until` has come.
    fn is_over(&self) -> bool {
        self.printer.filter.times.until.is_some_and(|until| time::now_us() > until)
    }

    fn finish(mut self) -> Outcome {
        if self.options.transfers {
            for stream in self.files.merge.streams_mut() {
                if !self.options.follow && self.printer.left > 0 {
                    stream.grouper.gap();
                }
                self.files.incomplete += stream.grouper.incomplete();
            }
            if self.files.incomplete > 0 {
                terminal::complain(format_args!(
                    "{} left out: not all four events are there (overwritten, or switched off by NIXL_TELEMETRY_ENABLED_METRICS)",
                    terminal::counted(self.files.incomplete, "transfer")
                ));
            }
        }
        self.files.outcome
    }
}

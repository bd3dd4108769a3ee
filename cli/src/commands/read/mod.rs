//! `telering read` and `telering tail`.

mod files;
mod printer;

use std::io::{self, BufWriter, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use telering::reader::Idle;

use super::Outcome;
use crate::args::{ReadArguments, Start};
use crate::filter::{Filter, TimeSpan};
use crate::output::Style;
use crate::{terminal, time};
use files::Files;
use printer::Printer;

/// How long new files of a followed directory stay unseen at the most.
const SCAN_EVERY: Duration = Duration::from_millis(500);
/// A busy file doesn't keep the others waiting longer than this.
const ROUND: Duration = Duration::from_millis(100);

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
    if !files.has_prospects() {
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
            return Err(error.context("the events can't be printed"));
        }
        Ok(self.finish())
    }

    fn print_all(&mut self, stop: &AtomicBool) -> anyhow::Result<()> {
        self.printer.output.begin(&mut self.printer.to)?;
        let (mut scanned, mut idle) = (Instant::now(), Idle::new());
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
            if !self.files.has_prospects() {
                return Ok(());
            }
            if let Some(pause) = idle.after(printed) {
                thread::sleep(pause);
            }
        }
    }

    /// Prints what is there now. How many items that was.
    fn round(&mut self, stop: &AtomicBool) -> anyhow::Result<usize> {
        let Session { files, printer, options } = self;
        let (began, mut count) = (Instant::now(), 0_usize);
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
        Ok(count)
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

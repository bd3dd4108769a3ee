//! The table that is redrawn in place while the demo runs.

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::time::Duration;

use telering::Telemetry;
use telering::core::names::{RX_BYTES, RX_REQUESTS, TX_BYTES, TX_REQUESTS};
use telering::core::snapshot::{Flow, Snapshot};

use crate::args::DemoArguments;
use crate::terminal::{Paint, bytes_text, counted, grouped};

pub(super) struct Table {
    paint: Paint,
    /// Lines that stand on the screen already.
    drawn: usize,
}

impl Table {
    pub(super) fn begin(arguments: &DemoArguments) -> io::Result<Table> {
        let mut out = io::stdout().lock();
        let pace = match arguments.rate {
            0 => "flat out".to_owned(),
            rate => format!("{} transfers/s per thread", grouped(rate)),
        };
        writeln!(
            out,
            "Moving data for {} s: {}, {} each, up to {} at a time,\n{pace}. Ctrl-C ends it early.\n",
            arguments.seconds,
            counted(arguments.agents.into(), "agent"),
            counted(arguments.threads.into(), "thread"),
            bytes_text(arguments.size)
        )?;
        Ok(Table { paint: Paint::for_stdout(), drawn: 0 })
    }

    pub(super) fn draw(&mut self, agents: &[Telemetry], elapsed: Duration, length: Duration) -> io::Result<()> {
        let seconds = elapsed.as_secs_f64();
        let mut lines = vec![self.paint.bold(&header())];
        let mut sum = (Snapshot::default(), Flow::default());
        for agent in agents {
            let (snapshot, flow) = (agent.snapshot(), agent.counts());
            lines.push(row(agent.name(), &snapshot, &flow, seconds));
            add(&mut sum, &snapshot, &flow);
        }
        if agents.len() > 1 {
            lines.push(self.paint.bold(&row("all", &sum.0, &sum.1, seconds)));
        }
        let part = (seconds / length.as_secs_f64()).min(1.0);
        let full = (part * 40.0) as usize;
        lines.push(format!("[{}{}] {seconds:.1} s", "#".repeat(full), "-".repeat(40 - full)));
        self.put(&lines)
    }

    /// Draws over what was drawn before. Long lines are cut by the terminal, or counting them would go wrong.
    fn put(&mut self, lines: &[String]) -> io::Result<()> {
        let mut screen = String::from("\x1b[?7l");
        if self.drawn > 0 {
            // Writing into a String does not fail.
            let _ = write!(screen, "\r\x1b[{}A", self.drawn);
        }
        for line in lines {
            screen.push_str("\x1b[2K");
            screen.push_str(line);
            screen.push('\n');
        }
        screen.push_str("\x1b[?7h");
        self.drawn = lines.len();
        let mut out = io::stdout().lock();
        out.write_all(screen.as_bytes())?;
        out.flush()
    }

    /// Takes the table away: the final one follows.
    pub(super) fn end(self) -> io::Result<()> {
        let mut out = io::stdout().lock();
        if self.drawn > 0 {
            // Back to the first column: the terminal may have shown a ^C.
            write!(out, "\r\x1b[{}A\x1b[J", self.drawn)?;
        }
        out.flush()
    }
}

/// Head of [`row`]'s columns.
pub(super) fn header() -> String {
    format!(
        "{:10}{:>11}{:>11}{:>11}{:>11}{:>8}{:>13}{:>8}",
        "AGENT", "WRITES/S", "READS/S", "WRITTEN", "READ", "ERRORS", "EXPORTED", "LOST"
    )
}

/// One agent in 83 columns.
pub(super) fn row(name: &str, snapshot: &Snapshot, flow: &Flow, seconds: f64) -> String {
    let sum = |id| snapshot.entry(id).map_or(0, |total| total.sum);
    let rate = |id| if seconds > 0.0 { (sum(id) as f64 / seconds) as u64 } else { 0 };
    format!(
        "{name:10}{:>11}{:>11}{:>11}{:>11}{:>8}{:>13}{:>8}",
        grouped(rate(TX_REQUESTS)),
        grouped(rate(RX_REQUESTS)),
        bytes_text(sum(TX_BYTES)),
        bytes_text(sum(RX_BYTES)),
        grouped(snapshot.error_count()),
        grouped(flow.exported),
        grouped(flow.lost.total())
    )
}

pub(super) fn add(sum: &mut (Snapshot, Flow), snapshot: &Snapshot, flow: &Flow) {
    for (total, entry) in sum.0.entries.iter_mut().zip(&snapshot.entries) {
        total.sum += entry.sum;
        total.count += entry.count;
    }
    for (total, count) in sum.0.errors.iter_mut().zip(&snapshot.errors) {
        *total += count;
    }
    sum.1.recorded += flow.recorded;
    sum.1.exported += flow.exported;
    // Only the total is shown.
    sum.1.lost.staging += flow.lost.total();
}

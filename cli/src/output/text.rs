//! The block per event that NIXL's own readers print, byte for byte.

use std::fmt::Write as _;
use std::io;

use telering::reader::Event;

use super::transfers::FinishedTransfer;
use super::{Notice, Output};
use crate::source::Label;
use crate::terminal::{counted, escape};
use crate::time::{TimeWriter, since_boot_text};

pub(super) struct Text {
    times: TimeWriter,
    several: bool,
    transfers: bool,
    line: String,
}

impl Text {
    pub(super) fn new(times: TimeWriter, several: bool, transfers: bool) -> Text {
        Text { times, several, transfers, line: String::new() }
    }

    fn put_time(&mut self, us: u64, label: &Label) {
        if label.since_boot {
            self.line.push_str(&since_boot_text(us));
        } else {
            self.times.write(us, &mut self.line);
        }
    }
}

impl Output for Text {
    fn begin(&mut self, to: &mut dyn io::Write) -> io::Result<()> {
        if self.transfers {
            writeln!(
                to,
                "{:26} {:26} {:5} {:>12} {:>9} {:>9} AGENT",
                "START", "END", "OP", "BYTES", "POST_US", "XFER_US"
            )?;
        }
        Ok(())
    }

    fn event(&mut self, to: &mut dyn io::Write, event: &Event, label: &Label) -> io::Result<()> {
        self.line.clear();
        self.line.push_str("=== NIXL Telemetry Event ===\n");
        match (event.timestamp_us, event.observed_us) {
            (Some(us), _) => {
                self.line.push_str("Timestamp: ");
                self.put_time(us, label);
            }
            (None, Some(us)) => {
                self.line.push_str("Observed: ");
                self.times.write(us, &mut self.line);
            }
            (None, None) => self.line.push_str("Timestamp: unknown"),
        }
        match event.known_category() {
            Some(category) => {
                // Writing into a String does not fail, here and below.
                let _ = write!(self.line, "\nCategory: {category}");
            }
            None => self.line.push_str("\nCategory: UNKNOWN"),
        }
        let _ = write!(self.line, "\nEvent: {}\nValue: {}\n", escape(event.name.as_str()), event.value);
        if self.several {
            let _ = writeln!(self.line, "Agent: {label}");
        }
        self.line.push_str("===========================\n");
        to.write_all(self.line.as_bytes())
    }

    fn notice(&mut self, to: &mut dyn io::Write, notice: Notice, label: &Label) -> io::Result<()> {
        self.line.clear();
        let _ = match notice {
            Notice::Lost(count) => {
                write!(self.line, "--- {} lost: overwritten before they were read", counted(count, "event"))
            }
            Notice::Unverified(count) => write!(
                self.line,
                "--- {} left out: failing their check (torn by a copy, or damaged)",
                counted(count, "record")
            ),
            Notice::Interrupted(count) => {
                write!(self.line, "--- {} lost: the agent was interrupted", counted(count, "event"))
            }
            Notice::Reset { .. } => write!(self.line, "--- the file started over: a new run of the agent"),
        };
        if self.several {
            let _ = write!(self.line, " ({label})");
        }
        self.line.push_str(" ---\n");
        to.write_all(self.line.as_bytes())
    }

    fn transfer(&mut self, to: &mut dyn io::Write, transfer: &FinishedTransfer, label: &Label) -> io::Result<()> {
        self.line.clear();
        self.put_time(transfer.start_us(), label);
        self.line.push(' ');
        self.put_time(transfer.end_us, label);
        let _ = writeln!(
            self.line,
            " {:5} {:>12} {:>9} {:>9} {}",
            transfer.operation,
            transfer.bytes,
            transfer.post_us,
            transfer.xfer_us,
            escape(&label.agent)
        );
        to.write_all(self.line.as_bytes())
    }
}

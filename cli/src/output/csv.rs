//! Comma-separated values, RFC 4180, with a header row.
//!
//! Fields are written as they are, so that they read back exactly: nothing is put before a leading `=`.

use std::io;

use csv::{QuoteStyle, Terminator, WriterBuilder};
use telering::reader::Event;

use super::transfers::FinishedTransfer;
use super::{Notice, Output};
use crate::source::Label;
use crate::terminal::escape;

const EVENTS: [&str; 9] =
    ["kind", "seq", "instance", "timestamp_us", "observed_us", "category", "event", "value", "agent"];
const TRANSFERS: [&str; 8] = ["kind", "start_us", "end_us", "op", "bytes", "post_us", "xfer_us", "agent"];

pub(super) struct Csv {
    transfers: bool,
    terminal: bool,
}

impl Csv {
    pub(super) fn new(transfers: bool, terminal: bool) -> Csv {
        Csv { transfers, terminal }
    }

    fn row<const N: usize>(&self, to: &mut dyn io::Write, fields: [&str; N]) -> io::Result<()> {
        let mut writer = WriterBuilder::new()
            .terminator(Terminator::CRLF)
            .quote_style(QuoteStyle::Necessary)
            .buffer_capacity(512)
            .from_writer(to);
        let written = if self.terminal {
            writer.write_record(fields.map(|field| escape(field).into_owned()))
        } else {
            writer.write_record(fields)
        };
        written.map_err(io::Error::from)?;
        writer.flush()
    }
}

fn number(value: Option<u64>) -> String {
    value.map(|value| value.to_string()).unwrap_or_default()
}

fn hex(instance: Option<u64>) -> String {
    instance.map(|instance| format!("{instance:016x}")).unwrap_or_default()
}

impl Output for Csv {
    fn begin(&mut self, to: &mut dyn io::Write) -> io::Result<()> {
        if self.transfers { self.row(to, TRANSFERS) } else { self.row(to, EVENTS) }
    }

    fn event(&mut self, to: &mut dyn io::Write, event: &Event, label: &Label) -> io::Result<()> {
        let category = event.known_category().map(|category| category.to_string()).unwrap_or_default();
        self.row(
            to,
            [
                "event",
                &event.seq.to_string(),
                &hex((event.instance != 0).then_some(event.instance)),
                &number(event.timestamp_us),
                &number(event.observed_us),
                &category,
                event.name.as_str(),
                &event.value.to_string(),
                &label.agent,
            ],
        )
    }

    fn notice(&mut self, to: &mut dyn io::Write, notice: Notice, label: &Label) -> io::Result<()> {
        let (kind, count, instance) = match notice {
            Notice::Lost(count) => ("lost", Some(count), None),
            Notice::Unverified(count) => ("unverified", Some(count), None),
            Notice::Interrupted(count) => ("interrupted", Some(count), None),
            Notice::Reset { instance } => ("reset", None, instance),
        };
        let (count, agent) = (number(count), &label.agent);
        if self.transfers {
            self.row(to, [kind, "", "", "", &count, "", "", agent])
        } else {
            self.row(to, [kind, "", &hex(instance), "", "", "", "", &count, agent])
        }
    }

    fn transfer(&mut self, to: &mut dyn io::Write, transfer: &FinishedTransfer, label: &Label) -> io::Result<()> {
        self.row(
            to,
            [
                "transfer",
                &transfer.start_us().to_string(),
                &transfer.end_us.to_string(),
                transfer.operation,
                &transfer.bytes.to_string(),
                &transfer.post_us.to_string(),
                &transfer.xfer_us.to_string(),
                &label.agent,
            ],
        )
    }
}

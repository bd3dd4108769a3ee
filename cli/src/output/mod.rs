//! One file per format. Each prints what readers return; what is no event has its line too.

mod csv;
mod jsonl;
mod text;
pub(crate) mod transfers;

use std::io;

use telering::reader::Event;

use crate::args::Format;
use crate::source::Label;
use crate::time::TimeWriter;
use transfers::FinishedTransfer;

/// What stands in a stream between the events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    /// So many events were overwritten before they were read.
    Lost(u64),
    /// So many records failed their check.
    Unverified(u64),
    /// So many places of a producer that was interrupted.
    Interrupted(u64),
    /// The file started over.
    Reset { instance: Option<u64> },
}

/// Prints one format.
pub(crate) trait Output {
    /// What comes before everything else.
    fn begin(&mut self, to: &mut dyn io::Write) -> io::Result<()>;
    fn event(&mut self, to: &mut dyn io::Write, event: &Event, label: &Label) -> io::Result<()>;
    fn notice(&mut self, to: &mut dyn io::Write, notice: Notice, label: &Label) -> io::Result<()>;
    fn transfer(&mut self, to: &mut dyn io::Write, transfer: &FinishedTransfer, label: &Label) -> io::Result<()>;
}

/// How a user wants it.
pub(crate) struct Style {
    pub(crate) format: Format,
    /// Lines are transfers, not events.
    pub(crate) transfers: bool,
    /// More than one source: each line says where it comes from.
    pub(crate) several: bool,
    pub(crate) utc: bool,
    /// 64-bit numbers of JSON as strings.
    pub(crate) strings: bool,
    /// It goes to a terminal, which control characters must not reach.
    pub(crate) terminal: bool,
}

impl Style {
    pub(crate) fn output(self) -> Box<dyn Output> {
        match self.format {
            Format::Text => Box::new(text::Text::new(TimeWriter::new(self.utc), self.several, self.transfers)),
            Format::Jsonl => Box::new(jsonl::Jsonl::new(self.several, self.strings)),
            Format::Csv => Box::new(csv::Csv::new(self.transfers, self.terminal)),
        }
    }
}

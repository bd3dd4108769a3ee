//! What `telering read` prints of what it reads.

use std::io::{self, BufWriter};

use telering::reader::Item;

use crate::filter::Filter;
use crate::output::{Notice, Output};
use crate::source::FileStream;

/// Prints what the filter takes, up to the limit.
pub(super) struct Printer {
    pub(super) to: BufWriter<io::Stdout>,
    pub(super) output: Box<dyn Output>,
    pub(super) filter: Filter,
    pub(super) transfers: bool,
    pub(super) left: u64,
}

impl Printer {
    pub(super) fn item(&mut self, item: Item, stream: &mut FileStream) -> io::Result<()> {
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

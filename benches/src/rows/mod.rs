//! The benchmarks, one file for each part of an event's way.

mod agent;
mod flush;
mod mutex;
mod off;
mod peers;
mod reader;
mod ring;

use std::rc::Rc;

pub(crate) use agent::{held_without_clock, record_transfer};
pub use flush::directory;

use crate::harness::Row;
use crate::machine::Partner;

/// A pair of rows whose quotient says something by itself.
#[derive(Clone, Copy, Debug)]
pub struct Quotient {
    /// Its name.
    pub name: &'static str,
    /// What it says.
    pub what: &'static str,
    /// The row above the line.
    pub above: &'static str,
    /// The row below it.
    pub below: &'static str,
}

/// All quotients.
pub const QUOTIENTS: [Quotient; 6] = [
    Quotient {
        name: "mutex/ours",
        what: "the mutex design over ours, one thread, no clocks",
        above: "mutex-transfer",
        below: "entry",
    },
    Quotient {
        name: "mutex/ours, event",
        what: "the same, one built-in event",
        above: "mutex-event",
        below: "event-no-clock",
    },
    Quotient {
        name: "mutex/ours, 2 threads",
        what: "the mutex design over ours, two threads flat out, no clocks",
        above: "mutex-transfer-2",
        below: "entry-2",
    },
    Quotient {
        name: "2 threads/1",
        what: "our two threads over one, per transfer, no clocks",
        above: "entry-2",
        below: "entry",
    },
    Quotient {
        name: "2 threads/1, clocks",
        what: "the same with all clock reads",
        above: "transfer-2",
        below: "transfer",
    },
    Quotient {
        name: "file/pread",
        what: "reading a file in blocks, over the system call that copies its records",
        above: "read-block",
        below: "pread",
    },
];

/// The names of all rows.
///
/// # Errors
/// As for [`all`].
pub fn names() -> Result<Vec<&'static str>, Box<dyn std::error::Error>> {
    let partner = Rc::new(Partner::start()?);
    Ok(all(&partner, true)?.iter().map(|row| row.name).collect())
}

/// All rows that this machine can measure.
///
/// # Errors
/// What went wrong with the files or the agents of the benchmarks.
pub fn all(partner: &Rc<Partner>, two_threads: bool) -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let mut rows = Vec::new();
    rows.extend(ring::rows());
    rows.extend(agent::rows());
    rows.extend(off::rows());
    rows.extend(mutex::rows());
    rows.extend(flush::rows()?);
    rows.extend(reader::rows()?);
    rows.extend(peers::rows()?);
    if two_threads {
        rows.extend(agent::rows_of_two(partner));
        rows.extend(mutex::rows_of_two(partner));
        rows.extend(peers::rows_of_two(partner)?);
    }
    Ok(rows)
}

//! The list of the bars.

use Side::{AtLeast, AtMost};
use Source::{Counted, FarTail, Faults, Quotient, ReadFile, ReadOwn, Row, Tail, Tax};

/// Which side of the bar is the good one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// Small is good.
    AtMost,
    /// Large is good.
    AtLeast,
}

/// Where the value comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Source {
    /// The ratio of a row.
    Row(&'static str),
    /// A quotient of two rows, by its name.
    Quotient(&'static str),
    /// Reading a file, judged only where the kernel's copy leaves room for it.
    ReadFile,
    /// What our reader adds to that copy and to the check.
    ReadOwn,
    /// Two threads at a real rate: 99.9 of 100.
    Tail,
    /// The same, 99.99 of 100.
    FarTail,
    /// Transfers counted, of those made.
    Counted,
    /// Page faults of a recording thread.
    Faults,
    /// Beside real NIXL.
    Tax,
}

/// One bar.
#[derive(Clone, Copy, Debug)]
pub struct Bar {
    /// Short and stable: what `--bars` takes.
    pub name: &'static str,
    /// What is measured.
    pub what: &'static str,
    /// What follows the number.
    pub unit: &'static str,
    /// Which side is good.
    pub side: Side,
    /// Needed.
    pub must: f64,
    /// Near the limit.
    pub excellent: f64,
    pub(super) source: Source,
}

pub(super) const fn bar(name: &'static str, side: Side, must: f64, excellent: f64, source: Source) -> Bar {
    Bar { name, what: "", unit: "x", side, must, excellent, source }
}

impl Bar {
    const fn of(mut self, what: &'static str) -> Bar {
        self.what = what;
        self
    }

    const fn in_unit(mut self, unit: &'static str) -> Bar {
        self.unit = unit;
        self
    }

    pub(super) fn reaches(&self, value: f64, limit: f64) -> bool {
        match self.side {
            Side::AtMost => value <= limit,
            Side::AtLeast => value >= limit,
        }
    }

    /// A limit as it is written in tables.
    #[must_use]
    pub fn limit(&self, limit: f64) -> String {
        let side = if self.side == Side::AtMost { "<=" } else { ">=" };
        format!("{side} {limit}{}{}", if self.unit == "x" || self.unit == "%" { " " } else { "" }, self.unit)
            .trim_end()
            .to_string()
    }
}

/// All bars.
pub const BARS: [Bar; 16] = [
    bar("push", AtMost, 3.0, 1.6, Row("push")).of("push one 64-byte record, one thread / raw64"),
    bar("entry", AtMost, 7.0, 5.3, Row("entry")).of("transfer entry, no clock: record, totals, histograms / raw64"),
    bar("transfer", AtMost, 1.35, 1.20, Row("transfer")).of("whole transfer with its clock reads / 3 bare clock reads"),
    bar("mutex", AtLeast, 2.3, 3.0, Quotient("mutex/ours")).of("mutex and vector / ours, one thread, no clocks"),
    bar("mutex-2", AtLeast, 15.0, 30.0, Quotient("mutex/ours, 2 threads"))
        .of("mutex and vector / ours, two threads flat out"),
    bar("threads", AtMost, 1.6, 1.3, Quotient("2 threads/1")).of("two threads / one thread, per transfer"),
    bar("off", AtMost, 1.5, 0.8, Row("off")).of("telemetry off, begin, posted and finish out of line / raw64"),
    bar("tail", AtLeast, 8.0, 20.0, Tail)
        .of("two threads, a transfer per 1.4 us each: p99.9 of mutex and vector / ours"),
    bar("far-tail", AtLeast, 1.0, 1.0, FarTail).of("the same, p99.99"),
    bar("flush", AtMost, 6.0, 4.5, Row("flush")).of("flush, per event: drain, convert, write into the file / raw64"),
    bar("counted", AtLeast, 100.0, 100.0, Counted).of("transfers counted, flat out, default settings").in_unit("%"),
    bar("read", AtMost, 6.0, 4.0, ReadFile).of("bulk reading of a file in memory, check verified, per event / memcpy"),
    bar("read-memory", AtMost, 6.0, 4.0, Row("read-memory"))
        .of("bulk reading of an image that is at hand, check verified, per event / memcpy"),
    bar("read-own", AtMost, 1.3, 1.15, ReadOwn)
        .of("bulk reading of that file / the system call that copies its records, and their check"),
    bar("faults", AtMost, 0.0, 0.0, Faults).of("page faults of recording threads, steady state").in_unit(""),
    bar("tax", AtMost, 0.6, 0.45, Tax).of("time added to a transfer of real NIXL 1.5.1: ours / its own"),
];

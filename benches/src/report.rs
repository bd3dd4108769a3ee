//! What a run found, as a table and as JSON.

use std::fmt;

use serde_json::{Value, json};

use crate::harness::{Effort, Measured, Pair, median, quantile};
use crate::rows::{QUOTIENTS, Quotient};

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Line {
    /// The row's name.
    pub name: &'static str,
    /// What one operation is.
    pub what: &'static str,
    /// What the ratio is to.
    pub reference: &'static str,
    /// Median of the paired ratios.
    pub ratio: f64,
    /// A tenth of the ratios are below.
    pub low: f64,
    /// A tenth of them are above.
    pub high: f64,
    /// Median of the absolute times. Of this machine, at this hour.
    pub ns: f64,
}

/// Everything that a run found.
#[derive(Debug)]
pub struct Report {
    /// Rows, in the order in which they are listed.
    pub lines: Vec<Line>,
    /// Quotients of two rows, measured in the same rounds.
    pub quotients: Vec<(Quotient, f64)>,
    /// How much was measured.
    pub effort: Effort,
    /// Whether this thread could be kept on one processor.
    pub pinned: bool,
    /// Processors that could be used.
    pub processors: usize,
}

impl Report {
    /// The report of what was measured.
    #[must_use]
    pub fn new(measured: &[Measured], effort: Effort, pinned: bool, processors: usize) -> Report {
        let lines = measured.iter().map(|row| {
            let ratios = || row.pairs.iter().map(Pair::ratio);
            Line {
                name: row.name,
                what: row.what,
                reference: row.reference.name(),
                ratio: median(ratios()),
                low: quantile(ratios(), 0.1),
                high: quantile(ratios(), 0.9),
                ns: median(row.pairs.iter().map(|pair| pair.ns)),
            }
        });
        let find = |name: &str| measured.iter().find(|row| row.name == name);
        let quotients = QUOTIENTS.into_iter().filter_map(|quotient| {
            let (above, below) = (find(quotient.above)?, find(quotient.below)?);
            // Within one round the machine is the same; more so when each slice is taken by its own reference.
            let same = above.reference == below.reference;
            let value = |pair: &Pair| if same { pair.ratio() } else { pair.ns };
            let quotients = above.pairs.iter().zip(&below.pairs).map(|(above, below)| value(above) / value(below));
            Some((quotient, median(quotients)))
        });
        Report { lines: lines.collect(), quotients: quotients.collect(), effort, pinned, processors }
    }

    /// The report for programs.
    #[must_use]
    pub fn to_json(&self) -> Value {
        let rows = self.lines.iter().map(|line| {
            json!({
                "name": line.name, "what": line.what, "reference": line.reference, "ratio": line.ratio,
                "ratio_p10": line.low, "ratio_p90": line.high, "ns": line.ns,
            })
        });
        let quotients = self.quotients.iter().map(|(quotient, value)| {
            json!({
                "name": quotient.name, "what": quotient.what, "above": quotient.above, "below": quotient.below,
                "value": value,
            })
        });
        json!({
            "rounds": self.effort.rounds, "slice_us": self.effort.slice.as_micros() as u64, "pinned": self.pinned,
            "processors": self.processors, "architecture": std::env::consts::ARCH,
            "rows": rows.collect::<Vec<_>>(), "quotients": quotients.collect::<Vec<_>>(),
        })
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<18} {:>8} {:>15}   x reference", "what", "ratio", "p10..p90")?;
        for line in &self.lines {
            let spread = format!("{:.2}..{:.2}", line.low, line.high);
            let times = format!("x {}", line.reference);
            writeln!(
                f,
                "{:<18} {:>8.2} {spread:>15}   {times:<15} {:>8.1} ns   {}",
                line.name, line.ratio, line.ns, line.what
            )?;
        }
        if !self.quotients.is_empty() {
            writeln!(f)?;
        }
        for (quotient, value) in &self.quotients {
            writeln!(f, "{:<24} {value:>8.2}   {}", quotient.name, quotient.what)?;
        }
        writeln!(
            f,
            "\nmedian of {} rounds, slices of {} us; {}; {} processors. Nanoseconds are this machine's, at this hour.",
            self.effort.rounds,
            self.effort.slice.as_micros(),
            if self.pinned { "kept on processor 0" } else { "NOT kept on one processor" },
            self.processors
        )
    }
}

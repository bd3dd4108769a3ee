//! The bars: what must hold, and what would be excellent, each a ratio measured in one run.

mod counted;
mod faults;
pub mod plot;
pub mod table;
mod tail;
mod tax;

use std::fmt;
use std::time::Duration;

use crate::harness::{Effort, Measured};
use crate::report::{Line, Report};

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
enum Source {
    /// The ratio of a row.
    Row(&'static str),
    /// A quotient of two rows, by its name.
    Quotient(&'static str),
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
    source: Source,
}

const fn bar(name: &'static str, side: Side, must: f64, excellent: f64, source: Source) -> Bar {
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

    fn reaches(&self, value: f64, limit: f64) -> bool {
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

use Side::{AtLeast, AtMost};
use Source::{Counted, FarTail, Faults, Quotient, Row, Tail, Tax};

/// All bars.
pub const BARS: [Bar; 14] = [
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
    bar("read", AtMost, 6.0, 4.0, Row("read")).of("bulk reading of a file, check verified, per event / memcpy"),
    bar("faults", AtMost, 0.0, 0.0, Faults).of("page faults of recording threads, steady state").in_unit(""),
    bar("tax", AtMost, 0.6, 0.45, Tax).of("time added to a transfer of real NIXL 1.5.1: ours / its own"),
];

/// How a bar came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As near to the limit as was hoped for.
    Excellent,
    /// Good enough.
    Good,
    /// Not good enough.
    Missed,
    /// This machine can't measure it.
    NotMeasured,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Excellent => "excellent",
            Verdict::Good => "good",
            Verdict::Missed => "MISSED",
            Verdict::NotMeasured => "NOT MEASURED",
        })
    }
}

/// A value, and what else there is to say about it.
#[derive(Clone, Debug)]
struct Value {
    value: f64,
    note: String,
}

/// A bar and what was measured.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The bar.
    pub bar: Bar,
    /// Not a number where it was not measured.
    pub value: f64,
    /// The spread, or why there is no value.
    pub note: String,
    /// How it came out.
    pub verdict: Verdict,
}

impl Outcome {
    fn new(bar: Bar, measured: Result<Value, String>) -> Outcome {
        let (value, note) = match measured {
            Ok(Value { value, note }) => (value, note),
            Err(why) => (f64::NAN, why),
        };
        let verdict = if value.is_nan() {
            Verdict::NotMeasured
        } else if bar.reaches(value, bar.excellent) {
            Verdict::Excellent
        } else if bar.reaches(value, bar.must) {
            Verdict::Good
        } else {
            Verdict::Missed
        };
        Outcome { bar, value, note, verdict }
    }

    /// The value as it is printed.
    #[must_use]
    pub fn shown(&self) -> String {
        match self.bar.unit {
            _ if self.value.is_nan() => "-".into(),
            // Never rounded up to a hundred.
            "%" => format!("{}", (self.value * 1e4).floor() / 1e4),
            "" => format!("{}", self.value),
            _ => format!("{:.2}", self.value),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Outcome { bar, note, verdict, .. } = self;
        let (must, excellent) = (bar.limit(bar.must), bar.limit(bar.excellent));
        write!(f, "{:<9} {:>8}   must {must:<9} excellent {excellent:<9} {verdict:<12} ", bar.name, self.shown())?;
        write!(f, "{}{}{note}", bar.what, if note.is_empty() { "" } else { "; " })
    }
}

/// Everything that a run of the bars found.
#[derive(Debug)]
pub struct Outcomes {
    /// One for each bar that was asked for.
    pub outcomes: Vec<Outcome>,
    /// The rows that were measured for them.
    pub report: Report,
}

impl Outcomes {
    /// Whether every bar that was asked for is reached.
    #[must_use]
    pub fn all_reached(&self) -> bool {
        self.outcomes.iter().all(|outcome| matches!(outcome.verdict, Verdict::Excellent | Verdict::Good))
    }
}

/// The bars of these names; all if there are none.
///
/// # Errors
/// A name that no bar has.
pub fn chosen(names: &[String]) -> Result<Vec<Bar>, String> {
    if names.is_empty() {
        return Ok(BARS.to_vec());
    }
    let find = |name: &String| {
        BARS.into_iter().find(|bar| bar.name == name).ok_or_else(|| {
            let all: Vec<&str> = BARS.iter().map(|bar| bar.name).collect();
            format!("there is no bar {name:?}; there are: {}", all.join(", "))
        })
    };
    names.iter().map(find).collect()
}

/// Measures `bars`, and all other rows as well if `everything` is to be written. Progress goes to the error output.
///
/// # Errors
/// What went wrong before anything was measured.
pub fn run(bars: &[Bar], everything: bool, effort: Effort) -> Result<Outcomes, Box<dyn std::error::Error>> {
    let wants = |name: &str| {
        bars.iter().any(|bar| match bar.source {
            Row(row) => row == name,
            Quotient(quotient) => {
                let quotient = crate::rows::QUOTIENTS.iter().find(|one| one.name == quotient);
                quotient.is_some_and(|one| one.above == name || one.below == name)
            }
            _ => false,
        })
    };
    if let Some(load) = crate::machine::load() {
        let processors = crate::machine::processors();
        eprintln!("bars: load {load} on {processors} processors; judge by a run on an idle machine");
    }
    progress("rows");
    let measured = crate::measure(&|name| everything || wants(name), effort)?;
    let rows = Rows { measured: &measured, report: crate::report(&measured, effort) };
    // The two belong to one measurement.
    let mut tails = None;
    let mut outcomes = Vec::new();
    for bar in bars {
        let value = match bar.source {
            Row(name) => rows.ratio(name),
            Quotient(name) => rows.quotient(name),
            Tail | FarTail => {
                let both = tails.get_or_insert_with(|| {
                    progress("tail: two threads, 5 runs of each design");
                    tail::measure(effort)
                });
                match both {
                    Ok(tails) if bar.source == Tail => Ok(tails.near.clone()),
                    Ok(tails) => Ok(tails.far.clone()),
                    Err(why) => Err(why.clone()),
                }
            }
            Counted => {
                progress("counted: all threads, flat out");
                counted::measure(span(effort, 2000))
            }
            Faults => {
                progress("faults");
                faults::measure(span(effort, 1000))
            }
            Tax => {
                progress("tax: real NIXL, about two minutes");
                tax::measure(effort)
            }
        };
        outcomes.push(Outcome::new(*bar, value));
    }
    Ok(Outcomes { outcomes, report: rows.report })
}

fn progress(what: &str) {
    eprintln!("bars: measuring {what}");
}

/// Whether little is asked for: only to see that everything runs.
fn quick(effort: Effort) -> bool {
    effort.rounds < 10
}

fn span(effort: Effort, ms: u64) -> Duration {
    Duration::from_millis(if quick(effort) { 20 } else { ms })
}

struct Rows<'a> {
    measured: &'a [Measured],
    report: Report,
}

impl Rows<'_> {
    fn ratio(&self, name: &str) -> Result<Value, String> {
        let found: Option<&Line> = self.report.lines.iter().find(|line| line.name == name);
        let line = found.ok_or_else(|| format!("no row {name}"))?;
        Ok(Value { value: line.ratio, note: format!("p10..p90 {:.2}..{:.2}", line.low, line.high) })
    }

    fn quotient(&self, name: &str) -> Result<Value, String> {
        let found = self.report.quotients.iter().find(|(quotient, ..)| quotient.name == name);
        let (quotient, value) = found.ok_or("it takes two processors")?;
        let find = |name: &str| self.measured.iter().find(|row| row.name == name).map(|row| row.pairs.len());
        let rounds = find(quotient.above).unwrap_or_default();
        Ok(Value { value: *value, note: format!("median of {rounds} rounds") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_judged_on_the_right_side_of_its_bar() {
        let verdict = |bar: Bar, value| Outcome::new(bar, Ok(Value { value, note: String::new() })).verdict;
        let small = bar("small", AtMost, 3.0, 1.6, Tail);
        assert_eq!(verdict(small, 1.6), Verdict::Excellent);
        assert_eq!(verdict(small, 1.61), Verdict::Good);
        assert_eq!(verdict(small, 3.01), Verdict::Missed);
        let large = bar("large", AtLeast, 8.0, 20.0, Tail);
        assert_eq!(verdict(large, 20.0), Verdict::Excellent);
        assert_eq!(verdict(large, 19.9), Verdict::Good);
        assert_eq!(verdict(large, 7.9), Verdict::Missed);
    }

    #[test]
    fn a_bar_that_could_not_be_measured_is_not_reached() {
        let outcome = Outcome::new(BARS[0], Err("no such machine".into()));
        assert_eq!(outcome.verdict, Verdict::NotMeasured);
        assert!(outcome.to_string().contains("no such machine"), "{outcome}");
    }

    #[test]
    fn a_share_below_a_hundred_never_prints_as_a_hundred() {
        let nearly = Value { value: 99.999_999, note: String::new() };
        let outcome = Outcome::new(chosen(&["counted".into()]).unwrap()[0], Ok(nearly));
        assert_eq!((outcome.shown().as_str(), outcome.verdict), ("99.9999", Verdict::Missed));
    }

    #[test]
    fn an_unknown_bar_names_those_there_are() {
        let error = chosen(&["fast".into()]).unwrap_err();
        assert!(error.contains("\"fast\"") && error.contains("far-tail"), "{error}");
    }
}

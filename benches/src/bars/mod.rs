//! The bars: what must hold, and what would be excellent, each a ratio measured in one run.

mod counted;
mod faults;
mod list;
pub mod plot;
pub mod table;
mod tail;
mod tax;

use std::fmt;
use std::time::Duration;

use list::Source::{Counted, FarTail, Faults, Quotient, ReadFile, ReadOwn, Row, Tail, Tax};
pub use list::{BARS, Bar, Side};

use crate::harness::{Effort, Measured};
use crate::report::{Line, Report};

/// How a bar came out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// As near to the limit as was hoped for.
    Excellent,
    /// Good enough.
    Good,
    /// Not good enough.
    Missed,
    /// Not good enough, and nothing could be: what was measured beside it in the same run is past the bar by itself.
    OutOfReach,
    /// This machine can't measure it.
    NotMeasured,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Verdict::Excellent => "excellent",
            Verdict::Good => "good",
            Verdict::Missed => "MISSED",
            Verdict::OutOfReach => "OUT OF REACH",
            Verdict::NotMeasured => "NOT MEASURED",
        })
    }
}

/// A value, and what else there is to say about it.
#[derive(Clone, Debug)]
struct Value {
    value: f64,
    /// What this machine takes for the part that is not ours.
    least: Option<f64>,
    note: String,
}

impl Value {
    fn new(value: f64, note: String) -> Value {
        Value { value, least: None, note }
    }
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
        let (value, least, note) = match measured {
            Ok(Value { value, least, note }) => (value, least, note),
            Err(why) => (f64::NAN, None, why),
        };
        let verdict = if value.is_nan() {
            Verdict::NotMeasured
        } else if bar.reaches(value, bar.excellent) {
            Verdict::Excellent
        } else if bar.reaches(value, bar.must) {
            Verdict::Good
        } else if least.is_some_and(|least| !bar.reaches(least, bar.must)) {
            Verdict::OutOfReach
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
        write!(f, "{:<11} {:>8}   must {must:<9} excellent {excellent:<9} {verdict:<12} ", bar.name, self.shown())?;
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
    /// Whether every bar that was asked for is reached, but for those that nothing reaches on this machine.
    #[must_use]
    pub fn all_reached(&self) -> bool {
        let reached = |verdict| matches!(verdict, Verdict::Excellent | Verdict::Good | Verdict::OutOfReach);
        self.outcomes.iter().all(|outcome| reached(outcome.verdict))
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
            ReadFile | ReadOwn => READ_FILE.contains(&name),
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
            ReadFile => rows.read_file(),
            ReadOwn => rows.read_own(),
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
                progress("tax: real NIXL, about four minutes");
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

/// What [`ReadFile`] and [`ReadOwn`] are made of: all of it, the system call, and the same reader without one.
const READ_FILE: [&str; 3] = ["read-block", "pread", "read-memory"];

struct Rows<'a> {
    measured: &'a [Measured],
    report: Report,
}

impl Rows<'_> {
    fn ratio(&self, name: &str) -> Result<Value, String> {
        let found: Option<&Line> = self.report.lines.iter().find(|line| line.name == name);
        let line = found.ok_or_else(|| format!("no row {name}"))?;
        Ok(Value::new(line.ratio, format!("p10..p90 {:.2}..{:.2}", line.low, line.high)))
    }

    /// A file is read by a system call that copies, and then looked at. The first is the kernel's; how long the second
    /// takes, the same bytes in memory tell, less the copy that is in there as well.
    fn read_parts(&self) -> Result<(Value, f64, f64), String> {
        let [whole, call, memory] = READ_FILE.map(|name| self.ratio(name));
        Ok((whole?, call?.value, memory?.value - 1.0))
    }

    fn read_file(&self) -> Result<Value, String> {
        let (whole, call, check) = self.read_parts()?;
        let note = format!("{}; of it the system call alone {call:.2}, the check {check:.2}", whole.note);
        Ok(Value { least: Some(call + check), note, ..whole })
    }

    fn read_own(&self) -> Result<Value, String> {
        let (whole, call, check) = self.read_parts()?;
        let note = format!("{:.2} over {call:.2} + {check:.2}", whole.value);
        Ok(Value::new(whole.value / (call + check), note))
    }

    fn quotient(&self, name: &str) -> Result<Value, String> {
        let found = self.report.quotients.iter().find(|(quotient, ..)| quotient.name == name);
        let (quotient, value) = found.ok_or("it takes two processors")?;
        let find = |name: &str| self.measured.iter().find(|row| row.name == name).map(|row| row.pairs.len());
        let rounds = find(quotient.above).unwrap_or_default();
        Ok(Value::new(*value, format!("median of {rounds} rounds")))
    }
}

#[cfg(test)]
mod tests {
    use super::list::Side::{AtLeast, AtMost};
    use super::list::bar;
    use super::*;

    #[test]
    fn a_value_is_judged_on_the_right_side_of_its_bar() {
        let verdict = |bar: Bar, value| Outcome::new(bar, Ok(Value::new(value, String::new()))).verdict;
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
    fn a_bar_is_out_of_reach_only_where_what_is_not_ours_is_past_it() {
        let bar = bar("small", AtMost, 3.0, 1.6, ReadFile);
        let judged =
            |value, least| Outcome::new(bar, Ok(Value { least: Some(least), ..Value::new(value, String::new()) }));
        let all_reached = |outcome| {
            Outcomes {
                outcomes: vec![outcome],
                report: crate::report(&[], Effort { rounds: 1, slice: Duration::ZERO }),
            }
            .all_reached()
        };
        assert_eq!(judged(3.5, 3.1).verdict, Verdict::OutOfReach);
        assert_eq!(judged(3.5, 2.9).verdict, Verdict::Missed);
        assert_eq!(judged(2.9, 3.1).verdict, Verdict::Good);
        assert!(all_reached(judged(3.5, 3.1)));
        assert!(!all_reached(judged(3.5, 2.9)));
    }

    #[test]
    fn a_bar_that_could_not_be_measured_is_not_reached() {
        let outcome = Outcome::new(BARS[0], Err("no such machine".into()));
        assert_eq!(outcome.verdict, Verdict::NotMeasured);
        assert!(outcome.to_string().contains("no such machine"), "{outcome}");
    }

    #[test]
    fn a_share_below_a_hundred_never_prints_as_a_hundred() {
        let nearly = Value::new(99.999_999, String::new());
        let outcome = Outcome::new(chosen(&["counted".into()]).unwrap()[0], Ok(nearly));
        assert_eq!((outcome.shown().as_str(), outcome.verdict), ("99.9999", Verdict::Missed));
    }

    #[test]
    fn an_unknown_bar_names_those_there_are() {
        let error = chosen(&["fast".into()]).unwrap_err();
        assert!(error.contains("\"fast\"") && error.contains("far-tail"), "{error}");
    }
}

//! The tables of a run, for a document: between two lines that mark where they go.

use std::fmt::Write;
use std::path::Path;

use super::{Outcome, Outcomes, Verdict};
use crate::report::Report;

fn verdict(outcome: &Outcome) -> String {
    match outcome.verdict {
        Verdict::Excellent | Verdict::Good => outcome.verdict.to_string(),
        Verdict::Missed | Verdict::OutOfReach | Verdict::NotMeasured => {
            format!("**{}**", outcome.verdict.to_string().to_lowercase())
        }
    }
}

/// The bars as a short Markdown table: what, how much, and what it must be.
#[must_use]
pub fn summary(outcomes: &[Outcome]) -> String {
    let mut text = String::from("| what | measured | must | excellent | verdict |\n|---|---:|---:|---:|---|\n");
    for outcome in outcomes {
        let bar = &outcome.bar;
        let (shown, verdict) = (outcome.shown(), verdict(outcome));
        let (must, excellent) = (bar.limit(bar.must), bar.limit(bar.excellent));
        let _ = writeln!(text, "| {} | {shown} | {must} | {excellent} | {verdict} |", bar.what);
    }
    text
}

/// The bars as a Markdown table.
#[must_use]
pub fn bars(outcomes: &[Outcome]) -> String {
    let mut text =
        String::from("| bar | measured | must | excellent | verdict | what |\n|---|---:|---:|---:|---|---|\n");
    for outcome in outcomes {
        let Outcome { bar, note, .. } = outcome;
        let verdict = verdict(outcome);
        let (must, excellent) = (bar.limit(bar.must), bar.limit(bar.excellent));
        let note = if note.is_empty() { String::new() } else { format!(" ({note})") };
        let shown = outcome.shown();
        let _ = writeln!(text, "| {} | {shown} | {must} | {excellent} | {verdict} | {}{note} |", bar.name, bar.what);
    }
    text
}

/// All rows of a run as a Markdown table.
#[must_use]
pub fn rows(report: &Report) -> String {
    let mut text = String::from("| row | ratio | p10..p90 | x | ns | one operation |\n|---|---:|---|---|---:|---|\n");
    for line in &report.lines {
        let _ = writeln!(
            text,
            "| {} | {:.2} | {:.2}..{:.2} | {} | {:.1} | {} |",
            line.name, line.ratio, line.low, line.high, line.reference, line.ns, line.what
        );
    }
    text
}

/// `text` with `table` between the marks of `name`; `None` where it has no such marks.
#[must_use]
pub fn between_marks(text: &str, name: &str, table: &str) -> Option<String> {
    let (begin, end) = (format!("<!-- {name}: begin -->\n"), format!("<!-- {name}: end -->"));
    let (before, rest) = text.split_once(&begin)?;
    let (_, after) = rest.split_once(&end)?;
    Some(format!("{before}{begin}{table}{end}{after}"))
}

/// Writes the plot, and the tables into every document below `root` that has marks for them. Says which files.
///
/// # Errors
/// A file that can't be read or written.
pub fn write(outcomes: &Outcomes, root: &Path) -> std::io::Result<Vec<&'static str>> {
    let mut written = vec!["docs/performance.svg"];
    std::fs::write(root.join(written[0]), super::plot::svg(&outcomes.report))?;
    for name in ["docs/performance.md", "README.md"] {
        let path = root.join(name);
        let text = std::fs::read_to_string(&path)?;
        let mut changed = text.clone();
        let tables = [
            ("bars", bars(&outcomes.outcomes)),
            ("summary", summary(&outcomes.outcomes)),
            ("rows", rows(&outcomes.report)),
        ];
        for (mark, table) in tables {
            changed = between_marks(&changed, mark, &table).unwrap_or(changed);
        }
        if changed != text {
            std::fs::write(&path, changed)?;
            written.push(name);
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_goes_between_its_marks_and_nowhere_else() {
        let text = "a\n<!-- bars: begin -->\nold\n<!-- bars: end -->\nb\n";
        let expected = "a\n<!-- bars: begin -->\nnew\n<!-- bars: end -->\nb\n";
        assert_eq!(between_marks(text, "bars", "new\n").as_deref(), Some(expected));
        assert_eq!(between_marks(text, "rows", "new\n"), None);
        assert_eq!(between_marks("<!-- bars: begin -->\nno end", "bars", "new"), None);
    }
}

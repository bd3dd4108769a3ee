//! The picture: what an operation costs, ours and others', on a logarithmic scale. Written by hand: a picture of
//! a dozen bars needs no library.

use std::fmt::Write;

use crate::report::Report;

/// Bars of one heading: label, row, whether it is ours.
struct Group {
    heading: &'static str,
    bars: &'static [(&'static str, &'static str, bool)],
}

const GROUPS: [Group; 3] = [
    Group {
        heading: "One record of 64 bytes into a ring",
        bars: &[
            ("telering: the ring", "push", true),
            ("rtrb (refuses when full)", "peer-rtrb", false),
            ("ringbuf, overwriting", "peer-ringbuf", false),
            ("crossbeam ArrayQueue, overwriting", "peer-crossbeam", false),
        ],
    },
    Group {
        heading: "One transfer, no clock, one thread",
        bars: &[
            ("telering, switched off", "off", true),
            ("telering: record, totals, histograms", "entry", true),
            ("mutex and vector, the same totals", "mutex-transfer", false),
            ("prometheus-client, totals only", "peer-client", false),
            ("metrics, totals only", "peer-metrics", false),
            ("prometheus, totals only", "peer-prometheus", false),
        ],
    },
    Group {
        heading: "One transfer, two threads flat out",
        bars: &[
            ("telering: record, totals, histograms", "entry-2", true),
            ("mutex and vector, the same totals", "mutex-transfer-2", false),
            ("crossbeam ArrayQueue, the record only", "peer-crossbeam-2", false),
            ("prometheus, totals only", "peer-prometheus-2", false),
        ],
    },
];

const WIDTH: f64 = 860.0;
/// Where the bars begin, and how long the longest may be.
const LEFT: f64 = 280.0;
const LENGTH: f64 = 500.0;
const BAR: f64 = 18.0;
const STEP: f64 = 25.0;
const TOP: f64 = 70.0;
/// Decades of the scale begin here.
const LOWEST: f64 = 0.1;

fn decades(report: &Report) -> f64 {
    let largest = GROUPS.iter().flat_map(|group| group.bars).filter_map(|(_, row, _)| ratio(report, row));
    (largest.fold(100.0, f64::max) / LOWEST).log10().ceil()
}

fn ratio(report: &Report, row: &str) -> Option<f64> {
    report.lines.iter().find(|line| line.name == row).map(|line| line.ratio)
}

/// The picture of a run. Rows that were not measured are left out.
#[must_use]
pub fn svg(report: &Report) -> String {
    let decades = decades(report);
    let place = |value: f64| LEFT + (value / LOWEST).log10().max(0.0) / decades * LENGTH;
    let mut body = String::new();
    let mut y = TOP;
    for group in &GROUPS {
        y += 14.0;
        text(&mut body, 16.0, y, "heading", group.heading);
        y += 10.0;
        for &(label, row, ours) in group.bars {
            let Some(value) = ratio(report, row) else { continue };
            let (kind, end, middle) = (if ours { "ours" } else { "other" }, place(value), y + BAR * 0.74);
            let _ = writeln!(
                body,
                r#"<rect class="{kind}" x="{LEFT}" y="{y:.1}" width="{:.1}" height="{BAR}" rx="2"/>"#,
                (end - LEFT).max(1.0)
            );
            text(&mut body, LEFT - 10.0, middle, "label", label);
            text(&mut body, end + 6.0, middle, "value", &shown(value));
            y += STEP;
        }
        y += 12.0;
    }
    let mut scale = String::new();
    for decade in 0..=decades as i32 {
        let value = LOWEST * 10_f64.powi(decade);
        let x = place(value);
        let _ = writeln!(scale, r#"<line class="scale" x1="{x:.1}" y1="{TOP}" x2="{x:.1}" y2="{y:.1}"/>"#);
        text(&mut scale, x, y + 16.0, "tick", &format!("{value}"));
    }
    let height = y + 34.0;
    let mut head = String::new();
    text(&mut head, 16.0, 28.0, "title", "What an operation costs");
    let unit = "times eight plain stores of 64 bits (raw64), measured in the same run; shorter is better, logarithmic";
    text(&mut head, 16.0, 50.0, "unit", unit);
    format!(
        r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height:.0}" width="{WIDTH}" height="{height:.0}" role="img" aria-label="What an operation costs, telering beside others">
<style>
text {{ font-family: Helvetica, Arial, sans-serif; font-size: 13px; fill: #24292f; }}
.title {{ font-size: 19px; font-weight: bold; }}
.unit, .tick {{ font-size: 12px; fill: #57606a; }}
.tick {{ text-anchor: middle; }}
.heading {{ font-weight: bold; }}
.label {{ text-anchor: end; }}
.ours {{ fill: #0a7d55; }}
.other {{ fill: #a9b4c0; }}
.scale {{ stroke: #d8dee4; stroke-width: 1; }}
</style>
<rect width="100%" height="100%" fill="#ffffff"/>
{head}{scale}{body}</svg>
"##
    )
}

fn shown(value: f64) -> String {
    if value < 10.0 { format!("{value:.1}") } else { format!("{value:.0}") }
}

fn text(to: &mut String, x: f64, y: f64, class: &str, text: &str) {
    let _ = writeln!(to, r#"<text class="{class}" x="{x:.1}" y="{y:.1}">{text}</text>"#);
}

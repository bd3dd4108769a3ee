//! The benchmarks run. How fast is not asked here.

use std::time::Duration;

use telering_benches::harness::Effort;

const QUICK: Effort = Effort { rounds: 2, slice: Duration::from_micros(50) };

#[test]
fn every_row_is_measured_and_finite() {
    let report = telering_benches::run(None, QUICK).expect("all rows start");
    assert!(report.lines.len() >= 19, "{} rows", report.lines.len());
    for line in &report.lines {
        for number in [line.ratio, line.low, line.high, line.ns] {
            assert!(number.is_finite() && number > 0.0, "{}: {number}", line.name);
        }
    }
    if report.processors > 1 {
        assert_eq!(report.quotients.len(), telering_benches::rows::QUOTIENTS.len());
    }
    for (quotient, value) in &report.quotients {
        assert!(value.is_finite() && *value > 0.0, "{}: {value}", quotient.name);
    }
    let json = report.to_json();
    assert_eq!(json["rows"].as_array().map(Vec::len), Some(report.lines.len()));
    let text = report.to_string();
    assert!(report.lines.iter().all(|line| text.contains(line.name)), "{text}");
}

#[test]
fn a_filter_that_fits_nothing_names_what_there_is() {
    let error = telering_benches::run(Some("no such row"), QUICK).expect_err("nothing fits");
    assert!(error.to_string().contains("mutex-transfer"), "{error}");
}

#[test]
fn every_bar_is_measured_that_needs_no_network() {
    use telering_benches::bars::{BARS, plot, run, table};
    let bars: Vec<_> = BARS.into_iter().filter(|bar| bar.name != "tax").collect();
    let found = run(&bars, true, QUICK).expect("the bars start");
    assert_eq!(found.outcomes.len(), 15);
    if found.report.processors > 1 {
        for outcome in &found.outcomes {
            assert!(outcome.value.is_finite(), "{outcome}");
        }
    }
    let value =
        |name: &str| found.outcomes.iter().find(|outcome| outcome.bar.name == name).map(|outcome| outcome.value);
    // The two that no machine is too slow for.
    assert_eq!((value("counted"), value("faults")), (Some(100.0), Some(0.0)));
    let (bars, rows) = (table::bars(&found.outcomes), table::rows(&found.report));
    assert_eq!((bars.lines().count(), rows.lines().count()), (17, found.report.lines.len() + 2));
    let summary = table::summary(&found.outcomes);
    assert_eq!(summary.lines().count(), 17);
    assert!(BARS.iter().all(|bar| bar.name == "tax" || summary.contains(bar.what)), "{summary}");
    let picture = plot::svg(&found.report);
    assert!(picture.starts_with("<svg") && picture.ends_with("</svg>\n") && !picture.contains("NaN"), "{picture}");
}

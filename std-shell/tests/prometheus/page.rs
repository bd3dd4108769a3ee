//! A parser of the text format, version 0.0.4, written from the format's document and from nothing of ours. Stricter
//! than Prometheus: each metric's lines stand together under one HELP and one TYPE, no series comes twice, histograms
//! are whole, and numbers are whole.

use std::collections::{BTreeMap, BTreeSet};

pub(crate) type Series = BTreeMap<String, String>;

/// One metric.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Family {
    pub(crate) kind: String,
    pub(crate) help: String,
    /// Name with suffix, labels, value as written.
    pub(crate) lines: Vec<(String, Series, String)>,
}

/// A page.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Page(pub(crate) BTreeMap<String, Family>);

impl Page {
    /// Parses a page, or panics with the line that is wrong.
    pub(crate) fn parse(text: &str) -> Page {
        assert!(text.is_empty() || text.ends_with('\n'), "the last line has no end");
        let mut page = Page::default();
        let mut current = String::new();
        let mut seen = BTreeSet::new();
        for line in text.split_terminator('\n') {
            if let Some(rest) = line.strip_prefix("# HELP ") {
                let (name, help) = rest.split_once(' ').unwrap_or_else(|| panic!("no help: {line}"));
                assert!(is_metric_name(name), "{line}");
                let family = Family { help: help.to_owned(), ..Family::default() };
                assert!(page.0.insert(name.to_owned(), family).is_none(), "a second HELP: {line}");
                current = name.to_owned();
            } else if let Some(rest) = line.strip_prefix("# TYPE ") {
                let (name, kind) = rest.split_once(' ').unwrap_or_else(|| panic!("no type: {line}"));
                assert_eq!(name, current, "a TYPE without its HELP before it: {line}");
                assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
                let family = page.0.get_mut(name).expect("entered above");
                assert!(family.kind.is_empty() && family.lines.is_empty(), "{line}");
                family.kind = kind.to_owned();
            } else {
                let (name, series, value) = sample(line);
                let family = page.0.get_mut(&current).unwrap_or_else(|| panic!("no family: {line}"));
                let suffix = name.strip_prefix(&*current).unwrap_or_else(|| panic!("stands under {current}: {line}"));
                let suffixes: &[&str] = if family.kind == "histogram" { &["_bucket", "_sum", "_count"] } else { &[""] };
                assert!(suffixes.contains(&suffix), "not a series of {current}: {line}");
                assert!(value.parse::<f64>().is_ok(), "no number: {line}");
                assert!(seen.insert((name.clone(), series.clone())), "the same series again: {line}");
                family.lines.push((name, series, value));
            }
        }
        page.0.iter().filter(|(_, family)| family.kind == "histogram").for_each(|(name, family)| whole(name, family));
        page
    }

    /// The value of the one series of this name whose labels hold all of `labels`.
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> Option<&str> {
        let fits = |series: &Series| labels.iter().all(|(key, value)| series.get(*key).is_some_and(|v| v == value));
        let lines = self.0.values().flat_map(|family| &family.lines);
        let found: Vec<_> = lines.filter(|(known, series, _)| known == name && fits(series)).collect();
        assert!(found.len() <= 1, "{name}{labels:?} is not one series: {found:?}");
        found.first().map(|(_, _, value)| value.as_str())
    }

    /// The same as a whole number.
    pub(crate) fn number(&self, name: &str, labels: &[(&str, &str)]) -> u64 {
        let text = self.value(name, labels).unwrap_or_else(|| panic!("there is no {name}{labels:?}"));
        text.parse().unwrap_or_else(|_| panic!("{name}{labels:?} is {text}, no whole number"))
    }

    /// All values of a label.
    pub(crate) fn values_of(&self, label: &str) -> BTreeSet<&str> {
        let lines = self.0.values().flat_map(|family| &family.lines);
        lines.filter_map(|(_, series, _)| series.get(label).map(String::as_str)).collect()
    }

    /// Buckets of one histogram: upper bound as written, cumulative count.
    pub(crate) fn buckets(&self, name: &str, labels: &[(&str, &str)]) -> Vec<(String, u64)> {
        let fits = |series: &Series| labels.iter().all(|(key, value)| series.get(*key).is_some_and(|v| v == value));
        let bucket = format!("{name}_bucket");
        self.0[name]
            .lines
            .iter()
            .filter(|(known, series, _)| *known == bucket && fits(series))
            .map(|(_, series, value)| (series["le"].clone(), value.parse().expect("a count")))
            .collect()
    }
}

fn is_metric_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_' || first == b':')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b':')
}

/// One line: name, labels, value. Neither timestamps nor blanks of choice: nothing of ours writes them.
fn sample(line: &str) -> (String, Series, String) {
    let end = line.find(['{', ' ']).unwrap_or_else(|| panic!("no value: {line}"));
    let name = &line[..end];
    assert!(is_metric_name(name), "{line}");
    let mut series = Series::new();
    let mut rest = &line[end..];
    if let Some(labels) = rest.strip_prefix('{') {
        rest = labels;
        loop {
            let (label, behind) = rest.split_once("=\"").unwrap_or_else(|| panic!("no label: {line}"));
            assert!(is_metric_name(label) && !label.contains(':'), "{label}: {line}");
            let (value, behind) = quoted(behind).unwrap_or_else(|| panic!("no end of a value: {line}"));
            assert!(series.insert(label.to_owned(), value).is_none(), "{label} twice: {line}");
            match behind.strip_prefix(',') {
                Some(more) => rest = more,
                None => {
                    rest = behind.strip_prefix('}').unwrap_or_else(|| panic!("no end of the labels: {line}"));
                    break;
                }
            }
        }
    }
    let value = rest.strip_prefix(' ').unwrap_or_else(|| panic!("no value: {line}"));
    assert!(!value.contains(' '), "{line}");
    (name.to_owned(), series, value.to_owned())
}

/// Text up to the quotes that end it, and what is behind them.
fn quoted(text: &str) -> Option<(String, &str)> {
    let mut value = String::new();
    let mut characters = text.char_indices();
    while let Some((at, character)) = characters.next() {
        match character {
            '"' => return Some((value, &text[at + 1..])),
            '\\' => value.push(match characters.next()?.1 {
                'n' => '\n',
                same @ ('\\' | '"') => same,
                _ => return None,
            }),
            other => value.push(other),
        }
    }
    None
}

/// Each histogram's buckets grow, end at infinity, and say as much as the count does.
fn whole(name: &str, family: &Family) {
    // Suffix, bound, value.
    type Lines<'a> = Vec<(&'a str, Option<f64>, u64)>;
    let mut groups: BTreeMap<Series, Lines<'_>> = BTreeMap::new();
    for (known, series, value) in &family.lines {
        let mut group = series.clone();
        let bound = group.remove("le").map(|le| le.replace("+Inf", "inf").parse().expect("a bound"));
        let value = value.parse().expect("a whole number");
        groups.entry(group).or_default().push((&known[name.len()..], bound, value));
    }
    for (labels, lines) in groups {
        let (mut before, mut bound_before) = (0, f64::NEG_INFINITY);
        let mut count = None;
        for (suffix, bound, value) in &lines {
            match (*suffix, bound) {
                ("_bucket", Some(bound)) => {
                    assert!(*bound > bound_before && *value >= before, "{name}{labels:?}: {lines:?}");
                    (bound_before, before) = (*bound, *value);
                }
                ("_count", None) => assert!(count.replace(*value).is_none()),
                ("_sum", None) => {}
                _ => panic!("{name}{labels:?}: {suffix} {bound:?}"),
            }
        }
        assert_eq!(bound_before, f64::INFINITY, "{name}{labels:?} does not end at infinity");
        assert_eq!(count, Some(before), "{name}{labels:?}: count and last bucket");
    }
}

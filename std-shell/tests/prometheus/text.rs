//! What stands on a page.

use proptest::prelude::*;
use telering::core::names::{self, BUILT_IN};
use telering::core::snapshot::{Flow, Losses, Notices, Total};
use telering::core::{Category, Name};
use telering::prometheus::{Exposition, Family, Kind, Labels, NAMED_FAMILIES_MAX, NAMED_PER_SAMPLE_MAX, Sample};
use telering::reader::{EventName, FileInfo, Reader};

use crate::page::Page;

pub(crate) fn labels(agent: &str) -> Labels {
    Labels::new().with("agent_name", agent).with("hostname", "node-1")
}

fn written(samples: &[Sample]) -> String {
    let mut exposition = Exposition::new();
    samples.iter().for_each(|sample| assert!(exposition.add(sample)));
    let mut text = String::new();
    exposition.write(&mut text).expect("a String takes all");
    text
}

/// What a fresh file of an agent says.
fn info(agent: &telering::Telemetry) -> FileInfo {
    assert!(agent.flush_now(std::time::Duration::from_secs(5)));
    let reader = Reader::open(agent.path().expect("a file")).expect("it opens");
    reader.info().expect("it reads")
}

#[test]
fn a_page_without_samples_is_empty_but_for_the_callers_metrics() {
    assert_eq!(written(&[]), "");
    let mut exposition = Exposition::new();
    let family = Family { name: "telering_processes", kind: Kind::Gauge, help: "Processes." };
    exposition.extra(family, &Labels::new().with("state", "alive"), 3);
    exposition.extra(family, &Labels::new().with("state", "dead"), u64::MAX);
    exposition.extra(Family { name: "telering_scrapes", ..family }, &Labels::new(), 1);
    let mut text = String::new();
    exposition.write(&mut text).unwrap();
    let page = Page::parse(&text);
    assert_eq!(page.number("telering_processes", &[("state", "dead")]), u64::MAX);
    assert_eq!(page.number("telering_scrapes", &[]), 1);
}

#[test]
fn every_family_of_a_silent_agent_is_there_at_zero_once_for_all_agents() {
    let text = written(&[Sample::new(labels("a")), Sample::new(labels("b"))]);
    let page = Page::parse(&text);
    for row in &BUILT_IN {
        let family = &page.0[row.counter];
        assert_eq!(family.kind, "counter");
        assert_eq!(family.lines.len(), if names::error_status(row.id).is_some() { 24 } else { 2 }, "{}", row.name);
        if let Some(gauge) = row.gauge {
            assert_eq!((page.0[gauge].kind.as_str(), page.0[gauge].lines.len()), ("gauge", 2));
        }
        if let Some(histogram) = row.histogram {
            assert_eq!((page.0[histogram].kind.as_str(), page.0[histogram].lines.len()), ("histogram", 2 * 21));
        }
    }
    assert!(page.0.values().flat_map(|family| &family.lines).all(|(_, _, value)| value == "0"));
}

#[test]
fn a_second_sample_with_the_same_labels_is_left_out() {
    let (first, second) = (Sample::new(labels("a")), Sample::new(labels("a")));
    let mut exposition = Exposition::new();
    assert!(exposition.add(&first));
    assert!(!exposition.add(&second));
    let mut text = String::new();
    exposition.write(&mut text).unwrap();
    Page::parse(&text);
}

#[test]
fn numbers_above_two_to_the_53_are_exact_up_to_the_largest() {
    let directory = tempfile::tempdir().unwrap();
    let agent =
        telering::Telemetry::builder("exact").ignore_environment(true).enable(true).dir(directory.path()).build();
    agent.memory_registered((1 << 53) - 1);
    for more in 1..=3_u64 {
        agent.memory_registered(1);
        let sample = Sample::from_file(labels("exact"), &info(&agent));
        let page = Page::parse(&written(&[sample]));
        assert_eq!(page.number("agent_memory_registered_total", &[]), (1 << 53) - 1 + more);
    }
    agent.memory_deregistered(u64::MAX);
    let page = Page::parse(&written(&[Sample::from_file(labels("exact"), &info(&agent))]));
    assert_eq!(page.value("agent_memory_deregistered_total", &[]), Some("18446744073709551615"));
    assert_eq!(page.value("agent_memory_deregistered_last_bytes", &[]), Some("18446744073709551615"));
    // A sum that doesn't fit starts again from 0, which Prometheus takes for a restart: never negative, no panic.
    agent.memory_deregistered(3);
    let page = Page::parse(&written(&[Sample::from_file(labels("exact"), &info(&agent))]));
    assert_eq!(page.number("agent_memory_deregistered_total", &[]), 2);
}

#[test]
fn a_file_gives_the_same_numbers_as_its_agent() {
    let directory = tempfile::tempdir().unwrap();
    let agent =
        telering::Telemetry::builder("file").ignore_environment(true).enable(true).dir(directory.path()).build();
    for bytes in [10, 20, 35] {
        agent.begin_transfer(telering::Operation::Write, bytes, 1).finish();
    }
    agent.error(telering::Status::Canceled);
    agent.event("cache hits", 7);
    agent.event("cache_hits", 9);
    let info = info(&agent);
    let sample = Sample::from_file(labels("file"), &info);
    let page = Page::parse(&written(&[sample]));
    assert_eq!(page.number("agent_tx_bytes_total", &[]), 65);
    assert_eq!(page.number("agent_tx_last_bytes", &[]), 35);
    assert_eq!(page.number("agent_errors_total", &[("status", "canceled")]), 1);
    assert_eq!(page.number("telering_events_recorded_total", &[]), 15);
    assert_eq!(page.number("agent_xfer_time_us_count", &[]), 3);
    let named = |event| page.number("telering_event_cache_hits_total", &[("event", event), ("category", "CUSTOM")]);
    assert_eq!((named("cache hits"), named("cache_hits")), (7, 9));
    let writer = concat!("telering ", env!("CARGO_PKG_VERSION"));
    assert_eq!(page.number("telering_build_info", &[("writer", writer)]), 1);
    let start = page.value("telering_start_time_seconds", &[]).unwrap();
    let created = info.created_us.unwrap();
    assert_eq!(start, format!("{}.{:06}", created / 1_000_000, created % 1_000_000));
}

fn sample_with(change: impl FnOnce(&mut Sample)) -> Sample {
    let mut sample = Sample::new(labels("a"));
    change(&mut sample);
    sample
}

#[test]
fn losses_and_notices_are_told_by_cause_and_only_where_they_are_counted() {
    let sample = sample_with(|sample| {
        let lost = Losses { staging: 1, exporter: 2, interrupted: 3, backend: 4, closing: 5 };
        sample.flow = Some(Flow { recorded: 100, exported: 85, lost });
        sample.notices = Some(Notices { names_changed: 6, dynamic_overflow: 7, refused: 8, file_trouble: 9 });
    });
    let page = Page::parse(&written(&[sample, Sample::new(labels("b"))]));
    for (cause, count) in [("staging", 1), ("exporter", 2), ("interrupted", 3), ("backend", 4), ("closing", 5)] {
        assert_eq!(page.number("telering_events_lost_total", &[("cause", cause)]), count);
    }
    assert_eq!(page.number("telering_notices_total", &[("kind", "refused")]), 8);
    assert_eq!(page.value("telering_events_recorded_total", &[("agent_name", "b")]), None);
}

fn dynamic(name: &str, category: Category, sum: u64) -> telering::reader::DynamicMetric {
    let mut metric = telering::reader::DynamicMetric::new(EventName::of(&Name::new(name).0), category);
    metric.total = Total { sum, count: 1, ..Total::default() };
    metric
}

#[test]
fn named_events_are_bounded_and_what_is_left_out_is_counted() {
    let samples: Vec<Sample> = (0..20)
        .map(|agent| {
            let mut sample = Sample::new(labels(&format!("a{agent}")));
            let more = if agent == 0 { 7 } else { 0 };
            sample.dynamic = (0..NAMED_PER_SAMPLE_MAX + more)
                .map(|event| dynamic(&format!("e{agent}x{event}"), Category::CUSTOM, 1))
                .collect();
            sample
        })
        .collect();
    let page = Page::parse(&written(&samples));
    let families = page.0.keys().filter(|name| name.starts_with("telering_event_")).count();
    assert_eq!(families, NAMED_FAMILIES_MAX);
    let left_out = (20 * NAMED_PER_SAMPLE_MAX + 7 - NAMED_FAMILIES_MAX) as u64;
    assert_eq!(page.number("telering_named_series_left_out", &[]), left_out);
}

#[test]
fn an_event_named_twice_by_a_foreign_file_is_one_series() {
    let sample = sample_with(|sample| {
        sample.dynamic = vec![
            dynamic("x", Category::CUSTOM, 3),
            dynamic("x", Category::CUSTOM, 4),
            dynamic("x", Category::BACKEND, 5),
        ];
    });
    let page = Page::parse(&written(&[sample]));
    assert_eq!(page.number("telering_event_x_total", &[("category", "CUSTOM")]), 7);
    assert_eq!(page.number("telering_named_events_total", &[("category", "CUSTOM")]), 2);
    assert_eq!(page.number("telering_event_x_total", &[("category", "BACKEND")]), 5);
}

#[test]
fn types_that_are_not_known_are_counted_as_such_and_never_as_others() {
    let sample = sample_with(|sample| {
        for id in [21, 255, u32::MAX] {
            sample.metrics.set_entry(id, Total { sum: 1 << 40, count: 2, ..Total::default() });
        }
        sample.metrics.errors = vec![(77, 5), (18, 1)];
    });
    let page = Page::parse(&written(&[sample]));
    assert_eq!(page.number("telering_unknown_events_total", &[]), 11);
    let all = page.0.iter().filter(|(name, _)| *name != "telering_unknown_events_total");
    let counted: Vec<_> = all.flat_map(|(_, family)| &family.lines).filter(|(_, _, value)| value != "0").collect();
    assert_eq!(counted.len(), 1, "{counted:?}");
    assert_eq!(page.number("agent_errors_total", &[("status", "canceled")]), 1);
}

#[test]
fn histograms_of_a_damaged_file_are_still_whole() {
    for (bounds, buckets) in [
        (vec![10, 5, 5, 20], vec![1, 2, 3, 4, 5]),
        (vec![0, 0], vec![1, 2, 3]),
        (vec![10, 20], vec![1]),
        (vec![], vec![1, 2, 3]),
    ] {
        let sample = sample_with(|sample| {
            sample.metrics.bounds = bounds;
            sample.metrics.set_histogram(names::XFER_TIME, 9, buckets);
        });
        Page::parse(&written(&[sample]));
    }
}

proptest! {
    #[test]
    fn any_label_value_comes_back_as_it_was(agent in "\\PC{0,20}|[\\x00-\\x7f\"\\\\\n]{0,20}", hostname: String) {
        let labels = Labels::new().with("agent_name", agent.clone()).with("hostname", hostname.clone());
        let page = Page::parse(&written(&[Sample::new(labels)]));
        prop_assert_eq!(page.number("agent_tx_bytes_total", &[("agent_name", &agent)]), 0);
        prop_assert_eq!(page.values_of("hostname").into_iter().collect::<Vec<_>>(), [hostname]);
    }

    #[test]
    fn any_name_of_an_event_makes_a_page_that_parses(names in prop::collection::vec("\\PC{0,12}|[a-c._-]{1,3}", 0..70), sum: u64) {
        let mut sample = Sample::new(labels("a"));
        sample.dynamic = names.iter().map(|name| dynamic(name, Category::CUSTOM, sum)).collect();
        let page = Page::parse(&written(&[sample]));
        for name in names.iter().take(NAMED_PER_SAMPLE_MAX) {
            let clean = Name::new(name).0;
            let again = names.iter().take(NAMED_PER_SAMPLE_MAX).filter(|other| Name::new(other).0 == clean).count() as u64;
            prop_assert_eq!(page.number("telering_named_events_total", &[("event", clean.as_str())]), again);
        }
    }
}

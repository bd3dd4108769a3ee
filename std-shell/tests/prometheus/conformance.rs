//! What NIXL's own tests of its Prometheus exporter hold, as tests of ours. Upstream runs an exporter by hand; here a
//! whole agent records and a scrape tells.
//!
//! | test upstream | test here |
//! |---|---|
//! | AgentMetricsAppearInScrape | `agent_metrics_appear_in_scrape_and_go_with_their_agent` |
//! | ScrapeEmitsExactlyTheDescriptorSeries | `scrape_emits_exactly_the_descriptor_series_and_ours` |
//! | ExportEventIncrementReflectedInScrape | `export_event_increment_reflected_in_scrape_also_after_a_peer_is_gone` |
//! | ByteCounterSumsWhileLastGaugeTracksFinalOp | `byte_counter_sums_while_last_gauge_tracks_final_op_of_each_direction` |
//! | ErrorCountersUseBoundedStatusLabel | `error_counters_use_bounded_status_label_and_no_series_of_their_own` |
//! | DroppedEventsCounterAccumulates | `dropped_events_counter_accumulates_over_flushes` |
//! | MetricAllowlistDeactivatesMetric | `metric_allowlist_deactivates_metric_which_stays_at_zero` |
//! | CoreUpdateDataOverflowConservation | `core_update_data_overflow_conservation_of_single_events` |
//! | CoreAddXferStatsOverflowConservation | `core_add_xfer_stats_overflow_conservation_by_fours` |
//! | BindCollisionThrowsBindFailed, BindCollisionCreateIsNonFatalWarn | `bind_collision_create_is_non_fatal_warn` in `settings.rs`: nothing of ours throws |
//! | XferTimeHistogramRecordsObservations | `xfer_time_histogram_records_observations_in_cumulative_buckets` |
//! | HistogramBucketsEnvOverride | `histogram_buckets_env_override_reaches_the_scrape` in `settings.rs` |
//! | histogramBucketsTest.ValidListIsParsedInOrder, NonNumericThrows, UnsortedThrows, NonPositiveThrows, AbsentUsesDefaults | `histogram_buckets_test_..` in `settings.rs`; a bad list is a warning and the defaults, nothing throws |
//! | ConcurrentAddXferStatsOverflowConservation | `concurrent_add_xfer_stats_overflow_conservation` |
//! | ConcurrentMixedWorkloadAggregation | `concurrent_mixed_workload_aggregation_is_exact` |
//!
//! One thing differs on purpose: what upstream drops never reaches its counters. Here the totals hold it all the same,
//! so "accepted + dropped = produced" is said by the events, and the totals are what was produced.

use std::collections::BTreeSet;
use std::time::Duration;

use telering::core::names::{self, BUILT_IN};
use telering::{Operation, Status, TransferRecord};

use crate::{address, scrape, served};

fn of(agent: &str) -> [(&str, &str); 1] {
    [("agent_name", agent)]
}

fn transfer(operation: Operation, bytes: u64, us: u64) -> TransferRecord {
    let (post_duration, xfer_duration) = (Duration::ZERO, Duration::from_micros(us));
    TransferRecord { operation, bytes, descriptors: 1, post_duration, xfer_duration }
}

#[test]
fn agent_metrics_appear_in_scrape_and_go_with_their_agent() {
    let first = served("appear-1").build();
    let peer = served("appear-2").build();
    let page = scrape(address(&first));
    for agent in ["appear-1", "appear-2"] {
        for row in &BUILT_IN {
            let label = names::error_status(row.id).map(|status| ("status", status.label()));
            let labels: Vec<_> = of(agent).into_iter().chain(label).collect();
            let expected = u64::from(row.id == names::STARTED);
            assert_eq!(page.number(row.counter, &labels), expected, "{}", row.counter);
        }
    }
    assert!(page.values_of("hostname").iter().all(|name| !name.is_empty()));
    first.memory_registered(1);
    drop(peer);
    let page = scrape(address(&first));
    assert_eq!(page.value("agent_tx_bytes_total", &of("appear-2")), None);
    assert_eq!(page.number("agent_memory_registered_total", &of("appear-1")), 1);
}

#[test]
fn scrape_emits_exactly_the_descriptor_series_and_ours() {
    let agent = served("exactly").build();
    let page = scrape(address(&agent));
    let mut expected: BTreeSet<String> = BTreeSet::new();
    for row in BUILT_IN.iter().filter(|row| row.id < names::FIRST_OWN_ID) {
        expected.insert(row.counter.into());
        expected.extend(row.gauge.map(String::from));
        for suffix in ["_bucket", "_sum", "_count"] {
            expected.extend(row.histogram.map(|name| format!("{name}{suffix}")));
        }
    }
    assert_eq!(expected.len(), 10 + 6 + 2 * 3);
    // Ours: events that NIXL doesn't have.
    let own = BUILT_IN.iter().filter(|row| row.id >= names::FIRST_OWN_ID).map(|row| row.counter.to_owned());
    expected.extend(own);
    let lines = page.0.values().flat_map(|family| &family.lines);
    let mine = lines.filter(|(_, series, _)| series.get("agent_name").is_some_and(|name| name == "exactly"));
    let found: BTreeSet<String> = mine.clone().map(|(name, ..)| name.clone()).collect();
    let foreign: Vec<_> = found.difference(&expected).filter(|name| !name.starts_with("telering_")).collect();
    assert!(foreign.is_empty(), "{foreign:?}");
    assert!(expected.is_subset(&found), "{:?}", expected.difference(&found));
    // Its labels, and no category.
    for (name, series, _) in mine.filter(|(name, ..)| name.starts_with("agent_")) {
        let labels: Vec<_> =
            series.keys().map(String::as_str).filter(|label| !["le", "status"].contains(label)).collect();
        assert_eq!(labels, ["agent_name", "hostname"], "{name}");
    }
}

#[test]
fn export_event_increment_reflected_in_scrape_also_after_a_peer_is_gone() {
    let agent = served("increment").build();
    let peer = served("increment-peer").build();
    for _ in 0..5 {
        agent.record_transfer(&transfer(Operation::Write, 1000, 5));
    }
    assert_eq!(scrape(address(&agent)).number("agent_tx_bytes_total", &of("increment")), 5000);
    drop(peer);
    assert_eq!(scrape(address(&agent)).number("agent_tx_bytes_total", &of("increment")), 5000);
}

#[test]
fn byte_counter_sums_while_last_gauge_tracks_final_op_of_each_direction() {
    let agent = served("sums").build();
    for bytes in [10, 20, 35] {
        agent.record_transfer(&transfer(Operation::Write, bytes, 1));
    }
    for bytes in [7, 3] {
        agent.record_transfer(&transfer(Operation::Read, bytes, 1));
    }
    let page = scrape(address(&agent));
    let number = |name| page.number(name, &of("sums"));
    assert_eq!((number("agent_tx_bytes_total"), number("agent_tx_last_bytes")), (65, 35));
    assert_eq!((number("agent_rx_bytes_total"), number("agent_rx_last_bytes")), (10, 3));
    assert_eq!((number("agent_tx_requests_num_total"), number("agent_rx_requests_num_total")), (3, 2));
}

#[test]
fn error_counters_use_bounded_status_label_and_no_series_of_their_own() {
    let agent = served("errors").build();
    for _ in 0..3 {
        agent.error(Status::Canceled);
    }
    agent.error(Status::Backend);
    let page = scrape(address(&agent));
    let counted = |status| page.number("agent_errors_total", &[("agent_name", "errors"), ("status", status)]);
    assert_eq!((counted("canceled"), counted("backend"), counted("not_found")), (3, 1, 0));
    assert_eq!(page.values_of("status").len(), 12);
    assert!(page.0.keys().all(|name| !name.starts_with("agent_err_")));
}

#[test]
fn dropped_events_counter_accumulates_over_flushes() {
    let (agent, flusher) = served("dropped").staging_records(64).build_by_hand().unwrap();
    let mut flusher = flusher.expect("it exports");
    for (more, dropped) in [(7, 7), (5, 12)] {
        for _ in 0..64 + more {
            agent.memory_registered(1);
        }
        flusher.flush();
        let page = scrape(address(&agent));
        assert_eq!(page.number("agent_telemetry_events_dropped_total", &of("dropped")), dropped);
        let lost = [("agent_name", "dropped"), ("cause", "staging")];
        assert_eq!(page.number("telering_events_lost_total", &lost), dropped);
    }
    flusher.finish();
}

#[test]
fn metric_allowlist_deactivates_metric_which_stays_at_zero() {
    let agent = served("allowlist").metrics("agent_tx_bytes,agent_err_canceled").build();
    agent.record_transfer(&transfer(Operation::Write, 1000, 30));
    agent.memory_registered(5);
    agent.error(Status::Canceled);
    agent.error(Status::Backend);
    let page = scrape(address(&agent));
    assert_eq!(page.number("agent_tx_bytes_total", &of("allowlist")), 1000);
    assert_eq!(page.number("agent_tx_last_bytes", &of("allowlist")), 1000);
    for name in [
        "agent_tx_requests_num_total",
        "agent_memory_registered_total",
        "agent_memory_registered_last_bytes",
        "agent_xfer_time_total",
        "agent_xfer_time",
        "agent_xfer_time_us_count",
        "agent_xfer_time_us_sum",
        "agent_started_total",
    ] {
        assert_eq!(page.number(name, &of("allowlist")), 0, "{name}");
    }
    let errors = |status| page.number("agent_errors_total", &[("agent_name", "allowlist"), ("status", status)]);
    assert_eq!((errors("canceled"), errors("backend")), (1, 0));
}

/// Overruns a ring of 256 records with 100,000 entries of `events` events each.
fn overflow(name: &str, events: u64, record: impl Fn(&telering::Telemetry)) {
    let (agent, flusher) = served(name).staging_records(256).build_by_hand().unwrap();
    let mut flusher = flusher.expect("it exports");
    for _ in 0..100_000 {
        record(&agent);
    }
    flusher.flush();
    let page = scrape(address(&agent));
    let number = |name_of: &str| page.number(name_of, &of(name));
    let (dropped, accepted) =
        (number("agent_telemetry_events_dropped_total"), number("telering_events_exported_total"));
    assert_eq!(accepted + dropped, 100_000 * events);
    assert!(dropped > 0 && dropped.is_multiple_of(events), "{dropped}");
    assert_eq!(number("telering_events_recorded_total"), 100_000 * events);
    flusher.finish();
}

#[test]
fn core_update_data_overflow_conservation_of_single_events() {
    overflow("overflow-1", 1, |agent| agent.memory_registered(1));
}

#[test]
fn core_add_xfer_stats_overflow_conservation_by_fours() {
    overflow("overflow-4", 4, |agent| agent.record_transfer(&transfer(Operation::Write, 1, 1)));
}

#[test]
fn xfer_time_histogram_records_observations_in_cumulative_buckets() {
    let agent = served("histogram").build();
    for us in [5, 30, 200, 700] {
        agent.record_transfer(&transfer(Operation::Write, 1, us));
    }
    let page = scrape(address(&agent));
    assert_eq!(page.number("agent_xfer_time_us_count", &of("histogram")), 4);
    assert_eq!(page.number("agent_xfer_time_us_sum", &of("histogram")), 935);
    let buckets = page.buckets("agent_xfer_time_us", &of("histogram"));
    for (bound, count) in [("10", 1), ("100", 2), ("250", 3), ("1000", 4), ("+Inf", 4)] {
        assert!(buckets.contains(&(bound.into(), count)), "{bound}: {buckets:?}");
    }
}

/// Transfers of eight threads into small rings: nothing is counted twice or never.
#[test]
fn concurrent_add_xfer_stats_overflow_conservation() {
    let (agent, flusher) = served("concurrent").staging_records(256).build_by_hand().unwrap();
    let mut flusher = flusher.expect("it exports");
    std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(|| (0..10_000).for_each(|_| agent.record_transfer(&transfer(Operation::Read, 3, 1))));
        }
    });
    flusher.flush();
    let page = scrape(address(&agent));
    let number = |name| page.number(name, &of("concurrent"));
    let dropped = number("agent_telemetry_events_dropped_total");
    assert_eq!(number("telering_events_exported_total") + dropped, 8 * 10_000 * 4);
    assert!(dropped > 0 && dropped.is_multiple_of(4));
    assert_eq!((number("agent_rx_requests_num_total"), number("agent_rx_bytes_total")), (80_000, 240_000));
    flusher.finish();
}

#[test]
fn concurrent_mixed_workload_aggregation_is_exact() {
    let agent = served("mixed").build();
    std::thread::scope(|scope| {
        for thread in 0..8_u64 {
            let agent = &agent;
            scope.spawn(move || {
                for number in 0..1000_u64 {
                    let operation = if number % 2 == 0 { Operation::Write } else { Operation::Read };
                    agent.record_transfer(&transfer(operation, 100 + thread, 10 + thread));
                    agent.memory_registered(4096);
                    if number % 10 == 0 {
                        agent.error(Status::NotFound);
                    }
                }
            });
        }
    });
    let page = scrape(address(&agent));
    let number = |name| page.number(name, &of("mixed"));
    let bytes = (0..8).map(|thread| (100 + thread) * 500).sum::<u64>();
    assert_eq!((number("agent_tx_bytes_total"), number("agent_rx_bytes_total")), (bytes, bytes));
    assert_eq!((number("agent_tx_requests_num_total"), number("agent_rx_requests_num_total")), (4000, 4000));
    assert_eq!(number("agent_memory_registered_total"), 8 * 1000 * 4096);
    assert_eq!(number("agent_xfer_time_total"), (0..8).map(|thread| (10 + thread) * 1000).sum());
    assert_eq!(number("agent_xfer_time_us_count"), 8000);
    assert!((100..108).contains(&number("agent_tx_last_bytes")) && (10..18).contains(&number("agent_xfer_time")));
    let errors = page.number("agent_errors_total", &[("agent_name", "mixed"), ("status", "not_found")]);
    assert_eq!((errors, number("agent_telemetry_events_dropped_total")), (800, 0));
}

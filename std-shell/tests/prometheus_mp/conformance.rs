//! What NIXL's own tests of its exporter `prometheus_mp` hold, as tests of ours. Upstream's store is our telemetry file.
//!
//! | test upstream | test here |
//! |---|---|
//! | Store.WriteReadRoundTrip | `store_write_read_round_trip_by_a_scrape` |
//! | Store.HeartbeatAdvancesOnlyWhenRefreshed, Exporter.ExportEventRefreshesHeartbeat | `store_heartbeat_advances_only_when_refreshed_by_a_flush` |
//! | Store.CounterAccumulatesGaugeReplaces | `store_counter_accumulates_gauge_replaces` |
//! | Store.EmptyRankIsEmpty, Collector.LocalRankLabelOnlyWhenPresent | `collector_local_rank_label_only_when_present` |
//! | Store.HistogramBucketBoundsAreInclusive, HistogramUntouchedTypesStayEmpty | `store_histogram_bucket_bounds_are_inclusive_and_untouched_types_stay_empty` |
//! | Store.TooManyBucketsRejected | `store_too_many_buckets_rejected_with_a_warning_and_the_defaults`: nothing of ours throws |
//! | Store.DestructorKeepsStoreFileWithFinalValues | `store_close_keeps_store_file_with_final_values` |
//! | Store.LiveWriterHoldsItsStoreAndReleasesItOnDestruction | `store_live_writer_holds_its_store_and_releases_it_on_close` |
//! | Store.StoreNobodyEverWroteReadsAsAbandoned | `store_nobody_holds_reads_as_abandoned` |
//! | Store.UnprobableStoreReadsAsHeld | no test: a file that is gone is gone; without locks the heartbeat decides, and such a file is never removed |
//! | Store.CreationPublishesTheStoreAndLeavesNothingBehind | `store_creation_publishes_the_store_and_leaves_nothing_behind` |
//! | Store.LongAgentNameTruncated | `store_long_agent_name_gets_no_file_rather_than_anothers`: cut names collide, so there is a warning and the process serves itself |
//! | Store.ForeignOwnedStoreIsIgnoredAndNotReapable | `store_foreign_owned_is_ignored_and_not_reaped` |
//! | Store.MissingFile.., TooSmallFile.., ZeroMagic.., BadMagic.. | `store_damaged_files_are_told_apart_and_never_spoil_a_page` |
//! | Store.RunMarkerIsNonZeroAndFixedForThisProcess | `store_instance_is_non_zero_and_differs_for_each_store`: ours marks the file, not the process |
//! | Collector.EmptySnapshotsYieldNoFamilies, CollectOnEmptyDirYieldsNoFamilies | `collector_collect_on_empty_dir_yields_no_families` |
//! | Collector.PerProcessCountersAndGauges, PidLabelDisambiguatesSameAgentName, HistogramsAreNotAggregatedAcrossProcesses | `collector_per_process_series_are_disambiguated_by_the_pid_label_and_not_aggregated` |
//! | Collector.AgentInstanceLabelDisambiguatesSameProcessSameName | `collector_agent_instance_label_disambiguates_same_process_same_name` |
//! | Collector.ErrorFamilyCarriesStatusLabel | `collector_error_family_carries_status_label` |
//! | Collector.HistogramFamilyIsCumulativeAndEndsAtInfinity | `collector_histogram_family_is_cumulative_and_ends_at_infinity` |
//! | Collector.SnapshotLivenessByWriterThenTtl, LiveWriterOutlivesAZeroTtl, DepartedWriterIsPublishedOnceMoreThenReaped | `collector_departed_writer_is_published_once_more_then_reaped_and_live_writer_outlives_a_zero_ttl` |
//! | Collector.CollectReadsLiveStoresAndIgnoresOthers | `collector_collect_reads_live_stores_and_ignores_others` |
//! | Collector.ReapsUnparsableFilesNobodyHoldsAndKeepsHeldOnes | in `store_damaged_files_..`, the other way round: what can't be shown to be ours is never removed |
//! | Exporter.OwnerBindsAndRecordsToStore, DurationEventFeedsCounterGaugeAndHistogram | `exporter_owner_binds_and_records_to_store_duration_event_feeds_counter_gauge_and_histogram` in `owners.rs` |
//! | Exporter.WriterModeWhenPortTaken | `exporter_writer_mode_when_port_taken_warns_once_and_still_records` in `owners.rs` |
//! | Exporter.WriterBehindSiblingOwnerIsQuiet | `exporter_writer_behind_sibling_owner_is_quiet_and_takes_over_when_the_owner_exits` in `owners.rs` |
//! | Exporter.WriterTakesOverWhenTheOwnerExits, TakeoverServesOnTheFirstAttemptAfterTheOwnerGoes | the same, and `another_rank_takes_over_..` in `processes.rs` |
//! | Exporter.ReclaimWhileServingKeepsTheElection | `exporter_reclaim_while_serving_keeps_the_election` in `owners.rs` |
//! | Exporter.RanksConfiguredForAnotherAddressServeItAndWarn | `exporter_ranks_configured_for_another_address_serve_it_and_warn` in `owners.rs` |
//! | Exporter.LeftoverLockFileIsNotASecondOwner | `exporter_leftover_lock_file_is_not_a_second_owner` in `owners.rs` |
//! | Exporter.ForeignOwnedLockFileCannotSilenceTheRun | `exporter_foreign_owned_lock_file_can_not_silence_the_run` in `owners.rs` |
//! | Exporter.LoadsThroughPluginManager | every test of `processes.rs`: the name in the environment; there is no plug-in to load |
//! | Exporter.CreatedTelemetryDirIsPrivate, GroupWritable.., WorldWritableTelemetryDirWarns | `exporter_created_telemetry_dir_is_private_and_writable_ones_warn` in `owners.rs` |
//! | ExporterStandalone.MissingMultiprocDirThrows | `exporter_missing_multiproc_dir_is_a_warning` in `owners.rs` |
//! | Core.MetricAllowlistDeactivatesMetric | `core_metric_allowlist_deactivates_metric` |
//! | Core.DroppedEventsCounterAccumulates, the two OverflowConservation | in `tests/prometheus/conformance.rs`: the same recording side, whatever the exporter |
//! | E2E.AllRankProcessesAggregateBehindOneEndpointAndStaleAreDropped | `e2e_all_rank_processes_aggregate_..` in `processes.rs` |

use telering::Status;
use telering::reader::{FileInfo, Liveness, Reader};

use super::*;
use crate::acceptance::{eventually, is_root, names_in};
use crate::rank::Job;

fn info(agent: &Telemetry) -> FileInfo {
    Reader::open(agent.path().unwrap()).unwrap().info().unwrap()
}

fn page_of(agent: &Telemetry) -> Page {
    scrape(agent.prometheus_address().expect("it serves"))
}

#[test]
fn store_write_read_round_trip_by_a_scrape() {
    let scene = tempfile::tempdir().unwrap();
    let agent = member("agent \"a\"\n", scene.path()).rank("7").build();
    move_bytes(&agent, 4096);
    let page = page_of(&agent);
    let pid = std::process::id().to_string();
    let labels = [("agent_name", "agent \"a\"\n"), ("local_rank", "7"), ("pid", &pid)];
    assert_eq!(page.number(TX, &labels), 4096);
    assert_eq!(page.number("agent_rx_bytes_total", &labels), 0);
    assert!(page.values_of("hostname").iter().all(|name| !name.is_empty()));
    assert_eq!(page.values_of("agent_instance").len(), 1);
}

#[test]
fn store_heartbeat_advances_only_when_refreshed_by_a_flush() {
    let scene = tempfile::tempdir().unwrap();
    let (agent, by_hand) = member("agent", scene.path()).build_by_hand().unwrap();
    let mut by_hand = by_hand.unwrap();
    by_hand.flush();
    let before = info(&agent).heartbeat;
    agent.memory_registered(1);
    std::thread::sleep(Duration::from_millis(2));
    assert_eq!(info(&agent).heartbeat, before);
    by_hand.flush();
    assert!(info(&agent).heartbeat > before);
    by_hand.finish();
}

#[test]
fn store_counter_accumulates_gauge_replaces() {
    let scene = tempfile::tempdir().unwrap();
    let agent = member("agent", scene.path()).build();
    [100, 250, 650].into_iter().for_each(|bytes| move_bytes(&agent, bytes));
    let page = page_of(&agent);
    assert_eq!((page.number(TX, &[]), page.number("agent_tx_last_bytes", &[])), (1000, 650));
}

#[test]
fn collector_local_rank_label_only_when_present() {
    let scene = tempfile::tempdir().unwrap();
    let without = member("without", scene.path()).build();
    let with = member("with", scene.path()).rank("3").build();
    move_bytes(&without, 1);
    let page = page_of(&with);
    let ranked: Vec<_> = page.0[TX].lines.iter().filter(|(_, series, _)| series.contains_key("local_rank")).collect();
    assert!(ranked.len() == 1 && ranked[0].1["agent_name"] == "with" && ranked[0].1["local_rank"] == "3");
}

#[test]
fn store_histogram_bucket_bounds_are_inclusive_and_untouched_types_stay_empty() {
    let scene = tempfile::tempdir().unwrap();
    let agent = member("agent", scene.path()).histogram_bounds([42, 100]).build();
    move_bytes(&agent, 1);
    let page = page_of(&agent);
    // 42 us are in the bucket of 42.
    assert_eq!(page.buckets("agent_xfer_time_us", &[]), [("42".into(), 1), ("100".into(), 1), ("+Inf".into(), 1)]);
    let untouched = member("other", scene.path()).build();
    let page = page_of(&untouched);
    assert!(page.buckets("agent_xfer_time_us", &[("agent_name", "other")]).iter().all(|(_, count)| *count == 0));
}

#[test]
fn store_too_many_buckets_rejected_with_a_warning_and_the_defaults() {
    let scene = tempfile::tempdir().unwrap();
    let heard = Heard::default();
    let bounds: Vec<u64> = (1..=33).collect();
    let agent = member("agent", scene.path()).histogram_bounds(bounds).on_warning(heard.ear()).build();
    assert_eq!(heard.all().len(), 1, "{:?}", heard.all());
    // 18 bounds of the defaults, and one more for infinity.
    assert_eq!(page_of(&agent).buckets("agent_xfer_time_us", &[]).len(), 19);
}

#[test]
fn store_close_keeps_store_file_with_final_values() {
    let scene = tempfile::tempdir().unwrap();
    let agent = member("agent", scene.path()).build();
    let path = agent.path().unwrap();
    move_bytes(&agent, 77);
    agent.close();
    let info = Reader::open(&path).unwrap().info().unwrap();
    assert_eq!(info.metrics.unwrap().entry(telering::core::names::TX_BYTES).unwrap().sum, 77);
}

#[test]
fn store_live_writer_holds_its_store_and_releases_it_on_close() {
    let scene = tempfile::tempdir().unwrap();
    let agent = member("agent", scene.path()).build();
    let path = agent.path().unwrap();
    assert_eq!(info(&agent).liveness, Liveness::Alive);
    agent.close();
    assert_eq!(Reader::open(&path).unwrap().info().unwrap().liveness, Liveness::Closed);
}

#[test]
fn store_nobody_holds_reads_as_abandoned() {
    let scene = tempfile::tempdir().unwrap();
    let agent = member("agent", scene.path()).build();
    let copy = scene.path().join("copy");
    std::fs::copy(agent.path().unwrap(), &copy).unwrap();
    assert_eq!(Reader::open(&copy).unwrap().info().unwrap().liveness, Liveness::Dead);
}

#[test]
fn store_creation_publishes_the_store_and_leaves_nothing_behind() {
    let scene = tempfile::tempdir().unwrap();
    let agent = member("agent", scene.path()).build();
    let hidden = format!(".agent.{}.telering", std::process::id());
    assert_eq!(names_in(scene.path()), [&hidden, ".telering-owner.127.0.0.1:0.lock", "agent"]);
    use std::os::unix::fs::MetadataExt as _;
    for name in names_in(scene.path()) {
        assert_eq!(scene.path().join(&name).metadata().unwrap().mode() & 0o7777, 0o600, "{name}");
    }
    drop(agent);
}

#[test]
fn store_long_agent_name_gets_no_file_rather_than_anothers() {
    let scene = tempfile::tempdir().unwrap();
    let heard = Heard::default();
    let name = "x".repeat(300);
    let agent = member(&name, scene.path()).on_warning(heard.ear()).build();
    assert!(heard.all()[0].contains("too long") || heard.all()[0].contains("takes 300 bytes"), "{:?}", heard.all());
    move_bytes(&agent, 5);
    // Served by this process alone.
    assert_eq!(page_of(&agent).number(TX, &[("agent_name", &name)]), 5);
    assert_eq!(names_in(scene.path()), [""; 0]);
}

#[test]
fn store_foreign_owned_is_ignored_and_not_reaped() {
    if !is_root("store_foreign_owned_is_ignored_and_not_reaped") {
        return;
    }
    let scene = tempfile::tempdir().unwrap();
    let heard = Heard::default();
    let agent = member("agent", scene.path()).stale_ttl(Duration::ZERO).on_warning(heard.ear()).build();
    let foreign = scene.path().join("foreign");
    std::fs::copy(agent.path().unwrap(), &foreign).unwrap();
    std::os::unix::fs::chown(&foreign, Some(1000), None).unwrap();
    for _ in 0..3 {
        assert_eq!(page_of(&agent).0[TX].lines.len(), 1);
        std::thread::sleep(Duration::from_millis(250));
    }
    assert!(foreign.exists());
    assert_eq!(heard.all().len(), 1, "{:?}", heard.all());
    assert!(heard.all()[0].contains("belongs to another user (1000)"), "{:?}", heard.all());
}

#[test]
fn store_damaged_files_are_told_apart_and_never_spoil_a_page() {
    let scene = tempfile::tempdir().unwrap();
    let heard = Heard::default();
    let agent = member("agent", scene.path()).stale_ttl(Duration::ZERO).on_warning(heard.ear()).build();
    let bytes = std::fs::read(agent.path().unwrap()).unwrap();
    let extension = telering::core::layout::image::extension_offset(64).unwrap() as usize;
    let damage = |name: &str, change: &dyn Fn(&mut Vec<u8>)| {
        let mut bytes = bytes.clone();
        change(&mut bytes);
        std::fs::write(scene.path().join(name), bytes).unwrap();
    };
    damage("small", &|bytes| bytes.truncate(30));
    damage("zero-magic", &|bytes| bytes[extension..extension + 8].fill(0));
    damage("bad-magic", &|bytes| bytes[extension] ^= 1);
    damage("bad-length", &|bytes| bytes[extension + 16] ^= 1);
    for _ in 0..3 {
        let page = page_of(&agent);
        assert_eq!(page.0[TX].lines.len(), 1);
        let count = |state: &str| page.number("telering_processes", &[("state", state)]);
        // Without its magic number an image is a ring of NIXL's with the wrong length.
        assert_eq!((count("foreign"), count("unfinished"), count("unreadable")), (1, 1, 2));
        std::thread::sleep(Duration::from_millis(250));
    }
    assert_eq!(
        heard.all().len(),
        2,
        "once for each that is unreadable, the unfinished one is silent: {:?}",
        heard.all()
    );
    assert!(["small", "zero-magic", "bad-magic", "bad-length"].iter().all(|name| scene.path().join(name).exists()));
}

#[test]
fn store_instance_is_non_zero_and_differs_for_each_store() {
    let scene = tempfile::tempdir().unwrap();
    let (one, two) = (member("one", scene.path()).build(), member("two", scene.path()).build());
    let instance = |agent: &Telemetry| info(agent).instance.unwrap();
    assert!(instance(&one) != 0 && instance(&two) != 0 && instance(&one) != instance(&two));
    assert_eq!(instance(&one), instance(&one));
}

#[test]
fn collector_collect_on_empty_dir_yields_no_families() {
    // Without an agent of this process, which would make its file anew.
    let scene = tempfile::tempdir().unwrap();
    let mut text = String::new();
    telering::prometheus::Directory::new(scene.path(), Default::default()).render(&mut text);
    let page = Page::parse(&text);
    assert!(page.0.keys().all(|name| !name.starts_with("agent_")), "{:?}", page.0.keys());
    assert_eq!(page.number("telering_processes", &[("state", "alive")]), 0);
}

#[test]
fn collector_per_process_series_are_disambiguated_by_the_pid_label_and_not_aggregated() {
    let scene = tempfile::tempdir().unwrap();
    let port = free_port();
    let job = Job::new(scene.path(), port);
    // The same name, twice.
    let (mut one, mut two) = (job.start(0), job.start(0));
    one.ready();
    two.ready();
    one.move_bytes(1);
    two.move_bytes(10);
    two.move_bytes(10);
    let page = scrape(local(port));
    for (rank, sum, count) in [(&one, 1, 1), (&two, 20, 2)] {
        let pid = rank.pid();
        let labels = [("pid", pid.as_str()), ("agent_name", "agent-0")];
        assert_eq!(page.number(TX, &labels), sum);
        assert_eq!(page.number("agent_xfer_time_us_count", &labels), count);
    }
    assert_eq!([&page.0[TX].kind, &page.0["agent_tx_last_bytes"].kind], ["counter", "gauge"]);
}

#[test]
fn collector_agent_instance_label_disambiguates_same_process_same_name() {
    let scene = tempfile::tempdir().unwrap();
    let (one, two) = (member("agent", scene.path()).build(), member("agent", scene.path()).build());
    move_bytes(&one, 1);
    move_bytes(&two, 10);
    let page = page_of(&one);
    let mut values: Vec<_> =
        page.0[TX].lines.iter().map(|(_, series, value)| (series["agent_instance"].clone(), value)).collect();
    values.sort_by_key(|(instance, _)| instance.parse::<u64>().unwrap());
    assert_eq!(values.iter().map(|(_, value)| value.as_str()).collect::<Vec<_>>(), ["1", "10"]);
}

#[test]
fn collector_error_family_carries_status_label() {
    let scene = tempfile::tempdir().unwrap();
    let agent = member("agent", scene.path()).build();
    (0..5).for_each(|_| agent.error(Status::Backend));
    assert!(agent.flush_now(Duration::from_secs(60)));
    let page = page_of(&agent);
    for status in Status::ALL {
        let expected = if status == Status::Backend { 5 } else { 0 };
        assert_eq!(page.number("agent_errors_total", &[("status", status.label())]), expected);
    }
}

#[test]
fn collector_histogram_family_is_cumulative_and_ends_at_infinity() {
    let scene = tempfile::tempdir().unwrap();
    let agent = member("agent", scene.path()).histogram_bounds([10, 20, 30]).build();
    for (us, count) in [(10, 1), (20, 2), (30, 3), (31, 4)] {
        for _ in 0..count {
            let xfer_duration = Duration::from_micros(us);
            let post_duration = Duration::ZERO;
            agent.record_transfer(&TransferRecord {
                operation: Operation::Read,
                bytes: 1,
                descriptors: 1,
                post_duration,
                xfer_duration,
            });
        }
    }
    assert!(agent.flush_now(Duration::from_secs(60)));
    let buckets = page_of(&agent).buckets("agent_xfer_time_us", &[]);
    assert_eq!(buckets, [("10".into(), 1), ("20".into(), 3), ("30".into(), 6), ("+Inf".into(), 10)]);
}

#[test]
fn collector_departed_writer_is_published_once_more_then_reaped_and_live_writer_outlives_a_zero_ttl() {
    let scene = tempfile::tempdir().unwrap();
    let owner = member("owner", scene.path()).stale_ttl(Duration::ZERO).build();
    let departing = member("departing", scene.path()).stale_ttl(Duration::ZERO).build();
    move_bytes(&departing, 9);
    let path = departing.path().unwrap();
    departing.close();
    std::thread::sleep(Duration::from_millis(500));
    assert!(path.exists(), "nobody has seen its last numbers");
    assert_eq!(page_of(&owner).number(TX, &[("agent_name", "departing")]), 9);
    assert_eq!(page_of(&owner).values_of("agent_name"), ["owner"].into());
    eventually("its file is removed", Duration::from_secs(20), || !path.exists());
    assert_eq!(page_of(&owner).values_of("agent_name"), ["owner"].into());
}

#[test]
fn collector_collect_reads_live_stores_and_ignores_others() {
    let scene = tempfile::tempdir().unwrap();
    let agent = member("agent", scene.path()).build();
    std::fs::write(scene.path().join("notes.txt"), "a text").unwrap();
    // NIXL's own exporter of this name keeps its stores so.
    std::fs::write(scene.path().join("nixl.1.2.0.mmap"), [b"NIXLMPS1".as_slice(), &[1; 6792]].concat()).unwrap();
    assert_eq!(page_of(&agent).values_of("agent_name"), ["agent"].into());
    assert!(scene.path().join("nixl.1.2.0.mmap").exists());
}

#[test]
fn core_metric_allowlist_deactivates_metric() {
    let scene = tempfile::tempdir().unwrap();
    let agent = member("agent", scene.path()).metrics("agent_rx_*").build();
    move_bytes(&agent, 5);
    assert_eq!(page_of(&agent).number(TX, &[]), 0);
}

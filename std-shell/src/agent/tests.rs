//! What is not wanted costs no reading of the clock; what is wanted is counted although all else is not.

use std::time::Duration;

use telering_core::names;

use crate::clock::{Clock, TestTime};
use crate::{Builder, Operation, Status, Telemetry, TransferRecord};

fn agent(name: &str) -> Builder {
    Telemetry::builder(name).ignore_environment(true).enable(true)
}

/// An agent without a flush thread, and the clock that it alone reads.
fn quiet(builder: Builder) -> (Telemetry, &'static TestTime) {
    let time = TestTime::starting_at(1_700_000_000_000_000);
    let (agent, by_hand) =
        builder.nop().clock(Clock::test(time)).close_patience(Duration::ZERO).build_by_hand().expect("not strict");
    // Nothing is flushed any more; recording goes on as before.
    std::mem::forget(by_hand);
    (agent, time)
}

/// How often `work` reads the clock, once the thread has its slot.
fn readings(agent: &Telemetry, time: &TestTime, work: impl Fn(&Telemetry)) -> u64 {
    work(agent);
    let before = time.readings();
    work(agent);
    time.readings() - before
}

fn whole(operation: Operation) -> impl Fn(&Telemetry) {
    move |agent| {
        let mut transfer = agent.begin_transfer(operation, 10, 1);
        transfer.posted();
        transfer.finish();
    }
}

fn inside_the_post(operation: Operation) -> impl Fn(&Telemetry) {
    move |agent| agent.begin_transfer(operation, 10, 1).finish()
}

fn given(operation: Operation) -> impl Fn(&Telemetry) {
    let record = TransferRecord {
        operation,
        bytes: 10,
        descriptors: 1,
        post_duration: Duration::from_micros(1),
        xfer_duration: Duration::from_micros(2),
    };
    move |agent| agent.record_transfer(&record)
}

fn failing(agent: &Telemetry) {
    let mut transfer = agent.begin_transfer(Operation::Write, 10, 1);
    transfer.posted();
    transfer.fail(Status::NotFound);
    drop(agent.begin_transfer(Operation::Read, 10, 1));
}

/// Everything else that an agent records.
fn all_else(agent: &Telemetry) {
    agent.memory_registered(1);
    agent.memory_deregistered(1);
    agent.metadata_sent(1);
    agent.metadata_received(1);
    agent.connected();
    agent.disconnected();
    agent.error(Status::Backend);
    agent.event("cache_hit", 1);
    agent.backend().add_event("rail_switch", 1);
}

#[test]
fn a_transfer_reads_the_clock_three_times_and_twice_where_it_completes_inside_the_post() {
    let (agent, time) = quiet(agent("all"));
    for operation in [Operation::Write, Operation::Read] {
        assert_eq!(readings(&agent, time, whole(operation)), 3);
        assert_eq!(readings(&agent, time, inside_the_post(operation)), 2);
        assert_eq!(readings(&agent, time, given(operation)), 1);
    }
}

#[test]
fn an_agent_that_is_off_or_has_all_metrics_off_never_reads_the_clock() {
    let off = Telemetry::builder("off").ignore_environment(true).enable(false);
    for builder in [off, agent("masked").metrics("no_such_metric")] {
        let (agent, time) = quiet(builder);
        for operation in [Operation::Write, Operation::Read] {
            assert_eq!(readings(&agent, time, whole(operation)), 0);
            assert_eq!(readings(&agent, time, inside_the_post(operation)), 0);
            assert_eq!(readings(&agent, time, given(operation)), 0);
        }
        assert_eq!(readings(&agent, time, failing), 0);
        assert_eq!(readings(&agent, time, all_else), 0);
    }
}

#[test]
fn a_transfer_whose_own_metrics_are_off_reads_no_clock_whatever_others_read() {
    let (agent, time) = quiet(agent("writes").metrics("agent_tx_*"));
    assert_eq!(readings(&agent, time, whole(Operation::Write)), 3);
    assert_eq!(readings(&agent, time, whole(Operation::Read)), 0);
    assert_eq!(readings(&agent, time, given(Operation::Read)), 0);
    // Nobody counts failures.
    assert_eq!(readings(&agent, time, |agent| agent.error(Status::Backend)), 0);
}

#[test]
fn a_transfer_whose_telemetry_was_asked_for_is_timed_whatever_is_off() {
    let (agent, time) = quiet(agent("asked").metrics("no_such_metric").capture_telemetry(true));
    assert_eq!(readings(&agent, time, whole(Operation::Read)), 3);
    let mut transfer = agent.begin_transfer(Operation::Read, 10, 1);
    transfer.finish();
    assert_eq!(transfer.telemetry().map(|told| told.total_bytes), Some(10));
}

#[test]
fn failures_count_where_they_alone_are_wanted_and_what_goes_well_reads_no_clock() {
    let (agent, time) = quiet(agent("failures").metrics("agent_err_*"));
    assert_eq!(readings(&agent, time, whole(Operation::Write)), 0);
    assert_eq!(readings(&agent, time, inside_the_post(Operation::Read)), 0);
    // One for each of the two failures.
    assert_eq!(readings(&agent, time, failing), 2);
    let errors = agent.snapshot().errors;
    assert_eq!((errors[Status::NotFound.index()], errors[Status::Canceled.index()]), (2, 2));
    assert_eq!(errors.iter().sum::<u64>(), 4);
    assert_eq!(agent.snapshot().entry(names::TX_REQUESTS).map(|total| total.count), Some(0));
}

#[test]
fn a_transfer_that_is_only_watched_begins_and_ends_like_any_other() {
    let (agent, _) = quiet(agent("watched").metrics("NIXL_ERR_NOT_FOUND"));
    let mut transfer = agent.begin_transfer(Operation::Write, 10, 1);
    assert!(transfer.is_running() && !transfer.is_finished());
    transfer.posted();
    assert!(transfer.is_running() && transfer.telemetry().is_none());
    transfer.finish();
    assert!(!transfer.is_running() && transfer.is_finished());
    assert_eq!((transfer.telemetry(), transfer.durations_us()), (None, None));
    transfer.fail(Status::NotFound);
    drop(transfer);

    let mut transfer = agent.begin_transfer(Operation::Write, 10, 1);
    transfer.fail(Status::NotFound);
    transfer.finish();
    assert!(!transfer.is_running() && !transfer.is_finished());
    drop(transfer);
    // Cancelled ones are not wanted.
    drop(agent.begin_transfer(Operation::Write, 10, 1));
    let errors = agent.snapshot().errors;
    assert_eq!((errors[Status::NotFound.index()], errors.iter().sum::<u64>()), (1, 1));
}

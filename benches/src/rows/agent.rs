//! Recording through an agent, as a program does it.
//!
//! These agents have rings of the default size and a flush thread that never comes: it is held up in its exporter.
//! What is measured is the recording thread's cost alone. The rows named `-flushed` have a flush thread at work on
//! another processor.

use std::hint::black_box;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use telering::clock::{Clock, TestTime};
use telering::exporter::{Event, ExportError, Exporter};
use telering::{Operation, Telemetry, TransferRecord};

use crate::harness::{Reference, Row, Slice, timed};
use crate::machine::{Partner, Work};

/// Never comes back from its first batch, so the flush thread takes nothing more.
struct Held;

impl Exporter for Held {
    fn export(&mut self, _: &[Event]) -> Result<(), ExportError> {
        loop {
            std::thread::park();
        }
    }
}

fn builder(name: &str) -> telering::Builder {
    Telemetry::builder(name).ignore_environment(true).enable(true).close_patience(Duration::ZERO)
}

/// An agent whose flush thread is held up.
pub(super) fn held(name: &str) -> Telemetry {
    let agent = builder(name).exporter(Box::new(Held)).build();
    // The agent's own first event holds it.
    std::thread::sleep(Duration::from_millis(2));
    agent
}

/// The same with a clock that costs one load: what is left is everything but the clock.
pub(crate) fn held_without_clock(name: &str) -> Telemetry {
    let clock = Clock::test(TestTime::starting_at(1_700_000_000_000_000));
    let agent = builder(name).clock(clock).exporter(Box::new(Held)).build();
    std::thread::sleep(Duration::from_millis(2));
    agent
}

/// A whole transfer as a program's function makes it.
#[inline(never)]
pub(super) fn transfer(agent: &Telemetry, bytes: u64) {
    let mut transfer = agent.begin_transfer(Operation::Write, bytes, 1);
    transfer.posted();
    transfer.finish();
}

/// One that completes inside the post.
#[inline(never)]
fn transfer_inside_post(agent: &Telemetry, bytes: u64) {
    let mut transfer = agent.begin_transfer(Operation::Write, bytes, 1);
    transfer.finish();
}

/// A transfer whose durations are known already.
#[inline(never)]
pub(crate) fn record_transfer(agent: &Telemetry, bytes: u64) {
    agent.record_transfer(&TransferRecord {
        operation: Operation::Write,
        bytes,
        descriptors: 1,
        post_duration: Duration::from_micros(black_box(1)),
        xfer_duration: Duration::from_micros(black_box(12)),
    });
}

/// A row that calls `one` for each operation.
pub(super) fn row(
    name: &'static str,
    what: &'static str,
    reference: Reference,
    agent: Telemetry,
    one: impl Fn(&Telemetry, u64) + 'static,
) -> Row {
    let body = timed(move |operations| {
        for turn in 0..operations {
            one(&agent, black_box(turn));
        }
    });
    Row { name, what, reference, body }
}

pub(super) fn rows() -> Vec<Row> {
    use Reference::{Raw64, ThreeReads, TwoReads};
    let without_clock = held_without_clock("no clock");
    let agent = held("bench");
    let flushed = builder("flushed").nop().build();
    vec![
        row(
            "entry-steps",
            "a whole transfer without its clock: begin, posted, finish",
            Raw64,
            without_clock.clone(),
            transfer,
        ),
        row(
            "entry",
            "a transfer with its durations given, without a clock: record_transfer",
            Raw64,
            without_clock.clone(),
            record_transfer,
        ),
        row("event-no-clock", "memory_registered without its clock", Raw64, without_clock.clone(), |agent, value| {
            agent.memory_registered(value);
        }),
        row("transfer", "a whole transfer: begin, posted, finish", ThreeReads, agent.clone(), transfer),
        row("transfer-in-post", "one that finishes inside the post", TwoReads, agent.clone(), transfer_inside_post),
        row("transfer-raw", "a whole transfer, against raw64", Raw64, agent.clone(), transfer),
        row(
            "transfer-flushed",
            "a whole transfer, flat out, while the flush thread drains to NOP",
            ThreeReads,
            flushed,
            transfer,
        ),
        row("record-transfer", "record_transfer: one clock read", Raw64, agent.clone(), record_transfer),
        row("event-built-in", "memory_registered: one clock read", Raw64, agent.clone(), |agent, value| {
            agent.memory_registered(value);
        }),
        row("event-custom", "event(\"cache_hit\", n): one clock read", Raw64, agent, |agent, value| {
            agent.event("cache_hit", value);
        }),
    ]
}

fn of_two(
    name: &'static str,
    what: &'static str,
    partner: &Rc<Partner>,
    agent: Telemetry,
    one: fn(&Telemetry, u64),
) -> Row {
    let partner = Rc::clone(partner);
    let work: Work = Arc::new(move |operations| {
        for turn in 0..operations {
            one(&agent, black_box(turn));
        }
    });
    let body = Box::new(move |operations| Slice { operations, elapsed: partner.together(operations, &work) });
    Row { name, what, reference: Reference::Raw64, body }
}

pub(super) fn rows_of_two(partner: &Rc<Partner>) -> Vec<Row> {
    vec![
        of_two(
            "entry-2",
            "two threads, record_transfer without its clock",
            partner,
            held_without_clock("no clock, 2"),
            record_transfer,
        ),
        of_two("transfer-2", "two threads, a whole transfer", partner, held("bench, 2"), transfer),
    ]
}

//! So many operations and nothing else, for a tool that counts instructions.
//!
//! ```text
//! instructions push|transfer|record-transfer|fill|fill-flush COUNT
//! ```
//!
//! Nothing runs beside the calling thread, so that two runs of the same length execute the same instructions. `fill`
//! records COUNT full rings of transfers, `fill-flush` flushes each into a telemetry file as well.

use std::error::Error;
use std::hint::black_box;
use std::time::Duration;

use telering::clock::{Clock, TestTime};
use telering::core::ring::{Producer, Ring};
use telering::core::sync::AtomicU64;
use telering::{ByHand, Operation, Telemetry, TransferRecord};
use telering_benches::reference::Lines;

/// Transfers that fill a ring but for one record.
const FULL: u64 = 4095;

fn push(count: u64) -> Result<(), Box<dyn Error>> {
    let (lines, positions): (_, Box<[AtomicU64; 2]>) = (Lines::new(4096), Box::default());
    let ring = Ring::new(&positions[0], &positions[1], lines.records()).map_err(|error| format!("{error:?}"))?;
    let mut producer = Producer::resume(ring, 0);
    for turn in 0..count {
        let value = black_box(turn);
        producer.push([value, value + 1, value + 2, value + 3, value + 4, value + 5, value + 6, value + 7]);
    }
    Ok(())
}

#[inline(never)]
fn transfer(agent: &Telemetry, bytes: u64) {
    let mut transfer = agent.begin_transfer(Operation::Write, bytes, 1);
    transfer.posted();
    transfer.finish();
}

#[inline(never)]
fn record_transfer(agent: &Telemetry, bytes: u64) {
    agent.record_transfer(&TransferRecord {
        operation: Operation::Write,
        bytes,
        descriptors: 1,
        post_duration: Duration::from_micros(black_box(1)),
        xfer_duration: Duration::from_micros(black_box(12)),
    });
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [operation, count] = arguments.as_slice() else { return Err("give an operation and a count".into()) };
    let count: u64 = count.parse()?;
    let dir = telering_benches::rows::directory()?;
    let builder = Telemetry::builder("instructions").ignore_environment(true).enable(true).strict(true);
    // A clock that stands still: durations, and so the buckets they fall into, are the same in every run.
    let still = Clock::test(TestTime::starting_at(1_700_000_000_000_000));
    let (agent, mut by_hand) =
        builder.clock(still).dir(dir.path()).staging_records(FULL as usize + 1).build_by_hand()?;
    match operation.as_str() {
        "push" => push(count)?,
        "transfer" => (0..count).for_each(|turn| transfer(&agent, black_box(turn))),
        "record-transfer" => (0..count).for_each(|turn| record_transfer(&agent, black_box(turn))),
        "fill" | "fill-flush" => {
            let flush = operation == "fill-flush";
            for _ in 0..count {
                (0..FULL).for_each(|turn| record_transfer(&agent, black_box(turn)));
                if flush {
                    by_hand.as_mut().map(ByHand::flush);
                }
            }
        }
        other => return Err(format!("no operation {other:?}").into()),
    }
    if let Some(by_hand) = by_hand {
        by_hand.finish();
    }
    Ok(())
}

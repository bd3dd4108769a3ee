//! Totals are exact, whatever the rate: all threads record as fast as they can, at default settings.

use std::hint::black_box;
use std::time::{Duration, Instant};

use telering::core::names;
use telering::{Operation, Telemetry};

use super::Value;
use crate::machine;
use crate::rows::directory;

/// Transfers and bytes that a thread made.
fn record(agent: &Telemetry, time: Duration) -> (u64, u64) {
    let (start, mut made, mut bytes) = (Instant::now(), 0, 0);
    while start.elapsed() < time {
        for turn in 0..1000 {
            let size = black_box(turn);
            let mut transfer = agent.begin_transfer(Operation::Write, size, 1);
            transfer.posted();
            transfer.finish();
            made += 1;
            bytes += size;
        }
    }
    (made, bytes)
}

/// The share that was counted, in percent: the smallest of requests, bytes and both histograms.
pub(super) fn measure(time: Duration) -> Result<Value, String> {
    let dir = directory().map_err(|error| format!("no directory: {error}"))?;
    let builder = Telemetry::builder("counted").ignore_environment(true).enable(true).dir(dir.path());
    let agent = builder.try_build().map_err(|error| error.to_string())?;
    let threads = machine::processors();
    let made: Vec<(u64, u64)> = std::thread::scope(|scope| {
        let running: Vec<_> = (0..threads).map(|_| scope.spawn(|| record(&agent, time))).collect();
        running.into_iter().filter_map(|thread| thread.join().ok()).collect()
    });
    let flow = agent.close();
    let (transfers, bytes) = made.iter().fold((0, 0), |sum, one| (sum.0 + one.0, sum.1 + one.1));
    let snapshot = agent.snapshot();
    let sum = |id| snapshot.entry(id).map_or(0, |entry| entry.sum);
    let [xfer_time, post_time] = &snapshot.histograms;
    let shares = [
        share(sum(names::TX_REQUESTS), transfers),
        share(sum(names::TX_BYTES), bytes),
        share(xfer_time.count(), transfers),
        share(post_time.count(), transfers),
    ];
    // More than everything is as wrong as less.
    let worst = shares.into_iter().map(|share| if share > 100.0 { 0.0 } else { share }).fold(100.0, f64::min);
    let rate = transfers as f64 / time.as_secs_f64() / 1e6;
    let exported = flow.exported as f64 * 100.0 / flow.recorded.max(1) as f64;
    let note = format!(
        "{transfers} transfers on {threads} threads, {rate:.0} million a second; history exported {exported:.1} %"
    );
    Ok(Value::new(worst, note))
}

fn share(counted: u64, made: u64) -> f64 {
    if counted == made { 100.0 } else { counted as f64 * 100.0 / made.max(1) as f64 }
}

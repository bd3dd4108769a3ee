//! One process under measurement: threads that record at a steady rate, then flat out, then rest.

use std::error::Error;
use std::fmt;
use std::hint::black_box;
use std::path::Path;
use std::str::FromStr;
use std::sync::Barrier;
use std::thread;
use std::time::{Duration, Instant};

use rustix::time::{ClockId, clock_gettime};
use serde_json::json;
use telering::core::sync::{AtomicU64, Ordering};
use telering::{Operation, Telemetry, TransferRecord};

use crate::proc::{self, Task};

/// What a process does.
#[derive(Clone, Copy)]
pub(crate) struct Load {
    pub(crate) threads: usize,
    /// Transfers a second and thread.
    pub(crate) rate: u64,
    /// Seconds at that rate.
    pub(crate) seconds: f64,
    /// Transfers of each thread as fast as it goes.
    pub(crate) flat_out: u64,
    /// Seconds without any.
    pub(crate) idle: f64,
}

impl fmt::Display for Load {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{},{},{},{},{}", self.threads, self.rate, self.seconds, self.flat_out, self.idle)
    }
}

impl FromStr for Load {
    type Err = Box<dyn Error>;

    fn from_str(text: &str) -> Result<Load, Box<dyn Error>> {
        let parts: Vec<&str> = text.split(',').collect();
        let [threads, rate, seconds, flat_out, idle] = parts.as_slice() else {
            return Err(format!("{text:?} is no load: five numbers are needed").into());
        };
        Ok(Load {
            threads: threads.parse()?,
            rate: rate.parse()?,
            seconds: seconds.parse()?,
            flat_out: flat_out.parse()?,
            idle: idle.parse()?,
        })
    }
}

/// What one thread did.
struct Done {
    transfers: u64,
    bytes: u64,
    /// Processor time of one transfer flat out, over that of eight stores into the next line of a buffer.
    cost: f64,
}

const TRANSFER: TransferRecord = TransferRecord {
    operation: Operation::Write,
    bytes: 4096,
    descriptors: 1,
    post_duration: Duration::from_micros(1),
    xfer_duration: Duration::from_micros(2),
};

fn thread_time() -> u64 {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// Nanoseconds of this thread for one of `count`.
fn time_of(count: u64, mut one: impl FnMut(u64)) -> f64 {
    let start = thread_time();
    (0..count).for_each(&mut one);
    (thread_time() - start) as f64 / count as f64
}

/// One thread: stops at each of the barrier's five lines, where the process looks at its memory and times.
fn record(agent: &std::sync::OnceLock<Telemetry>, load: &Load, line: &Barrier) -> Option<Done> {
    // No zeros: those would get their pages only when they are written.
    let lines: Vec<[AtomicU64; 8]> = (0..4096).map(|_| [const { AtomicU64::new(1) }; 8]).collect();
    line.wait();
    line.wait();
    let agent = agent.get()?;
    agent.record_transfer(&TRANSFER);
    let mut transfers = 1;
    line.wait();
    line.wait();
    let start = Instant::now();
    while start.elapsed().as_secs_f64() < load.seconds {
        let due = 1 + (start.elapsed().as_secs_f64() * load.rate as f64) as u64;
        while transfers < due {
            transfers += 1;
            agent.record_transfer(&TRANSFER);
        }
        thread::sleep(Duration::from_millis(1));
    }
    line.wait();
    line.wait();
    let raw = |number: u64| {
        let record = &lines[number as usize % lines.len()];
        record.iter().for_each(|word| black_box(word).store(number, Ordering::Relaxed));
    };
    let before = time_of(load.flat_out, raw);
    let transfer = time_of(load.flat_out, |_| agent.record_transfer(&TRANSFER));
    let after = time_of(load.flat_out, raw);
    transfers += load.flat_out;
    line.wait();
    line.wait();
    Some(Done { transfers, bytes: transfers * TRANSFER.bytes, cost: 2.0 * transfer / (before + after) })
}

/// Runs the load and prints one line of JSON.
pub(crate) fn run(dir: &Path, name: &str, load: &Load) -> Result<(), Box<dyn Error>> {
    let agent = std::sync::OnceLock::new();
    let line = Barrier::new(load.threads + 1);
    // A thread of the measurement that fails would leave the others at the barrier: the process ends instead.
    let done = thread::scope(|scope| {
        let threads: Vec<_> = (0..load.threads).map(|_| scope.spawn(|| record(&agent, load, &line))).collect();
        let said = watch(dir, name, load, &agent, &line).unwrap_or_else(|error| {
            eprintln!("{error}");
            std::process::exit(1)
        });
        let done: Option<Vec<Done>> = threads.into_iter().map(|thread| thread.join().ok().flatten()).collect();
        done.map(|done| (said, done))
    });
    let (mut said, mut done) = done.ok_or("a thread of the measurement failed")?;
    let agent = agent.get().ok_or("no agent")?;
    let flow = agent.close();
    done.sort_by(|one, other| one.cost.total_cmp(&other.cost));
    said["transfers"] = done.iter().map(|done| done.transfers).sum::<u64>().into();
    said["tx_bytes"] = done.iter().map(|done| done.bytes).sum::<u64>().into();
    said["cost"] = done[done.len() / 2].cost.into();
    said["recorded"] = flow.recorded.into();
    said["exported"] = flow.exported.into();
    said["lost"] = flow.lost.total().into();
    println!("{said}");
    Ok(())
}

/// Looks at the process between the phases of its threads.
fn watch(
    dir: &Path,
    name: &str,
    load: &Load,
    agent: &std::sync::OnceLock<Telemetry>,
    line: &Barrier,
) -> Result<serde_json::Value, Box<dyn Error>> {
    let patience = Duration::from_secs(60);
    line.wait();
    let bare = proc::anonymous()?;
    let builder = Telemetry::builder(name).ignore_environment(true).enable(true).dir(dir).close_patience(patience);
    let agent = agent.get_or_init(|| builder.build());
    let path = agent.path().ok_or("no telemetry file was made; a warning above says why")?;
    // A thread gives itself its name, before its first flush.
    agent.flush_now(patience);
    let flush = Task::named("telering-flush")?;
    let with_agent = proc::anonymous()?;
    line.wait();
    line.wait();
    agent.flush_now(patience);
    let with_slots = proc::anonymous()?;
    let (before, start) = (flush.used()?, Instant::now());
    line.wait();
    line.wait();
    let (steady, seconds) = (flush.used()?.since(before), start.elapsed().as_secs_f64());
    line.wait();
    line.wait();
    agent.flush_now(patience);
    let after_flood = proc::anonymous()?;
    let mapped = proc::resident_of(&path)?;
    // The pause that the flood left is over soon.
    thread::sleep(Duration::from_millis(300));
    let (before, start) = (flush.used()?, Instant::now());
    thread::sleep(Duration::from_secs_f64(load.idle));
    let (idle, idle_seconds) = (flush.used()?.since(before), start.elapsed().as_secs_f64());
    line.wait();
    Ok(json!({
        "threads": load.threads,
        "path": path.display().to_string(),
        "agent_bytes": with_agent.saturating_sub(bare),
        "slots_bytes": with_slots.saturating_sub(with_agent),
        "growth_bytes": after_flood.saturating_sub(with_slots),
        "mapped_bytes": mapped,
        "steady_share": steady.nanoseconds as f64 / 1e9 / seconds,
        "steady_sleeps": steady.sleeps as f64 / seconds,
        "idle_share": idle.nanoseconds as f64 / 1e9 / idle_seconds,
        "idle_sleeps": idle.sleeps as f64 / idle_seconds,
    }))
}

//! One thread at a million transfers a second for three seconds at default settings: what is recorded, exported and
//! lost, and the flush thread's longest gap.
//!
//! ```text
//! cargo run --release -p telering-benches --example million -- RUNS [SPINNERS]
//! ```
//!
//! SPINNERS processes compete for the processors meanwhile.

use std::error::Error;
use std::process::{Child, Command};
use std::time::{Duration, Instant};

use telering::{Operation, Telemetry, TransferRecord};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let first = arguments.next().unwrap_or_else(|| "5".into());
    if first == "spin" {
        let start = Instant::now();
        // Ends by itself, should nobody end it.
        while start.elapsed() < Duration::from_secs(600) {
            std::hint::spin_loop();
        }
        return Ok(());
    }
    let runs: u32 = first.parse()?;
    let spinners: u32 = arguments.next().map_or(Ok(0), |count| count.parse())?;
    let own = std::env::current_exe()?;
    let mut competitors = Vec::new();
    for _ in 0..spinners {
        competitors.push(Command::new(&own).arg("spin").spawn()?);
    }
    let result = (0..runs).try_for_each(|_| run());
    for mut child in competitors {
        end(&mut child);
    }
    result
}

fn end(child: &mut Child) {
    let _ = child.kill();
    let _ = child.wait();
}

fn run() -> Result<(), Box<dyn Error>> {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let agent = Telemetry::builder("million").ignore_environment(true).enable(true).dir(dir.path()).try_build()?;
    let (start, mut transfers) = (Instant::now(), 0_u64);
    loop {
        let elapsed = start.elapsed();
        if elapsed >= Duration::from_secs(3) {
            break;
        }
        // One at a time when due: catching up after a preemption would be another rate.
        if transfers < elapsed.as_micros() as u64 {
            transfers += 1;
            agent.record_transfer(&TransferRecord {
                operation: Operation::Write,
                bytes: transfers,
                descriptors: 1,
                post_duration: Duration::from_micros(1),
                xfer_duration: Duration::from_micros(2),
            });
        }
    }
    let flow = agent.close();
    let gap = agent.longest_flush_gap();
    let counted = agent.snapshot().entry(telering::core::names::TX_REQUESTS).map_or(0, |total| total.sum);
    println!(
        "transfers {transfers} counted {counted} recorded {} exported {} ({:.3} %) lost {} longest gap {:.1} ms",
        flow.recorded,
        flow.exported,
        flow.exported as f64 * 100.0 / flow.recorded.max(1) as f64,
        flow.lost.total(),
        gap.as_secs_f64() * 1e3
    );
    Ok(())
}

//! Records transfers at a steady rate into a telemetry file: a known load for other programs to read.
//!
//! ```text
//! cargo run --release -p telering --example paced -- DIR NAME RATE SECONDS [SPREAD]
//! ```
//!
//! Transfer number i (from 1) moves i bytes, so each value tells its place. One line of JSON at the end
//! says what was recorded. RATE 0 is as fast as it goes. With SPREAD, transfer i takes
//! 2 + i * 2654435761 mod SPREAD microseconds, without it always 2.

use std::error::Error;
use std::time::{Duration, Instant};

use telering::{Operation, Telemetry, TransferRecord};

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (dir, name, rate, seconds, spread) = match arguments.as_slice() {
        [dir, name, rate, seconds] => (dir, name, rate, seconds, 1),
        [dir, name, rate, seconds, spread] => (dir, name, rate, seconds, spread.parse::<u64>()?.max(1)),
        _ => return Err("usage: paced DIR NAME RATE SECONDS [SPREAD]".into()),
    };
    let (rate, seconds): (u64, f64) = (rate.parse()?, seconds.parse()?);
    let agent = Telemetry::builder(name.as_str()).enable(true).dir(dir).try_build()?;
    let path = agent.path().ok_or("no telemetry file was made; a warning above says why")?;
    eprintln!("recording into {}", path.display());
    let (start, length) = (Instant::now(), Duration::from_secs_f64(seconds));
    let mut transfers = 0;
    while start.elapsed() < length {
        let due = if rate == 0 { transfers + 1000 } else { (start.elapsed().as_secs_f64() * rate as f64) as u64 };
        while transfers < due {
            transfers += 1;
            agent.record_transfer(&TransferRecord {
                operation: Operation::Write,
                bytes: transfers,
                descriptors: 1,
                post_duration: Duration::from_micros(1),
                xfer_duration: Duration::from_micros(2 + transfers.wrapping_mul(2_654_435_761) % spread),
            });
        }
        if rate != 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    }
    let flow = agent.close();
    println!(
        "{{\"path\":{:?},\"transfers\":{transfers},\"tx_bytes\":{},\"recorded\":{},\"exported\":{},\"lost\":{}}}",
        path.display().to_string(),
        transfers * (transfers + 1) / 2,
        flow.recorded,
        flow.exported,
        flow.lost.total()
    );
    Ok(())
}

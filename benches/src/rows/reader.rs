//! Reading a telemetry file in bulk, as fast as the reader goes: nobody writes meanwhile.

use std::time::{Duration, Instant};

use telering::Telemetry;
use telering::reader::Reader;

use super::agent::transfer;
use super::flush::directory;
use crate::harness::{Reference, Row, Slice};

/// Events of the file's ring: the default.
const CAPACITY: u64 = 4096;

pub(super) fn rows() -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let dir = directory()?;
    let agent = Telemetry::builder("read").ignore_environment(true).enable(true).dir(dir.path()).buffer_size(CAPACITY);
    let agent = agent.strict(true).try_build()?;
    for bytes in 0..CAPACITY {
        transfer(&agent, bytes);
    }
    let path = agent.path().ok_or("the agent of a benchmark has no file")?;
    // Closed, so that nothing is written any more. The file stays.
    agent.close();
    let mut items = Vec::with_capacity(CAPACITY as usize);
    let body = move |events: u64| {
        let (mut operations, mut elapsed) = (0, Duration::ZERO);
        while operations < events {
            // A fresh reader finds everything new again. Opening is not timed.
            let Ok(mut reader) = Reader::open(&path) else { break };
            let start = Instant::now();
            loop {
                items.clear();
                match reader.read(&mut items) {
                    Ok(0) | Err(_) => break,
                    Ok(_) => operations += items.len() as u64,
                }
            }
            elapsed += start.elapsed();
            if reader.counts().events < CAPACITY {
                break;
            }
        }
        // The directory lives as long as the body.
        let _ = &dir;
        Slice { operations, elapsed }
    };
    Ok(vec![Row {
        name: "read",
        what: "per event: reading a file of 4096 events, the check verified, no writer",
        reference: Reference::Copy56,
        body: Box::new(body),
    }])
}

//! Reads a file in bulk in turns with another reader, so that the two can be compared side by side.
//!
//! ```text
//! cargo run --release -p telering --example bulk -- PATH
//! ```
//!
//! For each line on standard input it reads the whole file again and again for 50 ms, first in blocks, then event by
//! event, the check words verified both times, and prints the nanoseconds that one event took: `BLOCKS EVENTS`.
//! `readers/cpp/bench/compare.py` asks this program and one in C++ by turns.

use std::error::Error;
use std::hint::black_box;
use std::io::{BufRead, Write};
use std::time::{Duration, Instant};

use telering::reader::{Item, ReadError, Reader};

const TURN: Duration = Duration::from_millis(50);

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).ok_or("usage: bulk PATH")?;
    let mut reader = Reader::open(path)?;
    let mut items: Vec<Item> = Vec::new();
    let mut output = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        line?;
        let blocks = turn(&mut reader, |reader| {
            Ok(reader.read_block()?.map_or(0, |block| black_box(block.records()).len() as u64))
        })?;
        let events = turn(&mut reader, |reader| {
            items.clear();
            let count = reader.read(&mut items)? as u64;
            black_box(&items);
            Ok(count)
        })?;
        writeln!(output, "{blocks:.4} {events:.4}")?;
        output.flush()?;
    }
    let counts = reader.counts();
    if counts.unverified + counts.lost > 0 {
        return Err("the file was written meanwhile: that is no comparison".into());
    }
    Ok(())
}

/// Nanoseconds per event over one turn.
fn turn(
    reader: &mut Reader,
    mut read: impl FnMut(&mut Reader) -> Result<u64, ReadError>,
) -> Result<f64, Box<dyn Error>> {
    let (mut events, start) = (0_u64, Instant::now());
    while start.elapsed() < TURN {
        reader.rewind();
        let before = events;
        loop {
            match read(reader)? {
                0 => break,
                more => events += more,
            }
        }
        if events == before {
            return Err("the file has no event".into());
        }
    }
    Ok(start.elapsed().as_secs_f64() * 1e9 / events as f64)
}

//! Page faults of a thread that records: none once its ring has been gone through, wherever the file is.

use std::hint::black_box;
use std::path::Path;
use std::time::{Duration, Instant};

use telering::{Operation, Telemetry};

use super::Value;
use crate::rows::directory;

/// Records of an agent's ring by default, and some more.
const ONE_LAP: u64 = 20_000;

/// Minor and major page faults of the calling thread so far, as the kernel counts them.
fn faults() -> Result<u64, String> {
    let stat =
        std::fs::read_to_string("/proc/thread-self/stat").map_err(|error| format!("no count of faults: {error}"))?;
    // The name, in brackets, may hold anything; behind it the numbers stand at fixed places.
    let behind = stat.rsplit_once(')').map_or("", |(_, numbers)| numbers);
    let field = |place: usize| behind.split_whitespace().nth(place).and_then(|field| field.parse::<u64>().ok());
    field(7).zip(field(9)).map(|(minor, major)| minor + major).ok_or_else(|| "no count of faults".into())
}

fn record(agent: &Telemetry, until: impl Fn(u64) -> bool) {
    let mut made = 0;
    while !until(made) {
        let mut transfer = agent.begin_transfer(Operation::Write, black_box(made), 1);
        transfer.posted();
        transfer.finish();
        made += 1;
    }
}

/// Faults while an agent with its file in `dir` records for so long. A thread of its own, as an application has.
fn in_directory(dir: &Path, time: Duration) -> Result<u64, String> {
    let builder = Telemetry::builder("faults").ignore_environment(true).enable(true).dir(dir);
    let agent = builder.strict(true).try_build().map_err(|error| error.to_string())?;
    let thread = || {
        record(&agent, |made| made == ONE_LAP);
        faults()?;
        let before = faults()?;
        let start = Instant::now();
        record(&agent, |made| made % 16 == 0 && start.elapsed() >= time);
        Ok(faults()? - before)
    };
    let result = std::thread::scope(|scope| scope.spawn(thread).join());
    agent.close();
    result.map_err(|_| "the thread ended with a panic".to_string())?
}

pub(super) fn measure(time: Duration) -> Result<Value, String> {
    let dirs = [directory(), tempfile::tempdir()];
    let mut counts = Vec::new();
    for dir in dirs {
        let dir = dir.map_err(|error| format!("no directory: {error}"))?;
        counts.push(in_directory(dir.path(), time)?);
    }
    let (memory, disk) = (counts[0], counts[1]);
    let note = format!("{memory} with the file in memory, {disk} with it in the folder for temporary files");
    Ok(Value::new(memory.max(disk) as f64, note))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn touching_new_memory_counts_as_faults() {
        faults().unwrap();
        let before = faults().unwrap();
        let pages = 256;
        let mut memory = vec![0_u8; pages * 4096];
        for place in (0..memory.len()).step_by(4096) {
            memory[place] = 1;
        }
        black_box(&memory);
        assert!(faults().unwrap() - before >= 1);
    }
}

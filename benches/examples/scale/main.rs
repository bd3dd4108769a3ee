//! Checks the numbers of `docs/scale.md`: a model made from constants of the code, against real threads and processes.
//!
//! ```text
//! cargo run --release -p telering-benches --example scale [-- --quick]
//! ```
//!
//! Prints a line for each number, model and measured, and ends with 1 if one is off by more than is allowed. Bytes and
//! counts are exact or nearly so; for times much is allowed, since the machine may be busy.

mod checks;
mod model;
mod proc;
mod scrape;
mod worker;

use std::error::Error;
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};

use checks::Checks;
use scrape::Scrape;
use serde_json::Value;
use worker::Load;

fn main() -> Result<ExitCode, Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["worker", dir, name, load] => worker::run(Path::new(dir), name, &load.parse()?).map(|()| ExitCode::SUCCESS),
        [] => measure(&[1, 2, 4, 8, 16, 32, 64]),
        ["--quick"] => measure(&[1, 4]),
        _ => Err("usage: scale [--quick]".into()),
    }
}

/// One process after it ended: what it said about itself, and its telemetry file.
pub(crate) struct Ended {
    pub(crate) said: Value,
    pub(crate) info: telering::reader::FileInfo,
    /// Bytes that the file system gave to the file.
    pub(crate) blocks: u64,
}

/// Runs so many processes at once, each with the same load; then scrapes what they left.
fn run(processes: usize, load: Load) -> Result<(Vec<Ended>, Scrape), Box<dyn Error>> {
    let dir = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir())?;
    let own = std::env::current_exe()?;
    let mut children = Vec::new();
    for process in 0..processes {
        let mut command = Command::new(&own);
        command.arg("worker").arg(dir.path()).args([format!("rank-{process}"), load.to_string()]);
        children.push(command.stdout(Stdio::piped()).spawn()?);
    }
    let mut ended = Vec::new();
    for child in children {
        let output = child.wait_with_output()?;
        if !output.status.success() {
            return Err(format!("a process of the measurement failed: {}", output.status).into());
        }
        let said: Value = serde_json::from_slice(&output.stdout)?;
        let path = Path::new(said["path"].as_str().ok_or("a process named no telemetry file")?).to_owned();
        let info = telering::reader::Reader::open(&path)?.info()?;
        ended.push(Ended { said, info, blocks: proc::blocks(&path)? });
    }
    let scrape = Scrape::of(dir.path());
    Ok((ended, scrape))
}

fn measure(counts: &[usize]) -> Result<ExitCode, Box<dyn Error>> {
    let mut checks = Checks::default();
    let steady = Load { threads: 1, rate: 1_000, seconds: 1.0, flat_out: 100_000, idle: 2.0 };

    eprintln!("one process, 1 to {} threads", counts[counts.len() - 1]);
    let mut by_threads = Vec::new();
    for &threads in counts {
        let (ended, _) = run(1, Load { threads, ..steady })?;
        checks.exact(&format!("threads {threads}"), &ended);
        by_threads.push((threads, ended));
    }
    checks.of_threads(&by_threads);

    eprintln!("1 to {} processes of one thread", counts[counts.len() - 1]);
    let mut by_processes = Vec::new();
    let mut scrapes = Vec::new();
    for &processes in counts {
        let (ended, scrape) = run(processes, steady)?;
        checks.exact(&format!("processes {processes}"), &ended);
        by_processes.push((processes, ended));
        scrapes.push((processes, scrape));
    }
    checks.of_processes(&by_processes);
    checks.of_scrapes(&scrapes);

    eprintln!("a node: {} processes of {} threads", model::RANKS, model::THREADS);
    let (node, scrape) = run(model::RANKS, Load { threads: model::THREADS, ..steady })?;
    checks.exact("a node", &node);
    checks.of_node(&node, scrape);

    eprintln!("one thread at several rates");
    let mut by_rate = Vec::new();
    for rate in [1_000, 10_000, 30_000, 100_000] {
        by_rate.push((rate, run(1, Load { rate, seconds: 3.0, ..steady })?.0));
    }
    checks.of_rates(&by_rate);

    print!("{checks}");
    println!();
    print!("{}", model::cluster(&checks.constants));
    Ok(if checks.all_hold() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

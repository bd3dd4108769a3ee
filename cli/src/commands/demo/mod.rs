//! `telering demo`: agents that really move data, and the proof that what was recorded is what was moved.

mod mover;
mod peer;
mod report;
mod table;

use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context as _, anyhow};
use telering::Telemetry;
use telering::core::snapshot::{Flow, Snapshot};
use telering::reader::{Counts, Reader};

use super::Outcome;
use crate::args::DemoArguments;
use crate::terminal;
use mover::{Account, Order};
use table::Table;

/// Events that each agent's file keeps: some seconds at the default rate.
const RING: u64 = 65_536;
/// How often the live table is drawn.
const DRAW_EVERY: Duration = Duration::from_millis(200);

/// One agent at the end.
struct Ended {
    name: String,
    /// Its telemetry file, if its exporter writes one.
    path: Option<PathBuf>,
    account: Account,
    snapshot: Snapshot,
    flow: Flow,
    /// Events that can be read from its file.
    readable: u64,
    /// Records of its file that fail their check. There must be none.
    unverified: u64,
}

pub(super) fn run(arguments: &DemoArguments) -> anyhow::Result<Outcome> {
    let directory = match &arguments.dir {
        None if !arguments.environment => Some(
            new_directory().context("cannot make a directory under the temporary directory; give one with --dir")?,
        ),
        given => given.clone(),
    };
    let agents = (0..arguments.agents)
        .map(|number| start(arguments, directory.as_deref(), number))
        .collect::<anyhow::Result<Vec<_>>>()?;
    let stop = Arc::new(AtomicBool::new(false));
    super::watch_signals(&stop)?;
    let accounts = move_data(arguments, &agents, &stop)?;
    let held = Instant::now();
    while held.elapsed() < Duration::from_secs_f64(arguments.hold) && !stop.load(Ordering::Relaxed) {
        thread::sleep(DRAW_EVERY.min(Duration::from_secs_f64(arguments.hold)));
    }
    let ended =
        agents.iter().zip(accounts).map(|(agent, account)| end(agent, account)).collect::<anyhow::Result<Vec<_>>>()?;
    if arguments.json {
        report::print_json(&ended)?;
    } else {
        report::print(directory.as_deref(), &ended)?;
    }
    Ok(if report::is_right(&ended) { Outcome::Done } else { Outcome::Wrong })
}

/// Starts one agent.
fn start(arguments: &DemoArguments, directory: Option<&Path>, number: u32) -> anyhow::Result<Telemetry> {
    let mut agent = Telemetry::builder(format!("demo-{number}"))
        .enable(true)
        .capture_telemetry(true)
        .strict(true)
        .on_warning(|warning| terminal::complain(&warning.message));
    if let Some(directory) = directory {
        agent = agent.dir(directory);
    }
    if !arguments.environment {
        agent = agent.ignore_environment(true).buffer_size(RING).rank(number.to_string());
    }
    agent.try_build().with_context(|| format!("agent demo-{number} can't start"))
}

/// Runs all threads and draws the table meanwhile. One account per agent.
fn move_data(arguments: &DemoArguments, agents: &[Telemetry], stop: &AtomicBool) -> anyhow::Result<Vec<Account>> {
    let size = usize::try_from(arguments.size).context("--size is more than this machine can address")?;
    let length = Duration::from_secs_f64(arguments.seconds);
    let (began, threads) = (Instant::now(), u64::from(arguments.threads));
    let done = AtomicBool::new(false);
    thread::scope(|scope| {
        let mut movers = Vec::new();
        for (place, agent) in agents.iter().enumerate() {
            for thread in 0..threads {
                let seed = place as u64 * threads + thread + 1;
                let order = Order { size, rate: arguments.rate, end: began + length, seed };
                let mover = move || {
                    // One thread that fails ends the demo.
                    mover::run(agent, order, stop).inspect_err(|_| stop.store(true, Ordering::Relaxed))
                };
                let handle = thread::Builder::new().name(format!("demo-{place}-{thread}")).spawn_scoped(scope, mover);
                match handle {
                    Ok(handle) => movers.push((place, handle)),
                    Err(error) => {
                        stop.store(true, Ordering::Relaxed);
                        return Err(anyhow!(error).context("cannot start a thread; try fewer --agents or --threads"));
                    }
                }
            }
        }
        let drawer = (terminal::is_terminal() && !arguments.json).then(|| {
            let done = &done;
            scope.spawn(move || draw(arguments, agents, began, length, done))
        });
        let mut accounts = agents.iter().map(|_| Account::new()).collect::<anyhow::Result<Vec<_>>>()?;
        let mut result = Ok(());
        for (place, mover) in movers {
            let account = mover.join().unwrap_or_else(|_| Err(anyhow!("a thread of the demo panicked")));
            result = result.and(account.and_then(|account| accounts[place].add(&account)));
        }
        done.store(true, Ordering::Relaxed);
        if let Some(drawer) = drawer {
            drawer.thread().unpark();
            // A terminal that went away is no reason to fail.
            let _ = drawer.join();
        }
        result.map(|()| accounts)
    })
}

fn draw(
    arguments: &DemoArguments,
    agents: &[Telemetry],
    began: Instant,
    length: Duration,
    done: &AtomicBool,
) -> io::Result<()> {
    let mut table = Table::begin(arguments)?;
    while !done.load(Ordering::Relaxed) {
        table.draw(agents, began.elapsed().min(length), length)?;
        thread::park_timeout(DRAW_EVERY);
    }
    table.end()
}

/// Closes an agent and looks at what it left.
fn end(agent: &Telemetry, account: Account) -> anyhow::Result<Ended> {
    let snapshot = agent.snapshot();
    let path = agent.path();
    let flow = agent.close();
    let mut counts = Counts::default();
    if let Some(path) = &path {
        let mut reader = Reader::open(path)?;
        let mut items = Vec::new();
        while reader.read(&mut items)? > 0 {
            items.clear();
        }
        counts = reader.counts();
    }
    let name = agent.name().to_owned();
    Ok(Ended { name, path, account, snapshot, flow, readable: counts.events, unverified: counts.unverified })
}

/// A new directory that nobody else can have prepared.
fn new_directory() -> io::Result<PathBuf> {
    let base = std::env::temp_dir().join(format!("telering-demo-{}", std::process::id()));
    let mut result = Err(io::Error::from(io::ErrorKind::AlreadyExists));
    for attempt in 0..100 {
        let mut path = base.clone().into_os_string();
        if attempt > 0 {
            path.push(format!("-{attempt}"));
        }
        let path = PathBuf::from(path);
        result = DirBuilder::new().mode(0o755).create(&path).map(|()| path);
        if !matches!(&result, Err(error) if error.kind() == io::ErrorKind::AlreadyExists) {
            break;
        }
    }
    result
}

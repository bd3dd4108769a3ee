//! Threads, agents, clones and backends that come and go leave nothing behind: memory, descriptors and threads
//! stay where they were, and every total is exact.
//!
//! The short forms find what leaks a slot (1 MiB) or a descriptor each time; the long ones what leaks a few bytes for
//! each thread, or two KiB for each agent.

use std::os::unix::fs::FileExt as _;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Barrier, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};
use std::{fs, iter};

use telering::core::layout::parts::identity;
use telering::core::names;
use telering::reader::{Item, Reader};
use telering::{Builder, Mode, Operation, Telemetry, TransferRecord};

const TRANSFER: TransferRecord = TransferRecord {
    operation: Operation::Write,
    bytes: 3,
    descriptors: 1,
    post_duration: Duration::from_micros(1),
    xfer_duration: Duration::from_micros(2),
};

const MIB: u64 = 1 << 20;

/// Memory and descriptors belong to the process, so the tests of this file take turns.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn agent(name: &str) -> Builder {
    Telemetry::builder(name).ignore_environment(true)
}

/// What this process holds.
#[derive(Clone, Copy, Debug)]
struct Footprint {
    resident: u64,
    descriptors: usize,
    threads: usize,
}

impl Footprint {
    fn now() -> Footprint {
        // Counted page by page, unlike /proc/self/statm, whose numbers lag behind by some pages for each processor.
        let rollup = fs::read_to_string("/proc/self/smaps_rollup").expect("Linux");
        let resident = rollup.lines().find_map(|line| line.strip_prefix("Rss:")).expect("a line of resident memory");
        let kib: u64 = resident.trim().trim_end_matches(" kB").parse().expect("a number of kB");
        let entries = |path: &str| fs::read_dir(path).expect("Linux").count();
        Footprint { resident: kib << 10, descriptors: entries("/proc/self/fd"), threads: entries("/proc/self/task") }
    }

    /// Waits until no more than `memory` bytes and nothing else were added since; threads take a moment to end, and
    /// the harness starts the next test's.
    fn assert_flat_since(before: Footprint, memory: u64) {
        let flat = |now: Footprint| {
            now.resident <= before.resident + memory
                && now.descriptors <= before.descriptors
                && now.threads <= before.threads + 2
        };
        let start = Instant::now();
        while !flat(Footprint::now()) && start.elapsed() < Duration::from_secs(10) {
            thread::sleep(Duration::from_millis(10));
        }
        let now = Footprint::now();
        assert!(flat(now), "before {before:?}, now {now:?}: {memory} bytes more are allowed");
    }
}

/// Two at a time; each records one transfer, and both have their slots at the same time.
fn run_threads(agent: &Telemetry, threads: u64) {
    for _ in 0..threads / 2 {
        let both = Arc::new(Barrier::new(2));
        let pair = [(); 2].map(|()| {
            let (agent, both) = (agent.clone(), Arc::clone(&both));
            thread::spawn(move || {
                agent.record_transfer(&TRANSFER);
                both.wait();
            })
        });
        pair.into_iter().for_each(|thread| thread.join().expect("no panic"));
    }
}

fn short_lived_threads(threads: u64) {
    let _turn = turn();
    let directory = tempfile::tempdir().expect("a directory");
    let agent = agent("threads").enable(true).dir(directory.path()).build();
    let first = threads / 10;
    run_threads(&agent, first);
    let before = Footprint::now();
    run_threads(&agent, threads - first);
    // A slot that was not used again would be more than this.
    Footprint::assert_flat_since(before, MIB);
    let flow = agent.close();
    assert_eq!(flow.recorded, 4 * threads);
    assert_eq!(flow.recorded, flow.exported + flow.lost.total());
    let total = agent.snapshot().entry(names::TX_BYTES).copied().unwrap_or_default();
    assert_eq!((total.sum, total.count), (3 * threads, threads));
}

#[test]
fn short_lived_threads_leave_memory_flat_and_totals_exact() {
    short_lived_threads(2_000);
}

#[test]
#[ignore = "long: 100,000 threads; ./test stress runs it"]
fn a_hundred_thousand_short_lived_threads_leave_memory_flat_and_totals_exact() {
    short_lived_threads(100_000);
}

/// A thread that outlives many agents and records once for each that it is sent.
struct Worker {
    agents: Sender<(Telemetry, Sender<()>)>,
    thread: JoinHandle<()>,
}

impl Worker {
    fn start() -> Worker {
        let (agents, inbox) = channel::<(Telemetry, Sender<()>)>();
        let thread = thread::spawn(move || {
            for (agent, done) in inbox {
                agent.record_transfer(&TRANSFER);
                drop(agent);
                let _ = done.send(());
            }
        });
        Worker { agents, thread }
    }

    fn record(&self, agent: &Telemetry) {
        let (done, is_done) = channel();
        self.agents.send((agent.clone(), done)).expect("the worker is there");
        is_done.recv().expect("no panic");
    }
}

/// One agent's life: three kinds of threads record for it.
fn live(directory: &Path, worker: &Worker) {
    let agent = agent("one after another").enable(true).dir(directory).build();
    assert_eq!(agent.mode(), Mode::Exported);
    agent.record_transfer(&TRANSFER);
    worker.record(&agent);
    run_threads(&agent, 2);
    agent.event("custom", 1);
    agent.backend().add_event("rail", 1);
    let flow = agent.close();
    assert_eq!((flow.recorded, flow.exported), (4 * 4 + 2, 4 * 4 + 2));
    let total = agent.snapshot().entry(names::TX_BYTES).copied().unwrap_or_default();
    assert_eq!((total.sum, total.count), (12, 4));
}

fn agents_one_after_another(agents: usize) {
    let _turn = turn();
    let directory = tempfile::tempdir().expect("a directory");
    let workers: Vec<_> = iter::repeat_with(Worker::start).take(3).collect();
    let first = agents / 10;
    let live_on = |agents| workers.iter().cycle().take(agents).for_each(|worker| live(directory.path(), worker));
    live_on(first);
    let before = Footprint::now();
    live_on(agents - first);
    // The C library keeps some of what was freed, and the slots of one agent are 4 MiB.
    Footprint::assert_flat_since(before, 16 * MIB);
    for worker in workers {
        drop(worker.agents);
        worker.thread.join().expect("no panic");
    }
    let left = fs::read_dir(directory.path()).expect("there").count();
    assert!(left <= 3, "{left} names of files are left: a file, its second link and its predecessor are expected");
}

#[test]
fn agents_made_one_after_another_leave_nothing() {
    agents_one_after_another(200);
}

#[test]
#[ignore = "long: 10,000 agents; ./test stress runs it"]
fn ten_thousand_agents_made_one_after_another_leave_nothing() {
    agents_one_after_another(10_000);
}

#[test]
fn of_the_files_that_a_process_closed_under_one_name_the_newest_predecessor_stays() {
    let _turn = turn();
    let directory = tempfile::tempdir().expect("a directory");
    let close_one = |value| {
        let agent = agent("again").enable(true).dir(directory.path()).build();
        agent.event("life", value);
        assert_eq!(agent.close().exported, 1);
    };
    let hidden = || {
        let entries = fs::read_dir(directory.path()).expect("there").map(|entry| entry.expect("readable").path());
        let is_hidden = |path: &PathBuf| path.file_name().is_some_and(|name| name.as_encoded_bytes()[0] == b'.');
        entries.filter(is_hidden).collect::<Vec<_>>()
    };
    let life = |path: &PathBuf| {
        let mut reader = Reader::open(path).expect("a telemetry file");
        iter::from_fn(|| reader.next_item().expect("readable")).find_map(|item| match item {
            Item::Event(event) if event.name.as_str() == "life" => Some(event.value),
            _ => None,
        })
    };
    let lives = || {
        let mut lives: Vec<_> = hidden().iter().filter_map(life).collect();
        lives.sort_unstable();
        lives
    };
    (1..=5).for_each(close_one);
    assert_eq!(lives(), [4, 5]);

    // A file of another process with the same number, as in containers: its start, in the identity, is another.
    let foreign = hidden().into_iter().find(|path| life(path) == Some(4)).expect("the predecessor");
    let file = fs::File::options().read(true).write(true).open(foreign).expect("ours");
    let len = file.metadata().expect("there").len();
    let mut bytes = vec![0; len as usize];
    file.read_exact_at(&mut bytes, 0).expect("readable");
    let start = bytes.windows(5).rposition(|window| window == b"again").expect("the agent's name in the identity");
    let start = start - identity::AGENT.0 + identity::PROCESS_START;
    file.write_all_at(&[0xff], start as u64).expect("writable");
    (6..=9).for_each(close_one);
    assert_eq!(lives(), [4, 8, 9]);
}

#[test]
fn clones_are_handles_of_one_agent_and_record_without_new_memory() {
    let _turn = turn();
    let agent = agent("clones").enable(true).nop().build();
    let record = |clones: u64| {
        for _ in 0..clones {
            agent.clone().record_transfer(&TRANSFER);
        }
    };
    record(20_000);
    let (before, faults) = (Footprint::now(), page_faults());
    record(200_000);
    // The flush thread's faults are its own; reading the number may cost this thread one.
    let faults = page_faults() - faults;
    assert!(faults <= 4, "{faults} page faults of a thread that only records");
    Footprint::assert_flat_since(before, MIB);
    assert_eq!(agent.close().recorded, 4 * 220_000);
    assert_eq!(agent.snapshot().histograms[0].count(), 220_000);
}

/// Page faults of this thread so far that needed no disk.
fn page_faults() -> u64 {
    let stat = fs::read_to_string("/proc/thread-self/stat").expect("Linux");
    // The name, in brackets, may hold spaces.
    let (_, after) = stat.rsplit_once(')').expect("a name in brackets");
    after.split_whitespace().nth(7).and_then(|faults| faults.parse().ok()).expect("the eighth number after the name")
}

#[test]
fn a_thread_that_stays_lets_go_of_agents_that_were_open_at_once() {
    let _turn = turn();
    let mut before = None;
    for _ in 0..6 {
        let agents: Vec<_> = (0..32).map(|_| agent("many").enable(true).nop().build()).collect();
        // Alternating: the thread finds its slot of each again.
        for _ in 0..10 {
            agents.iter().for_each(|agent| agent.record_transfer(&TRANSFER));
        }
        for agent in &agents {
            assert_eq!(agent.close().recorded, 40);
        }
        drop(agents);
        match before {
            None => before = Some(Footprint::now()),
            // Those of one round are 32 MiB.
            Some(before) => Footprint::assert_flat_since(before, 8 * MIB),
        }
    }
}

#[test]
fn backends_that_come_and_go_leave_nothing_whatever_the_agent_does() {
    let _turn = turn();
    let exported = agent("exported").enable(true).nop().build();
    let captured = agent("captured").capture_telemetry(true).build();
    let closed = agent("closed").enable(true).nop().on_warning(|_| {}).build();
    closed.close();
    let all = [&exported, &captured, &closed];
    assert_eq!(all.map(Telemetry::mode), [Mode::Exported, Mode::Captured, Mode::Exported]);
    let come_and_go = |backends: u64| {
        for round in 0..backends {
            all.iter().for_each(|agent| agent.backend().add_event("rail", round));
        }
        assert!(exported.flush_now(Duration::from_secs(10)));
    };
    come_and_go(1_000);
    let before = Footprint::now();
    (0..50).for_each(|_| come_and_go(1_000));
    Footprint::assert_flat_since(before, MIB);
    let flow = exported.close();
    assert_eq!((flow.recorded, flow.exported), (51_000, 51_000));
}

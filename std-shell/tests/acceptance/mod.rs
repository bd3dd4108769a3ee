//! What the acceptance tests share: transfers whose every number says which transfer it is, a judge who
//! finds what was never recorded, and tests that run in a process of their own.
#![allow(dead_code, reason = "each test uses some of it")]

use std::ffi::OsStr;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use telering::reader::{Event, Item, ReadError};
use telering::warn::Warning;
use telering::{Builder, Operation, Telemetry, TransferRecord};

/// Only the four events of a transfer: nothing of our own stands in the file, so that what is in it is what
/// the application recorded.
pub(crate) const TRANSFERS_ONLY: &str = "agent_xfer_*,agent_tx_*";

/// An agent that takes nothing from the environment and exports.
pub(crate) fn agent(name: &str) -> Builder {
    Telemetry::builder(name).ignore_environment(true).enable(true)
}

/// Transfer number `number`, from 1: its post takes twice, the whole three times as many microseconds.
pub(crate) fn transfer(number: u64) -> TransferRecord {
    TransferRecord {
        operation: Operation::Write,
        bytes: number,
        descriptors: 1,
        post_duration: Duration::from_micros(2 * number),
        xfer_duration: Duration::from_micros(3 * number),
    }
}

/// Where an event stands in its transfer, and in which.
fn place(event: &Event) -> Option<(u64, Option<u64>)> {
    let number = |factor| event.value.is_multiple_of(factor).then_some(Some(event.value / factor));
    Some(match event.name.as_str() {
        "agent_xfer_post_time" => (0, number(2)?),
        "agent_xfer_time" => (1, number(3)?),
        "agent_tx_bytes" => (2, number(1)?),
        "agent_tx_requests_num" => (3, (event.value == 1).then_some(None)?),
        _ => return None,
    })
}

/// Finds events that were never recorded, at places where they never stood.
///
/// Transfers come with rising numbers, each with its four events in order and with one time. Two lanes (threads)
/// have numbers of different residue and are judged apart.
#[derive(Debug, Default)]
pub(crate) struct Judge {
    lanes: Vec<u64>,
    last: Option<Event>,
    last_place: Option<(u64, Option<u64>)>,
    /// Events of transfers.
    pub(crate) events: u64,
    /// Events of our own.
    pub(crate) own: u64,
    /// Events that can't have been.
    pub(crate) foreign: u64,
    /// The first of them, for the report.
    pub(crate) first_foreign: Option<(Event, Option<Event>)>,
    /// The highest number.
    pub(crate) highest: u64,
}

impl Judge {
    /// For transfers of one thread.
    pub(crate) fn new() -> Judge {
        Judge::of_lanes(1)
    }

    /// For transfers of several threads: thread t of n records the numbers whose remainder by n is t.
    pub(crate) fn of_lanes(lanes: usize) -> Judge {
        Judge { lanes: vec![0; lanes], ..Judge::default() }
    }

    pub(crate) fn event(&mut self, event: &Event) {
        if matches!(event.name.as_str(), "agent_started" | "agent_stopped" | "agent_telemetry_events_dropped") {
            self.own += 1;
            self.last = Some(*event);
            self.last_place = None;
            return;
        }
        self.events += 1;
        if !self.is_sound(event) {
            self.foreign += 1;
            if self.first_foreign.is_none() {
                self.first_foreign = Some((*event, self.last));
            }
        }
        self.last_place = place(event);
        self.last = Some(*event);
    }

    fn is_sound(&mut self, event: &Event) -> bool {
        let Some((part, number)) = place(event) else { return false };
        let mut sound = true;
        if let Some(last) = &self.last {
            sound &= event.seq > last.seq && event.instance == last.instance;
            let neighbours = event.seq == last.seq + 1;
            match self.last_place {
                // The rest of a transfer follows its start, and belongs to it.
                Some((before, of)) if neighbours && before < 3 => {
                    sound &= part == before + 1 && event.timestamp_us == last.timestamp_us;
                    sound &= number.is_none() || of.is_none() || number == of;
                }
                _ if neighbours => sound &= part == 0,
                _ => {}
            }
        }
        if let Some(number) = number {
            let lanes = self.lanes.len() as u64;
            let highest = &mut self.lanes[(number % lanes) as usize];
            sound &= number > 0 && (number > *highest || (number == *highest && part > 0));
            *highest = number;
            self.highest = self.highest.max(number);
        }
        sound
    }

    pub(crate) fn items(&mut self, items: &[Item]) {
        for item in items {
            match item {
                Item::Event(event) => self.event(event),
                // Another file: its positions and numbers start again.
                Item::Reset { .. } => {
                    self.last = None;
                    self.last_place = None;
                    self.lanes.fill(0);
                }
                _ => {}
            }
        }
    }
}

/// Reads until nothing is new, judging as it goes.
pub(crate) fn drain(
    judge: &mut Judge,
    mut read: impl FnMut(&mut Vec<Item>) -> Result<usize, ReadError>,
) -> Result<Vec<Item>, ReadError> {
    let (mut items, mut others) = (Vec::new(), Vec::new());
    while read(&mut items)? > 0 {
        judge.items(&items);
        others.extend(items.drain(..).filter(|item| !matches!(item, Item::Event(_))));
    }
    Ok(others)
}

/// Warnings that an agent gave.
#[derive(Clone, Debug, Default)]
pub(crate) struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    pub(crate) fn ear(&self) -> impl Fn(&Warning) + Send + Sync + 'static {
        let said = Arc::clone(&self.0);
        move |warning| said.lock().unwrap().push(warning.message.clone())
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().unwrap().clone()
    }
}

/// Waits for something that must come. The limit is generous: it decides nothing but when to give up.
pub(crate) fn eventually(what: &str, limit: Duration, mut is_so: impl FnMut() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < limit, "not within {limit:?}: {what}");
        std::thread::sleep(Duration::from_millis(2));
    }
}

pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        std::fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// Numbers that look random, the same ones in each run.
pub(crate) struct Dice(pub(crate) u64);

impl Dice {
    pub(crate) fn roll(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.roll() % limit
    }
}

/// Whether this process is root. Where it isn't, the test says that it didn't run; in continuous integration,
/// which is meant to prove something, that is a failure.
pub(crate) fn is_root(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        eprintln!("SKIPPED {test}: it needs root");
        assert!(std::env::var_os("CI").is_none(), "{test} can't run without root, and CI is set");
    }
    root
}

/// A mounted tmpfs, unmounted at the end.
pub(crate) struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    pub(crate) fn new(options: &str) -> Tmpfs {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(directory.path()).status();
        assert!(mounted.unwrap().success(), "mount");
        Tmpfs(directory)
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// One test of this very binary as a process of its own, with an order for it in the environment.
pub(crate) fn process(test: &str, order: &str, directory: impl AsRef<OsStr>) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--nocapture", "--test-threads=1"]);
    command.env("ACCEPTANCE_ORDER", order).env("ACCEPTANCE_DIR", directory);
    command
}

/// The order of a test that runs in a process of its own; `None` in the ordinary run.
pub(crate) fn order() -> Option<(String, PathBuf)> {
    let order = std::env::var("ACCEPTANCE_ORDER").ok()?;
    Some((order, std::env::var_os("ACCEPTANCE_DIR")?.into()))
}

/// A process and what it says, line by line.
pub(crate) struct Talking {
    pub(crate) child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl Talking {
    pub(crate) fn start(mut command: Command) -> Talking {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        Talking { child, lines }
    }

    /// The rest of the next line that begins with `word`; `None` when there is none any more.
    pub(crate) fn hear(&mut self, word: &str) -> Option<String> {
        self.lines.by_ref().map_while(Result::ok).find_map(|line| Some(line.strip_prefix(word)?.trim().to_owned()))
    }

    /// Kills it as `kill -9` does, and waits until it is gone.
    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }
}

impl Drop for Talking {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

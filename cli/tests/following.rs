//! `telering tail`: new events, losses, restarts, new files, and every way to end.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead as _, BufReader, Read as _};
use std::os::unix::fs::FileExt as _;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};
use std::{fs, thread};

use common::{TestImage, nixl_ring, telering};
use serde_json::{Value, json};
use telering_core::names::TX_BYTES;

const T: u64 = 1_736_951_425_123_456;
const PATIENCE: Duration = Duration::from_secs(20);

/// A running `telering tail` in jsonl, line by line.
struct Tail {
    child: Child,
    lines: Receiver<String>,
}

impl Tail {
    fn start(arguments: &[&str]) -> Tail {
        let mut child = telering()
            .args([&["tail", "--format", "jsonl"], arguments].concat())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let (sender, lines) = channel();
        let out = BufReader::new(child.stdout.take().unwrap());
        thread::spawn(move || out.lines().map_while(Result::ok).try_for_each(|line| sender.send(line)));
        Tail { child, lines }
    }

    fn next(&self) -> Value {
        let line = self.lines.recv_timeout(PATIENCE).expect("a line within 20 s");
        serde_json::from_str(&line).unwrap()
    }

    fn next_values(&self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.next()["value"].as_u64().expect("an event")).collect()
    }

    fn signal(&self, signal: &str) {
        assert!(Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap().success());
    }

    /// Holds the command still while `change` is made, so that it sees all of it at once.
    fn while_stopped(&self, change: impl FnOnce()) {
        self.signal("-STOP");
        let stat = format!("/proc/{}/stat", self.child.id());
        while !fs::read_to_string(&stat).unwrap().contains(") T ") {
            thread::sleep(Duration::from_millis(1));
        }
        change();
        self.signal("-CONT");
    }

    /// Waits until the command has the file open.
    fn wait_until_open(&self, path: &Path) {
        let (path, end) = (path.canonicalize().unwrap(), Instant::now() + PATIENCE);
        let is_open = || {
            let files = fs::read_dir(format!("/proc/{}/fd", self.child.id())).unwrap();
            files.flatten().any(|file| fs::read_link(file.path()).is_ok_and(|open| open == path))
        };
        while !is_open() {
            assert!(Instant::now() < end, "the file is not opened");
            thread::sleep(Duration::from_millis(2));
        }
    }

    fn end(mut self, signal: &str) -> (ExitStatus, String) {
        self.signal(signal);
        self.wait()
    }

    fn wait(&mut self) -> (ExitStatus, String) {
        let end = Instant::now() + PATIENCE;
        while Instant::now() < end {
            if let Some(status) = self.child.try_wait().unwrap() {
                let mut errors = String::new();
                self.child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
                return (status, errors);
            }
            thread::sleep(Duration::from_millis(5));
        }
        panic!("telering tail goes on");
    }
}

impl Drop for Tail {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Changes the bytes of a file, not the file.
fn rewrite(path: &Path, bytes: &[u8]) {
    fs::OpenOptions::new().write(true).open(path).unwrap().write_all_at(bytes, 0).unwrap();
}

fn push(image: &mut TestImage, values: std::ops::Range<u64>) {
    values.for_each(|value| {
        image.push(T + value, TX_BYTES, value);
    });
}

#[test]
fn new_events_come_as_they_are_written_and_an_interrupt_is_a_good_end() {
    for signal in ["-INT", "-TERM"] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent");
        let mut image = TestImage::new(64, "agent");
        push(&mut image, 0..3);
        image.write_to(&path);
        let tail = Tail::start(&[path.to_str().unwrap()]);
        assert_eq!(tail.next_values(3), [0, 1, 2]);
        push(&mut image, 3..5);
        tail.while_stopped(|| rewrite(&path, &image.bytes()));
        assert_eq!(tail.next_values(2), [3, 4]);
        let (status, errors) = tail.end(signal);
        assert_eq!((status.code(), errors.as_str()), (Some(0), ""));
    }
}

#[test]
fn what_was_overwritten_is_one_line_with_the_exact_number() {
    for lost in [1, 64, 1000] {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("agent");
        let mut image = TestImage::new(64, "agent");
        push(&mut image, 0..1);
        image.write_to(&path);
        let tail = Tail::start(&[path.to_str().unwrap()]);
        assert_eq!(tail.next_values(1), [0]);
        push(&mut image, 1..1 + 64 + lost);
        tail.while_stopped(|| rewrite(&path, &image.bytes()));
        assert_eq!(tail.next(), json!({"lost": lost}));
        assert_eq!(tail.next_values(64), (1 + lost..1 + lost + 64).collect::<Vec<_>>());
    }
}

#[test]
fn a_restarted_agent_is_followed_into_its_new_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent");
    let mut image = TestImage::new(64, "agent");
    push(&mut image, 0..2);
    image.write_to(&path);
    let tail = Tail::start(&[path.to_str().unwrap()]);
    assert_eq!(tail.next_values(2), [0, 1]);
    let mut again = TestImage::new(128, "another");
    push(&mut again, 10..12);
    let new = dir.path().join(".new");
    again.write_to(&new);
    fs::rename(&new, &path).unwrap();
    let reset = tail.next();
    assert_eq!((&reset["reset"], reset["instance"].is_string()), (&json!(true), true));
    let event = tail.next();
    assert_eq!((&event["value"], &event["agent"]), (&json!(10), &json!("another")));
    assert_eq!(tail.next_values(1), [11]);
}

#[test]
fn files_that_appear_in_a_directory_are_picked_up() {
    let dir = tempfile::tempdir().unwrap();
    let mut first = TestImage::new(64, "first");
    push(&mut first, 7..8);
    first.write_to(&dir.path().join("first"));
    let tail = Tail::start(&[dir.path().to_str().unwrap(), "--from", "newest"]);
    tail.wait_until_open(&dir.path().join("first"));
    let mut image = TestImage::new(64, "late");
    push(&mut image, 0..2);
    let new = dir.path().join(".new");
    image.write_to(&new);
    fs::rename(&new, dir.path().join("late")).unwrap();
    let event = tail.next();
    assert_eq!((&event["value"], &event["agent"]), (&json!(0), &json!("late")));
    assert_eq!(tail.next_values(1), [1]);
    assert_eq!(tail.end("-INT").0.code(), Some(0));
}

#[test]
fn a_file_that_is_not_there_yet_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("late");
    // NIXL makes its file before it says which version it is.
    let mut unfinished = nixl_ring(64, &[(0, 5)]);
    let finished = unfinished.clone();
    unfinished[16..24].fill(0);
    fs::write(&path, unfinished).unwrap();
    let missing = dir.path().join("missing");
    let tail = Tail::start(&[path.to_str().unwrap(), missing.to_str().unwrap(), "--consume"]);
    thread::sleep(Duration::from_millis(300));
    fs::write(&path, finished).unwrap();
    assert_eq!(tail.next_values(1), [5]);
    let (status, errors) = tail.end("-INT");
    assert_eq!(status.code(), Some(0));
    assert!(errors.contains("missing: not there yet"), "{errors}");
}

#[test]
fn newest_starts_behind_what_is_there() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent");
    let mut image = TestImage::new(64, "agent");
    push(&mut image, 0..3);
    image.write_to(&path);
    let tail = Tail::start(&[path.to_str().unwrap(), "--from", "newest"]);
    tail.wait_until_open(&path);
    // Opened, and where to start is looked up right after that.
    thread::sleep(Duration::from_millis(300));
    push(&mut image, 3..4);
    tail.while_stopped(|| rewrite(&path, &image.bytes()));
    assert_eq!(tail.next_values(1), [3]);
    let refused = common::run(["read", path.to_str().unwrap(), "--from", "newest"]);
    assert_eq!(refused.status, 2);
    assert!(refused.err.contains("--follow"), "{}", refused.err);
}

#[test]
fn following_ends_with_the_limit_and_with_the_time() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent");
    let mut image = TestImage::new(64, "agent");
    push(&mut image, 0..3);
    image.write_to(&path);
    let path = path.to_str().unwrap();
    let mut tail = Tail::start(&[path, "--limit", "2"]);
    assert_eq!(tail.next_values(2), [0, 1]);
    assert_eq!(tail.wait().0.code(), Some(0));
    let mut tail = Tail::start(&[path, "--until", "+300ms"]);
    assert_eq!(tail.next_values(3), [0, 1, 2]);
    assert_eq!(tail.wait().0.code(), Some(0));
}

#[test]
fn a_reader_of_the_output_that_goes_away_is_a_good_end() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent");
    let mut image = TestImage::new(4096, "agent");
    push(&mut image, 0..4096);
    image.write_to(&path);
    for (arguments, format) in [(vec!["read"], "text"), (vec!["read", "--follow"], "jsonl"), (vec!["read"], "csv")] {
        let mut command = telering();
        command.args(arguments).arg(&path).args(["--format", format]);
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        // More than a pipe holds is to come: the command is stopped in the middle of it.
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut String::new()).unwrap();
        drop(out);
        let mut errors = String::new();
        child.stderr.take().unwrap().read_to_string(&mut errors).unwrap();
        let status = child.wait().unwrap();
        assert_eq!((status.code(), status.signal(), errors.as_str()), (Some(0), None, ""), "{format}");
    }
}

#[test]
fn consuming_takes_events_out_of_nixls_ring_and_peeking_does_not() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("initiator");
    fs::write(&path, nixl_ring(64, &[(0, 5), (2, 1)])).unwrap();
    let read_pos = || fs::read(&path).unwrap()[8];
    assert_eq!(common::run(["read", path.to_str().unwrap()]).succeeded().out.matches("Event: ").count(), 2);
    assert_eq!(read_pos(), 0);
    let taken = common::run(["read", path.to_str().unwrap(), "--consume", "--format", "jsonl"]).succeeded();
    assert_eq!(taken.json().len(), 2);
    assert_eq!(read_pos(), 2);
    assert_eq!(common::run(["read", path.to_str().unwrap()]).succeeded().out, "");
    let limited = common::run(["read", path.to_str().unwrap(), "--consume", "--limit", "1"]);
    assert_eq!(limited.status, 2, "events beyond the limit would be taken and not shown");
}

#[test]
fn events_whose_output_fails_are_not_taken_out() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("initiator");
    fs::write(&path, nixl_ring(64, &[(0, 5), (2, 1)])).unwrap();
    // Every write to /dev/full fails.
    let full = fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let output = telering().arg("read").arg(&path).arg("--consume").stdout(full).output().unwrap();
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(fs::read(&path).unwrap()[8], 0);
}

#[test]
fn a_truncated_file_is_an_error_and_no_signal() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent");
    let mut image = TestImage::new(64, "agent");
    push(&mut image, 0..3);
    image.write_to(&path);
    let mut tail = Tail::start(&[path.to_str().unwrap()]);
    assert_eq!(tail.next_values(3), [0, 1, 2]);
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(100).unwrap();
    let (status, errors) = tail.wait();
    assert_eq!((status.code(), status.signal()), (Some(1), None));
    assert!(errors.contains("100 bytes"), "{errors}");
}

#[test]
fn nixls_ring_followed_without_a_consumer_is_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("initiator");
    fs::write(&path, nixl_ring(64, &[(0, 5)])).unwrap();
    let tail = Tail::start(&[path.to_str().unwrap()]);
    assert_eq!(tail.next_values(1), [5]);
    let (_, errors) = tail.end("-INT");
    assert!(errors.contains("--consume") && errors.contains("newest"), "{errors}");
}

/// Processor time in clock ticks, and how often the process went to sleep.
fn effort(child: &Child) -> (u64, u64) {
    let file = |name: &str| fs::read_to_string(format!("/proc/{}/{name}", child.id())).unwrap();
    let stat = file("stat");
    let fields: Vec<&str> = stat.rsplit(')').next().unwrap().split_whitespace().collect();
    let ticks = [11, 12].map(|at| fields[at].parse::<u64>().unwrap()).iter().sum();
    let status = file("status");
    let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:")).unwrap();
    (ticks, sleeps.trim().parse().unwrap())
}

#[test]
fn following_a_quiet_file_takes_next_to_no_processor() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("prefill-0");
    let mut image = TestImage::new(64, "prefill-0");
    image.push(T, TX_BYTES, 1);
    image.write_to(&path);
    let tail = Tail::start(&["--from", "oldest", path.to_str().unwrap()]);
    assert_eq!(tail.next_values(1), [1]);
    // Past the short pauses.
    thread::sleep(Duration::from_millis(400));
    let before = effort(&tail.child);
    thread::sleep(Duration::from_secs(1));
    let after = effort(&tail.child);
    let (ticks, sleeps) = (after.0 - before.0, after.1 - before.1);
    assert!((2..=20).contains(&sleeps), "{sleeps} looks in a second");
    assert!(ticks <= 5, "{ticks} hundredths of a second of processor time in a second");
    // And it still follows.
    image.push(T + 1, TX_BYTES, 2);
    tail.while_stopped(|| rewrite(&path, &image.bytes()));
    assert_eq!(tail.next_values(1), [2]);
    assert!(tail.end("-INT").0.success());
}

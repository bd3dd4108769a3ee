//! `telering tail` beside agents that move data: nothing is missing, and a killed agent is followed into its next run.

#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, ChildStdout, Stdio};

use common::{run, telering};
use serde_json::Value;

struct Running(Child);

impl Running {
    fn start(arguments: &[&str]) -> (Running, BufReader<ChildStdout>) {
        let mut child = telering().args(arguments).stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let out = BufReader::new(child.stdout.take().unwrap());
        (Running(child), out)
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn demo<'a>(directory: &'a str, seconds: &'a str) -> [&'a str; 9] {
    ["demo", "--dir", directory, "--agents", "1", "--seconds", seconds, "--json", "--size=3000"]
}

#[test]
fn what_is_followed_live_is_what_was_moved() {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().to_str().unwrap();
    let (_tail, out) = Running::start(&["tail", directory, "--format", "jsonl"]);
    let moved: Value = serde_json::from_str(&run(demo(directory, "1")).succeeded().out).unwrap();
    let mut sums = [0; 3];
    for (seq, line) in out.lines().enumerate() {
        let item: Value = serde_json::from_str(&line.unwrap()).unwrap();
        assert!(item.get("event").is_some(), "something is missing: {item}");
        assert_eq!(item["seq"], seq);
        let value = item["value"].as_u64().unwrap();
        match item["event"].as_str().unwrap() {
            "agent_tx_bytes" => sums[0] += value,
            "agent_rx_bytes" => sums[1] += value,
            error if error.starts_with("NIXL_ERR_") => sums[2] += value,
            "agent_stopped" => break,
            _ => {}
        }
    }
    assert_eq!(sums.map(Value::from), ["tx_bytes", "rx_bytes", "errors"].map(|key| moved[key].clone()));
}

#[test]
fn a_killed_agent_is_followed_into_its_next_run() {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().to_str().unwrap();
    let file = dir.path().join("demo-0");
    let (first, _out) = Running::start(&demo(directory, "60"));
    wait_for(&file);
    let (_tail, out) = Running::start(&["tail", file.to_str().unwrap(), "--format", "jsonl"]);
    let mut items = out.lines().map(|line| serde_json::from_str::<Value>(&line.unwrap()).unwrap());
    let old = items.next().unwrap();
    assert_eq!((&old["seq"], &old["event"]), (&Value::from(0), &Value::from("agent_started")));
    items.nth(100).unwrap();
    // SIGKILL, and no chance to close anything.
    drop(first);
    let (_second, _out) = Running::start(&demo(directory, "60"));
    let mut last = 101;
    let reset = items.find(|item| {
        if let Some(seq) = item["seq"].as_u64() {
            assert_eq!(seq, last + 1, "an event is missing before the restart");
            last = seq;
        }
        item.get("reset").is_some()
    });
    let new = items.next().unwrap();
    assert_eq!((&new["seq"], &new["event"]), (&Value::from(0), &Value::from("agent_started")));
    assert_ne!(new["instance"], old["instance"]);
    assert_eq!(reset.unwrap()["instance"], new["instance"]);
}

fn wait_for(path: &Path) {
    let end = std::time::Instant::now() + std::time::Duration::from_secs(20);
    while !path.exists() {
        assert!(std::time::Instant::now() < end, "no telemetry file appears");
        std::thread::sleep(std::time::Duration::from_millis(2));
    }
}

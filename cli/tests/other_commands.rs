//! inspect, clean, demo, completions, man and the help texts.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;
use std::path::Path;

use common::{RELEASES, TestImage, nixl_ring, run, sample, telering};
use serde_json::{Value, json};
use telering_core::names::TX_BYTES;

const T: u64 = 1_736_951_425_000_000;

fn inspect(path: &Path) -> Value {
    let ran = run(["inspect".as_ref(), "--json".as_ref(), path.as_os_str()]).succeeded();
    serde_json::from_str(&ran.out).unwrap()
}

#[test]
fn inspect_says_what_nixls_rings_are() {
    let layouts = ["NIXL L1", "NIXL L2a", "NIXL L2b", "NIXL L3", "NIXL L4"];
    for (release, layout) in RELEASES.into_iter().zip(layouts) {
        let path = sample(release);
        let before = fs::read(&path).unwrap();
        let seen = inspect(&path);
        assert_eq!([&seen["layout"], &seen["liveness"], &seen["agent"]], [layout, "unknown", "initiator"], "{release}");
        assert_eq!(seen["positions"], json!({"write_pos": 31, "read_pos": 0, "waiting": 31, "full": false}));
        assert_eq!(seen["held"]["events"], 31);
        assert_eq!(seen["held"]["covers_us"].is_u64(), release == "0.10.1");
        assert_eq!(fs::read(&path).unwrap(), before, "{release}: the file was changed");
    }
}

#[test]
fn inspect_says_how_much_time_the_ring_covers_and_what_was_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent");
    let mut image = TestImage::new(64, "ag\x1bent");
    for n in 0..100 {
        image.push(T + n * 16_000, TX_BYTES, 10);
    }
    image.write_to(&path);
    let table = run(["inspect".as_ref(), path.as_os_str()]).succeeded().out;
    for part in
        ["covers the last 1.0 s", "100 written, of them 36 overwritten", "ag\\u{1b}ent, pid 4242, rank 3", "dead"]
    {
        assert!(table.contains(part), "{part} is not in\n{table}");
    }
    assert!(!table.contains('\x1b'), "no colours and no control characters where there is no terminal");
    let seen = inspect(&path);
    assert_eq!(seen["held"]["covers_us"], 63 * 16_000);
    assert_eq!(seen["held"]["events"], 64);
    assert_eq!(seen["instance"], "feed000000000001");
    assert_eq!(seen["positions"], json!({"committed": 100, "intent": 100, "overwritten": 36}));
}

#[test]
fn rates_are_of_one_agent_and_those_of_all_are_over_one_common_time() {
    let dir = tempfile::tempdir().unwrap();
    for agent in ["one", "two"] {
        let mut image = TestImage::new(64, agent);
        (0..=10).for_each(|n| {
            image.push(T + n * 100_000, TX_BYTES, if n == 0 { 0 } else { 10_000_000 });
        });
        image.write_to(&dir.path().join(agent));
    }
    let table = run(["inspect".as_ref(), dir.path().as_os_str()]).succeeded().out;
    assert_eq!(table.matches("100.0 MB/s written, 0 B/s read: this agent, wall-clock").count(), 2, "{table}");
    assert_eq!(table.matches("200.0 MB/s written, 0 B/s read: all agents together, wall-clock").count(), 1, "{table}");
}

#[test]
fn inspect_names_what_is_wrong_with_what_is_no_telemetry_file() {
    let dir = tempfile::tempdir().unwrap();
    let check = |bytes: &[u8], what: &str| {
        let path = dir.path().join("file");
        fs::write(&path, bytes).unwrap();
        let ran = run(["inspect".as_ref(), path.as_os_str()]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{what}");
        assert!(ran.err.contains(what), "{what} is not in {}", ran.err);
        assert_eq!(fs::read(&path).unwrap(), bytes, "the file was changed");
    };
    check(b"hello", "not a telemetry file");
    check(&[0; 4096], "not");
    let mut ring = nixl_ring(2, &[]);
    ring[16] = 5;
    check(&ring, "unsupported version 5");
    let mut image = TestImage::new(64, "agent").bytes();
    // The image's own version, 8 bytes behind its magic number at 40 + 64 * 56.
    let at = (40_usize + 64 * 56).next_multiple_of(64) + 8;
    image[at] = image[at].wrapping_add(1);
    check(&image, "unsupported version");
    let ran = run(["inspect", dir.path().join("missing").to_str().unwrap()]);
    assert_eq!(ran.status, 2);
}

#[test]
fn a_full_ring_of_nixl_is_said_to_drop_the_newest() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("initiator");
    fs::write(&path, nixl_ring(4, &[(0, 1), (0, 2), (0, 3)])).unwrap();
    assert!(run(["inspect".as_ref(), path.as_os_str()]).succeeded().out.contains("FULL"));
    assert_eq!(inspect(&path)["positions"]["full"], true);
}

#[test]
fn clean_says_what_it_would_do_and_does_it_when_told() {
    let dir = tempfile::tempdir().unwrap();
    let (dead, foreign, ring) = (dir.path().join("dead"), dir.path().join("notes"), dir.path().join("initiator"));
    TestImage::new(64, "dead").push(T, TX_BYTES, 1).write_to(&dead);
    fs::write(&foreign, "mine").unwrap();
    fs::write(&ring, nixl_ring(64, &[])).unwrap();
    let live = telering::Telemetry::builder("live").ignore_environment(true).enable(true).dir(dir.path()).build();
    let live_path = live.path().unwrap();
    let directory = dir.path().to_str().unwrap();

    let plan = run(["clean", directory]).succeeded().out;
    assert!(plan.contains("would remove") && plan.contains("dead") && plan.contains("--yes"), "{plan}");
    assert!(!plan.contains("live") && !plan.contains("notes") && !plan.contains("initiator"), "{plan}");
    assert!(dead.exists());
    let done = run(["clean", directory, "--yes"]).succeeded().out;
    assert!(done.contains("removed"), "{done}");
    assert!(!dead.exists() && foreign.exists() && ring.exists() && live_path.exists());
    assert!(run(["clean", directory]).succeeded().out.contains("nothing to clean"));
    assert_eq!(run(["clean", dir.path().join("missing").to_str().unwrap()]).status, 2);
}

#[test]
fn the_demo_moves_data_and_its_files_hold_what_it_moved() {
    let dir = tempfile::tempdir().unwrap();
    let directory = dir.path().to_str().unwrap();
    let arguments =
        ["demo", "--dir", directory, "--seconds", "0.5", "--agents", "2", "--threads", "2", "--size", "5000"];
    let ran = run(arguments.iter().chain(&["--json"])).succeeded();
    let told: Value = serde_json::from_str(&ran.out).unwrap();
    assert_eq!(told["recorded"].as_u64(), Some(told["exported"].as_u64().unwrap() + told["lost"].as_u64().unwrap()));
    assert_eq!((&told["right"], &told["lost"]), (&json!(true), &json!(0)));
    assert!(told["tx_requests"].as_u64() > Some(50) && told["rx_requests"].as_u64() > Some(50), "{told}");

    let events = run(["read", directory, "--format", "jsonl"]).succeeded().json();
    let sum = |name: &str| -> u64 {
        events.iter().filter(|event| event["event"] == name).map(|event| event["value"].as_u64().unwrap()).sum()
    };
    assert_eq!(sum("agent_tx_bytes"), told["tx_bytes"].as_u64().unwrap());
    assert_eq!(sum("agent_rx_bytes"), told["rx_bytes"].as_u64().unwrap());
    assert_eq!(sum("agent_memory_registered"), told["memory_registered"].as_u64().unwrap());
    let errors = events.iter().filter(|event| event["category"] == "ERROR").count();
    assert_eq!(json!(errors), told["errors"]);
    let transfers = run(["read", directory, "--transfers", "--format", "jsonl"]).succeeded();
    let requests = told["tx_requests"].as_u64().unwrap() + told["rx_requests"].as_u64().unwrap();
    assert_eq!((transfers.json().len() as u64, transfers.err.as_str()), (requests, ""));
}

#[test]
fn the_demo_takes_its_exporter_from_the_environment_and_tells_each_agent_apart() {
    let dir = tempfile::tempdir().unwrap();
    let demo = |exporter: &str| {
        let arguments = ["demo", "--environment", "--hold", "0.1", "--seconds", "0.3", "--json"];
        let mut command = telering();
        command.args(arguments).env("NIXL_TELEMETRY_EXPORTER", exporter).env("NIXL_TELEMETRY_DIR", dir.path());
        let told: Value = serde_json::from_str(&common::ran(command.output().unwrap()).succeeded().out).unwrap();
        for number in ["tx_bytes", "rx_bytes", "tx_requests", "rx_requests", "errors", "memory_registered"] {
            let sum: u64 = told["agents"].as_array().unwrap().iter().map(|agent| agent[number].as_u64().unwrap()).sum();
            assert_eq!(json!(sum), told[number], "{number}");
        }
        assert_eq!((&told["right"], &told["agents"][1]["name"]), (&json!(true), &json!("demo-1")));
        told["path"].as_array().unwrap().len()
    };
    assert_eq!(demo("NOP"), 0);
    assert_eq!(fs::read_dir(dir.path()).unwrap().count(), 0, "an exporter without files makes none");
    assert_eq!(demo("BUFFER"), 2);
}

#[test]
fn the_demo_ends_with_its_verdict_the_file_and_the_next_commands() {
    let dir = tempfile::tempdir().unwrap();
    let temporary = telering().args(["demo", "--seconds", "0.3"]).env("TMPDIR", dir.path()).output().unwrap();
    let ran = common::ran(temporary).succeeded();
    assert!(!ran.out.contains('\x1b'), "no live table where there is no terminal");
    for part in
        ["recorded = exported + lost", "right", "demo-0", "demo-1", "telering read ", "telering inspect ", "P99"]
    {
        assert!(ran.out.contains(part), "{part} is not in\n{}", ran.out);
    }
    let command = ran.out.lines().find(|line| line.contains("telering inspect")).unwrap();
    let directory = command.split_whitespace().last().unwrap();
    assert!(Path::new(directory).starts_with(dir.path()));
    run(["inspect", directory]).succeeded();
}

#[test]
fn a_demo_that_can_not_run_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("file");
    fs::write(&file, "").unwrap();
    let ran = run(["demo", "--seconds", "0.3", "--dir", file.to_str().unwrap()]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("file"), "{}", ran.err);
    assert_eq!(run(["demo", "--seconds", "0"]).status, 2);
    assert_eq!(run(["demo", "--size", "0"]).status, 2);
}

#[test]
fn help_texts_have_examples_and_say_what_reading_does_to_a_file() {
    for command in ["read", "tail", "inspect", "clean", "serve", "demo", "completions", "man"] {
        let help = run([command, "--help"]).succeeded().out;
        assert!(help.contains("Examples:\n") && help.contains("telering "), "{help}");
    }
    let help = run(["read", "--help"]).succeeded().out;
    assert!(help.contains("peek") && help.contains("NEWEST") && help.contains("Exit status"), "{help}");
    assert!(help.lines().all(|line| line.len() <= 100));
    assert!(run(["--help"]).succeeded().out.contains("Exit status"));
    assert_eq!(run(["read"]).status, 2);
    assert_eq!(run(["read", "--nonsense"]).status, 2);
    let wrong = run(["read", "--category", "nonsense", "x"]);
    assert!(wrong.status == 2 && wrong.err.contains("memory, transfer"), "{}", wrong.err);
}

#[test]
fn completions_and_manual_pages_are_printed() {
    for shell in ["bash", "zsh", "fish"] {
        assert!(run(["completions", shell]).succeeded().out.contains("telering"));
    }
    assert!(run(["man"]).succeeded().out.contains(".TH telering 1"));
    let dir = tempfile::tempdir().unwrap();
    run(["man", "--dir", dir.path().to_str().unwrap()]).succeeded();
    for page in ["telering.1", "telering-read.1", "telering-serve.1", "telering-demo.1"] {
        assert!(fs::read_to_string(dir.path().join(page)).unwrap().contains("telering"), "{page}");
    }
}

//! `telering read`: every format, and what is filtered, merged and refused.

#![allow(clippy::unwrap_used)]

mod common;

use std::fs;

use common::{RELEASES, TestImage, nixl_ring, run, sample};
use serde_json::{Value, json};
use telering_core::event::Category;
use telering_core::image::Identity;
use telering_core::layout::image::TimeBase;
use telering_core::names::{MEMORY_REGISTERED, TX_BYTES, XFER_TIME};

const T: u64 = 1_736_951_425_123_456; // 2025-01-15 14:30:25.123456 UTC

#[test]
fn every_sample_of_nixl_gives_exactly_its_events_and_stays_as_it_is() {
    for release in RELEASES {
        let path = sample(release);
        let before = fs::read(&path).unwrap();
        let ran = run(["read", path.to_str().unwrap(), "--format", "jsonl"]).succeeded();
        let expected = fs::read_to_string(path.with_file_name("expected.jsonl")).unwrap();
        let expected: Vec<Value> = expected.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let events = ran.json();
        assert_eq!(events.len(), expected.len(), "{release}");
        for (at, (event, expected)) in events.iter().zip(&expected).enumerate() {
            assert_eq!(event["seq"], json!(at));
            assert_eq!(event["agent"], "initiator");
            assert_eq!([&event["event"], &event["value"]], [&expected["event"], &expected["value"]], "{release}");
            if expected["timestamp_us"].is_null() {
                assert!(event.get("timestamp_us").is_none() && event["observed_us"].is_u64(), "{release}: {event}");
            } else {
                assert_eq!(event["timestamp_us"], expected["timestamp_us"], "{release}");
                assert!(event.get("observed_us").is_none());
            }
            assert!(expected["category"].is_null() || event["category"] == expected["category"], "{release}: {event}");
        }
        assert_eq!(fs::read(&path).unwrap(), before, "{release}: the file was changed");
    }
}

#[test]
fn text_is_the_guides_block_byte_for_byte() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent");
    TestImage::new(64, "agent").push(T, TX_BYTES, 1_048_576).push(T + 1111, MEMORY_REGISTERED, 4096).write_to(&path);
    let guide = "\
=== NIXL Telemetry Event ===
Timestamp: 2025-01-15 14:30:25.123456
Category: TRANSFER
Event: agent_tx_bytes
Value: 1048576
===========================
=== NIXL Telemetry Event ===
Timestamp: 2025-01-15 14:30:25.124567
Category: MEMORY
Event: agent_memory_registered
Value: 4096
===========================
";
    assert_eq!(run(["read", path.to_str().unwrap(), "--utc"]).succeeded().out, guide);
    // The zone of the test is two hours ahead.
    let local = run(["read", path.to_str().unwrap()]).succeeded().out;
    assert_eq!(local, guide.replace(" 14:30", " 16:30"));
}

#[test]
fn a_time_that_was_only_observed_is_labelled_so() {
    let ran = run(["read", sample("1.5.1").to_str().unwrap(), "--limit", "1"]).succeeded();
    assert!(ran.out.contains("\nObserved: 2"), "{}", ran.out);
    assert!(!ran.out.contains("Timestamp"), "{}", ran.out);
}

#[test]
fn files_are_merged_by_time_and_each_event_says_whose_it_is() {
    let dir = tempfile::tempdir().unwrap();
    TestImage::new(64, "one").push(T, XFER_TIME, 1).push(T + 20, XFER_TIME, 3).write_to(&dir.path().join("one"));
    TestImage::new(64, "t\u{1b}wo").push(T + 10, XFER_TIME, 2).write_to(&dir.path().join("two"));
    fs::write(dir.path().join("notes.txt"), "foreign").unwrap();

    let ran = run(["read", dir.path().to_str().unwrap()]).succeeded();
    let values: Vec<_> = ran.out.lines().filter_map(|line| line.strip_prefix("Value: ")).collect();
    assert_eq!(values, ["1", "2", "3"]);
    let agents: Vec<_> = ran.out.lines().filter_map(|line| line.strip_prefix("Agent: ")).collect();
    assert_eq!(agents[..2], ["one, pid 4242, rank 3", "t\\u{1b}wo, pid 4242, rank 3"]);
    assert!(ran.err.contains("notes.txt"), "{}", ran.err);

    let events = run(["read", dir.path().to_str().unwrap(), "--format", "jsonl"]).json();
    assert_eq!(
        events.iter().map(|event| event["agent"].as_str().unwrap()).collect::<Vec<_>>(),
        ["one", "t\u{1b}wo", "one"]
    );
}

#[test]
fn numbers_are_exact_and_may_be_strings() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent");
    let odd = (1 << 53) + 1;
    TestImage::new(64, "agent").push(T, TX_BYTES, u64::MAX).push(T, TX_BYTES, odd).write_to(&path);
    let path = path.to_str().unwrap();

    let ran = run(["read", path, "--format", "jsonl"]).succeeded();
    assert!(ran.out.contains("\"value\":18446744073709551615,") && ran.out.contains("\"value\":9007199254740993,"));
    assert_eq!(ran.json()[0]["instance"], "feed000000000001");
    let strings = run(["read", path, "--format", "jsonl", "--strings"]).succeeded().json();
    assert_eq!([&strings[0]["value"], &strings[1]["value"]], ["18446744073709551615", "9007199254740993"]);
    assert_eq!([&strings[0]["seq"], &strings[0]["timestamp_us"]], ["0", "1736951425123456"]);
    let csv = run(["read", path, "--format", "csv"]).succeeded().out;
    assert!(csv.contains(",18446744073709551615,") && csv.contains(",9007199254740993,"), "{csv}");
    let text = run(["read", path]).succeeded().out;
    assert!(text.contains("Value: 18446744073709551615\n") && text.contains("Value: 9007199254740993\n"), "{text}");
}

#[test]
fn csv_parses_back_to_the_same_row_whatever_the_agents_name() {
    let dir = tempfile::tempdir().unwrap();
    let agent = "=cmd|'/c',\"quoted\"\r\nnext\x07";
    let path = dir.path().join("file");
    TestImage::new(64, agent).push_named(T, Category::CUSTOM, "=1+1,\"x\"", 7).write_to(&path);
    let ran = run(["read", path.to_str().unwrap(), "--format", "csv"]).succeeded();
    let mut reader = csv::Reader::from_reader(ran.out.as_bytes());
    assert_eq!(
        reader.headers().unwrap(),
        vec!["kind", "seq", "instance", "timestamp_us", "observed_us", "category", "event", "value", "agent"]
    );
    let rows: Vec<_> = reader.records().map(Result::unwrap).collect();
    let time = T.to_string();
    assert_eq!(rows, [vec!["event", "0", "feed000000000001", &time, "", "CUSTOM", "=1+1,\"x\"", "7", agent]]);
    assert!(ran.out.ends_with("\r\n"), "RFC 4180 ends each row so");
}

#[test]
fn json_escapes_what_a_terminal_would_obey() {
    let dir = tempfile::tempdir().unwrap();
    let agent = "a\"b\\c\n\x1b[2J\u{9b}1mé";
    let path = dir.path().join("file");
    TestImage::new(64, agent).push(T, TX_BYTES, 7).write_to(&path);
    let ran = run(["read", path.to_str().unwrap(), "--format", "jsonl"]).succeeded();
    assert_eq!(ran.json()[0]["agent"], agent);
    assert_eq!(ran.out.chars().filter(|c| c.is_control()).collect::<String>(), "\n");
}

#[test]
fn event_types_that_are_unknown_say_so_and_reading_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("initiator");
    fs::write(&path, nixl_ring(64, &[(21, 5), (255, 6), (u32::MAX, 7), (0, 8)])).unwrap();
    let events = run(["read", path.to_str().unwrap(), "--format", "jsonl"]).succeeded().json();
    let seen: Vec<_> = events.iter().map(|event| (event["event"].as_str().unwrap(), event["value"].clone())).collect();
    assert_eq!(
        seen,
        [
            ("unknown(21)", json!(5)),
            ("unknown(255)", json!(6)),
            ("unknown(4294967295)", json!(7)),
            ("agent_tx_bytes", json!(8)),
        ]
    );
    assert!(events[0]["category"].is_null());
    let text = run(["read", path.to_str().unwrap(), "--limit", "1"]).out;
    assert!(text.contains("Category: UNKNOWN\nEvent: unknown(21)\nValue: 5\n"), "{text}");
}

#[test]
fn filters_take_what_was_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent");
    let mut image = TestImage::new(64, "agent");
    image.push_write(T, 100, 1, 2).push(T + 1_000_000, 18, 1).push_named(T + 2_000_000, Category::CUSTOM, "mine", 9);
    image.write_to(&path);
    let names = |arguments: &[&str]| {
        let ran = run([&["read", path.to_str().unwrap(), "--format", "jsonl"], arguments].concat()).succeeded();
        ran.json().iter().map(|event| event["event"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["--category", "transfer"]), ["agent_tx_bytes", "agent_tx_requests_num"]);
    assert_eq!(names(&["--category", "custom", "--category", "NIXL_TELEMETRY_ERROR"]), ["NIXL_ERR_CANCELED", "mine"]);
    assert_eq!(names(&["--event", "agent_err_*"]), ["NIXL_ERR_CANCELED"]);
    assert_eq!(names(&["--event", "NIXL_*", "--event", "m?ne"]), ["NIXL_ERR_CANCELED", "mine"]);
    assert_eq!(names(&["--since", "2025-01-15T14:30:26Z"]), ["NIXL_ERR_CANCELED", "mine"]);
    assert_eq!(names(&["--since", "2025-01-15 16:30:26", "--until", "2025-01-15 16:30:27"]), ["NIXL_ERR_CANCELED"]);
    assert_eq!(names(&["--utc", "--until", "2025-01-15 14:30:26"]).len(), 4);
    assert_eq!(names(&["--until", "-5m"]).len(), 6);
    assert_eq!(names(&["--since", "5m"]).len(), 0);
    assert_eq!(names(&["--limit", "2"]).len(), 2);
    assert_eq!(names(&["--limit", "0"]).len(), 0);
}

#[test]
fn a_transfer_is_one_line_and_an_incomplete_one_is_left_out_and_counted() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent");
    let mut image = TestImage::new(8, "agent");
    // The ring of eight keeps the last two events of the first transfer.
    image.push_write(T, 1, 1, 1).push_write(T + 500, 4096, 30, 200).push(T + 600, MEMORY_REGISTERED, 5);
    image.push(T + 600, 18, 1).write_to(&path);
    let path = path.to_str().unwrap();
    let ran = run(["read", path, "--transfers", "--utc"]).succeeded();
    let lines: Vec<_> = ran.out.lines().collect();
    assert_eq!(lines.len(), 2, "{}", ran.out);
    assert_eq!(
        lines[1].split_whitespace().collect::<Vec<_>>(),
        "2025-01-15 14:30:25.123756 2025-01-15 14:30:25.123956 write 4096 30 200 agent".split(' ').collect::<Vec<_>>()
    );
    assert!(ran.err.contains("1 transfer left out"), "{}", ran.err);
    let json = run(["read", path, "--transfers", "--format", "jsonl"]).succeeded().json();
    let expected = json!({"start_us": T + 300, "end_us": T + 500, "op": "write", "bytes": 4096, "post_us": 30,
        "xfer_us": 200, "agent": "agent"});
    assert_eq!(json, [expected]);
}

#[test]
fn the_transfers_of_nixls_own_timed_ring_are_all_there() {
    let path = sample("0.10.1");
    let transfers = run(["read", path.to_str().unwrap(), "--transfers", "--format", "jsonl"]).succeeded();
    let operations: Vec<_> =
        transfers.json().iter().map(|line| format!("{} {}", line["op"].as_str().unwrap(), line["bytes"])).collect();
    assert_eq!(
        operations,
        ["write 1024", "write 2048", "write 3072", "write 4096", "read 1024", "read 2048", "read 3072"]
    );
    assert_eq!(transfers.err, "");
}

#[test]
fn transfers_are_refused_where_the_layout_has_no_time() {
    for release in &RELEASES[1..] {
        let ran = run(["read", sample(release).to_str().unwrap(), "--transfers"]);
        assert_eq!((ran.status, ran.out.as_str()), (2, ""));
        assert!(ran.err.contains("carry no time"), "{}", ran.err);
    }
}

#[test]
fn what_is_no_telemetry_file_is_named_and_the_others_are_read() {
    let dir = tempfile::tempdir().unwrap();
    let (good, bad) = (dir.path().join("agent"), dir.path().join("not\x1bone"));
    TestImage::new(64, "agent").push(T, TX_BYTES, 7).write_to(&good);
    fs::write(&bad, "hello").unwrap();
    let ran = run(["read".as_ref(), bad.as_path(), good.as_path(), dir.path().join("missing").as_path()]);
    assert_eq!(ran.status, 2);
    assert!(ran.out.contains("Value: 7"));
    assert!(ran.err.contains("not\\u{1b}one: not a telemetry file") && ran.err.contains("missing"), "{}", ran.err);
    assert!(!ran.err.contains('\u{1b}'));

    let empty = tempfile::tempdir().unwrap();
    let ran = run(["read".as_ref(), empty.path()]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("no telemetry file"), "{}", ran.err);
}

#[test]
fn a_version_that_is_unknown_is_refused_and_the_file_left_alone() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ring");
    let mut bytes = nixl_ring(2, &[]);
    bytes[16] = 5;
    fs::write(&path, &bytes).unwrap();
    let ran = run(["read".as_ref(), path.as_path(), "--consume".as_ref()]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("version 5"), "{}", ran.err);
    assert_eq!(fs::read(&path).unwrap(), bytes);
}

#[test]
fn times_since_boot_are_no_dates() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("dump");
    let identity = Identity { agent: "board", ..Identity::default() };
    TestImage::of(64, TimeBase::Boot, &identity).push(12_345_678, TX_BYTES, 7).write_to(&path);
    let ran = run(["read".as_ref(), path.as_path()]).succeeded();
    assert!(ran.out.contains("Timestamp: +12.345678 s\n"), "{}", ran.out);
    let json = run(["read".as_ref(), path.as_path(), "--format".as_ref(), "jsonl".as_ref()]).json();
    assert_eq!([&json[0]["timestamp_us"], &json[0]["clock"]], [&json!(12_345_678), &json!("boot")]);
    let ran = run(["read".as_ref(), path.as_path(), "--since".as_ref(), "5m".as_ref()]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("boot"), "{}", ran.err);
}

#[test]
fn images_inside_a_larger_dump_are_found_and_read() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("ram.bin");
    let image = |agent: &str, value| TestImage::new(64, agent).push(T, TX_BYTES, value).bytes();
    let (one, other) = (image("one", 11), image("other", 22));
    let mut dump = vec![0xa5; 1001];
    for image in [&one, &other, &one] {
        dump.extend_from_slice(image);
        dump.extend_from_slice(b"TELERING");
    }
    // The third one is cut.
    dump.truncate(dump.len() - 20);
    fs::write(&path, &dump).unwrap();
    let ran = run(["read".as_ref(), path.as_path()]);
    assert_eq!(ran.status, 2, "without --scan it is no telemetry file");
    let ran =
        run(["read".as_ref(), "--scan".as_ref(), path.as_path(), "--format".as_ref(), "jsonl".as_ref()]).succeeded();
    let seen: Vec<_> = ran.json().iter().map(|event| (event["agent"].clone(), event["value"].clone())).collect();
    assert_eq!(seen, [(json!("one"), json!(11)), (json!("other"), json!(22))]);
    assert!(ran.err.contains("behind the end of this dump"), "{}", ran.err);
    let ran = run(["inspect".as_ref(), "--scan".as_ref(), path.as_path(), "--json".as_ref()]).succeeded();
    let looks = ran.json();
    assert_eq!(looks.len(), 2);
    assert!(looks[0]["path"].as_str().unwrap().ends_with("ram.bin+0x3e9"), "{}", looks[0]["path"]);
    assert_eq!(fs::read(&path).unwrap(), dump);

    fs::write(&path, &dump[..5000]).unwrap();
    let ran = run(["inspect".as_ref(), "--scan".as_ref(), path.as_path()]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("dump more memory") && ran.err.contains("no whole telemetry image"), "{}", ran.err);

    // One that is damaged doesn't hide the others: here the positions of the second contradict each other.
    let mut damaged = [one.as_slice(), &other, &one].concat();
    let intent = one.len() + 3648 + 64;
    damaged[intent..intent + 8].fill(0xff);
    fs::write(&path, &damaged).unwrap();
    let ran = run(["read".as_ref(), "--scan".as_ref(), path.as_path(), "--format".as_ref(), "jsonl".as_ref()]);
    let values: Vec<_> = ran.json().iter().map(|event| event["value"].clone()).collect();
    assert_eq!((ran.status, values), (2, vec![json!(11), json!(11)]), "{}", ran.err);
    assert!(ran.err.contains(&format!("ram.bin+{:#x}", one.len())), "{}", ran.err);
    let ran = run(["inspect".as_ref(), "--scan".as_ref(), path.as_path(), "--json".as_ref()]);
    assert_eq!((ran.status, ran.json().len()), (2, 2), "{}", ran.err);

    let mut swapped = damaged;
    swapped.chunks_exact_mut(4).for_each(<[u8]>::reverse);
    fs::write(&path, &swapped).unwrap();
    let ran = run(["read".as_ref(), "--scan".as_ref(), path.as_path()]);
    assert_eq!(ran.status, 2);
    assert!(ran.err.contains("swapped in words of 4"), "{}", ran.err);
}

#[test]
fn a_torn_record_is_counted_in_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("agent");
    let mut image = TestImage::new(64, "agent");
    image.push(T, TX_BYTES, 1).push(T + 1, TX_BYTES, 2).push(T + 2, TX_BYTES, 3);
    let mut bytes = image.bytes();
    bytes[40 + 56 + 50] ^= 1;
    fs::write(&path, bytes).unwrap();
    let ran = run(["read".as_ref(), path.as_path(), "--format".as_ref(), "jsonl".as_ref()]).succeeded();
    let items = ran.json();
    assert_eq!([&items[0]["value"], &items[1]["unverified"], &items[2]["value"]], [&json!(1), &json!(1), &json!(3)]);
    assert_eq!(items[1], json!({"unverified": 1}));
    let text = run(["read".as_ref(), path.as_path()]).out;
    assert_eq!(text.lines().filter(|line| line.starts_with("--- 1 record left out")).count(), 1, "{text}");
}

//! `telering serve`: one endpoint for a directory.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{nixl_ring, run, telering};
use telering::{Operation, Telemetry, TransferRecord};

struct Serve {
    child: Child,
    address: String,
}

impl Serve {
    fn start(directory: &Path, more: &[&str]) -> Serve {
        let mut command = telering();
        command.arg("serve").arg(directory).args(["--listen", "127.0.0.1:0"]).args(more);
        Serve::of(command)
    }

    fn of(mut command: Command) -> Serve {
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let address = line.split("http://").nth(1).unwrap_or_default().split('/').next().unwrap().to_owned();
        Serve { child, address }
    }

    fn page(&self) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    fn end(mut self, signal: &str) -> (Option<i32>, String) {
        let kill = Command::new("kill").args([signal, &self.child.id().to_string()]).status().unwrap();
        assert!(kill.success());
        let status = self.child.wait().unwrap().code();
        let mut err = String::new();
        self.child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
        (status, err)
    }
}

fn agent(name: &str, directory: &Path, bytes: u64) -> Telemetry {
    let agent = Telemetry::builder(name).ignore_environment(true).enable(true).dir(directory).build();
    agent.record_transfer(&TransferRecord {
        operation: Operation::Write,
        bytes,
        descriptors: 1,
        post_duration: Duration::from_micros(1),
        xfer_duration: Duration::from_micros(2),
    });
    assert!(agent.flush_now(Duration::from_secs(60)));
    agent
}

#[test]
fn serve_says_where_it_listens_and_ends_in_good_order_by_either_signal() {
    let dir = tempfile::tempdir().unwrap();
    let _agent = agent("one", dir.path(), 12);
    for signal in ["-TERM", "-INT"] {
        let serve = Serve::start(dir.path(), &[]);
        let page = serve.page();
        assert!(page.contains("agent_tx_bytes_total{hostname=") && page.contains("} 12\n"), "{page}");
        assert_eq!(serve.end(signal), (Some(0), String::new()));
    }
}

#[test]
fn once_prints_a_page_takes_nothing_and_survives_a_reader_that_leaves() {
    let dir = tempfile::tempdir().unwrap();
    for number in 0..50 {
        agent(&format!("agent-{number}"), dir.path(), 1);
    }
    let ring = dir.path().join("initiator");
    std::fs::write(&ring, nixl_ring(4, &[(0, 1)])).unwrap();
    let before = std::fs::read(&ring).unwrap();
    let page = run(["serve".as_ref(), dir.path().as_os_str(), "--once".as_ref()]).succeeded().out;
    assert!(page.lines().filter(|line| line.starts_with("agent_tx_bytes_total{")).count() == 50, "{page}");
    assert!(page.contains("telering_processes{state=\"not_consumable\"} 1\n"), "{page}");
    assert_eq!(std::fs::read(&ring).unwrap(), before);
    let mut child = telering()
        .arg("serve")
        .arg(dir.path())
        .arg("--once")
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let mut err = String::new();
    child.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!((child.wait().unwrap().code(), err.as_str()), (Some(0), ""));
}

#[test]
fn a_directory_that_comes_later_is_waited_for() {
    let dir = tempfile::tempdir().unwrap();
    let later = dir.path().join("later");
    let serve = Serve::start(&later, &[]);
    assert!(serve.page().contains("telering_directory_readable 0\n"));
    let _agent = agent("one", &later, 3);
    assert!(serve.page().contains("agent_name=\"one\""));
    let (status, err) = serve.end("-TERM");
    assert_eq!(status, Some(0));
    assert!(err.contains("later is not there yet"), "{err}");
}

#[test]
fn what_can_not_be_served_is_an_error_that_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().to_str().unwrap();
    let holder = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = holder.local_addr().unwrap().to_string();
    let refused = |arguments: &[&str], what: &str| {
        let ran = run([&["serve"], arguments].concat());
        assert_eq!((ran.status, ran.out.as_str()), (2, ""), "{arguments:?}");
        assert!(ran.err.contains(what), "{}", ran.err);
    };
    refused(&[path, "--listen", "192.0.2.1:1"], "cannot listen on 192.0.2.1:1");
    refused(&[path, "--listen", "nonsense"], "there is no port");
    refused(&[path, "--ttl", "soon"], "write a time");
    refused(&["/dev/null"], "cannot read the directory");
    refused(&[dir.path().join("missing").to_str().unwrap(), "--once"], "there is none");
    refused(&[path, "--listen", &taken], &format!("cannot listen on {taken}"));
}

#[test]
fn stable_labels_go_on_over_a_restart_and_the_dead_are_removed_if_asked_for() {
    let dir = tempfile::tempdir().unwrap();
    let serve = Serve::start(dir.path(), &["--labels", "stable", "--ttl", "100ms", "--remove-dead"]);
    let first = agent("first", dir.path(), 5);
    assert!(serve.page().contains("} 5\n"));
    first.close();
    assert!(serve.page().contains("telering_processes{state=\"closed\"} 1\n"));
    std::thread::sleep(Duration::from_millis(200));
    serve.page();
    let until = Instant::now() + Duration::from_secs(20);
    while std::fs::read_dir(dir.path()).unwrap().count() > 0 {
        assert!(Instant::now() < until, "the dead image is still there");
        std::thread::sleep(Duration::from_millis(50));
    }
    let _second = agent("second", dir.path(), 7);
    let page = serve.page();
    let line = page.lines().find(|line| line.starts_with("agent_tx_bytes_total{")).unwrap();
    assert!(line.ends_with("} 12") && !line.contains("agent_name"), "{line}");
    assert_eq!(serve.end("-TERM").0, Some(0));
}

#[test]
fn a_ring_of_nixl_is_consumed_and_never_removed() {
    let dir = tempfile::tempdir().unwrap();
    let ring = dir.path().join("initiator");
    std::fs::write(&ring, nixl_ring(64, &[(0, 1), (0, 2), (0, 3)])).unwrap();
    let serve = Serve::start(dir.path(), &["--ttl", "0", "--remove-dead"]);
    assert!(serve.page().contains("agent_tx_bytes_total{hostname="));
    std::thread::sleep(Duration::from_millis(600));
    assert!(serve.page().contains("agent_name=\"initiator\"} 6\n"), "{}", serve.page());
    let bytes = std::fs::read(&ring).unwrap();
    assert_eq!((bytes[0..8].to_vec(), bytes.len()), (bytes[8..16].to_vec(), 40 + 64 * 16));
    assert_eq!(serve.end("-TERM").0, Some(0));
}

#[test]
fn the_histograms_of_a_ring_have_the_bounds_that_engines_have() {
    let dir = tempfile::tempdir().unwrap();
    let page = |list: &str| {
        std::fs::write(dir.path().join("initiator"), nixl_ring(64, &[(6, 70), (6, 71), (6, 5000)])).unwrap();
        let mut command = telering();
        command.arg("serve").arg(dir.path()).args(["--listen", "127.0.0.1:0"]);
        command.env("NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US", list).env("NIXL_TELEMETRY_ENABLE", "?");
        let serve = Serve::of(command);
        let page = serve.page();
        let (status, err) = serve.end("-TERM");
        assert_eq!(status, Some(0));
        let bucket = "agent_xfer_time_us_bucket{";
        (page.lines().filter(|line| line.starts_with(bucket)).map(str::to_owned).collect::<Vec<_>>(), err)
    };
    let (buckets, err) = page("70, 900");
    assert!(err.is_empty(), "{err}");
    let ends = [r#"le="70"} 1"#, r#"le="900"} 2"#, r#"le="+Inf"} 3"#];
    assert!(buckets.len() == 3 && buckets.iter().zip(ends).all(|(line, end)| line.ends_with(end)), "{buckets:?}");
    let (buckets, err) = page("70, 60");
    assert_eq!((buckets.len(), err.lines().count()), (19, 1), "{err}");
    assert!(err.contains("NIXL_TELEMETRY_HISTOGRAM_BUCKETS_US") && err.contains("60"), "{err}");
}

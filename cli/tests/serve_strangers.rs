//! `telering serve` among strangers: slow clients, and writers of another user on a machine that can't be written to.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod common;

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use common::{nixl_ring, telering};

/// Ends with the test, however that ends.
struct Ends(Child);

impl Drop for Ends {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The address in the line that serve begins with.
fn address(child: &mut Child) -> String {
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let address = line.split("http://").nth(1).unwrap_or_else(|| panic!("{line:?}"));
    address.split('/').next().unwrap().to_owned()
}

fn page(address: &str) -> String {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut answer = String::new();
    stream.read_to_string(&mut answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    answer
}

#[test]
fn fifty_slow_clients_leave_a_scrape_under_a_second() {
    let dir = tempfile::tempdir().unwrap();
    // A long page: 150 agents.
    let living: Vec<_> = (0..150)
        .map(|number| {
            let builder =
                telering::Telemetry::builder(format!("living-{number}")).ignore_environment(true).enable(true);
            builder.dir(dir.path()).buffer_size(64).run_interval(Duration::from_secs(600)).build()
        })
        .collect();
    let mut serve = telering();
    serve.arg("serve").arg(dir.path()).args(["--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::null());
    let mut serve = Ends(serve.spawn().unwrap());
    let address = address(&mut serve.0);
    assert!(page(&address).len() > 1_000_000);
    let slow: Vec<_> = (0..50)
        .map(|number| {
            let mut stream = TcpStream::connect(&address).unwrap();
            // Some ask and take nothing, some begin to ask, some say nothing at all.
            match number % 3 {
                0 => stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n").unwrap(),
                1 => stream.write_all(b"GET /met").unwrap(),
                _ => {}
            }
            stream
        })
        .collect();
    for _ in 0..5 {
        let start = Instant::now();
        page(&address);
        eprintln!("a scrape beside 50 slow clients: {:?}", start.elapsed());
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }
    drop((slow, living));
}

/// Whether namespaces can be made. Where they can't, the test says that it didn't run; in continuous integration, which
/// is meant to prove something, that is a failure.
fn can_unshare(test: &str) -> bool {
    let root = Command::new("id").arg("-u").output().is_ok_and(|id| id.stdout == b"0\n");
    let can = root && Command::new("unshare").args(["-m", "true"]).status().is_ok_and(|status| status.success());
    if !can {
        eprintln!("SKIPPED {test}: it needs root and `unshare -m`");
        assert!(std::env::var_os("CI").is_none(), "{test} can't run here, and CI is set");
    }
    can
}

fn open(path: &Path) {
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

#[test]
fn agents_of_user_1000_are_served_by_user_1001_with_a_read_only_root_file_system() {
    if !can_unshare("agents_of_user_1000_..") {
        return;
    }
    let scene = tempfile::tempdir().unwrap();
    open(scene.path());
    // Where the build is only this user may look.
    let binary = scene.path().join("telering");
    std::fs::copy(env!("CARGO_BIN_EXE_telering"), &binary).unwrap();
    let directory = scene.path().join("telemetry");
    std::fs::create_dir(&directory).unwrap();
    let ring = directory.join("nixl");
    std::fs::write(&ring, nixl_ring(64, &[(0, 1)])).unwrap();
    open(&ring);
    for path in [&directory, &ring] {
        std::os::unix::fs::chown(path, Some(1000), Some(1000)).unwrap();
    }
    let mut demo = Command::new(&binary);
    demo.args(["demo", "--seconds", "60", "--rate", "100", "--dir"]).arg(&directory).uid(1000).gid(1000);
    let _demo = Ends(demo.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());

    let script = "mount -o remount,bind,ro / || exit 3; touch /written && exit 4; \
                  exec setpriv --reuid=1001 --regid=1001 --clear-groups \"$1\" serve \"$2\" --listen 127.0.0.1:0 --remove-dead --ttl 0";
    let mut serve = Command::new("unshare");
    serve.args(["-m", "sh", "-c", script, "sh"]).arg(&binary).arg(&directory);
    let mut serve = Ends(serve.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap());
    let address = address(&mut serve.0);
    let until = Instant::now() + Duration::from_secs(30);
    loop {
        let page = page(&address);
        let moved = page.lines().any(|line| {
            line.starts_with("agent_tx_bytes_total{")
                && line.contains("agent_name=\"demo-0\"")
                && !line.ends_with("} 0")
        });
        if moved {
            assert!(page.contains("telering_processes{state=\"alive\"} 1\n"), "{page}");
            assert!(page.contains("telering_processes{state=\"not_consumable\"} 1\n"), "{page}");
            break;
        }
        assert!(Instant::now() < until, "{page}");
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_eq!(std::fs::read(&ring).unwrap(), nixl_ring(64, &[(0, 1)]));
    // unshare and sh became serve by exec.
    let kill = Command::new("kill").args(["-TERM", &serve.0.id().to_string()]).status().unwrap();
    assert!(kill.success());
    assert_eq!(serve.0.wait().unwrap().code(), Some(0));
    let mut err = String::new();
    serve.0.stderr.take().unwrap().read_to_string(&mut err).unwrap();
    assert_eq!(err.matches("consuming needs write permission").count(), 1, "named once: {err}");
}

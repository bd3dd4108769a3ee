//! Who serves: elections, addresses, directories. What the names begin with is upstream's; see `conformance.rs`.

use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};

use super::*;
use crate::acceptance::{eventually, is_root};
use crate::rank::Job;

#[test]
fn exporter_owner_binds_and_records_to_store_duration_event_feeds_counter_gauge_and_histogram() {
    let scene = tempfile::tempdir().unwrap();
    let agent = member("agent", scene.path()).histogram_bounds([10, 25, 50, 100]).build();
    let address = agent.prometheus_address().expect("the first one serves");
    assert!(address.ip().is_loopback() && address.port() != 0);
    move_bytes(&agent, 1);
    let page = scrape(address);
    assert_eq!((page.number("agent_xfer_time_total", &[]), page.number("agent_xfer_time", &[])), (42, 42));
    let counts: Vec<_> = page.buckets("agent_xfer_time_us", &[]).into_iter().map(|(_, count)| count).collect();
    assert_eq!(counts, [0, 0, 1, 1, 1]);
}

#[test]
fn exporter_writer_mode_when_port_taken_warns_once_and_still_records() {
    let scene = tempfile::tempdir().unwrap();
    let other = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = other.local_addr().unwrap();
    let heard = Heard::default();
    let agent = member("agent", scene.path()).prometheus_port(address.port()).on_warning(heard.ear()).build();
    assert_eq!(heard.all().len(), 1, "{:?}", heard.all());
    assert!(heard.all()[0].contains(&address.to_string()), "{:?}", heard.all());
    assert_eq!(agent.prometheus_address(), None);
    move_bytes(&agent, 5);
    let info = telering::reader::Reader::open(agent.path().unwrap()).unwrap().info().unwrap();
    assert_eq!(info.metrics.unwrap().entry(telering::core::names::TX_BYTES).unwrap().sum, 5);
    // Tried again every five seconds, and not said again.
    drop(other);
    eventually("the address is free", Duration::from_secs(30), || agent.prometheus_address().is_some());
    assert_eq!(scrape(address).number(TX, &[]), 5);
    assert_eq!(heard.all().len(), 1, "{:?}", heard.all());
}

#[test]
fn exporter_writer_behind_sibling_owner_is_quiet_and_takes_over_when_the_owner_exits() {
    let scene = tempfile::tempdir().unwrap();
    let port = free_port();
    let job = Job::new(scene.path(), port);
    let mut owner = job.start(0);
    assert_eq!(owner.ready(), [""; 0]);
    assert!(owner.serves());
    let heard = Heard::default();
    let writer = member("writer", scene.path()).prometheus_port(port).on_warning(heard.ear()).build();
    move_bytes(&writer, 3);
    // Never from a living owner.
    std::thread::sleep(Duration::from_secs(1));
    assert_eq!(writer.prometheus_address(), None);
    assert!(owner.serves());
    owner.end();
    eventually("the writer serves", Duration::from_secs(2), || writer.prometheus_address().is_some());
    assert_eq!(scrape(local(port)).number(TX, &[("agent_name", "writer")]), 3);
    assert_eq!(heard.all(), [""; 0]);
}

#[test]
fn exporter_reclaim_while_serving_keeps_the_election() {
    let scene = tempfile::tempdir().unwrap();
    let first = member("first", scene.path()).build();
    let address = first.prometheus_address();
    // More agents of the process share its seat, and the seat stays when the first one goes.
    let second = member("second", scene.path()).build();
    assert_eq!(second.prometheus_address(), address);
    std::thread::sleep(Duration::from_millis(600));
    drop(first);
    assert_eq!(second.prometheus_address(), address);
    assert_eq!(scrape(address.unwrap()).number("telering_processes", &[("state", "alive")]), 1);
    drop(second);
    assert!(try_scrape(address.unwrap()).is_none(), "the last one gives it up");
}

#[test]
fn exporter_ranks_configured_for_another_address_serve_it_and_warn() {
    let scene = tempfile::tempdir().unwrap();
    let port = free_port();
    let mut owner = Job::new(scene.path(), port).start(0);
    assert_eq!(owner.ready(), [""; 0]);
    let heard = Heard::default();
    let other = member("other", scene.path()).prometheus_port(free_port()).on_warning(heard.ear()).build();
    assert_eq!(heard.all().len(), 1, "{:?}", heard.all());
    assert!(heard.all()[0].contains(&port.to_string()), "{:?}", heard.all());
    assert!(owner.serves());
    let both = ["agent-0", "other"].into();
    assert_eq!(scrape(other.prometheus_address().unwrap()).values_of("agent_name"), both);
    assert_eq!(scrape(local(port)).values_of("agent_name"), both);
}

#[test]
fn exporter_leftover_lock_file_is_not_a_second_owner() {
    let scene = tempfile::tempdir().unwrap();
    std::fs::write(scene.path().join(".telering-owner.127.0.0.1:1.lock"), "").unwrap();
    let heard = Heard::default();
    let agent = member("agent", scene.path()).on_warning(heard.ear()).build();
    assert!(agent.prometheus_address().is_some());
    assert_eq!(heard.all(), [""; 0]);
}

#[test]
fn a_lock_that_was_removed_with_its_directory_is_taken_anew_and_elects_again() {
    let scene = tempfile::tempdir().unwrap();
    let directory = scene.path().join("job");
    let port = free_port();
    let job = Job::new(&directory, port);
    let mut owner = job.start(0);
    assert_eq!(owner.ready(), [""; 0]);
    let lock = directory.join(format!(".telering-owner.127.0.0.1:{port}.lock"));
    for _ in 0..2 {
        std::fs::remove_dir_all(&directory).unwrap();
        // The owner's next flush makes the directory, and soon after that the lock is there and held.
        let is_held = || std::fs::File::open(&lock).is_ok_and(|file| file.try_lock_shared().is_err());
        eventually("the lock is held anew", Duration::from_secs(20), || {
            owner.move_bytes(1);
            is_held()
        });
    }
    let heard = Heard::default();
    let writer = member("writer", &directory).prometheus_port(port).on_warning(heard.ear()).build();
    move_bytes(&writer, 3);
    std::thread::sleep(Duration::from_millis(600));
    assert_eq!((writer.prometheus_address(), heard.all()), (None, Vec::new()), "a second owner");
    owner.talking.kill();
    eventually("the writer serves", Duration::from_secs(2), || writer.prometheus_address().is_some());
    assert_eq!(scrape(local(port)).number(TX, &[("agent_name", "writer")]), 3);
}

/// What stands under the lock file's name has no say in whether this process serves.
fn serves_in_spite_of(lock: impl FnOnce(&Path), said: &str) {
    let scene = tempfile::tempdir().unwrap();
    lock(&scene.path().join(".telering-owner.127.0.0.1:0.lock"));
    let heard = Heard::default();
    let agent = member("agent", scene.path()).on_warning(heard.ear()).build();
    assert!(agent.prometheus_address().is_some());
    assert_eq!(heard.all().len(), 1, "{:?}", heard.all());
    assert!(heard.all()[0].contains(said), "{:?}", heard.all());
}

#[test]
fn exporter_foreign_owned_lock_file_can_not_silence_the_run() {
    if !is_root("exporter_foreign_owned_lock_file_can_not_silence_the_run") {
        return;
    }
    let mut held = None;
    serves_in_spite_of(
        |path| {
            let file = std::fs::File::create(path).unwrap();
            file.lock().unwrap();
            held = Some(file);
            std::os::unix::fs::chown(path, Some(1000), None).unwrap();
        },
        "belongs to another user (1000)",
    );
}

#[test]
fn a_link_or_a_directory_as_lock_file_is_left_alone_and_said() {
    let target = tempfile::tempdir().unwrap();
    let target = target.path().join("target");
    serves_in_spite_of(|path| std::os::unix::fs::symlink(&target, path).unwrap(), "can't be opened");
    assert!(!target.exists(), "the link was followed");
    serves_in_spite_of(|path| std::fs::create_dir(path).unwrap(), "can't be opened");
}

#[test]
fn exporter_created_telemetry_dir_is_private_and_writable_ones_warn() {
    let scene = tempfile::tempdir().unwrap();
    let directory = scene.path().join("made").join("here");
    let agent = member("agent", &directory).build();
    assert_eq!(directory.metadata().unwrap().mode() & 0o7777, 0o700);
    drop(agent);
    for mode in [0o770, 0o707] {
        let heard = Heard::default();
        std::fs::set_permissions(&directory, std::fs::Permissions::from_mode(mode)).unwrap();
        let agent = member("agent", &directory).on_warning(heard.ear()).build();
        assert_eq!(heard.all().len(), 1, "{:?}", heard.all());
        assert!(heard.all()[0].contains(&format!("{mode:04o}")), "{:?}", heard.all());
        assert!(agent.prometheus_address().is_some());
    }
}

#[test]
fn exporter_missing_multiproc_dir_is_a_warning() {
    let scene = tempfile::tempdir().unwrap();
    let mut command = Job::new(scene.path(), 0).command(0);
    command.env_remove("NIXL_TELEMETRY_MULTIPROC_DIR");
    let mut talking = crate::acceptance::Talking::start(command);
    let warning = talking.hear("WARNING ").unwrap();
    assert!(warning.contains("NIXL_TELEMETRY_MULTIPROC_DIR"), "{warning}");
    assert_eq!(talking.hear("READY ").unwrap(), "Captured");
}

#[test]
fn a_directory_that_can_not_be_used_leaves_the_process_its_own_endpoint() {
    let scene = tempfile::tempdir().unwrap();
    let file = scene.path().join("file");
    std::fs::write(&file, "").unwrap();
    let heard = Heard::default();
    let agent = member("agent", &file).on_warning(heard.ear()).build();
    assert_eq!(heard.all().len(), 1, "{:?}", heard.all());
    assert!(heard.all()[0].contains("file"), "{:?}", heard.all());
    move_bytes(&agent, 3);
    assert_eq!(scrape(agent.prometheus_address().unwrap()).number(TX, &[("agent_name", "agent")]), 3);
}

#[test]
fn recording_goes_on_at_full_speed_while_pages_are_asked_for() {
    let scene = tempfile::tempdir().unwrap();
    let agent = member("agent", scene.path()).build();
    let address = agent.prometheus_address().unwrap();
    let stop = std::sync::atomic::AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(std::sync::atomic::Ordering::Relaxed) {
                scrape(address);
            }
        });
        let mut longest = Duration::ZERO;
        for _ in 0..20_000 {
            let start = std::time::Instant::now();
            agent.memory_registered(1);
            longest = longest.max(start.elapsed());
        }
        stop.store(true, std::sync::atomic::Ordering::Relaxed);
        // A scheduler's slice, and no page.
        assert!(longest < Duration::from_secs(1), "{longest:?}");
    });
    assert!(agent.flush_now(Duration::from_secs(60)));
    assert_eq!(scrape(address).number("agent_memory_registered_total", &[]), 20_000);
}

#[test]
fn on_an_unsuited_file_system_the_failing_call_is_named_and_the_endpoint_answers() {
    const NO_FLOCK: &str = "#include <errno.h>\nint flock(int f, int o) { errno = ENOLCK; return -1; }\n";
    const NO_MMAP: &str = "#define _GNU_SOURCE\n#include <errno.h>\n#include <sys/mman.h>\n#include <sys/syscall.h>\n\
        #include <unistd.h>\nvoid *mmap(void *a, size_t l, int p, int f, int d, off_t o) {\n\
        if (f & MAP_SHARED) { errno = ENODEV; return MAP_FAILED; }\n\
        return (void *)syscall(SYS_mmap, a, l, p, f, d, o); }\n\
        void *mmap64(void *a, size_t l, int p, int f, int d, off_t o) { return mmap(a, l, p, f, d, o); }\n";
    for (call, source) in [("flock", NO_FLOCK), ("mmap", NO_MMAP)] {
        let (scene, tools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
        let (code, library) = (tools.path().join("failing.c"), tools.path().join("failing.so"));
        std::fs::write(&code, source).unwrap();
        let built = std::process::Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &code]).status();
        assert!(built.expect("a C compiler builds the failing calls").success());
        let port = free_port();
        let mut command = Job::new(scene.path(), port).command(0);
        command.env("LD_PRELOAD", &library);
        let mut rank = crate::rank::Rank { talking: crate::acceptance::Talking::start(command) };
        let said = rank.ready();
        let here = scene.path().to_str().unwrap();
        assert!(said.iter().any(|warning| warning.contains(call) && warning.contains(here)), "{said:?}");
        rank.move_bytes(7);
        let page = scrape(local(port));
        assert_eq!(page.number(TX, &[("agent_name", "agent-0")]), 7, "{call}");
    }
}

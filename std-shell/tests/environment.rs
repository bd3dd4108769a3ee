//! Places that want no telemetry file, and settings that make no sense, under a real agent that takes them from
//! the environment: one clear warning each, the agent runs, and nothing of others is touched.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod acceptance;

use std::ffi::OsStr;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use acceptance::{Heard, Tmpfs, agent, is_root, names_in, order, process, transfer};
use telering::core::image::{ImagePlan, PartSet};
use telering::core::layout::image::TimeBase;
use telering::reader::{Liveness, OpenError, Reader};
use telering::{Mode, Operation, Telemetry};

/// Not a test of its own: an agent with the settings of its environment, at work, in a process of its own.
#[test]
fn a_program() {
    let Some((name, _)) = order() else { return };
    let heard = Heard::default();
    let agent = Telemetry::builder(&name).on_warning(heard.ear()).build();
    println!("\nMODE {:?}", agent.mode());
    println!("PATH {}", agent.path().map(|path| path.display().to_string()).unwrap_or_default());
    for number in 1..=1000 {
        let mut transfer = agent.begin_transfer(Operation::Write, number, 1);
        transfer.posted();
        transfer.finish();
        assert_eq!(transfer.telemetry().map(|telemetry| telemetry.total_bytes), Some(number));
    }
    let flow = agent.close();
    assert_eq!(flow.recorded, flow.exported);
    println!("EXPORTED {}", flow.exported);
    heard.all().iter().for_each(|warning| println!("WARNING {warning}"));
}

/// What a program said.
#[derive(Debug)]
struct Said {
    mode: String,
    path: PathBuf,
    exported: u64,
    warnings: Vec<String>,
}

/// Runs the program with these settings. It must end well, whatever they are.
fn run(name: &str, settings: &[(&str, &OsStr)]) -> Said {
    let mut command = process("a_program", name, "");
    for (key, _) in std::env::vars_os() {
        if key.to_str().is_some_and(|key| key.starts_with("NIXL_") || key.starts_with("TELERING_TELEMETRY_")) {
            command.env_remove(key);
        }
    }
    command.envs(settings.iter().copied());
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{settings:?}: {:?}\n{text}\n{errors}", output.status);
    assert!(!errors.contains("panicked"), "{errors}");
    let all = |word: &str| -> Vec<String> {
        text.lines().filter_map(|line| Some(line.strip_prefix(word)?.trim().to_owned())).collect()
    };
    Said {
        mode: all("MODE").remove(0),
        path: all("PATH").remove(0).into(),
        exported: all("EXPORTED").remove(0).parse().unwrap(),
        warnings: all("WARNING"),
    }
}

const ENABLE: (&str, &str) = ("NIXL_TELEMETRY_ENABLE", "y");
const DIR: &str = "NIXL_TELEMETRY_DIR";

fn run_in(directory: &Path, more: &[(&str, &str)]) -> Said {
    let mut settings = vec![(ENABLE.0, OsStr::new(ENABLE.1)), (DIR, directory.as_os_str())];
    settings.extend(more.iter().map(|&(key, value)| (key, OsStr::new(value))));
    run("agent", &settings)
}

/// The agent ran without a file, and said why in one warning that has all of `words`.
fn has_no_file(said: &Said, words: &[&str]) {
    assert_eq!((said.mode.as_str(), said.exported), ("Captured", 0), "{said:?}");
    assert_eq!(said.path, Path::new(""), "{said:?}");
    let [warning] = said.warnings.as_slice() else { panic!("exactly one warning: {said:#?}") };
    words.iter().for_each(|word| assert!(warning.contains(word), "{word}: {warning}"));
}

#[test]
fn a_sound_environment_gives_a_file_and_no_warning() {
    let directory = tempfile::tempdir().unwrap();
    let said = run_in(directory.path(), &[]);
    assert_eq!((said.mode.as_str(), said.exported), ("Exported", 4000));
    assert!(said.warnings.is_empty(), "{said:?}");
    assert_eq!(said.path, directory.path().join("agent"));
}

#[test]
fn a_file_system_of_64_kib_has_no_room_for_a_million_events() {
    if !is_root("a_file_system_of_64_kib") {
        return;
    }
    let tmpfs = Tmpfs::new("size=64k");
    let said = run_in(tmpfs.path(), &[("NIXL_TELEMETRY_BUFFER_SIZE", "1048576")]);
    let plan = ImagePlan::new(1 << 20, PartSet::ALL, TimeBase::Unix).unwrap();
    let wanted = format!("{} bytes wanted", plan.image_len());
    has_no_file(&said, &["no room", tmpfs.path().join("agent").to_str().unwrap(), &wanted, "BUFFER_SIZE"]);
    assert_eq!(names_in(tmpfs.path()), [""; 0], "no part of a file");
    // The same through the builder, in this process.
    let heard = Heard::default();
    let agent = agent("agent").dir(tmpfs.path()).buffer_size(1 << 20).on_warning(heard.ear()).build();
    assert_eq!((agent.mode(), heard.all().len()), (Mode::Captured, 1), "{heard:?}");
    agent.record_transfer(&transfer(1));
    // A small one fits.
    assert_eq!(run_in(tmpfs.path(), &[("NIXL_TELEMETRY_BUFFER_SIZE", "64")]).mode, "Exported");
}

#[test]
fn a_file_system_that_may_only_be_read_gets_no_file() {
    if !is_root("a_file_system_that_may_only_be_read") {
        return;
    }
    let tmpfs = Tmpfs::new("size=1m,ro");
    for directory in [tmpfs.path().to_path_buf(), tmpfs.path().join("below")] {
        has_no_file(&run_in(&directory, &[]), &["no telemetry file", directory.to_str().unwrap(), DIR]);
    }
}

#[test]
fn a_directory_without_permission_gets_no_file() {
    if !is_root("a_directory_without_permission") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o555)).unwrap();
    // Permissions don't stop root, so the agent is somebody else here.
    let settings = [(ENABLE.0, OsStr::new(ENABLE.1)), (DIR, directory.path().as_os_str())];
    let mut command = process("a_program_of_nobody", "agent", directory.path());
    let output = command.envs(settings).stdin(Stdio::null()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text} {}", String::from_utf8_lossy(&output.stderr));
    let warnings: Vec<_> = text.lines().filter(|line| line.starts_with("WARNING ")).collect();
    assert!(warnings.len() == 1 && warnings[0].contains(directory.path().to_str().unwrap()), "{text}");
    assert_eq!(names_in(directory.path()), [""; 0]);
}

/// Makes this process nobody's.
fn become_nobody() {
    // SAFETY: plain calls; they change this process only, which exists for one test.
    let done =
        unsafe { libc::setgroups(0, std::ptr::null()) == 0 && libc::setgid(65534) == 0 && libc::setuid(65534) == 0 };
    assert!(done && !rustix::process::geteuid().is_root());
}

/// Not a test of its own.
#[test]
fn a_program_of_nobody() {
    if order().is_some() {
        become_nobody();
        a_program();
    }
}

#[test]
fn what_stands_under_the_name_is_left_alone() {
    type Put = fn(&Path);
    let put: [(&str, Put); 6] = [
        ("FIFO", |path| assert!(Command::new("mkfifo").arg(path).status().unwrap().success())),
        ("symbolic link", |path| {
            fs::write(path.with_extension("victim"), "precious").unwrap();
            std::os::unix::fs::symlink(path.with_extension("victim"), path).unwrap();
        }),
        ("symbolic link", |path| std::os::unix::fs::symlink("/nowhere", path).unwrap()),
        ("directory", |path| fs::create_dir(path).unwrap()),
        ("no telemetry file", |path| fs::write(path, "somebody's notes").unwrap()),
        ("no telemetry file", |path| fs::write(path, [0xff; 70_000]).unwrap()),
    ];
    for (what, put) in put {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join("agent");
        put(&name);
        let look = || -> Vec<_> {
            let names = names_in(directory.path()).into_iter();
            names.map(|name| directory.path().join(name)).map(|path| (look_at(&path), path)).collect()
        };
        let before = look();
        has_no_file(&run_in(directory.path(), &[]), &[what, name.to_str().unwrap(), "left alone"]);
        assert_eq!(look(), before, "{what}: nothing is touched and nothing added");
        // Readers are neither stopped nor led astray by it.
        assert!(matches!(Reader::open(&name), Err(OpenError::NotTelemetry { .. } | OpenError::Io { .. })), "{what}");
        assert!(telering::source::scan(directory.path()).unwrap().found.is_empty(), "{what}");
    }
}

/// All of a file that must not change.
fn look_at(path: &Path) -> (u64, i64, Vec<u8>) {
    use std::os::unix::fs::MetadataExt as _;
    let metadata = path.symlink_metadata().unwrap();
    let bytes = if metadata.is_file() { fs::read(path).unwrap() } else { Vec::new() };
    (metadata.ino(), metadata.mtime_nsec(), bytes)
}

/// A library for `LD_PRELOAD` in which calls fail as they do on network and object file systems.
fn failing(directory: &Path, source: &str) -> PathBuf {
    let (code, library) = (directory.join("failing.c"), directory.join("failing.so"));
    fs::write(&code, source).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &code]).status();
    assert!(built.expect("a C compiler builds the failing calls").success());
    library
}

#[test]
fn a_file_system_without_locks_or_shared_mappings_is_named_with_the_call_that_fails() {
    const NO_FLOCK: &str =
        "#include <errno.h>\nint flock(int f, int o) { (void)f; (void)o; errno = ENOLCK; return -1; }\n";
    const NO_MMAP: &str = "#define _GNU_SOURCE\n#include <errno.h>\n#include <sys/mman.h>\n#include <sys/syscall.h>\n\
        #include <unistd.h>\nvoid *mmap(void *a, size_t l, int p, int f, int d, off_t o) {\n\
        if (f & MAP_SHARED) { errno = ENODEV; return MAP_FAILED; }\n\
        return (void *)syscall(SYS_mmap, a, l, p, f, d, o); }\n\
        void *mmap64(void *a, size_t l, int p, int f, int d, off_t o) { return mmap(a, l, p, f, d, o); }\n";
    let (directory, tools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let here = directory.path().to_str().unwrap();

    let library = failing(tools.path(), NO_FLOCK);
    let said = run_in(directory.path(), &[("LD_PRELOAD", library.to_str().unwrap())]);
    assert_eq!((said.mode.as_str(), said.exported), ("Exported", 4000), "a file, told by its heartbeat");
    assert!(said.warnings.len() == 1 && said.warnings[0].contains("flock"), "{said:?}");
    assert!(said.warnings[0].contains(here), "{said:?}");
    fs::remove_dir_all(directory.path()).unwrap();

    let library = failing(tools.path(), NO_MMAP);
    let said = run_in(directory.path(), &[("LD_PRELOAD", library.to_str().unwrap())]);
    has_no_file(&said, &["mmap", here]);
    assert_eq!(names_in(directory.path()), [""; 0]);
}

#[test]
fn every_buffer_size_is_right_or_refused_by_its_value() {
    for (size, capacity, warned) in [
        ("0", 4096, true),
        ("1", 64, true),
        ("2", 64, true),
        ("3", 64, true),
        ("5", 64, true),
        ("1000", 1024, true),
        ("4095", 4096, true),
        ("4096", 4096, false),
        ("9223372036854775809", 4096, true),
        ("18446744073709551615", 4096, true),
        ("18446744073709551616", 4096, true),
        ("-1", 4096, true),
        ("4096 events", 4096, true),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let said = run_in(directory.path(), &[("NIXL_TELEMETRY_BUFFER_SIZE", size)]);
        assert_eq!((said.mode.as_str(), said.exported), ("Exported", 4000), "{size}: {said:?}");
        assert_eq!(said.warnings.len(), usize::from(warned), "{size}: {said:?}");
        assert!(said.warnings.iter().all(|warning| warning.contains(size)), "{size}: {said:?}");
        let mut reader = Reader::open(&said.path).unwrap();
        assert_eq!(reader.info().unwrap().capacity, capacity, "{size}");
        let mut items = Vec::new();
        while reader.read(&mut items).unwrap() > 0 {}
        assert_eq!(reader.counts().total() + reader.start(), 4002, "{size}");
        assert_eq!(reader.counts().events, capacity.min(4002), "{size}");
    }
}

#[test]
fn every_agent_name_has_a_file_of_its_own_inside_the_directory_or_is_refused() {
    let outer = tempfile::tempdir().unwrap();
    let directory = outer.path().join("d");
    let long = "x".repeat(300);
    let names =
        ["a/b", "a_b", "a%2Fb", "..", ".", "../../etc/x", "/abs", "new\nline", "nul\0", "größe", "a@7", ".hidden"];
    let mut agents = Vec::new();
    for name in names {
        let heard = Heard::default();
        let agent = agent(name).dir(&directory).on_warning(heard.ear()).build();
        assert_eq!((agent.mode(), heard.all().len()), (Mode::Exported, 0), "{name:?} {heard:?}");
        let path = agent.path().unwrap();
        assert_eq!(path.parent(), Some(&*directory), "{name:?}");
        // A NUL ends a text in the file; else the name is there again for labels.
        let recovered = Reader::open(&path).unwrap().info().unwrap().identity.unwrap().agent;
        assert_eq!(recovered, name.trim_end_matches('\0'), "{name:?}");
        agents.push((name, path, agent));
    }
    let visible = names_in(&directory).into_iter().filter(|name| !name.starts_with('.')).count();
    assert_eq!(visible, names.len(), "different names, different files");
    assert_eq!(names_in(outer.path()), ["d"]);
    let found = telering::source::scan(&directory).unwrap().found;
    assert_eq!(found.len(), names.len());
    for (name, path, _) in &agents {
        let found = found.iter().find(|found| found.path == *path).unwrap();
        assert_eq!((found.agent.as_str(), found.liveness), (name.trim_end_matches('\0'), Liveness::Alive));
    }
    for name in ["", &long] {
        let heard = Heard::default();
        let agent = agent(name).dir(&directory).on_warning(heard.ear()).build();
        assert_eq!((agent.mode(), heard.all().len()), (Mode::Captured, 1), "{name:?} {heard:?}");
        agent.record_transfer(&transfer(1));
    }
    assert_eq!(names_in(&directory).len(), 2 * names.len(), "nothing was left behind");
}

/// Not a test of its own: reads as nobody.
#[test]
fn a_reader_of_nobody() {
    let Some((_, path)) = order() else { return };
    become_nobody();
    assert!(fs::File::options().write(true).open(&path).is_err(), "it may not write");
    let mut reader = Reader::open(&path).unwrap();
    let mut items = Vec::new();
    while reader.read(&mut items).unwrap() > 0 {}
    let info = reader.info().unwrap();
    println!("\nREAD {} {}", reader.counts().events, info.liveness);
    let found = telering::source::scan(path.parent().unwrap()).unwrap().found;
    assert_eq!(found[0].liveness, Liveness::Alive);
    assert!(telering::file::clean::plan(path.parent().unwrap()).unwrap().is_empty());
}

#[test]
fn reading_takes_no_more_than_permission_to_read() {
    if !is_root("reading_takes_no_more") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    fs::set_permissions(directory.path(), fs::Permissions::from_mode(0o755)).unwrap();
    let agent = agent("agent").dir(directory.path()).build();
    (1..=10).for_each(|number| agent.record_transfer(&transfer(number)));
    assert!(agent.flush_now(std::time::Duration::from_secs(60)));
    let path = agent.path().unwrap();
    assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o644);
    let output = process("a_reader_of_nobody", "go", &path).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("\nREAD 41 alive"), "{text}");
    assert_eq!(agent.close().lost.total(), 0);
}

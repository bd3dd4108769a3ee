//! Several processes: one name, deaths, process id 1 twice, calls that fail.

use std::io::{BufRead as _, BufReader, Read as _};
use std::process::{Child, Stdio};

use super::*;
use crate::file::lock::{LockState, lock_state};

/// A process that writes a file until it is killed, or until its standard input ends.
struct Writer {
    child: Child,
    path: PathBuf,
    said: Vec<String>,
}

const TEST: &str = "processes::a_writer_in_a_process_of_its_own";

/// Not a test of its own: what the processes of the other tests run.
#[test]
fn a_writer_in_a_process_of_its_own() {
    let Some((agent, directory)) = order() else { return };
    let heard = Heard::new();
    let made = make(&directory, &agent, &heard);
    heard.take().iter().for_each(|warning| println!("\nWARNING {warning}"));
    match &made {
        Ok(file) => println!("\nPATH {}", file.path().display()),
        Err(error) => println!("\nERROR {error}"),
    }
    let _ = std::io::stdin().read(&mut [0]);
}

impl Writer {
    fn start(mut command: Command) -> Writer {
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut said = Vec::new();
        let path = loop {
            let line = lines.next().expect("the writer ended early").unwrap();
            if let Some(path) = line.strip_prefix("PATH ") {
                break path.into();
            } else if line.starts_with("WARNING ") {
                said.push(line);
            } else if line.starts_with("ERROR ") {
                said.push(line);
                break PathBuf::new();
            }
        };
        // The rest is read by nobody; the pipe must stay open.
        std::thread::spawn(move || lines.for_each(drop));
        Writer { child, path, said }
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn end(mut self) {
        drop(self.child.stdin.take());
        assert!(self.child.wait().unwrap().success());
    }
}

#[test]
fn two_processes_of_one_name_get_two_files() {
    let directory = tempfile::tempdir().unwrap();
    let first = Writer::start(in_process(TEST, "agent", directory.path()));
    let second = Writer::start(in_process(TEST, "agent", directory.path()));
    assert_eq!(first.path, directory.path().join("agent"));
    assert_eq!(second.path, directory.path().join(format!("agent@{}", second.child.id())));
    assert_ne!(inode(&first.path), inode(&second.path));
    assert!(first.said.is_empty());
    assert_eq!(second.said.len(), 1);
    first.end();
    second.end();
}

#[test]
fn a_killed_writer_is_dead_at_once_and_a_restart_takes_the_name() {
    let directory = tempfile::tempdir().unwrap();
    for round in 0..5 {
        let writer = Writer::start(in_process(TEST, "agent", directory.path()));
        assert_eq!(writer.path, directory.path().join("agent"), "round {round}");
        assert!(matches!(lock_state(&writer.path).unwrap(), LockState::Held));
        let path = writer.path.clone();
        writer.kill();
        assert!(matches!(lock_state(&path).unwrap(), LockState::Free));
        match round {
            // Some of the files removed, as by a half-done clean-up.
            1 => fs::remove_file(&path).unwrap(),
            2 => {
                for name in names_in(directory.path()).iter().filter(|name| name.starts_with('.')) {
                    fs::remove_file(directory.path().join(name)).unwrap();
                }
            }
            _ => {}
        }
    }
}

#[test]
fn two_pid_namespaces_that_both_have_process_1_get_two_files() {
    if !may_mount("two_pid_namespaces") {
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let start = || {
        let mut command = Command::new("unshare");
        command.args(["--pid", "--fork", "--kill-child"]).arg(std::env::current_exe().unwrap());
        set_order(&mut command, TEST, "agent", directory.path());
        Writer::start(command)
    };
    let (first, second, third) = (start(), start(), start());
    assert_eq!(first.path, directory.path().join("agent"));
    assert_eq!(second.path, directory.path().join("agent@1"));
    assert_eq!(third.path, directory.path().join("agent@1@2"));
    let hidden = [".agent.1.telering", ".agent.1@2.telering", ".agent.1@3.telering"];
    assert_eq!(names_in(directory.path())[..3], hidden);
    for (writer, hidden) in [&first, &second, &third].into_iter().zip(hidden) {
        assert_eq!(inode(&writer.path), inode(&directory.path().join(hidden)));
    }
    [first, second, third].into_iter().for_each(Writer::end);
}

/// A library for `LD_PRELOAD` in which one call fails.
fn failing(directory: &Path, source: &str) -> PathBuf {
    let (code, library) = (directory.join("failing.c"), directory.join("failing.so"));
    fs::write(&code, source).unwrap();
    let built = Command::new("cc").args(["-shared", "-fPIC", "-o"]).args([&library, &code]).status();
    assert!(built.expect("a C compiler builds the failing calls").success());
    library
}

#[test]
fn without_flock_a_file_is_made_and_one_warning_names_directory_and_call() {
    let (outer, tools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let library = failing(
        tools.path(),
        "#include <errno.h>\nint flock(int f, int o) { (void)f; (void)o; errno = ENOLCK; return -1; }",
    );
    let start = || {
        let mut command = in_process(TEST, "agent", outer.path());
        command.env("LD_PRELOAD", &library);
        Writer::start(command)
    };
    let first = start();
    assert_eq!(first.path, outer.path().join("agent"));
    assert_eq!(first.said.len(), 1, "{:?}", first.said);
    assert!(first.said[0].contains("flock") && first.said[0].contains(outer.path().to_str().unwrap()));
    // By its heartbeat the first one lives.
    let second = start();
    assert_eq!(second.path, outer.path().join(format!("agent@{}", second.child.id())));
    first.end();
    second.end();
}

#[test]
fn without_mmap_there_is_an_error_that_names_directory_and_call_and_no_file() {
    let (outer, tools) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let source = "#define _GNU_SOURCE\n#include <errno.h>\n#include <sys/mman.h>\n#include <sys/syscall.h>\n#include <unistd.h>\n\
        void *mmap(void *a, size_t l, int p, int f, int d, off_t o) {\n\
        if (f & MAP_SHARED) { errno = ENODEV; return MAP_FAILED; }\n\
        return (void *)syscall(SYS_mmap, a, l, p, f, d, o); }\n\
        void *mmap64(void *a, size_t l, int p, int f, int d, off_t o) { return mmap(a, l, p, f, d, o); }";
    let library = failing(tools.path(), source);
    let mut command = in_process(TEST, "agent", outer.path());
    command.env("LD_PRELOAD", &library);
    let writer = Writer::start(command);
    assert_eq!(writer.said.len(), 1, "{:?}", writer.said);
    assert!(writer.said[0].contains("ERROR") && writer.said[0].contains("mmap"), "{:?}", writer.said);
    assert!(writer.said[0].contains(outer.path().to_str().unwrap()));
    assert!(names_in(outer.path()).is_empty());
    writer.end();
}

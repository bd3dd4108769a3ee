//! Where a warning goes when the program has no callback: to its logger, else to stderr.

use std::process::Command;
use std::sync::Mutex;
use telering::warn::{Warner, WarningKind};

/// Set in the child process that the stderr test starts.
const CHILD: &str = "TELERING_TEST_WARNS_ON_STDERR";

static LOGGED: Mutex<Vec<String>> = Mutex::new(Vec::new());

struct Logger;

impl log::Log for Logger {
    fn enabled(&self, _: &log::Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &log::Record<'_>) {
        let line = format!("{} {}: {}", record.level(), record.target(), record.args());
        assert!(!line.contains("panic, please"), "as asked for");
        LOGGED.lock().expect("no other test logs").push(line);
    }

    fn flush(&self) {}
}

#[test]
fn a_logger_hears_warnings_and_may_panic() {
    if std::env::var_os(CHILD).is_some() {
        return;
    }
    log::set_logger(&Logger).expect("the only logger");
    log::set_max_level(log::LevelFilter::Warn);
    Warner::default().warn(WarningKind::File, "no room in /dev/shm");
    Warner::default().warn(WarningKind::File, "panic, please");
    assert_eq!(*LOGGED.lock().expect("not poisoned"), ["WARN telering: no room in /dev/shm"]);
}

#[test]
fn without_a_logger_a_warning_is_one_line_on_stderr() {
    let name = "without_a_logger_a_warning_is_one_line_on_stderr";
    if std::env::var_os(CHILD).is_some() {
        Warner::default().warn(WarningKind::File, "two\nlines");
        return;
    }
    let itself = std::env::current_exe().expect("the test's own path");
    let output = Command::new(itself).args(["--exact", name, "--nocapture"]).env(CHILD, "1").output().expect("started");
    let text = String::from_utf8(output.stderr).expect("UTF-8");
    assert!(output.status.success() && text.lines().any(|line| line == "telering: two\\nlines"), "{text}");
}

//! Files and their life, with real files, locks, mounts, signals and processes.

mod clean;
mod create;
mod fork;
mod hostile;
mod names;
mod processes;
mod trouble;

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

use telering_core::image::{Identity, ImagePlan, ImageState, PartSet};
use telering_core::layout::image::TimeBase;
use telering_core::sync::AtomicU64;

use super::FileError;
use super::create::create;
use super::life::ImageFile;
use crate::config::FILE_MODE_DEFAULT;
use crate::warn::{Warner, Warning};

pub(super) const CAPACITY: u64 = 64;

pub(crate) fn plan() -> ImagePlan {
    ImagePlan::new(CAPACITY, PartSet::ALL, TimeBase::Unix).unwrap()
}

pub(super) fn format(words: &[AtomicU64]) -> ImageState {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros() as u64;
    plan().format(words, true, 77, now, &Identity::default(), &[]).unwrap()
}

/// A warner and what it said.
pub(crate) struct Heard {
    pub(crate) warner: Warner,
    said: Arc<Mutex<Vec<String>>>,
}

impl Heard {
    pub(crate) fn new() -> Heard {
        let said = Arc::new(Mutex::new(Vec::new()));
        let sink = Arc::clone(&said);
        let hear = move |warning: &Warning| sink.lock().unwrap().push(warning.message.clone());
        Heard { warner: Warner::new(Some(Arc::new(hear))), said }
    }

    /// What was said since the last call.
    pub(crate) fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.said.lock().unwrap())
    }

    /// The one thing that was said since the last call.
    pub(crate) fn only(&self) -> String {
        let said = self.take();
        assert_eq!(said.len(), 1, "exactly one warning: {said:#?}");
        said.into_iter().next().unwrap()
    }
}

pub(super) fn make(directory: &Path, agent: &str, heard: &Heard) -> Result<ImageFile, FileError> {
    let initialise = |words: &[AtomicU64]| _ = format(words);
    create(directory, agent, plan().image_len(), FILE_MODE_DEFAULT, &heard.warner, initialise)
}

pub(crate) fn names_in(directory: &Path) -> Vec<String> {
    let mut names: Vec<_> =
        fs::read_dir(directory).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

pub(super) fn inode(path: &Path) -> u64 {
    path.symlink_metadata().unwrap().ino()
}

pub(super) fn pid() -> u32 {
    std::process::id()
}

/// A NIXL ring's file as its producer makes it.
pub(super) fn nixl_ring(version: u32, capacity: u64, event: u64) -> Vec<u8> {
    let mut bytes = vec![0; (40 + capacity * event) as usize];
    bytes[16..20].copy_from_slice(&version.to_le_bytes());
    bytes[20..24].copy_from_slice(&version.to_le_bytes());
    bytes[24..32].copy_from_slice(&capacity.to_le_bytes());
    bytes[32..40].copy_from_slice(&(capacity - 1).to_le_bytes());
    bytes
}

/// Whether this process is root and may mount. Where it isn't, the test says that it didn't run; a run that is
/// meant to prove something (CI is set) fails then.
pub(super) fn may_mount(test: &str) -> bool {
    let root = rustix::process::geteuid().is_root();
    if !root {
        // Not by `eprintln!`, which the test harness keeps to itself.
        let _ = writeln!(std::io::stderr(), "SKIPPED {test}: it needs root (mount, unshare)");
        assert!(std::env::var_os("CI").is_none(), "{test} can't run without root, and CI is set");
    }
    root
}

/// A mounted tmpfs, unmounted at the end.
pub(super) struct Tmpfs(tempfile::TempDir);

impl Tmpfs {
    pub(super) fn new(options: &str) -> Tmpfs {
        let directory = tempfile::tempdir().unwrap();
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "none"]).arg(directory.path()).status();
        assert!(mounted.unwrap().success(), "mount");
        Tmpfs(directory)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }
}

impl Drop for Tmpfs {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0.path()).status();
    }
}

/// Runs one test of this very binary in a process of its own, with an order for it in the environment.
pub(super) fn in_process(test: &str, order: &str, directory: &Path) -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    set_order(&mut command, test, order, directory);
    command
}

pub(super) fn set_order(command: &mut Command, test: &str, order: &str, directory: &Path) {
    command.args(["--exact", &format!("file::tests::{test}"), "--nocapture", "--test-threads=1"]);
    command.env("TELERING_TEST_ORDER", order).env("TELERING_TEST_DIR", directory);
}

/// The order of a test that runs in a process of its own; `None` in the ordinary run.
pub(super) fn order() -> Option<(String, PathBuf)> {
    let order = std::env::var("TELERING_TEST_ORDER").ok()?;
    Some((order, std::env::var_os("TELERING_TEST_DIR")?.into()))
}

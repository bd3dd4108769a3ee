//! What Linux says about this process and its threads.

use std::error::Error;
use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::Path;

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Bytes of the private memory that has pages, counted page by page.
pub(crate) fn anonymous() -> Result<u64> {
    kib_of(&fs::read_to_string("/proc/self/smaps_rollup")?, "Anonymous:")
}

/// Bytes of a mapped file that have pages in this process.
pub(crate) fn resident_of(path: &Path) -> Result<u64> {
    let maps = fs::read_to_string("/proc/self/smaps")?;
    let name = path.to_str().ok_or("a path that is no text")?;
    let (_, after) = maps.split_once(name).ok_or("the telemetry file is not mapped")?;
    kib_of(after, "Rss:")
}

fn kib_of(text: &str, field: &str) -> Result<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(field)).ok_or_else(|| format!("no line {field}"))?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib << 10)
}

/// Bytes that the file system gave to a file.
pub(crate) fn blocks(path: &Path) -> Result<u64> {
    Ok(fs::metadata(path)?.blocks() * 512)
}

/// A thread of this process.
pub(crate) struct Task(String);

/// What a thread used so far.
#[derive(Clone, Copy)]
pub(crate) struct Used {
    pub(crate) nanoseconds: u64,
    /// How often it went to sleep of its own accord.
    pub(crate) sleeps: u64,
}

impl Task {
    /// The one thread of this name.
    pub(crate) fn named(name: &str) -> Result<Task> {
        for entry in fs::read_dir("/proc/self/task")? {
            let path = entry?.path();
            if fs::read_to_string(path.join("comm"))?.trim_end() == name {
                return Ok(Task(path.to_string_lossy().into_owned()));
            }
        }
        Err(format!("no thread is called {name}").into())
    }

    pub(crate) fn used(&self) -> Result<Used> {
        let schedule = fs::read_to_string(format!("{}/schedstat", self.0))?;
        let status = fs::read_to_string(format!("{}/status", self.0))?;
        let sleeps = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"));
        Ok(Used {
            nanoseconds: schedule.split(' ').next().ok_or("an empty schedstat")?.parse()?,
            sleeps: sleeps.ok_or("no count of switches")?.trim().parse()?,
        })
    }
}

impl Used {
    pub(crate) fn since(self, before: Used) -> Used {
        Used { nanoseconds: self.nanoseconds - before.nanoseconds, sleeps: self.sleeps - before.sleeps }
    }
}

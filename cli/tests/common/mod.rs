//! What the tests of the command share: running it, and files to run it on.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used)]

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use serde_json::Value;
use telering_core::event::{Category, Record};
use telering_core::image::{Identity, ImagePlan, ImageState, PartSet};
use telering_core::layout::image::TimeBase;
use telering_core::sync::{AtomicU64, Ordering};
use telering_core::{Name, names};

/// The rings that NIXL's releases wrote, with the events they hold.
pub const SAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../std-shell/tests/data/nixl");
pub const RELEASES: [&str; 5] = ["0.10.1", "1.1.0", "1.2.0", "1.3.2", "1.5.1"];

pub fn sample(release: &str) -> PathBuf {
    Path::new(SAMPLES).join(release).join("initiator")
}

/// The command, away from the variables of whoever runs the tests, in a zone that is not UTC.
pub fn telering() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_telering"));
    let foreign = |name: &str| name.starts_with("NIXL_") || name.starts_with("TELERING_");
    std::env::vars_os().filter(|(name, _)| foreign(&name.to_string_lossy())).for_each(|(name, _)| {
        command.env_remove(name);
    });
    // Two hours east of Greenwich, without zone files.
    command.env("TZ", "TEST-2").env("COLUMNS", "100").stdin(Stdio::null());
    command
}

pub struct Ran {
    pub status: i32,
    pub out: String,
    pub err: String,
}

pub fn run<S: AsRef<std::ffi::OsStr>>(arguments: impl IntoIterator<Item = S>) -> Ran {
    ran(telering().args(arguments).output().unwrap())
}

pub fn ran(output: Output) -> Ran {
    Ran {
        status: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ran {
    /// Every line of the output, which must be JSON.
    pub fn json(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    pub fn succeeded(self) -> Ran {
        assert_eq!(self.status, 0, "{}\n{}", self.out, self.err);
        self
    }
}

/// An image in memory.
pub struct TestImage {
    memory: Vec<AtomicU64>,
    state: ImageState,
}

impl TestImage {
    pub fn new(capacity: u64, agent: &str) -> TestImage {
        TestImage::of(capacity, TimeBase::Unix, &Identity { agent, pid: 4242, rank: "3", ..Identity::default() })
    }

    pub fn of(capacity: u64, time_base: TimeBase, identity: &Identity<'_>) -> TestImage {
        let plan = ImagePlan::new(capacity, PartSet::ALL, time_base).unwrap();
        let memory: Vec<AtomicU64> = (0..plan.words()).map(|_| AtomicU64::new(0)).collect();
        let state = plan.format(&memory, true, 0xfeed_0000_0000_0001, 1_736_951_425_000_000, identity, &[10]).unwrap();
        TestImage { memory, state }
    }

    /// One event, under the name that files carry.
    pub fn push(&mut self, timestamp_us: u64, id: u32, value: u64) -> &mut TestImage {
        let row = names::by_id(id).unwrap();
        self.push_named(timestamp_us, row.category, row.file_name(), value)
    }

    pub fn push_named(&mut self, timestamp_us: u64, category: Category, name: &str, value: u64) -> &mut TestImage {
        let record = Record::new(timestamp_us, category, Name::new(name).0, value);
        self.state.on(&self.memory).unwrap().push(record);
        self
    }

    /// The four events of a finished transfer.
    pub fn push_write(&mut self, end_us: u64, bytes: u64, post_us: u64, xfer_us: u64) -> &mut TestImage {
        self.push(end_us, names::XFER_POST_TIME, post_us)
            .push(end_us, names::XFER_TIME, xfer_us)
            .push(end_us, names::TX_BYTES, bytes)
            .push(end_us, names::TX_REQUESTS, 1)
    }

    pub fn bytes(&self) -> Vec<u8> {
        self.memory.iter().flat_map(|word| word.load(Ordering::Relaxed).to_ne_bytes()).collect()
    }

    pub fn write_to(&self, path: &Path) {
        std::fs::write(path, self.bytes()).unwrap();
    }
}

/// A ring of NIXL 1.4 or later with these event types and values.
pub fn nixl_ring(capacity: u64, events: &[(u32, u64)]) -> Vec<u8> {
    let mut bytes = Vec::new();
    bytes.extend((events.len() as u64).to_le_bytes());
    bytes.extend(0_u64.to_le_bytes());
    bytes.extend(4_u32.to_le_bytes());
    bytes.extend(4_u32.to_le_bytes());
    bytes.extend(capacity.to_le_bytes());
    bytes.extend((capacity - 1).to_le_bytes());
    for (id, value) in events {
        bytes.extend(u64::from(*id).to_le_bytes());
        bytes.extend(value.to_le_bytes());
    }
    bytes.resize(40 + capacity as usize * 16, 0);
    bytes
}

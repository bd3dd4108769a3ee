//! Flushing a full ring: drain, merge, convert, export. On this thread, so that nothing but the flush is timed.

use std::hint::black_box;
use std::time::Instant;

use telering::{ByHand, Telemetry};

use super::agent::transfer;
use crate::harness::{Body, Reference, Row, Slice};

/// Records of the staging ring. Each flush finds it full.
const RECORDS: u64 = 16_384;
/// Events of a transfer.
const EVENTS: u64 = 4;

/// An agent and what flushes it. Finished before the agent closes, since that would wait for the last flush.
struct Flushed {
    by_hand: Option<ByHand>,
    agent: Telemetry,
    /// The file's directory lives as long as the file.
    _dir: Option<tempfile::TempDir>,
}

impl Drop for Flushed {
    fn drop(&mut self) {
        if let Some(by_hand) = self.by_hand.take() {
            by_hand.finish();
        }
    }
}

impl Flushed {
    fn new((agent, by_hand): (Telemetry, Option<ByHand>), dir: Option<tempfile::TempDir>) -> Flushed {
        Flushed { by_hand, agent, _dir: dir }
    }

    /// Fills the ring, at least a little, and times its flush.
    fn slice(&mut self, events: u64) -> Slice {
        let transfers = events.div_ceil(EVENTS).clamp(256, RECORDS - 1);
        for turn in 0..transfers {
            transfer(&self.agent, black_box(turn));
        }
        let start = Instant::now();
        if let Some(by_hand) = &mut self.by_hand {
            by_hand.flush();
        }
        Slice { operations: transfers * EVENTS, elapsed: start.elapsed() }
    }
}

fn body(mut flushed: Flushed) -> Body {
    Box::new(move |events| flushed.slice(events))
}

/// Where a telemetry file should be: in memory.
///
/// # Errors
/// When there can be no directory.
pub fn directory() -> std::io::Result<tempfile::TempDir> {
    let memory = std::path::Path::new("/dev/shm");
    if memory.is_dir() { tempfile::tempdir_in(memory) } else { tempfile::tempdir() }
}

pub(super) fn rows() -> Result<Vec<Row>, Box<dyn std::error::Error>> {
    let builder =
        |name: &str| Telemetry::builder(name).ignore_environment(true).enable(true).staging_records(RECORDS as usize);
    let dir = directory()?;
    let to_file = Flushed::new(builder("flush").dir(dir.path()).strict(true).build_by_hand()?, Some(dir));
    let to_nop = Flushed::new(builder("flush nop").nop().strict(true).build_by_hand()?, None);
    Ok(vec![
        Row {
            name: "flush",
            what: "per event: a full ring into a telemetry file of the default size in memory",
            reference: Reference::Raw64,
            body: body(to_file),
        },
        Row {
            name: "flush-nop",
            what: "per event: the same into NOP: drain, merge and conversion alone",
            reference: Reference::Raw64,
            body: body(to_nop),
        },
    ])
}

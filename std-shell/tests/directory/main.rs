//! A directory of telemetry files on one page: live, dead, foreign, NIXL's own.

#![cfg(target_os = "linux")]
#![allow(clippy::unwrap_used)]

mod images;
#[path = "../material/mod.rs"]
mod material;
mod moves;
mod odd;
#[path = "../prometheus/page.rs"]
#[allow(dead_code, reason = "other tests use the rest")]
mod page;
mod rings;
mod stable;

use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use page::Page;
use telering::prometheus::{Directory, DirectoryOptions};
use telering::warn::Warner;
use telering::{Operation, Telemetry, TransferRecord};

/// What was warned of.
#[derive(Clone, Default)]
struct Heard(Arc<Mutex<Vec<String>>>);

impl Heard {
    fn warner(&self) -> Warner {
        let said = Arc::clone(&self.0);
        Warner::new(Some(Arc::new(move |warning| said.lock().unwrap().push(warning.message.clone()))))
    }

    fn take(&self) -> Vec<String> {
        std::mem::take(&mut *self.0.lock().unwrap())
    }
}

/// An agent with a file in `directory`, and nothing from the environment.
fn agent(name: &str, directory: &Path) -> Telemetry {
    Telemetry::builder(name).ignore_environment(true).enable(true).dir(directory).buffer_size(64).build()
}

fn move_bytes(agent: &Telemetry, bytes: u64) {
    agent.record_transfer(&TransferRecord {
        operation: Operation::Write,
        bytes,
        descriptors: 1,
        post_duration: Duration::from_micros(2),
        xfer_duration: Duration::from_micros(30),
    });
    assert!(agent.flush_now(Duration::from_secs(60)));
}

fn with(set: impl FnOnce(&mut DirectoryOptions)) -> DirectoryOptions {
    let mut options = DirectoryOptions::default();
    set(&mut options);
    options
}

fn scrape(directory: &mut Directory) -> Page {
    let mut page = String::new();
    directory.render(&mut page);
    Page::parse(&page)
}

fn processes(page: &Page, state: &str) -> u64 {
    page.number("telering_processes", &[("state", state)])
}

const TX: &str = "agent_tx_bytes_total";

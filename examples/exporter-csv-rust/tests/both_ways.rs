//! The exporter as a plug-in and linked in, chosen by the environment as a user does it.

use std::path::{Path, PathBuf};
use std::process::Command;

use telering::{Mode, Operation, Telemetry};

/// The folder where cargo put the plug-in that belongs to this test.
fn plugin_folder() -> PathBuf {
    let test = std::env::current_exe().expect("known");
    test.parent().expect("a folder").to_owned()
}

/// What a host does, in a process of its own: `HOST` says how it gets its exporter.
#[test]
fn host() {
    let Some(way) = std::env::var_os("HOST") else { return };
    if way == "linked" {
        telering_exporter_csv::register().expect("the first of this name");
    }
    let agent = Telemetry::from_env("prefill-0");
    assert_eq!(agent.mode(), Mode::Exported);
    agent.event("largest", u64::MAX);
    for _ in 0..100 {
        let mut transfer = agent.begin_transfer(Operation::Read, 1 << 20, 1);
        transfer.posted();
        transfer.finish();
    }
    let flow = agent.close();
    assert_eq!((flow.recorded, flow.exported), (401, 401));
}

fn lines_of(way: &str, plugins: &Path) -> Vec<String> {
    let folder = tempfile::tempdir().expect("made");
    let host = Command::new(std::env::current_exe().expect("known"))
        .args(["--exact", "host", "--nocapture"])
        .env("HOST", way)
        .env("NIXL_TELEMETRY_ENABLE", "yes")
        .env("NIXL_TELEMETRY_EXPORTER", "csv")
        .env("TELERING_PLUGIN_DIR", plugins)
        .env("CSV_EXPORTER_DIR", folder.path())
        .env("CSV_EXPORTER_MAX_BYTES", "5000")
        .output()
        .expect("runs");
    let said = String::from_utf8_lossy(&host.stderr);
    assert!(host.status.success() && !said.contains("telering:"), "{said}");
    let mut files: Vec<_> =
        std::fs::read_dir(folder.path()).expect("a folder").map(|entry| entry.expect("read").path()).collect();
    // The oldest has the largest number.
    files.sort();
    files[1..].reverse();
    files.rotate_left(1);
    assert!(files.len() > 2, "{files:?}");
    let mut lines = Vec::new();
    for file in files {
        let text = std::fs::read_to_string(&file).expect("read");
        let mut in_file = text.lines().map(str::to_owned);
        assert_eq!(in_file.next().as_deref(), Some("timestamp_us,category,name,value"), "{}", file.display());
        lines.extend(in_file);
    }
    lines
}

#[test]
fn a_plug_in_and_an_exporter_that_is_linked_in_write_the_same() {
    let none = tempfile::tempdir().expect("made");
    let without_time = |lines: Vec<String>| -> Vec<String> {
        let measured = ["agent_xfer_time", "agent_xfer_post_time"];
        lines
            .iter()
            .filter(|line| !measured.iter().any(|name| line.contains(name)))
            .map(|line| line.split_once(',').expect("four columns").1.to_owned())
            .collect()
    };
    let linked = without_time(lines_of("linked", none.path()));
    let plugin = without_time(lines_of("plugin", &plugin_folder()));
    assert_eq!(linked, plugin);
    assert_eq!(linked.len(), 203);
    assert_eq!(linked[1], "7,\"largest\",18446744073709551615");
    assert_eq!(linked.iter().filter(|line| *line == "1,\"agent_rx_bytes\",1048576").count(), 100);
}

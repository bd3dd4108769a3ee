//! Exporters that are libraries of their own: found, refused, failing, slow. The host goes on.

mod building;
#[path = "../common/mod.rs"]
mod common;
mod failing;
mod refused;

use std::path::Path;
use std::sync::{Arc, Mutex};

use telering::{Builder, Mode, Operation, Telemetry};

/// An agent with a plug-in, and what it warns of.
pub(crate) fn agent(name: &str, plugin: &str, folder: &Path) -> (Builder, Arc<Mutex<Vec<String>>>) {
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&warnings);
    let builder = common::agent(name)
        .exporter_name(plugin)
        .plugin_dir(folder)
        .on_warning(move |warning| heard.lock().expect("unpoisoned").push(warning.message.clone()));
    (builder, warnings)
}

/// Known case 30: every transfer finishes, and has its numbers afterwards.
pub(crate) fn transfers(agent: &Telemetry, count: u64) {
    for _ in 0..count {
        let mut transfer = agent.begin_transfer(Operation::Write, 4096, 1);
        transfer.posted();
        transfer.finish();
        assert_eq!(transfer.telemetry().expect("telemetry is on").total_bytes, 4096);
    }
}

#[test]
fn the_csv_exporter_in_c_writes_exact_numbers_and_starts_new_files() {
    let folder = tempfile::tempdir().expect("made");
    building::built(folder.path(), "csv", "examples/exporter-csv-c/csv.c", &["-std=c99", "-pedantic"]);
    // SAFETY: the other tests of this program read neither variable.
    unsafe {
        std::env::set_var("CSV_EXPORTER_DIR", folder.path());
        std::env::set_var("CSV_EXPORTER_MAX_BYTES", "4000");
    }
    let (builder, warnings) = agent("../a\"b", "csv", folder.path());
    let agent = builder.try_build().expect("a builder that isn't strict");
    assert_eq!(agent.mode(), Mode::Exported);
    agent.event("the \"largest\"", u64::MAX);
    transfers(&agent, 100);
    let flow = agent.close();
    assert_eq!((flow.recorded, flow.exported), (401, 401));
    assert_eq!(*warnings.lock().expect("unpoisoned"), Vec::<String>::new());

    let base = format!("___a_b-{}.csv", std::process::id());
    let mut lines = Vec::new();
    let mut files = 0;
    for number in (0..10).rev() {
        let name = if number == 0 { base.clone() } else { format!("{base}.{number}") };
        let Ok(text) = std::fs::read_to_string(folder.path().join(name)) else { continue };
        files += 1;
        assert!(text.len() < 4100 && text.ends_with('\n'), "{} bytes", text.len());
        let mut in_file = text.lines().map(str::to_owned);
        assert_eq!(in_file.next().as_deref(), Some("timestamp_us,category,name,value"));
        lines.extend(in_file);
    }
    assert!(files > 3, "{files}");
    // Events of the agent itself, which stand outside the books: started and stopped.
    assert_eq!(lines.len(), 403, "{lines:#?}");
    assert!(lines.iter().any(|line| line.ends_with(",7,\"the \"\"largest\"\"\",18446744073709551615")));
    assert_eq!(lines.iter().filter(|line| line.ends_with(",1,\"agent_tx_bytes\",4096")).count(), 100);
}

#[test]
fn a_plug_in_in_rust_may_refuse_an_agent() {
    let folder = tempfile::tempdir().expect("made");
    building::panics(folder.path());
    let (builder, warnings) = agent("refuse", "panics", folder.path());
    let agent = builder.build();
    transfers(&agent, 1000);
    assert_eq!(agent.mode(), Mode::Captured);
    let warnings = warnings.lock().expect("unpoisoned");
    assert!(warnings.len() == 1 && warnings[0].contains("refused on purpose"), "{warnings:?}");
}

//! What the reader of this crate makes of files, as `conformance/README.md` says it: for comparing readers.
//!
//! ```text
//! ls conformance/files/*.bin | cargo run -p telering --example conformance
//! cargo run --release -p telering --example conformance -- follow PATH
//! ```

use std::io::{BufRead, Write};
use std::path::Path;

use telering::reader::{Counts, Event, Item, Layout, OpenError, ReadError, Reader};

mod follow;
mod json;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match arguments.as_slice() {
        [] => answer_all(),
        [word, path] if word == "follow" => {
            let answer = follow::follow(Path::new(path))?;
            println!("{answer}");
            Ok(())
        }
        _ => Err("usage: conformance <PATHS, or conformance follow PATH".into()),
    }
}

fn answer_all() -> Result<(), Box<dyn std::error::Error>> {
    let mut output = std::io::stdout().lock();
    for path in std::io::stdin().lock().lines() {
        let line = look_at(Path::new(&path?)).unwrap_or_else(|class| format!("{{\"error\":\"{class}\"}}"));
        writeln!(output, "{line}")?;
        output.flush()?;
    }
    Ok(())
}

/// Reads a whole file. An error is the class that it belongs to.
fn look_at(path: &Path) -> Result<String, &'static str> {
    let mut reader = Reader::open(path).map_err(|error| class_of(&error))?;
    let (mut items, mut events) = (Vec::new(), Vec::new());
    while reader.read(&mut items).map_err(|error| class_while_reading(&error))? > 0 {
        events.extend(items.drain(..).filter_map(|item| match item {
            Item::Event(event) => Some(event),
            _ => None,
        }));
    }
    if !blocks_agree(path, &events, reader.counts()).map_err(|error| class_while_reading(&error))? {
        return Err("read_block and read differ");
    }
    let info = reader.info().map_err(|error| class_while_reading(&error))?;
    Ok(json::answer(&info, reader.start(), &events, &reader.counts()))
}

/// Reads the file once more, in blocks: both ways must come to the same.
fn blocks_agree(path: &Path, events: &[Event], counts: Counts) -> Result<bool, ReadError> {
    let Ok(mut reader) = Reader::open(path) else { return Ok(false) };
    if !matches!(reader.layout(), Layout::Image { .. }) {
        return Ok(true);
    }
    let mut events = events.iter();
    let mut agree = true;
    while let Some(block) = reader.read_block()? {
        for (first, records) in block.runs() {
            for (record, seq) in records.iter().zip(first..) {
                agree &= events.next().is_some_and(|event| {
                    let times = event.timestamp_us == Some(record.timestamp_us);
                    times && (event.seq, event.category, event.value) == (seq, Some(record.category), record.value)
                });
            }
        }
    }
    Ok(agree && events.next().is_none() && reader.counts() == counts)
}

fn class_of(error: &OpenError) -> &'static str {
    match error {
        OpenError::NotTelemetry { .. } => "not_telemetry",
        OpenError::UnsupportedVersion { .. } => "unsupported_version",
        OpenError::WrongByteOrder { .. } => "wrong_byte_order",
        OpenError::NotReady { .. } => "not_ready",
        OpenError::Damaged { .. } => "damaged",
        OpenError::Io { .. } => "io",
        _ => "unexpected",
    }
}

fn class_while_reading(error: &ReadError) -> &'static str {
    match error {
        ReadError::Damaged { .. } => "damaged",
        ReadError::Changed(error) => class_of(error),
        ReadError::Io { .. } => "io",
        _ => "unexpected",
    }
}

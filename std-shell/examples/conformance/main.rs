//! What the reader of this crate makes of files, as `conformance/README.md` says it: for comparing readers.
//!
//! ```text
//! ls conformance/files/*.bin | cargo run -p telering --example conformance
//! cargo run --release -p telering --example conformance -- follow PATH
//! ```

use std::io::{BufRead, Write};
use std::path::Path;

use telering::reader::{Item, OpenError, ReadError, Reader};

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
    let info = reader.info().map_err(|error| class_while_reading(&error))?;
    Ok(json::answer(&info, reader.start(), &events, &reader.counts()))
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

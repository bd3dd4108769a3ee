//! Writes each event as a line of CSV, and starts a new file when one is full.
//!
//! As a plug-in: `cargo build --release -p telering-exporter-csv` makes `libtelering_exporter_csv.so`; with its folder
//! in TELERING_PLUGIN_DIR, `NIXL_TELEMETRY_EXPORTER=csv` chooses it. Linked in: call [`register`] first; no folder is
//! needed then.
//!
//! `CSV_EXPORTER_DIR` is the folder of the files (default: the current one), `CSV_EXPORTER_MAX_BYTES` the size at
//! which a file is full (default 64 MiB). A full file becomes `NAME.csv.1`, the one before it `NAME.csv.2`, up to 9.

use std::fs::{self, File};
use std::io::{self, ErrorKind, Write as _};
use std::path::PathBuf;

use telering::exporter::{self, AgentContext, Event, ExportError, Exporter, OpenError, RegisterError};

const OLD_FILES: u32 = 9;
const MAX_BYTES_DEFAULT: u64 = 64 << 20;

telering::exporter_plugin!("csv", make);

/// Makes the exporter `csv` known to this process.
///
/// # Errors
/// [`RegisterError`] when there is one already.
pub fn register() -> Result<(), RegisterError> {
    exporter::register("csv", make)
}

fn make(agent: &AgentContext) -> Result<Box<dyn Exporter>, OpenError> {
    let folder = std::env::var_os("CSV_EXPORTER_DIR").unwrap_or_else(|| ".".into());
    let max_bytes = match std::env::var("CSV_EXPORTER_MAX_BYTES") {
        Ok(text) => text.parse().map_err(|_| format!("CSV_EXPORTER_MAX_BYTES={text:?} is no number of bytes"))?,
        Err(_) => MAX_BYTES_DEFAULT,
    };
    Ok(Box::new(Csv::new(folder.into(), max_bytes, agent)?))
}

/// The exporter. Its files belong to one agent.
#[derive(Debug)]
pub struct Csv {
    path: PathBuf,
    /// `None` after a failure; tried again with the next batch.
    file: Option<File>,
    written: u64,
    max_bytes: u64,
    /// Lines of this batch that are not written yet.
    lines: String,
}

impl Csv {
    /// Starts the first file. One that is there already is never touched.
    ///
    /// # Errors
    /// When the file can't be made.
    pub fn new(folder: PathBuf, max_bytes: u64, agent: &AgentContext) -> Result<Csv, OpenError> {
        // The agent's name may be any text: what could be a path becomes '_'.
        let safe = |character: char| {
            if character.is_ascii_alphanumeric() || character == '-' { character } else { '_' }
        };
        let name: String = agent.name.chars().take(200).map(safe).collect();
        let path = folder.join(format!("{name}-{}.csv", agent.pid));
        let mut csv = Csv { path, file: None, written: 0, max_bytes, lines: String::new() };
        csv.start_file().map_err(|error| csv.said("can't make a CSV file", &error))?;
        Ok(csv)
    }

    fn said(&self, what: &str, error: &io::Error) -> String {
        format!("{what}: {}: {error}", self.path.display())
    }

    fn start_file(&mut self) -> io::Result<()> {
        let mut file = File::create_new(&self.path)?;
        let head = b"timestamp_us,category,name,value\n";
        file.write_all(head)?;
        self.written = head.len() as u64;
        self.file = Some(file);
        Ok(())
    }

    fn start_next_file(&mut self) -> io::Result<()> {
        self.file = None;
        let numbered = |number: u32| match number {
            0 => self.path.clone(),
            number => PathBuf::from(format!("{}.{number}", self.path.display())),
        };
        for old in (0..OLD_FILES).rev() {
            match fs::rename(numbered(old), numbered(old + 1)) {
                Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        self.start_file()
    }

    /// Adds a line to those that wait. Names have no control characters; quotes are doubled, as RFC 4180 says.
    fn add(&mut self, event: &Event) {
        let name = event.name.as_str().replace('"', "\"\"");
        let before = self.lines.len();
        self.lines.push_str(&format!("{},{},\"{name}\",{}\n", event.timestamp_us, event.category.0, event.value));
        self.written += (self.lines.len() - before) as u64;
    }

    /// Writes the lines that wait; they are gone in any case.
    fn write_lines(&mut self) -> io::Result<()> {
        let written = match &mut self.file {
            Some(file) => file.write_all(self.lines.as_bytes()),
            None => Ok(()),
        };
        self.lines.clear();
        written
    }
}

impl Exporter for Csv {
    fn export(&mut self, events: &[Event]) -> Result<(), ExportError> {
        // Events before this one are in a file.
        let mut safe = 0;
        let mut written = Ok(());
        for (index, event) in events.iter().enumerate() {
            if self.file.is_none() {
                written = self.start_file();
            } else if self.written >= self.max_bytes {
                written = self.write_lines();
                if written.is_ok() {
                    safe = index;
                    written = self.start_next_file();
                }
            }
            if written.is_err() {
                break;
            }
            self.add(event);
        }
        written.and_then(|()| self.write_lines()).map_err(|error| {
            self.lines.clear();
            ExportError::new((events.len() - safe) as u64, self.said("can't write", &error))
        })
    }

    fn path(&self) -> Option<PathBuf> {
        Some(self.path.clone())
    }
}

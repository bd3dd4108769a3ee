//! Finding telemetry files in a directory.

use std::io;
use std::path::{Path, PathBuf};

use crate::file::name::FileName;
use crate::reader::{Layout, Links, Liveness, OpenError, ReaderOptions, Shown};

/// What a directory holds.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct Scan {
    /// Telemetry files, by name.
    pub found: Vec<Found>,
    /// Files that are something else, or can't be opened, by name.
    pub ignored: Vec<Ignored>,
}

/// A telemetry file.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The file.
    pub path: PathBuf,
    /// Its agent's name, from the file itself where it says so, else from the file's name. Escape it before a
    /// terminal sees it.
    pub agent: String,
    /// How it lays out its bytes.
    pub kind: Layout,
    /// Whether its writer lives.
    pub liveness: Liveness,
}

/// A file that is no telemetry.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ignored {
    /// The file.
    pub path: PathBuf,
    /// Why it was left alone.
    pub reason: String,
}

/// Why a directory can't be searched.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot list the directory: {source}. Name the directory that NIXL_TELEMETRY_DIR names", Shown(path))]
pub struct ScanError {
    /// The directory.
    pub path: PathBuf,
    /// The system's answer.
    #[source]
    pub source: io::Error,
}

/// Finds the telemetry files of a directory, not of those inside it. Names with a leading dot are skipped;
/// symbolic links are not followed; nothing is waited for and nothing changed.
///
/// # Errors
/// [`ScanError`] if the directory can't be listed.
pub fn scan(directory: impl AsRef<Path>) -> Result<Scan, ScanError> {
    let directory = directory.as_ref();
    let refused = |source| ScanError { path: directory.to_path_buf(), source };
    let mut paths = Vec::new();
    for entry in std::fs::read_dir(directory).map_err(refused)? {
        let entry = entry.map_err(refused)?;
        let hidden = entry.file_name().as_encoded_bytes().first() == Some(&b'.');
        if !hidden && !entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            paths.push(entry.path());
        }
    }
    paths.sort();
    let mut scan = Scan::default();
    for path in paths {
        match look_at(&path) {
            Ok(found) => scan.found.push(found),
            // Gone between the list and the look.
            Err(OpenError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => {}
            Err(error) => scan.ignored.push(Ignored { path, reason: error.reason() }),
        }
    }
    Ok(scan)
}

fn look_at(path: &Path) -> Result<Found, OpenError> {
    let reader = ReaderOptions::new().open_with(path, Links::Refuse)?;
    let (identity, liveness) = reader.brief().unwrap_or((None, Liveness::Unknown));
    let kind = reader.layout();
    let agent = identity.map(|identity| identity.agent).filter(|agent| !agent.is_empty());
    let agent = agent.unwrap_or_else(|| agent_of_name(path, kind));
    Ok(Found { path: path.to_path_buf(), agent, kind, liveness })
}

/// NIXL calls a file as its agent; we encode the agent's name.
fn agent_of_name(path: &Path, kind: Layout) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match FileName::parse(&name) {
        Some(parsed) if matches!(kind, Layout::Image { .. }) => parsed.agent().to_owned(),
        _ => name.into_owned(),
    }
}

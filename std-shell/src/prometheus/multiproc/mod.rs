//! The exporter `prometheus_mp`: every process writes its telemetry file into one directory, and one of them serves
//! what all of them wrote.
//!
//! No extra process, one port for any number of ranks. Who serves is elected by a lock; if the owner dies another one
//! takes over within a second. A rank's last numbers stay until the TTL is over, then its files are removed.

mod election;
mod seat;

use std::fs::DirBuilder;
use std::io;
use std::net::SocketAddr;
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};

use crate::config::Config;
use crate::exporter::{Event, ExportError, Exporter, Shm, ShmSettings, Totals, Who};
use crate::file::FileError;
use crate::file::probe::is_of_this_user;
use crate::reader::Shown;
use crate::warn::{Warner, WarningKind};
use seat::Endpoint;
pub(crate) use seat::Seat;

/// Permissions of the files: whoever may read them belongs to this user.
const FILE_MODE: u32 = 0o600;
/// Permissions of the directory, if it is made here.
const DIRECTORY_MODE: u32 = 0o700;

/// Why there is no exporter `prometheus_mp`.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MultiProcError {
    /// The directory or the file in it.
    #[error(transparent)]
    File(#[from] FileError),
    /// No thread.
    #[error("no thread to wait for its turn to serve: {0}")]
    Thread(io::Error),
}

/// Writes this process's file, and serves the directory of all when its turn comes.
pub(crate) struct MultiProc {
    shm: Shm,
    seat: Option<Arc<Seat>>,
}

impl MultiProc {
    /// Makes the file and takes part in the election.
    ///
    /// # Errors
    /// [`MultiProcError`]; nothing was left behind then.
    pub(crate) fn new(
        directory: &Path,
        addresses: Vec<SocketAddr>,
        config: &Config,
        who: Who,
        warner: &Warner,
    ) -> Result<MultiProc, MultiProcError> {
        make(directory)?;
        look_at_permissions(directory, warner);
        let settings = ShmSettings {
            directory: directory.to_path_buf(),
            capacity: config.buffer_size,
            file_mode: FILE_MODE,
            bounds: config.histogram_bounds.clone(),
            who,
        };
        // First the file: whoever serves a moment later shows this agent too.
        let shm = Shm::new(settings, warner)?;
        let endpoint = Endpoint::new(directory, addresses, config);
        let seat = Seat::take(endpoint, warner).map_err(MultiProcError::Thread)?;
        Ok(MultiProc { shm, seat: Some(seat) })
    }

    /// The seat, for whoever wants to know where this process serves.
    pub(crate) fn seat(&self) -> Weak<Seat> {
        self.seat.as_ref().map_or_else(Weak::new, Arc::downgrade)
    }
}

fn make(directory: &Path) -> Result<(), FileError> {
    DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(directory).map_err(|source| FileError::Directory {
        directory: directory.to_path_buf(),
        what: "made",
        source,
    })
}

/// A directory that others may write to, or that is another's, is used all the same: whoever set it up may know why.
fn look_at_permissions(directory: &Path, warner: &Warner) {
    let Ok(metadata) = directory.metadata() else { return };
    let shown = Shown(directory);
    if !is_of_this_user(&metadata) {
        let message = format!(
            "the directory {shown} belongs to another user ({}), who can remove and replace what is in it. Name a \
             directory of your own in NIXL_TELEMETRY_MULTIPROC_DIR",
            metadata.uid()
        );
        warner.once(WarningKind::File, "mp-foreign", message);
    }
    if metadata.mode() & 0o022 != 0 {
        let message = format!(
            "the directory {shown} can be written to by other users (mode {:04o}), who can put files into it that are \
             published as yours. Take that away: chmod 0700 {shown}",
            metadata.mode() & 0o7777
        );
        warner.once(WarningKind::File, "mp-writable", message);
    }
}

impl Exporter for MultiProc {
    fn export(&mut self, events: &[Event]) -> Result<(), ExportError> {
        self.shm.export(events)
    }

    fn publish(&mut self, totals: &Totals<'_>) {
        self.shm.publish(totals);
    }

    fn housekeep(&mut self, now_us: u64) {
        self.shm.housekeep(now_us);
    }

    fn close(&mut self, now_us: u64) {
        self.shm.close(now_us);
        // The last agent of the process leaves the seat to another process.
        self.seat = None;
    }

    fn path(&self) -> Option<PathBuf> {
        self.shm.path()
    }

    fn file_trouble(&self) -> u64 {
        self.shm.file_trouble()
    }
}

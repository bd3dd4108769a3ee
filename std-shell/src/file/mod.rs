//! Telemetry files and their life: how one is made, named, owned, watched and removed.
//!
//! ```text
//! DIR/NAME                  the image; NAME is the agent's name, percent-encoded
//! DIR/NAME@PID[@N]          the same, where NAME belongs to somebody else
//! DIR/.NAME.PID[@N].telering        second link to the same inode: a name that was unlinked comes back from here
//! DIR/.NAME.PID[@N].telering-new    being made; gone once it has its name
//! ```
//!
//! | module | what it knows |
//! |---|---|
//! | [`name`] | agent names as file names |
//! | [`lock`] | who lives: `flock` on the image, `flock` on the directory while a file is made |
//! | [`probe`] | what stands under a name, and whether it may be replaced |
//! | [`mapping`] | the only `mmap` of the project |
//! | [`create`] | how an image gets its file |
//! | [`life`] | the file of a running writer: sound, truncated, closed |
//! | [`upkeep`] | its names: linked back when unlinked, another when replaced |
//! | [`clean`] | removing what dead writers left |
//! | [`fork`] | what a forked child must let go of |

use std::io;
use std::path::PathBuf;

pub mod clean;
pub(crate) mod create;
mod earlier;
pub(crate) mod fork;
pub(crate) mod life;
pub(crate) mod lock;
pub(crate) mod mapping;
pub mod name;
pub(crate) mod probe;
pub(crate) mod upkeep;

#[cfg(test)]
pub(crate) mod tests;

pub use name::NameError;

/// Why there is no telemetry file. The agent works on without one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum FileError {
    /// The agent's name can't be a file name.
    #[error("no telemetry file for this agent: {0}")]
    Name(#[from] NameError),
    /// The directory can't be made or opened.
    #[error(
        "no telemetry file: the directory {} can't be {what}: {source}; name a writable directory in NIXL_TELEMETRY_DIR",
        directory.display()
    )]
    Directory {
        /// The directory.
        directory: PathBuf,
        /// What failed: `made` or `opened`.
        what: &'static str,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The file system has no room.
    #[error(
        "no telemetry file: no room for {} ({wanted} bytes wanted): {source}; \
         lower NIXL_TELEMETRY_BUFFER_SIZE, or name a larger file system in NIXL_TELEMETRY_DIR",
        path.display()
    )]
    NoRoom {
        /// The file that was to be made.
        path: PathBuf,
        /// Its size in bytes.
        wanted: u64,
        /// The operating system's reason.
        source: io::Error,
    },
    /// The process may not write files of this size.
    #[error(
        "no telemetry file: {} needs {wanted} bytes, and this process may only write files of {limit} bytes; \
         raise the limit (ulimit -f) or lower NIXL_TELEMETRY_BUFFER_SIZE",
        path.display()
    )]
    OverLimit {
        /// The file that was to be made.
        path: PathBuf,
        /// Its size in bytes.
        wanted: u64,
        /// The process' limit in bytes.
        limit: u64,
    },
    /// Something else stands under the name. It was left alone.
    #[error(
        "no telemetry file: {} is {what} and was left alone; \
         remove it, or choose another directory or agent name",
        path.display()
    )]
    Occupied {
        /// The path.
        path: PathBuf,
        /// What stands there.
        what: String,
    },
    /// The file system can't do what a telemetry file needs.
    #[error(
        "no telemetry file: {call} doesn't work in the directory {}: {source}; \
         name a local file system (tmpfs, such as /dev/shm, is best) in NIXL_TELEMETRY_DIR",
        directory.display()
    )]
    Unsuited {
        /// The directory.
        directory: PathBuf,
        /// The call that failed.
        call: &'static str,
        /// The operating system's reason.
        source: io::Error,
    },
    /// Any other call failed.
    #[error(
        "no telemetry file: {} can't be {what}: {source}; see to the directory, or name another one in NIXL_TELEMETRY_DIR",
        path.display()
    )]
    Io {
        /// The path.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The operating system's reason.
        source: io::Error,
    },
}

impl FileError {
    pub(crate) fn io(path: impl Into<PathBuf>, what: &'static str, source: io::Error) -> FileError {
        FileError::Io { path: path.into(), what, source }
    }
}

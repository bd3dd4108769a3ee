//! Why a file can't be opened or read, and what to do about it.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

/// A path as a message shows it: control characters and what is no UTF-8 are escaped.
pub(crate) struct Shown<'a>(pub(crate) &'a Path);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for chunk in self.0.as_os_str().as_encoded_bytes().utf8_chunks() {
            for character in chunk.valid().chars() {
                if character.is_control() {
                    write!(f, "{}", character.escape_default())?;
                } else {
                    fmt::Write::write_char(f, character)?;
                }
            }
            for byte in chunk.invalid() {
                write!(f, "\\x{byte:02x}")?;
            }
        }
        Ok(())
    }
}

/// Why a file is not open for reading.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file is something else.
    #[error("{}: not a telemetry file: {reason}. Name a file that an agent wrote into NIXL_TELEMETRY_DIR", Shown(path))]
    NotTelemetry {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The file's version is not known here.
    #[error("{}: unsupported version {found} (known {known}). The file was left alone; update telering", Shown(path))]
    UnsupportedVersion {
        /// The file.
        path: PathBuf,
        /// The version in the file.
        found: String,
        /// The versions that are known.
        known: String,
    },
    /// The file comes from a machine with the other byte order.
    #[error("{}: wrong byte order: written on a big-endian machine. Read it there", Shown(path))]
    WrongByteOrder {
        /// The file.
        path: PathBuf,
    },
    /// The file is being created.
    #[error(
        "{}: not ready: the file is being created, or its producer failed while it did. Try again; if it stays so, start the producer anew",
        Shown(path)
    )]
    NotReady {
        /// The file.
        path: PathBuf,
    },
    /// The file is a telemetry file whose numbers don't agree.
    #[error("{}: damaged: {reason}. Copy it again, or let its producer make a new one", Shown(path))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What doesn't agree.
        reason: String,
    },
    /// Consuming moves the ring's read index and so needs write permission.
    #[error(
        "{}: consuming needs write permission: {source}. Read without consuming, or as the producer's user",
        Shown(path)
    )]
    NeedsWrite {
        /// The file.
        path: PathBuf,
        /// The system's answer.
        source: io::Error,
    },
    /// Consuming was asked for where reading takes nothing.
    #[error(
        "{}: consuming is for NIXL's own rings; this file keeps the newest events by itself. Read it without",
        Shown(path)
    )]
    NothingToConsume {
        /// The file.
        path: PathBuf,
    },
    /// The system refused.
    #[error("{}: cannot {what}: {source}", Shown(path))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

impl OpenError {
    /// The file that the error is about.
    #[must_use]
    pub fn path(&self) -> &Path {
        match self {
            OpenError::NotTelemetry { path, .. }
            | OpenError::UnsupportedVersion { path, .. }
            | OpenError::WrongByteOrder { path }
            | OpenError::NotReady { path }
            | OpenError::Damaged { path, .. }
            | OpenError::NeedsWrite { path, .. }
            | OpenError::NothingToConsume { path }
            | OpenError::Io { path, .. } => path,
        }
    }

    /// The reason alone, without the file's name.
    #[must_use]
    pub fn reason(&self) -> String {
        match self {
            OpenError::NotTelemetry { reason, .. } => reason.clone(),
            OpenError::Damaged { reason, .. } => format!("damaged: {reason}"),
            OpenError::UnsupportedVersion { found, known, .. } => {
                format!("unsupported version {found} (known {known})")
            }
            OpenError::WrongByteOrder { .. } => "wrong byte order".into(),
            OpenError::NotReady { .. } => "not ready: being created".into(),
            OpenError::NeedsWrite { source, .. } => format!("consuming needs write permission: {source}"),
            OpenError::NothingToConsume { .. } => "consuming is for NIXL's own rings".into(),
            OpenError::Io { what, source, .. } => format!("cannot {what}: {source}"),
        }
    }
}

/// Why reading stopped.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReadError {
    /// The file became shorter or longer than its header says.
    #[error(
        "{}: the file has {len} bytes, its header needs {needed}: it was truncated or remade. Open it again to see what it is now",
        Shown(path)
    )]
    Resized {
        /// The file.
        path: PathBuf,
        /// How long it is.
        len: u64,
        /// How long it should be.
        needed: u64,
    },
    /// The control words make no sense, seen three times.
    #[error("{}: damaged: {reason}. Events read so far are right; let the producer make a new file", Shown(path))]
    Damaged {
        /// The file.
        path: PathBuf,
        /// What doesn't agree.
        reason: String,
    },
    /// What comes next can't be had as a block.
    #[error("{}: not in blocks: {reason}. Take it with Reader::read", Shown(path))]
    NotInBlocks {
        /// The file.
        path: PathBuf,
        /// Why not.
        reason: &'static str,
    },
    /// The file turned into something else while it was open.
    #[error("the file changed while it was read: {0}")]
    Changed(#[source] OpenError),
    /// The system refused.
    #[error("{}: cannot {what}: {source}", Shown(path))]
    Io {
        /// The file.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// The system's answer.
        source: io::Error,
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::ffi::OsStrExt;

    #[test]
    fn a_path_is_shown_without_control_characters() {
        let path = Path::new(std::ffi::OsStr::from_bytes(b"/tmp/a\x1b[2Jb\n\xff\xc3\xa9"));
        assert_eq!(Shown(path).to_string(), "/tmp/a\\u{1b}[2Jb\\n\\xffé");
    }
}

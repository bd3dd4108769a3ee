//! Errors before they know which file they are about.

use std::io;
use std::path::Path;

use telering_core::layout::image::{HeadError, MAJOR};
use telering_core::layout::nixl::{FIRST_VERSION, LAST_VERSION, ProbeError};

use super::error::{OpenError, ReadError};

/// Why bytes are no readable telemetry file.
#[derive(Debug)]
pub(crate) enum Refused {
    NotTelemetry(String),
    Unsupported { found: String, known: String },
    WrongByteOrder,
    NotReady,
    Damaged(String),
    NothingToConsume,
    NeedsWrite(io::Error),
    Io(&'static str, io::Error),
}

impl Refused {
    pub(crate) fn at(self, path: &Path) -> OpenError {
        let path = path.to_path_buf();
        match self {
            Refused::NotTelemetry(reason) => OpenError::NotTelemetry { path, reason },
            Refused::Unsupported { found, known } => OpenError::UnsupportedVersion { path, found, known },
            Refused::WrongByteOrder => OpenError::WrongByteOrder { path },
            Refused::NotReady => OpenError::NotReady { path },
            Refused::Damaged(reason) => OpenError::Damaged { path, reason },
            Refused::NothingToConsume => OpenError::NothingToConsume { path },
            Refused::NeedsWrite(source) => OpenError::NeedsWrite { path, source },
            Refused::Io(what, source) => OpenError::Io { path, what, source },
        }
    }
}

impl From<ProbeError> for Refused {
    fn from(error: ProbeError) -> Refused {
        match error {
            ProbeError::NotReady => Refused::NotReady,
            ProbeError::WrongByteOrder => Refused::WrongByteOrder,
            ProbeError::UnsupportedVersion { found } => {
                Refused::Unsupported { found: found.to_string(), known: format!("{FIRST_VERSION} to {LAST_VERSION}") }
            }
            ProbeError::TooShort { len: 0 } => Refused::NotTelemetry("the file is empty".into()),
            ProbeError::TooShort { .. } | ProbeError::NotARing => Refused::NotTelemetry(error.to_string()),
            _ => Refused::Damaged(error.to_string()),
        }
    }
}

impl From<HeadError> for Refused {
    fn from(error: HeadError) -> Refused {
        match error {
            HeadError::NotReady => Refused::NotReady,
            HeadError::WrongByteOrder => Refused::WrongByteOrder,
            HeadError::UnsupportedVersion { major, minor } => {
                Refused::Unsupported { found: format!("{major}.{minor} of the image"), known: format!("{MAJOR}.x") }
            }
            HeadError::WrongMagic => Refused::NotTelemetry(error.to_string()),
            _ => Refused::Damaged(error.to_string()),
        }
    }
}

/// Why reading can't go on.
#[derive(Debug)]
pub(crate) enum Trouble {
    Resized { len: u64, needed: u64 },
    Damaged(String),
    Changed(Refused),
    Io(&'static str, io::Error),
}

impl Trouble {
    pub(crate) fn at(self, path: &Path) -> ReadError {
        match self {
            Trouble::Resized { len, needed } => ReadError::Resized { path: path.to_path_buf(), len, needed },
            Trouble::Damaged(reason) => ReadError::Damaged { path: path.to_path_buf(), reason },
            Trouble::Changed(refused) => ReadError::Changed(refused.at(path)),
            Trouble::Io(what, source) => ReadError::Io { path: path.to_path_buf(), what, source },
        }
    }
}

/// What was tried when the system refused, and its answer.
#[derive(Debug)]
pub(crate) struct IoTrouble(&'static str, io::Error);

impl From<IoTrouble> for Refused {
    fn from(IoTrouble(what, error): IoTrouble) -> Refused {
        Refused::Io(what, error)
    }
}

impl From<IoTrouble> for Trouble {
    fn from(IoTrouble(what, error): IoTrouble) -> Trouble {
        Trouble::Io(what, error)
    }
}

/// For `map_err`: what was tried.
pub(crate) fn io_at(what: &'static str) -> impl FnOnce(io::Error) -> IoTrouble {
    move |error| IoTrouble(what, error)
}

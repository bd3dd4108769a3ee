//! Numbers, names, statuses and durations as Python gives them.
//!
//! Wrong types and numbers that fit nowhere are the program's errors and raise, as with any Python function. Text is
//! often not the program's own: whatever is wrong with a name, the event is recorded under a clean one.

use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyString;
use pyo3::{create_exception, intern};
use telering::{Operation, Status};

create_exception!(telering, StartError, PyRuntimeError, "A strict agent did not start: its first warning.");

/// `"write"` or `"read"`, also in NIXL's capitals.
pub(crate) fn operation(text: &Bound<'_, PyString>) -> PyResult<Operation> {
    let py = text.py();
    // A literal is the same object each time: no look at its letters.
    if text.is(intern!(py, "write")) {
        return Ok(Operation::Write);
    }
    if text.is(intern!(py, "read")) {
        return Ok(Operation::Read);
    }
    match &*text.to_string_lossy() {
        "write" | "WRITE" => Ok(Operation::Write),
        "read" | "READ" => Ok(Operation::Read),
        other => Err(PyValueError::new_err(format!("a transfer is a \"write\" or a \"read\", not {other:?}"))),
    }
}

/// An error status by its code, -1 to -12.
pub(crate) fn status(code: i64) -> PyResult<Status> {
    i32::try_from(code).ok().and_then(Status::from_code).ok_or_else(|| {
        PyValueError::new_err(format!("{code} is no error status: telering.Status lists them, -1 to -12"))
    })
}

/// Descriptors of a request: more than 2^32 - 1 count as that many.
pub(crate) fn descriptors(count: u64) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

/// A duration in seconds. `what` names it in the error.
pub(crate) fn seconds(value: f64, what: &str) -> PyResult<Duration> {
    Duration::try_from_secs_f64(value)
        .map_err(|error| PyValueError::new_err(format!("{what} is a number of seconds, not {value}: {error}")))
}

/// The status that an exception stands for when it leaves the `with` block of a transfer.
///
/// NIXL's own exceptions carry theirs in their names (`nixlNotFoundError`).
pub(crate) fn status_of_exception(kind: &Bound<'_, PyAny>) -> Status {
    let Ok(classes) = kind.getattr(intern!(kind.py(), "__mro__")) else { return Status::Unknown };
    let Ok(classes) = classes.try_iter() else { return Status::Unknown };
    // From the most special class up, so that a ConnectionError is not taken for just any OSError.
    for class in classes.flatten() {
        let Ok(name) = class.getattr(intern!(kind.py(), "__name__")).and_then(|name| name.extract::<String>()) else {
            continue;
        };
        match name.as_str() {
            "nixlNotPostedError" => return Status::NotPosted,
            "nixlInvalidParamError" => return Status::InvalidParam,
            "nixlBackendError" => return Status::Backend,
            "nixlNotFoundError" => return Status::NotFound,
            "nixlMismatchError" => return Status::Mismatch,
            "nixlNotAllowedError" => return Status::NotAllowed,
            "nixlRepostActiveError" => return Status::RepostActive,
            "nixlUnknownError" => return Status::Unknown,
            "nixlNotSupportedError" => return Status::NotSupported,
            "nixlRemoteDisconnectError" | "ConnectionError" => return Status::RemoteDisconnect,
            "nixlCancelledError" | "CancelledError" | "KeyboardInterrupt" | "SystemExit" | "GeneratorExit" => {
                return Status::Canceled;
            }
            "nixlNoTelemetryError" => return Status::NoTelemetry,
            "OSError" => return Status::Backend,
            _ => {}
        }
    }
    Status::Unknown
}

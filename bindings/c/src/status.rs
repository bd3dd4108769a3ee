//! Status codes and their texts.

use std::ffi::CStr;

use telering::Status as Failure;

/// `telering_status`: 0, 1, NIXL's codes from -1 to -12, and ours from -101 on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub struct Status(pub i32);

impl Status {
    /// It is done.
    pub const OK: Status = Status(0);
    /// The transfer has not finished.
    pub const IN_PROGRESS: Status = Status(1);
    /// An argument can't be used.
    pub const INVALID_PARAM: Status = Status(Failure::InvalidParam as i32);
    /// The backend or the name is not there.
    pub const NOT_FOUND: Status = Status(Failure::NotFound as i32);
    /// Not with this agent.
    pub const NOT_SUPPORTED: Status = Status(Failure::NotSupported as i32);
    /// Telemetry is off.
    pub const NO_TELEMETRY: Status = Status(Failure::NoTelemetry as i32);
    /// No object has this handle: it is closed, of another kind, or never was one.
    pub const INVALID_HANDLE: Status = Status(-101);
    /// The object belongs to the process that this one was forked from.
    pub const FORKED: Status = Status(-102);
    /// There are too many objects already.
    pub const LIMIT: Status = Status(-103);
    /// A fault in the library.
    pub const INTERNAL: Status = Status(-104);
    /// A strict agent did not start.
    pub const NOT_STARTED: Status = Status(-105);
    /// It took longer than allowed.
    pub const TIMEOUT: Status = Status(-106);
    /// The memory handed over is too small.
    pub const BUFFER_TOO_SMALL: Status = Status(-107);

    /// The status of a failure of the engine's.
    #[must_use]
    pub const fn of(failure: Failure) -> Status {
        Status(failure.code())
    }

    /// One sentence about it.
    #[must_use]
    pub const fn text(self) -> &'static CStr {
        match self.0 {
            0 => c"TELERING_OK",
            1 => c"TELERING_IN_PROGRESS: the transfer has not finished",
            -1 => c"NIXL_ERR_NOT_POSTED",
            -2 => c"NIXL_ERR_INVALID_PARAM: an argument is null, out of range, or no UTF-8",
            -3 => c"NIXL_ERR_BACKEND",
            -4 => c"NIXL_ERR_NOT_FOUND",
            -5 => c"NIXL_ERR_MISMATCH",
            -6 => c"NIXL_ERR_NOT_ALLOWED",
            -7 => c"NIXL_ERR_REPOST_ACTIVE",
            -8 => c"NIXL_ERR_UNKNOWN",
            -9 => c"NIXL_ERR_NOT_SUPPORTED",
            -10 => c"NIXL_ERR_REMOTE_DISCONNECT",
            -11 => c"NIXL_ERR_CANCELED",
            -12 => c"NIXL_ERR_NO_TELEMETRY: telemetry is off, or the transfer left none",
            -101 => c"TELERING_ERR_INVALID_HANDLE: the object is closed, of another kind, or never was",
            -102 => c"TELERING_ERR_FORKED: the object belongs to the parent process",
            -103 => c"TELERING_ERR_LIMIT: too many objects are open",
            -104 => c"TELERING_ERR_INTERNAL: a fault in telering; please report it",
            -105 => c"TELERING_ERR_NOT_STARTED: a strict agent had something to warn of",
            -106 => c"TELERING_ERR_TIMEOUT",
            -107 => c"TELERING_ERR_BUFFER_TOO_SMALL",
            _ => c"unknown status",
        }
    }
}

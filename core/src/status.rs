//! Status codes of a transfer engine, with the values and texts that NIXL uses.

/// Why an operation failed. Values are NIXL's (`nixl_status_t`), the same in all its releases.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(i32)]
pub enum Status {
    /// The request was never posted.
    NotPosted = -1,
    /// A parameter is invalid.
    InvalidParam = -2,
    /// The backend failed.
    Backend = -3,
    /// Something named was not found.
    NotFound = -4,
    /// Two sides do not match.
    Mismatch = -5,
    /// The operation is not allowed.
    NotAllowed = -6,
    /// The request is still active.
    RepostActive = -7,
    /// Unknown reason.
    Unknown = -8,
    /// The operation is not supported.
    NotSupported = -9,
    /// The remote side went away.
    RemoteDisconnect = -10,
    /// The operation was cancelled.
    Canceled = -11,
    /// Telemetry was asked for and is not there.
    NoTelemetry = -12,
}

/// How many error statuses there are.
pub const STATUS_COUNT: usize = 12;

impl Status {
    /// Every error status, in the order of its code (-1 first).
    pub const ALL: [Status; STATUS_COUNT] = [
        Status::NotPosted,
        Status::InvalidParam,
        Status::Backend,
        Status::NotFound,
        Status::Mismatch,
        Status::NotAllowed,
        Status::RepostActive,
        Status::Unknown,
        Status::NotSupported,
        Status::RemoteDisconnect,
        Status::Canceled,
        Status::NoTelemetry,
    ];

    /// The status of a NIXL code (-1 to -12); `None` for success, in-progress and codes unknown to us.
    ///
    /// ```
    /// use telering_core::Status;
    /// assert_eq!(Status::from_code(-11), Some(Status::Canceled));
    /// assert_eq!(Status::from_code(0), None);
    /// ```
    #[must_use]
    pub const fn from_code(code: i32) -> Option<Status> {
        if code <= -1 && code >= -(STATUS_COUNT as i32) { Some(Self::ALL[(-code - 1) as usize]) } else { None }
    }

    /// NIXL's code, -1 to -12.
    #[must_use]
    pub const fn code(self) -> i32 {
        self as i32
    }

    /// The place of this status in [`Status::ALL`], 0 to 11.
    #[must_use]
    pub const fn index(self) -> usize {
        (-(self as i32) - 1) as usize
    }

    /// The status text, which is the name of the error's event in a telemetry file: `NIXL_ERR_CANCELED`.
    #[must_use]
    pub const fn text(self) -> &'static str {
        match self {
            Status::NotPosted => "NIXL_ERR_NOT_POSTED",
            Status::InvalidParam => "NIXL_ERR_INVALID_PARAM",
            Status::Backend => "NIXL_ERR_BACKEND",
            Status::NotFound => "NIXL_ERR_NOT_FOUND",
            Status::Mismatch => "NIXL_ERR_MISMATCH",
            Status::NotAllowed => "NIXL_ERR_NOT_ALLOWED",
            Status::RepostActive => "NIXL_ERR_REPOST_ACTIVE",
            Status::Unknown => "NIXL_ERR_UNKNOWN",
            Status::NotSupported => "NIXL_ERR_NOT_SUPPORTED",
            Status::RemoteDisconnect => "NIXL_ERR_REMOTE_DISCONNECT",
            Status::Canceled => "NIXL_ERR_CANCELED",
            Status::NoTelemetry => "NIXL_ERR_NO_TELEMETRY",
        }
    }

    /// The value of Prometheus' `status` label: `canceled`.
    #[must_use]
    pub const fn label(self) -> &'static str {
        match self {
            Status::NotPosted => "not_posted",
            Status::InvalidParam => "invalid_param",
            Status::Backend => "backend",
            Status::NotFound => "not_found",
            Status::Mismatch => "mismatch",
            Status::NotAllowed => "not_allowed",
            Status::RepostActive => "repost_active",
            Status::Unknown => "unknown",
            Status::NotSupported => "not_supported",
            Status::RemoteDisconnect => "remote_disconnect",
            Status::Canceled => "canceled",
            Status::NoTelemetry => "no_telemetry",
        }
    }
}

impl core::fmt::Display for Status {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.write_str(self.text())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_round_trip_and_everything_else_is_none() {
        for (index, status) in Status::ALL.into_iter().enumerate() {
            assert_eq!(Status::from_code(status.code()), Some(status));
            assert_eq!(status.index(), index);
        }
        for code in [0, 1, -13, i32::MIN, i32::MAX] {
            assert_eq!(Status::from_code(code), None, "{code}");
        }
    }
}

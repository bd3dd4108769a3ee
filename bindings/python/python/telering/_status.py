"""Why an operation failed."""

import enum


class Status(enum.IntEnum):
    """NIXL's error statuses with its codes. `text` is the name of the error's event."""

    NOT_POSTED = -1
    INVALID_PARAM = -2
    BACKEND = -3
    NOT_FOUND = -4
    MISMATCH = -5
    NOT_ALLOWED = -6
    REPOST_ACTIVE = -7
    UNKNOWN = -8
    NOT_SUPPORTED = -9
    REMOTE_DISCONNECT = -10
    CANCELED = -11
    NO_TELEMETRY = -12

    @property
    def text(self) -> str:
        """NIXL_ERR_CANCELED, and so on."""
        return f"NIXL_ERR_{self.name}"

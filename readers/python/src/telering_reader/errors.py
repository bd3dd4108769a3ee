"""Why a file can't be opened or read, and what to do about it.

All of them are `TelemetryError`. `code` is the class in words, the same for every reader of the format.
"""

from __future__ import annotations

import os
from typing import Any, Dict, Optional, Tuple, Type, Union

PathLike = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]


def shown(path: PathLike) -> str:
    """A path as a message shows it: control characters and what is no UTF-8 are escaped."""
    return escaped(os.fsdecode(path))


def escaped(text: str) -> str:
    """Text from outside as a terminal may see it."""
    return "".join(letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in text)


class TelemetryError(Exception):
    """Anything that goes wrong with a telemetry file. `path` names it, `reason` says what is wrong."""

    code = "error"
    advice = ""

    def __init__(self, path: PathLike, reason: str) -> None:
        super().__init__(path, reason)
        self.path = path
        self.reason = reason

    def __reduce__(self) -> Tuple[Any, ...]:
        # As it is, however it was made: it must come through to another process, for example out of a pool.
        state = dict(self.__dict__)
        if isinstance(self, OSError):
            state.update(errno=self.errno, strerror=self.strerror, filename=self.filename)
        return _restored, (type(self), self.args, state)

    def __str__(self) -> str:
        advice = f". {self.advice}" if self.advice else ""
        return f"{shown(self.path)}: {self.reason}{advice}"


def _restored(kind: Type[TelemetryError], arguments: Tuple[Any, ...], state: Dict[str, Any]) -> TelemetryError:
    error = kind.__new__(kind)
    error.args = arguments
    for name, value in state.items():
        setattr(error, name, value)
    return error


class NotTelemetry(TelemetryError):
    """The file is something else."""

    code = "not_telemetry"
    advice = "Name a file that an agent wrote into NIXL_TELEMETRY_DIR"

    def __init__(self, path: PathLike, reason: str) -> None:
        super().__init__(path, f"not a telemetry file: {reason}")


class UnsupportedVersion(TelemetryError):
    """The file's version is not known here, or not the one that was asked for. `found` and `known` name both."""

    code = "unsupported_version"
    advice = "The file was left alone; update telering-reader"

    def __init__(
        self, path: PathLike, found: str, known: str, advice: Optional[str] = None, wanted: str = "known"
    ) -> None:
        super().__init__(path, f"unsupported version {found} ({wanted} {known})")
        self.found = found
        self.known = known
        self.advice = advice or self.advice


class WrongByteOrder(TelemetryError):
    """The file was written on a big-endian machine by a library that stores numbers as its machine does."""

    code = "wrong_byte_order"
    advice = "Read it on that machine"

    def __init__(self, path: PathLike) -> None:
        super().__init__(path, "wrong byte order: its numbers are big-endian")


class NotReady(TelemetryError):
    """The file is being created."""

    code = "not_ready"
    advice = "Try again; if it stays so, start the producer anew"

    def __init__(self, path: PathLike) -> None:
        super().__init__(path, "not ready: the file is being created, or its producer failed while it did")


class Damaged(TelemetryError):
    """A telemetry file whose numbers don't agree."""

    code = "damaged"
    advice = "Copy it again, or let its producer make a new one. Events read so far are right"

    def __init__(self, path: PathLike, reason: str) -> None:
        super().__init__(path, f"damaged: {reason}")


class NeedsWrite(TelemetryError):
    """Consuming moves the ring's read index, and the file may not be written."""

    code = "needs_write"
    advice = "Read without consuming (telering_reader.Reader), or as the producer's user"

    def __init__(self, path: PathLike, reason: str) -> None:
        super().__init__(path, f"consuming needs write permission: {reason}")


class NothingToConsume(TelemetryError):
    """Consuming was asked for where reading takes nothing."""

    code = "nothing_to_consume"
    advice = "Read it without consume"

    def __init__(self, path: PathLike) -> None:
        super().__init__(path, "consuming is for NIXL's own rings; this file keeps the newest events by itself")


class Resized(TelemetryError):
    """The file became shorter or longer than its header says. `len` and `needed` are bytes."""

    code = "resized"
    advice = "It was truncated or remade: open it again to see what it is now"

    def __init__(self, path: PathLike, length: int, needed: int) -> None:
        super().__init__(path, f"the file has {length} bytes, its header needs {needed}")
        self.len = length
        self.needed = needed


class Changed(TelemetryError):
    """The file turned into something else while it was open. `became` says into what."""

    code = "changed"

    def __init__(self, became: TelemetryError) -> None:
        super().__init__(became.path, f"the file changed while it was read: {became.reason}")
        self.became = became
        self.advice = became.advice


class NotInLayout(TelemetryError):
    """The file can't give what was asked for. The reason says why."""

    code = "not_in_layout"


class CannotRead(TelemetryError, OSError):
    """The system refused. It is an `OSError` too, with its `errno`."""

    code = "io"

    def __init__(self, path: PathLike, what: str, source: OSError) -> None:
        TelemetryError.__init__(self, path, f"cannot {what}: {source.strerror or source}")
        self.errno = source.errno
        self.strerror = source.strerror
        self.filename = path

    def __str__(self) -> str:
        return TelemetryError.__str__(self)

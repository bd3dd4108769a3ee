"""Reading pieces of a file that may change, shrink or vanish at any moment: copies, never a mapping."""

from __future__ import annotations

import os
import stat
from typing import Any, Optional, Tuple

from .errors import CannotRead, NeedsWrite, NotTelemetry, PathLike

fcntl: Any
try:
    import fcntl
except ImportError:  # Windows
    fcntl = None

# Neither does Windows have.
_pread: Any = getattr(os, "pread", None)
_FLAGS = getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_CLOEXEC", 0) | getattr(os, "O_BINARY", 0)
_NO_LINKS = getattr(os, "O_NOFOLLOW", 0)

HELD, FREE, UNKNOWN = "held", "free", "unknown"


class File:
    """One open file. Needs read permission, or write permission as well if `write`."""

    def __init__(self, path: PathLike, write: bool = False, links: bool = True) -> None:
        """Opens a regular file; a FIFO, a folder or (without `links`) a symbolic link is `NotTelemetry`."""
        self._fd = -1
        # A number would pass for an open file at some of the calls below.
        os.fspath(path)
        self.path = path
        flags = _FLAGS | (0 if links else _NO_LINKS)
        try:
            if not links and stat.S_ISLNK(os.lstat(path).st_mode):
                raise NotTelemetry(path, "a symbolic link")
            self._check_kind(os.stat(path).st_mode)
            self._fd = os.open(path, flags | (os.O_RDWR if write else os.O_RDONLY))
            status = os.fstat(self._fd)
        except PermissionError as error:
            if write:
                raise NeedsWrite(path, error.strerror or str(error)) from error
            raise CannotRead(path, "open it", error) from error
        except OSError as error:
            # A read-only file system can be read all the same.
            if write and not isinstance(error, FileNotFoundError):
                raise NeedsWrite(path, error.strerror or str(error)) from error
            raise CannotRead(path, "open it", error) from error
        except ValueError as error:
            raise NotTelemetry(path, f"no name of a file ({error})") from error
        try:
            self._check_kind(status.st_mode)
        except NotTelemetry:
            self.close()
            raise
        self.identity: Tuple[int, int] = (status.st_dev, status.st_ino)

    def _check_kind(self, mode: int) -> None:
        if not stat.S_ISREG(mode):
            kinds = ((stat.S_ISDIR, "a folder"), (stat.S_ISFIFO, "a FIFO"), (stat.S_ISSOCK, "a socket"))
            kind = next((name for test, name in kinds if test(mode)), "a device")
            raise NotTelemetry(self.path, f"it is {kind}")

    def close(self) -> None:
        """Closes the file; once is enough, more often does no harm."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)

    @property
    def closed(self) -> bool:
        """Whether it was closed."""
        return self._fd < 0

    def length(self) -> int:
        """Its length in bytes, now."""
        try:
            return os.fstat(self._need()).st_size
        except OSError as error:
            raise CannotRead(self.path, "ask for its length", error) from error

    def read(self, offset: int, size: int, what: str = "read it") -> Optional[bytes]:
        """`size` bytes from `offset` on, read by calls of their own; None if the file ends before."""
        fd = self._need()
        pieces = []
        try:
            while size > 0:
                piece: bytes
                if _pread is not None:
                    piece = _pread(fd, size, offset)
                else:
                    os.lseek(fd, offset, os.SEEK_SET)
                    piece = os.read(fd, size)
                if not piece:
                    return None
                pieces.append(piece)
                offset += len(piece)
                size -= len(piece)
        except OSError as error:
            raise CannotRead(self.path, what, error) from error
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def read_into(self, offset: int, into: memoryview, what: str = "read it") -> bool:
        """Fills `into` with what stands from `offset` on; False if the file ends before."""
        if not hasattr(os, "preadv"):
            data = self.read(offset, len(into), what)
            if data is None:
                return False
            into[:] = data
            return True
        fd, done = self._need(), 0
        try:
            while done < len(into):
                count = os.preadv(fd, [into[done:]], offset + done)
                if count == 0:
                    return False
                done += count
        except OSError as error:
            raise CannotRead(self.path, what, error) from error
        return True

    def write(self, offset: int, data: bytes) -> None:
        """Writes a few bytes that the caller was asked to write."""
        fd = self._need()
        try:
            if hasattr(os, "pwrite"):
                os.pwrite(fd, data, offset)
            else:
                os.lseek(fd, offset, os.SEEK_SET)
                os.write(fd, data)
        except OSError as error:
            raise CannotRead(self.path, "write the read index", error) from error

    def is_at(self, path: PathLike) -> bool:
        """Whether `path` still leads to this file."""
        try:
            status = os.stat(path)
        except OSError:
            return False
        return (status.st_dev, status.st_ino) == self.identity

    def lock_state(self) -> str:
        """Whether a producer holds its lock: `held`, `free`, or `unknown` where that can't be asked.

        Asked through a description of its own, closed at once: so the question never frees or keeps a lock.
        """
        if fcntl is None or self._fd < 0:
            return UNKNOWN
        for name in (f"/proc/self/fd/{self._fd}", self.path):
            try:
                fd = os.open(name, os.O_RDONLY | _FLAGS)
            except OSError:
                continue
            try:
                status = os.fstat(fd)
                if (status.st_dev, status.st_ino) == self.identity:
                    fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
                    return FREE
            except BlockingIOError:
                return HELD
            except OSError:
                return UNKNOWN
            finally:
                os.close(fd)
        return UNKNOWN

    def _need(self) -> int:
        if self._fd < 0:
            raise ValueError("the reader is closed; open the file again")
        return self._fd

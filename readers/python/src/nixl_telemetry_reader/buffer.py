"""`SharedRingBuffer` and the event that it returns."""

from __future__ import annotations

from types import TracebackType
from typing import List, NamedTuple, Optional, Type

from telering_reader.decode import IMAGE
from telering_reader.errors import NothingToConsume, PathLike, UnsupportedVersion
from telering_reader.items import Event
from telering_reader.names import BY_ID
from telering_reader.reader import Reader


class TelemetryEvent(NamedTuple):
    """One event, a copy.

    `timestamp_us`  Unix microseconds; None where the layout has no time (NIXL 1.1 and later)
    `category`      the number of its category; None where neither the layout nor the name tells
    `event_name`    32 bytes, NUL-padded
    `value`         bytes, a count, or microseconds
    `event_type`    the number of its type; None for a name of one's own
    """

    timestamp_us: Optional[int]
    category: Optional[int]
    event_name: bytes
    value: int
    event_type: Optional[int]


class SharedRingBuffer:
    """Pops the events of one telemetry file.

    `path`     the file
    `version`  refuses a file of another version of NIXL's layout (1 to 4; Telering's files are 1); None takes any

    Raises the errors of `telering_reader.Reader`: `NeedsWrite` if NIXL's own file may not be written.
    """

    def __init__(self, path: PathLike, version: Optional[int] = None) -> None:
        try:
            # What the file is, told without needing more than read permission.
            with Reader(path) as look:
                found = _version(look)
                if version is not None and version != found:
                    advice = "Give that version, or leave it out. The file was left alone"
                    raise UnsupportedVersion(path, str(found), f"asked for {version}", advice)
                consume = look.layout != IMAGE
            self._reader = Reader(path, consume=consume)
        except NothingToConsume:
            self._reader = Reader(path)
        self._waiting: List[Event] = []

    def pop(self) -> Optional[TelemetryEvent]:
        """The next event, None if there is none now."""
        if not self._waiting:
            self._waiting = self._refill()
            if not self._waiting:
                return None
        event = self._waiting.pop()
        if self._reader.layout != IMAGE:
            self._reader.taken()
        category = event.category
        if category is None and event.id in BY_ID:
            category = BY_ID[event.id].category
        name = event.name.encode()[:32].ljust(32, b"\0")
        return TelemetryEvent(event.timestamp_us, category, name, event.value, event.id)

    def _refill(self) -> List[Event]:
        # One at a time from NIXL's own rings: what was not popped must stay in the file.
        most = 4096 if self._reader.layout == IMAGE else 1
        while True:
            items = self._reader.read(most)
            events = [item for item in items if isinstance(item, Event)]
            if events or not items:
                return events[::-1]

    def get_capacity(self) -> int:
        """Events that the ring has room for."""
        return self._reader.capacity

    def get_version(self) -> int:
        """NIXL's version of the layout: 1 to 4; 1 for Telering's files."""
        return _version(self._reader)

    def size(self) -> int:
        """Events that wait for `pop`."""
        return self._reader.pending() + len(self._waiting)

    def empty(self) -> bool:
        """Whether nothing waits."""
        return self.size() == 0

    def full(self) -> bool:
        """Whether the ring has no room for another event before one is popped (NIXL's own then drop the newest,
        Telering's overwrite the oldest)."""
        room = self.get_capacity()
        return self.size() >= (room if self._reader.layout == IMAGE else room - 1)

    @property
    def lost(self) -> int:
        """Events that were overwritten before this reader came to them."""
        return self._reader.lost

    def close(self) -> None:
        """Closes the file."""
        self._reader.close()

    def __enter__(self) -> SharedRingBuffer:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()


def _version(reader: Reader) -> int:
    return 1 if reader.layout == IMAGE else {"L1": 1, "L2a": 2, "L2b": 2, "L3": 3, "L4": 4}[reader.layout]

"""`SharedRingBuffer` and the event that it returns."""

from __future__ import annotations

import operator
from types import TracebackType
from typing import Dict, List, NamedTuple, Optional, Type

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
        if version is not None:
            # A text would be another version than any, and the error would say that 1 is not 1.
            version = operator.index(version)
        try:
            # What the file is, told without needing more than read permission.
            with Reader(path) as look:
                found = _version(look)
                if version is not None and version != found:
                    advice = "Give the file's version, or leave it out. The file was left alone"
                    raise UnsupportedVersion(path, str(found), str(version), advice, "asked for")
                consume = look.layout != IMAGE
            self._reader = Reader(path, consume=consume)
        except NothingToConsume:
            self._reader = Reader(path)
        self._peeks = self._reader.layout == IMAGE
        self._waiting: List[TelemetryEvent] = []

    def pop(self) -> Optional[TelemetryEvent]:
        """The next event, None if there is none now."""
        if not self._waiting:
            self._waiting = self._refill()
            if not self._waiting:
                return None
        event = self._waiting.pop()
        if not self._peeks:
            self._reader.taken()
        return event

    def _refill(self) -> List[TelemetryEvent]:
        # One at a time from NIXL's own rings: what was not popped must stay in the file.
        most = 4096 if self._peeks else 1
        while True:
            items = self._reader.read(most)
            events = [item for item in items if isinstance(item, Event)]
            if events or not items:
                names: Dict[str, bytes] = {}
                return [_as_popped(event, names) for event in reversed(events)]

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
        return self.size() >= (room if self._peeks else room - 1)

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


def _as_popped(event: Event, names: Dict[str, bytes]) -> TelemetryEvent:
    """`names` remembers the padded names."""
    _, _, time, _, category, number, text, value = event
    if category is None and number in BY_ID:
        category = BY_ID[number].category
    name = names.get(text)
    if name is None:
        name = names[text] = text.encode()[:32].ljust(32, b"\0")
    return TelemetryEvent(time, category, name, value, number)


def _version(reader: Reader) -> int:
    return 1 if reader.layout == IMAGE else {"L1": 1, "L2a": 2, "L2b": 2, "L3": 3, "L4": 4}[reader.layout]

"""The parts of an image, copied and checked: FORMAT.md, sections 8, 9 and 13.

A part that is absent, unknown or not wholly inside the file is None: nothing here fails, and nothing is allocated by
a number that the file gave.
"""

from __future__ import annotations

import struct
from typing import Callable, List, NamedTuple, Optional, Tuple, TypeVar

from .check import checksum
from .file import File
from .image import ROW_SIZE, TABLE_AT, Head, read_control
from .names import clean_name

IDENTITY, LOSSES, NOTICES, METRICS, DYNAMIC, CLOCK = range(1, 7)
_VERSION = 1
_SIZES = {IDENTITY: 576, LOSSES: 64, NOTICES: 64, CLOCK: 64}
# More than any part will need.
_LONGEST = 1 << 20
_LOOKS = 8
_LARGEST_ID = 2**32 - 1
T = TypeVar("T")


class Row(NamedTuple):
    """A row of the table of parts. `offset` and `len` are bytes."""

    kind: int
    version: int
    offset: int
    len: int


class Identity(NamedTuple):
    """Who writes an image. Texts are as the file holds them: escape them before a terminal sees them.

    `process_start` is in clock ticks since boot, 0 unknown; `boot_id` is a UUID as 32 hexadecimal digits;
    `agent_instance` counts the agents of the process.
    """

    pid: int
    process_start: int
    boot_id: str
    agent_instance: int
    uid: int
    writer: str
    hostname: str
    agent: str
    rank: str


class Losses(NamedTuple):
    """Events of the application: recorded, exported, and lost by cause. recorded = exported + the rest."""

    recorded: int
    exported: int
    staging: int
    exporter: int
    interrupted: int
    backend: int
    closing: int

    @property
    def lost(self) -> int:
        """All causes together."""
        return sum(self[2:])


class Notices(NamedTuple):
    """Counts of things that are no loss."""

    names_changed: int
    dynamic_overflow: int
    refused: int
    file_trouble: int


class Clock(NamedTuple):
    """How durations were measured. `rate` is in ticks per second, `anchor_us` in Unix microseconds."""

    source: int
    quality: int
    rate: int
    anchor_ticks: int
    anchor_us: int


class Metric(NamedTuple):
    """Running totals of one event type: the sum of its values, their count, the last one and its time."""

    id: int
    sum: int
    count: int  # type: ignore[assignment]
    last: int
    last_us: int


class Histogram(NamedTuple):
    """One latency distribution. `counts` is not cumulative: one for each bound, then those above the last."""

    id: int
    sum: int
    counts: List[int]


class ErrorCount(NamedTuple):
    """How often an error (event type 8 to 19) happened."""

    id: int
    count: int  # type: ignore[assignment]


class Metrics(NamedTuple):
    """Running totals of the built-in events, all of one moment. `bounds` are inclusive, in microseconds."""

    generation: int
    bounds: List[int]
    entries: List[Metric]
    histograms: List[Histogram]
    errors: List[ErrorCount]

    def entry(self, number: int) -> Optional[Metric]:
        """The totals of an event type, such as 0 for `agent_tx_bytes`."""
        return next((entry for entry in self.entries if entry.id == number), None)


class DynamicMetric(NamedTuple):
    """Running totals of one custom or backend event."""

    name: str
    category: int
    sum: int
    count: int  # type: ignore[assignment]
    last: int
    last_us: int


class Parts:
    """The table of parts as it stands now, and the parts behind it."""

    def __init__(self, file: File, head: Head) -> None:
        self._file = file
        self._head = head
        table = file.read(head.extension + TABLE_AT, ROW_SIZE * head.part_count, "read the table of parts")
        self.rows = [Row(*row) for row in struct.iter_unpack("<IIQQ", table or b"")]

    def _bytes(self, kind: int) -> Optional[bytes]:
        row = next((row for row in self.rows if row.kind == kind and self._counts(row)), None)
        if row is None or row.len == 0:
            return None
        return self._file.read(row.offset, min(row.len, _SIZES.get(kind, _LONGEST)), "read a part")

    def _counts(self, row: Row) -> bool:
        """Whether a row is one that is not skipped."""
        head = self._head
        inside = row.offset >= head.extension + TABLE_AT and row.offset + row.len <= head.image_len
        return row.version == _VERSION and row.offset % 8 == 0 and inside and row.len >= _SIZES.get(row.kind, 0)

    def identity(self) -> Optional[Identity]:
        """Section 9.1."""
        data = self._bytes(IDENTITY)
        if data is None:
            return None
        pid, start, boot, instance, uid, writer, host, agent, rank = struct.unpack_from("<QQ16sQQ48s128s256s64s", data)
        return Identity(pid, start, boot.hex(), instance, uid, *(_text(text) for text in (writer, host, agent, rank)))

    def losses(self) -> Optional[Losses]:
        """Section 9.2."""
        data = self._bytes(LOSSES)
        return None if data is None else Losses(*struct.unpack_from("<7Q", data))

    def notices(self) -> Optional[Notices]:
        """Section 9.3."""
        data = self._bytes(NOTICES)
        return None if data is None else Notices(*struct.unpack_from("<4Q", data))

    def clock(self) -> Optional[Clock]:
        """Section 9.6."""
        data = self._bytes(CLOCK)
        return None if data is None else Clock(*struct.unpack_from("<IIQQQ", data))

    def metrics(self) -> Optional[Metrics]:
        """Section 9.4; None also where none were published yet."""
        return self._newest(METRICS, 16, 320, _metrics_of, None)

    def dynamic(self, metrics: Optional[Metrics]) -> Optional[List[DynamicMetric]]:
        """Section 9.5, of the moment of `metrics` where that is to be had; None also where none were published yet."""
        return self._newest(DYNAMIC, 8, 64, _dynamic_of, None if metrics is None else metrics.generation)

    def _newest(
        self, kind: int, size_at: int, copies: int, parse: Callable[[bytes, bytes], Optional[T]], generation: Optional[int]
    ) -> Optional[T]:
        """The copy that the generation names, or in a copy of a live file the newest one that is whole."""
        for _ in range(_LOOKS):
            wanted = read_control(self._file, self._head).metrics_generation
            part = self._bytes(kind)
            if part is None or len(part) < copies:
                return None
            if read_control(self._file, self._head).metrics_generation != wanted:
                continue
            (size,) = struct.unpack_from("<Q", part, size_at)
            if wanted == 0 or size % 8 or size < 16 or copies + 2 * size > len(part):
                return None
            wanted = wanted if generation is None else generation
            halves: List[Tuple[int, bytes]] = []
            for half in range(2):
                copy = part[copies + half * size : copies + (half + 1) * size]
                halves.append((struct.unpack_from("<Q", copy)[0], copy))
            # The one that is wanted comes first, then the newer one, then the older one.
            halves.sort(key=lambda half: half[0], reverse=True)
            named = part[copies + (wanted & 1) * size : copies + ((wanted & 1) + 1) * size]
            candidates = [named] if struct.unpack_from("<Q", named)[0] == wanted else []
            candidates += [copy for _, copy in halves]
            found = (parse(part, copy) for copy in candidates)
            return next((parsed for parsed in found if parsed is not None), None)
        return None


def _text(stored: bytes) -> str:
    return stored.partition(b"\0")[0].decode(errors="replace")


def _sealed(copy: bytes, end: int) -> bool:
    return end <= len(copy) - 8 and checksum(copy[:end]) == struct.unpack_from("<Q", copy, len(copy) - 8)[0]


def _metrics_of(part: bytes, copy: bytes) -> Optional[Metrics]:
    entries, histograms, bounds, statuses = struct.unpack_from("<4I", part)
    if entries * 40 + histograms * 280 + statuses * 16 + 16 > len(copy) or not _sealed(copy, len(copy) - 8):
        return None
    bounds = min(bounds, 32)
    at = 8
    found = []
    for index in range(entries):
        number, *totals = struct.unpack_from("<5Q", copy, at + index * 40)
        if number <= _LARGEST_ID:
            found.append(Metric(number, *totals))
    at += entries * 40
    distributions = []
    for index in range(histograms):
        number, total, *counts = struct.unpack_from("<35Q", copy, at + index * 280)
        if number <= _LARGEST_ID:
            distributions.append(Histogram(number, total, counts[: bounds + 1]))
    at += histograms * 280
    errors = []
    for index in range(statuses):
        number, count = struct.unpack_from("<2Q", copy, at + index * 16)
        if number <= _LARGEST_ID:
            errors.append(ErrorCount(number, count))
    generation = struct.unpack_from("<Q", copy)[0]
    return Metrics(generation, list(struct.unpack_from(f"<{bounds}Q", part, 32)), found, distributions, errors)


def _dynamic_of(part: bytes, copy: bytes) -> Optional[List[DynamicMetric]]:
    (room,) = struct.unpack_from("<I", part)
    (used,) = struct.unpack_from("<Q", copy, 8)
    if room * 72 + 24 > len(copy) or used > room or not _sealed(copy, 16 + used * 72):
        return None
    found = []
    for index in range(used):
        name, category, *totals = struct.unpack_from("<32si4xQQQQ", copy, 16 + index * 72)
        found.append(DynamicMetric(clean_name(name), category, *totals))
    return found

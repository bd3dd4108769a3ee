"""Reading an image: exact about what was overwritten, in a live file and in a copy of one.

FORMAT.md, sections 3 to 7, 11 and 12. Control words, records and control words again come from separate reads, in
that order, so that a record which was overwritten while it was copied always shows in the second look.
"""

from __future__ import annotations

import struct
import time
from typing import Any, List, NamedTuple, Optional, Tuple, Union

from .check import RECORD_SIZE, Checker
from .errors import Changed, Damaged, NotReady, Resized, TelemetryError, UnsupportedVersion, WrongByteOrder
from .file import FREE, HELD, File
from .items import Reset

HEADER_SIZE = 40
HEADER = struct.Struct("<QQIIQQ")
HEAD = struct.Struct("<QHHIQQIIIHHQQ")
CONTROL = struct.Struct("<QQQQQIII12x")
MAGIC = 0x474E4952454C4554
MAGIC_SWAPPED = int.from_bytes(MAGIC.to_bytes(8, "little"), "big")
BYTE_ORDER, BYTE_ORDER_SWAPPED = 0x01020304, 0x04030201
MAJOR = 1
LARGEST_CAPACITY = 1 << 24
CONTROL_AT, TABLE_AT, ROW_SIZE, MOST_PARTS = 64, 128, 24, 64
MOST_RECORDS = 4096
CLOSED = 2
FRESH_US = 10_000_000
_LOOKS, _ATTEMPTS, _LAPS_BACK = 3, 8, 2


Bytes = Union[bytes, memoryview]


class Head(NamedTuple):
    """The head of the extension, checked. `extension` is E, its offset."""

    major: int
    minor: int
    image_len: int
    capacity: int
    max_batch: int
    part_count: int
    checks: bool
    instance: int
    created: int
    extension: int


class Control(NamedTuple):
    """The control line."""

    intent: int
    committed: int
    metrics_generation: int
    metrics_time: int
    heartbeat: int
    state: int
    time_base: int
    boots: int


class Batch(NamedTuple):
    """What one pass found: a reset, then a loss, then records.

    `data` holds whole records, the first of them at position `first`. `fits` says which of them fit, None: all.
    Those that don't are lost if `earlier` (they are of laps before the last one), else unverified. So many records that were
    copied in front of `data` are gone: `overtaken`.
    """

    reset: Optional[Reset]
    lost: int
    first: int
    data: Bytes
    fits: Any
    earlier: bool = False
    overtaken: int = 0


def extension_at(capacity: int) -> int:
    """E, where the extension of an image of that capacity begins."""
    return (HEADER_SIZE + RECORD_SIZE * capacity + 63) // 64 * 64


def is_power_of_two(number: int) -> bool:
    """Whether a number is 1, 2, 4, ..."""
    return number > 0 and number & (number - 1) == 0


def probe(file: File, header: bytes, length: int) -> Optional[Head]:
    """The head of an image; None if the file is none, an error if it is one that can't be read."""
    _, _, version, _, capacity, _ = HEADER.unpack(header)
    if version != 1 or not is_power_of_two(capacity) or not 2 <= capacity <= LARGEST_CAPACITY:
        return None
    extension = extension_at(capacity)
    if extension + HEAD.size > length:
        return None
    data = file.read(extension, HEAD.size, "read the head")
    return parse_head(file, data, capacity, length) if data is not None else None


def parse_head(file: File, data: bytes, capacity: int, length: int) -> Optional[Head]:
    """Checks the 64 bytes of a head, in the order that section 11 gives; None if the magic number is another."""
    (magic, major, minor, order, image_len, inner_capacity, record_size, record_kind, max_batch, part_count, flags,
     instance, created) = HEAD.unpack_from(data)  # fmt: skip
    if magic == 0:
        raise NotReady(file.path)
    if magic == MAGIC_SWAPPED or (magic == MAGIC and order == BYTE_ORDER_SWAPPED):
        raise WrongByteOrder(file.path)
    if magic != MAGIC:
        return None
    if order != BYTE_ORDER:
        raise Damaged(file.path, f"byte-order mark is {order:#x}, not {BYTE_ORDER:#x}")
    if major != MAJOR:
        raise UnsupportedVersion(file.path, f"{major}.{minor} of the image", f"{MAJOR}.x")
    extension = extension_at(capacity)
    batch = max(1, min(256, capacity // 16))
    for what, found, right in (
        ("capacity", inner_capacity, capacity),
        ("image length", image_len, length),
        ("record size", record_size, RECORD_SIZE),
        ("record kind", record_kind, 1),
        ("largest batch", max_batch, batch),
    ):
        if found != right:
            raise Damaged(file.path, f"{what} is {found}, not {right}")
    if part_count > MOST_PARTS or extension + TABLE_AT + ROW_SIZE * part_count > length:
        raise Damaged(file.path, f"{part_count} parts don't fit")
    if instance == 0:
        raise Damaged(file.path, "its instance is 0")
    return Head(
        major, minor, image_len, capacity, max_batch, part_count, bool(flags & 1), instance, created, extension
    )


def read_control(file: File, head: Head) -> Control:
    """The control line, by a read of its own."""
    data = file.read(head.extension + CONTROL_AT, CONTROL.size, "read the control words")
    if data is None:
        raise Resized(file.path, file.length(), head.image_len)
    return Control(*CONTROL.unpack(data))


def liveness(lock: str, control: Control, now_us: int) -> str:
    """Section 14: `alive`, `alive_by_heartbeat`, `closed`, `dead` or `unknown`."""
    if lock == HELD:
        return "alive"
    if control.state == CLOSED:
        return "closed"
    if lock == FREE:
        return "dead"
    fresh = control.time_base == 0 and abs(now_us - control.heartbeat) < FRESH_US
    return "alive_by_heartbeat" if fresh else "unknown"


def now_us() -> int:
    """The time of day in Unix microseconds."""
    return time.time_ns() // 1000


class ImageRing:
    """A cursor in one image. It keeps nothing but its position and what the head said."""

    def __init__(self, file: File, head: Head, newest: bool = False, verify: bool = True) -> None:
        self.file = file
        self.head = head
        self.verify = verify
        self._checker = Checker()
        self.start = self.position = 0
        self._begun = False
        self._newest = newest
        self._earlier: Optional[Tuple[int, bool]] = None
        self._settle_earlier = False
        self._space: Optional[memoryview] = None
        self._checked = b""
        try:
            # Where a reader starts is settled when it opens. Positions that make no sense are the first
            # pass's trouble, so that such a file can still be inspected.
            self._begin(self.positions(), newest)
        except TelemetryError:
            pass

    def _begin(self, positions: Tuple[int, int], newest: bool) -> None:
        committed, intent = positions
        self.start = self.position = committed if newest else max(0, intent - self.head.capacity)
        self._earlier = None
        self._settle_earlier = not newest
        self._begun = True

    @property
    def verifies(self) -> bool:
        """Whether records are held against their check words."""
        return self.verify and self.head.checks

    def is_alive(self) -> bool:
        """Whether the producer is known to be at work."""
        control = read_control(self.file, self.head)
        return liveness(self.file.lock_state(), control, now_us()).startswith("alive")

    def positions(self) -> Tuple[int, int]:
        """committed and intent: committed, intent, committed again, each by a read of its own, until they agree."""
        committed = intent = 0
        for _ in range(_LOOKS):
            committed = read_control(self.file, self.head).committed
            intent = read_control(self.file, self.head).intent
            again = read_control(self.file, self.head).committed
            if committed <= intent <= again + self.head.max_batch:
                return committed, intent
        # A plain copy takes the two words one after the other, intent first. The check words guard the records.
        if self.head.checks and 0 < committed - intent <= self.head.capacity and not self.is_alive():
            return committed, committed
        raise Damaged(self.file.path, f"{committed} records finished but {intent} announced")

    def _intent(self) -> int:
        data = self.file.read(self.head.extension + CONTROL_AT, 8, "read the control words")
        if data is None:
            raise Resized(self.file.path, self.file.length(), self.head.image_len)
        return int.from_bytes(data, "little")

    def _seen(self, data: bytes) -> Optional[Tuple[int, int]]:
        """committed and intent out of one look, if they agree.

        One read may take the two in any order. committed only grows and never passes intent, so where they agree this
        way round, committed was true, and intent at most too old: then a little more is found lost after the copy.
        """
        intent, committed = CONTROL.unpack_from(data, CONTROL_AT)[:2]
        return (committed, intent) if committed <= intent <= committed + self.head.max_batch else None

    def goal(self) -> int:
        """The end of what is there now."""
        return self.positions()[0]

    def reached(self, goal: int) -> bool:
        """Whether everything up to a goal was passed."""
        return self.position >= goal and self._earlier is None

    def waiting(self) -> int:
        """Places between this cursor and the newest record, at most the capacity."""
        committed, intent = self.positions()
        return max(0, committed - max(self.position, intent - self.head.capacity))

    def take(self, most: int = MOST_RECORDS, space: Optional[memoryview] = None) -> Optional[Batch]:
        """One pass: at most `most` records. None if nothing is new now.

        `space` has room for `most` records; the batch's data then stands in it, until the next pass.
        """
        self._space = space
        length = self.file.length()
        if length != self.head.image_len:
            raise Resized(self.file.path, length, self.head.image_len)
        reset: Optional[Reset] = None
        # The head, and the control line behind it.
        data = self.file.read(self.head.extension, CONTROL_AT + CONTROL.size, "read the head")
        if data is None:
            raise Resized(self.file.path, self.file.length(), self.head.image_len)
        if not data.startswith(self._checked) or not self._checked:
            # Checked once; as long as these bytes stay, nothing of it has changed.
            try:
                head = parse_head(self.file, data, self.head.capacity, length)
            except NotReady:
                return None
            except TelemetryError as became:
                raise Changed(became) from became
            if head is None:
                raise Changed(Damaged(self.file.path, "it is no image any more"))
            self._checked = data[: HEAD.size]
            if head.instance != self.head.instance:
                reset = Reset(head.instance)
                self.head = head
                self._newest = False
                self._begun = False
        positions = self._seen(data) or self.positions()
        if not self._begun:
            self._begin(positions, self._newest)
        if positions[1] < self.position:
            # Once can be a look between two stores of another's repair; twice is another run.
            positions = self.positions()
            if positions[1] < self.position:
                reset = Reset(self.head.instance)
                self._begin(positions, newest=False)
        if self._settle_earlier:
            self._settle_earlier = False
            self._look_for_earlier(positions[0])
        if self._earlier is not None:
            batch = self._take_earlier(reset, most)
            if batch is not None:
                return batch
        return self._take_promised(positions, reset, most)

    def _take_promised(self, positions: Tuple[int, int], reset: Optional[Reset], most: int) -> Optional[Batch]:
        capacity = self.head.capacity
        committed, lost = positions[0], 0
        for _ in range(_ATTEMPTS):
            if committed <= self.position:
                break
            first = max(self.position, committed - capacity)
            count = min(committed - first, most, MOST_RECORDS, capacity)
            data = self._copy(first, count)
            intent = self._intent()
            # Whatever was announced by now may stand half written in the copy.
            valid = max(first, intent - capacity)
            lost += valid - self.position
            self.position = max(first + count, valid)
            if valid < first + count:
                if valid > first:
                    data = data[(valid - first) * RECORD_SIZE :]
                fits = self._checker.fits(valid, data) if self.verifies else None
                return Batch(reset, lost, valid, data, fits, overtaken=valid - first)
            committed = self.positions()[0]
        return Batch(reset, lost, self.position, b"", None) if reset or lost else None

    def _look_for_earlier(self, committed: int) -> None:
        """In a file that nobody writes: whether records are missing for which earlier ones may be there."""
        if not self.verifies or self.is_alive():
            return
        capacity = self.head.capacity
        position = max(self.position, committed - capacity)
        while position < committed:
            count = min(committed - position, MOST_RECORDS, capacity)
            if self._checker.fits(position, self._copy(position, count)) is not None:
                self._earlier = (self.position, False)
                self.position = max(0, self.position - _LAPS_BACK * capacity)
                return
            position += count

    def _take_earlier(self, reset: Optional[Reset], most: int) -> Optional[Batch]:
        """One piece of the earlier laps, until one holds an event.

        What stands in a place and fits an earlier position is that event. Before the first one nothing is known;
        from there on, what is missing is lost.
        """
        assert self._earlier is not None
        until, found = self._earlier
        while self.position < until:
            first = self.position
            count = min(until - first, most, MOST_RECORDS, self.head.capacity)
            data = self._copy(first, count)
            fits = self._checker.fits(first, data)
            self.position = first + count
            skip = 0
            if not found:
                skip = 0 if fits is None else next((at for at, fit in enumerate(fits) if fit), count)
                if skip == count:
                    continue
                found = True
                first += skip
                self.start = first
                data = data[skip * RECORD_SIZE :]
                fits = None if fits is None else fits[skip:]
            self._earlier = (until, found)
            return Batch(reset, 0, first, data, fits, earlier=True, overtaken=skip)
        self._earlier = None
        return None

    def _copy(self, first: int, count: int) -> Bytes:
        """Copies records, around the end of the ring if need be."""
        slot = first % self.head.capacity
        before = min(count, self.head.capacity - slot)
        space = self._space
        whole: Bytes
        if space is None or len(space) < count * RECORD_SIZE:
            pieces = [self.file.read(HEADER_SIZE + RECORD_SIZE * slot, RECORD_SIZE * before, "read records")]
            if before < count:
                pieces.append(self.file.read(HEADER_SIZE, RECORD_SIZE * (count - before), "read records"))
            found = [piece for piece in pieces if piece is not None]
            whole = found[0] if len(found) == 1 else b"".join(found)
        else:
            middle, end = before * RECORD_SIZE, count * RECORD_SIZE
            there = self.file.read_into(HEADER_SIZE + RECORD_SIZE * slot, space[:middle], "read records")
            if there and before < count:
                there = self.file.read_into(HEADER_SIZE, space[middle:end], "read records")
            whole = space[:end] if there else b""
        if len(whole) < count * RECORD_SIZE:
            raise Resized(self.file.path, self.file.length(), self.head.image_len)
        return whole

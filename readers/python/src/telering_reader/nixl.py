"""Reading NIXL's own rings: peeking, which changes nothing, and consuming, which moves `read_pos`.

FORMAT.md, section 20. NIXL makes a ring anew in the same file when its agent starts again: it resizes the file and
sets both indices back. So every look begins with the header, and what was read last is compared with what stands
there now.
"""

from __future__ import annotations

import struct
import time
from typing import Dict, NamedTuple, Optional, Tuple

from .errors import Changed, Damaged, NotReady, NotTelemetry, Resized, TelemetryError, UnsupportedVersion
from .errors import WrongByteOrder
from .file import File
from .image import HEADER, HEADER_SIZE, MOST_RECORDS, Batch, is_power_of_two
from .items import Reset

RECORD_SIZES = {"L1": 56, "L2a": 48, "L2b": 16, "L3": 16, "L4": 16}
"""Bytes of a record, by layout."""
_VERSIONS = {"L1": 1, "L2a": 2, "L2b": 2, "L3": 3, "L4": 4}
KNOWN = (1, 4)
_PLAUSIBLE_VERSION = 0xFF
_READ_POS_AT = 8
# A producer that starts anew resizes the file a moment before it writes the header.
_LOOKS = 20
# Records before the cursor that must still be what they were.
_REMEMBERED = 16


class Ring(NamedTuple):
    """A header that fits its file."""

    layout: str
    capacity: int
    write_pos: int
    read_pos: int

    @property
    def version(self) -> int:
        """NIXL's version of the layout."""
        return _VERSIONS[self.layout]

    @property
    def shape(self) -> Tuple[str, int]:
        """What stays the same as long as it is one ring."""
        return self.layout, self.capacity

    def between(self, start: int, end: int) -> int:
        """Places from index `start` up to index `end`, around the end of the ring."""
        return (end - start) % self.capacity


def _belongs(capacity: int, mask: int) -> bool:
    return is_power_of_two(capacity) and mask == capacity - 1


def probe(file: File) -> Ring:
    """What the file is, by its header and its length.

    Raises `NotTelemetry`, `NotReady`, `UnsupportedVersion`, `WrongByteOrder` or `Damaged`.
    """
    length = file.length()
    header = file.read(0, HEADER_SIZE, "read the header")
    if header is None:
        raise NotTelemetry(file.path, f"{length} bytes are too few" if length else "the file is empty")
    write_pos, read_pos, version, _, capacity, mask = HEADER.unpack(header)
    _check_version(file, header, version, capacity, mask)
    if not is_power_of_two(capacity):
        raise Damaged(file.path, f"capacity {capacity} is no power of two")
    if mask != capacity - 1:
        raise Damaged(file.path, f"mask {mask} does not belong to capacity {capacity}")
    for layout, size in RECORD_SIZES.items():
        if _VERSIONS[layout] == version and HEADER_SIZE + size * capacity == length:
            break
    else:
        raise Damaged(file.path, f"{length} bytes don't fit {capacity} records of version {version}")
    if max(write_pos, read_pos) >= capacity:
        raise Damaged(file.path, f"position {max(write_pos, read_pos)} is beyond capacity {capacity}")
    return Ring(layout, capacity, write_pos, read_pos)


def _check_version(file: File, header: bytes, version: int, capacity: int, mask: int) -> None:
    """Before anything else, so that a file of another version is never called too short or damaged."""
    if KNOWN[0] <= version <= KNOWN[1]:
        return
    belongs = _belongs(capacity, mask)
    if version == 0:
        if belongs or capacity == mask == 0:
            raise NotReady(file.path)
        if mask == (capacity - 1) % (1 << 64):
            # What NIXL leaves behind when it was asked for a capacity that it can't make.
            raise Damaged(file.path, f"capacity {capacity} is no power of two")
    elif belongs or version <= _PLAUSIBLE_VERSION:
        raise UnsupportedVersion(file.path, str(version), f"{KNOWN[0]} to {KNOWN[1]}")
    _, _, other, _, other_capacity, other_mask = struct.unpack(">QQIIQQ", header)
    if 0 < other <= _PLAUSIBLE_VERSION and _belongs(other_capacity, other_mask):
        raise WrongByteOrder(file.path)
    raise NotTelemetry(file.path, "its header is none of a telemetry ring")


class NixlRing:
    """A cursor in one of NIXL's own rings."""

    def __init__(self, file: File, newest: bool = False, consume: bool = False) -> None:
        self.file = file
        self.consume = consume
        self.seen = probe(file)
        self.next = self.seen.write_pos if newest else self.seen.read_pos
        self._stored = self.seen.read_pos
        self._unsaved = consume and newest
        self._remade = False
        self._tail = b""
        self.returned = 0

    @property
    def record_size(self) -> int:
        """Bytes of one record."""
        return RECORD_SIZES[self.seen.layout]

    def take(self, most: int = MOST_RECORDS) -> Optional[Batch]:
        """One pass: at most `most` records. None if nothing is new now.

        When consuming, the read index is stored by the next call (or `save`): what a crash keeps from being
        handed on is still there.
        """
        self.save()
        ring = self._look()
        if ring is None:
            self._remade = True
            return None
        reset = None
        if self._remade or ring.shape != self.seen.shape or self._started_over(ring):
            reset = Reset(None)
            self._remade = False
            self.next = ring.read_pos
            self._tail = b""
        self.seen = ring
        self._stored = ring.read_pos
        lost = 0
        if self._is_outside(ring):
            # Another consumer was faster. By how many rounds of the ring can't be known.
            lost = ring.between(self.next, ring.read_pos)
            self.next = ring.read_pos
            self._tail = b""
        count = min(ring.between(self.next, ring.write_pos), most, MOST_RECORDS)
        data = b""
        if count:
            copied = self._copy(ring, count)
            if copied is None:
                return Batch(reset, lost, self.returned, b"", None) if reset or lost else None
            skip, records = copied
            lost += skip
            data = records[skip * self.record_size :]
            self._tail = (self._tail + records)[-_REMEMBERED * self.record_size :]
            self.next = (self.next + count) % ring.capacity
            self._unsaved = self._unsaved or self.consume
        first = self.returned
        self.returned += len(data) // self.record_size
        return Batch(reset, lost, first, data, None) if reset or lost or data else None

    def goal(self) -> int:
        """The end of what is there now."""
        return self.returned + self.waiting()

    def reached(self, goal: int) -> bool:
        """Whether everything up to a goal was returned."""
        return self.returned >= goal

    def waiting(self) -> int:
        """Events between this cursor and the newest one, now."""
        ring = self._look()
        if ring is None:
            return 0
        return ring.between(ring.read_pos if self._is_outside(ring) else self.next, ring.write_pos)

    def save(self) -> None:
        """Stores the read index of a consuming reader: everything before it was handed over."""
        if not self._unsaved:
            return
        self._unsaved = False
        try:
            ring = probe(self.file)
        except TelemetryError:
            # Made anew meanwhile: the next look finds out.
            return
        if ring.shape == self.seen.shape and ring.read_pos == self._stored:
            self.file.write(_READ_POS_AT, self.next.to_bytes(8, "little"))
            self._stored = self.next
            self.seen = self.seen._replace(read_pos=self.next)

    def _copy(self, ring: Ring, count: int) -> Optional[Tuple[int, bytes]]:
        """Copies records, and how many at their start may be overwritten by now; None if the ring changed."""
        records = self._records(ring, self.next, count)
        try:
            after = probe(self.file)
        except TelemetryError:
            return None
        if records is None or after.shape != ring.shape:
            return None
        # The producer never overwrites what nobody consumed. What another consumer took meanwhile may be.
        ahead = ring.between(ring.read_pos, self.next)
        taken = ring.between(ring.read_pos, after.read_pos)
        return min(max(0, taken - ahead), count), records

    def _records(self, ring: Ring, index: int, count: int) -> Optional[bytes]:
        size = RECORD_SIZES[ring.layout]
        before = min(count, ring.capacity - index)
        data = self.file.read(HEADER_SIZE + index * size, before * size, "read records")
        if data is None or before == count:
            return data
        rest = self.file.read(HEADER_SIZE, (count - before) * size, "read records")
        return None if rest is None else data + rest

    def _is_outside(self, ring: Ring) -> bool:
        """Whether the cursor is not among the records that wait in the ring."""
        return ring.between(ring.read_pos, self.next) > ring.between(ring.read_pos, ring.write_pos)

    def _started_over(self, ring: Ring) -> bool:
        """Whether a ring of the same size was begun anew, as far as positions and the last records can tell."""
        waited = self.seen.between(self.seen.read_pos, self.seen.write_pos)
        if ring.read_pos == self.seen.read_pos and ring.between(ring.read_pos, ring.write_pos) < waited:
            return True
        outside = self._is_outside(ring)
        if ring.read_pos == 0 and (outside or (self.consume and self._stored != 0)):
            return True
        there = min(ring.between(ring.read_pos, self.next), len(self._tail) // self.record_size)
        if there == 0 or outside:
            return False
        now = self._records(ring, (self.next - there) % ring.capacity, there)
        return now is not None and not self._tail.endswith(now)

    def _look(self) -> Optional[Ring]:
        """The ring as it is now; None while it is being made anew."""
        looks = 0
        while True:
            looks += 1
            try:
                return probe(self.file)
            except NotReady:
                return None
            except (Damaged, NotTelemetry) as error:
                if looks < _LOOKS:
                    time.sleep(0.001)
                    continue
                needed = HEADER_SIZE + self.record_size * self.seen.capacity
                length = self.file.length()
                if length != needed:
                    raise Resized(self.file.path, length, needed) from error
                raise Changed(error) from error
            except (UnsupportedVersion, WrongByteOrder) as error:
                raise Changed(error) from error


RECORDS: Dict[str, struct.Struct] = {
    "L1": struct.Struct("<Qi32s4xQ"),
    "L2a": struct.Struct("<i32s4xQ"),
    "L2b": struct.Struct("<iIQ"),
    "L3": struct.Struct("<I4xQ"),
    "L4": struct.Struct("<I4xQ"),
}
"""The fields of a record, by layout."""

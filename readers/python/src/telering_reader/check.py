"""Check words of records and checksums of metrics: FORMAT.md, sections 5 and 9.4."""

from __future__ import annotations

import struct
import threading
from typing import Any, Dict, List, Optional, Sequence, Union

try:
    import numpy
except ImportError:  # Everything works without it, only slower.
    numpy = None  # type: ignore[assignment,unused-ignore]

__all__ = ["RECORD_SIZE", "Checker", "check_word", "checksum", "numpy"]
RECORD_SIZE = 56
FACTORS = (
    0x6A09E667, 0xBB67AE85, 0x3C6EF373, 0xA54FF53B, 0x510E527F, 0x9B05688D, 0x1F83D9AB, 0x5BE0CD19,
    0xCBBB9D5D, 0x629A292B, 0x9159015B, 0x152FECD9, 0x67332667, 0x8EB44A87, 0xDB0C2E0D,
)  # fmt: skip
_MASK = 0xFFFFFFFF
# The words of a record in the order of its bytes: time (2), category and name (9), check (not counted), value (2).
_STABLE = slice(8, 44)
_WORDS = struct.Struct("<9I")
_REST = struct.Struct("<Q36xIQ")
_COLUMNS = FACTORS[2:13] + (0,) + FACTORS[13:]


def _mix(word: int) -> int:
    return word ^ (word >> 16)


def _of_name(stable: bytes) -> int:
    return sum(_mix(word) * factor for word, factor in zip(_WORDS.unpack(stable), FACTORS[4:13])) & _MASK


def _half(number: int, low: int, high: int) -> int:
    return _mix(number & _MASK) * low + _mix(number >> 32) * high


def check_word(position: int, record: bytes) -> int:
    """The check word of a record of 56 bytes at a position; never 0."""
    time, _, value = _REST.unpack(record)
    total = _of_name(record[_STABLE]) + _half(position, *FACTORS[0:2]) + _half(time, *FACTORS[2:4])
    return (total + _half(value, *FACTORS[13:15])) & _MASK or 1


class Checker:
    """Says which records fit their positions. It remembers what the names it met add to a check word."""

    def __init__(self) -> None:
        self._names: Dict[bytes, int] = {}

    def fits(self, first: int, data: Union[bytes, memoryview]) -> Optional[Sequence[bool]]:
        """For each record of `data`, the first at position `first`, whether it fits; None if all do."""
        if numpy is not None and len(data) >= 8 * RECORD_SIZE:
            return _columns().fits(first, data)
        return self._one_by_one(first, data)

    def _one_by_one(self, first: int, data: Union[bytes, memoryview]) -> Optional[Sequence[bool]]:
        names = self._names
        fits: List[bool] = []
        for at, (time, check, value) in enumerate(_REST.iter_unpack(data)):
            stable = bytes(data[at * RECORD_SIZE + 8 : at * RECORD_SIZE + 44])
            base = names.get(stable)
            if base is None:
                if len(names) >= 4096:
                    names.clear()
                base = names[stable] = _of_name(stable)
            total = base + _half(first + at, *FACTORS[0:2]) + _half(time, *FACTORS[2:4])
            fits.append(check == ((total + _half(value, *FACTORS[13:15])) & _MASK or 1))
        return None if all(fits) else fits


class _Columns:
    """The check words of many records at once, in pieces that stay in the processor's cache.

    The space for it is kept, one for each thread: taking it anew costs more than the sums. Only when a record doesn't
    fit is more done than that.

    A transfer is four events, so where an agent only writes, or only reads, category and name repeat every four records. To
    see that they do, byte by byte, costs less than to add them up.
    """

    PIECE = 4096
    # After records that don't repeat, so many pieces are not looked at for that.
    PATIENCE = 16

    def __init__(self) -> None:
        self._mixed: Any = numpy.empty((self.PIECE, RECORD_SIZE // 4), "<u4")
        self._total: Any = numpy.empty(self.PIECE, "<u4")
        self._places: Any = numpy.empty(self.PIECE, "<u4")
        self._halves: Any = numpy.empty(self.PIECE, "<u4")
        self._steps: Any = numpy.arange(self.PIECE, dtype="<u4")
        self._factors: Any = numpy.array(_COLUMNS, "<u4")
        self._shift: Any = numpy.uint32(16)
        self._first_factor: Any = numpy.uint32(FACTORS[0])
        # Time, value and position of each record: what is left where category and name repeat.
        self._three: Any = numpy.empty((3, self.PIECE), "<u8")
        self._three_mixed: Any = numpy.empty((3, 2 * self.PIECE), "<u4")
        pairs = [FACTORS[2:4], FACTORS[13:15], FACTORS[0:2]]
        self._three_factors: Any = numpy.tile(numpy.array(pairs, "<u4"), (1, self.PIECE))
        self._places_whole: Any = numpy.arange(self.PIECE, dtype="<u8")
        self._differ: Any = numpy.empty((self.PIECE - 4) * 14, bool)
        self._stable: Any = numpy.tile(numpy.array([False] * 2 + [True] * 9 + [False] * 3), self.PIECE - 4)
        self._four = b""
        self._of_four: Any = None
        self._pause = 0

    def fits(self, first: int, data: Union[bytes, memoryview]) -> Optional[Sequence[bool]]:
        words = numpy.frombuffer(data, "<u4").reshape(-1, RECORD_SIZE // 4)
        found: Any = None
        for at in range(0, len(words), self.PIECE):
            piece = words[at : at + self.PIECE]
            total, stored = self._totals(first + at, piece), piece[:, 11]
            if (total != stored).any():
                if found is None:
                    found = numpy.ones(len(words), bool)
                total[total == 0] = 1
                found[at : at + self.PIECE] = total == stored
        return None if found is None or found.all() else found

    def _totals(self, first: int, words: Any) -> Any:
        """The check words of `words`; 0 where it should be 1."""
        count = len(words)
        if self._pause:
            self._pause -= 1
        elif count > 4:
            if self._repeats(words):
                return self._totals_by_four(first, words)
            self._pause = self.PATIENCE
        mixed, total = self._mixed[:count], self._total[:count]
        places, halves = self._places[:count], self._halves[:count]
        numpy.right_shift(words, self._shift, out=mixed)
        numpy.bitwise_xor(mixed, words, out=mixed)
        numpy.einsum("ij,j->i", mixed, self._factors, out=total)
        low, high = first & _MASK, first >> 32
        if low + count > _MASK:
            # The upper halves of these positions differ: each gets its own.
            both = (self._steps[:count].astype("<u8") + numpy.uint64(first)).view("<u4").reshape(count, 2)
            total += ((both ^ (both >> self._shift)) * numpy.array(FACTORS[:2], "<u4")).sum(axis=1, dtype="<u4")
            return total
        numpy.add(self._steps[:count], numpy.uint32(low), out=places)
        numpy.right_shift(places, self._shift, out=halves)
        numpy.bitwise_xor(places, halves, out=places)
        numpy.multiply(places, self._first_factor, out=places)
        numpy.add(total, places, out=total)
        rest = _mix(high) * FACTORS[1] & _MASK
        return numpy.add(total, numpy.uint32(rest), out=total) if rest else total

    def _repeats(self, words: Any) -> bool:
        """Whether category and name of each record are those of the fourth one before it."""
        flat = words.reshape(-1)
        differ = self._differ[: len(flat) - 4 * 14]
        numpy.not_equal(flat[4 * 14 :], flat[: -4 * 14], out=differ)
        numpy.logical_and(differ, self._stable[: len(differ)], out=differ)
        return not differ.any()

    def _totals_by_four(self, first: int, words: Any) -> Any:
        """The same as `_totals`, where category and name repeat."""
        count = len(words)
        four = words[:4, 2:11].tobytes()
        if four != self._four:
            sums = [_of_name(four[at : at + 36]) for at in range(0, 144, 36)]
            self._of_four, self._four = numpy.tile(numpy.array(sums, "<u4"), self.PIECE // 4), four
        long_words, three = words.view("<u8"), self._three[:, :count]
        three[0] = long_words[:, 0]
        three[1] = long_words[:, 6]
        numpy.add(self._places_whole[:count], numpy.uint64(first), out=three[2])
        halves, mixed = three.view("<u4"), self._three_mixed[:, : 2 * count]
        numpy.right_shift(halves, self._shift, out=mixed)
        numpy.bitwise_xor(mixed, halves, out=mixed)
        numpy.multiply(mixed, self._three_factors[:, : 2 * count], out=mixed)
        sums = numpy.add(mixed[0], mixed[1], out=mixed[0])
        sums = numpy.add(sums, mixed[2], out=sums)
        total = numpy.add(sums[::2], sums[1::2], out=self._total[:count])
        return numpy.add(total, self._of_four[:count], out=total)


_SPACE = threading.local()


def _columns() -> _Columns:
    """This thread's."""
    columns: Optional[_Columns] = getattr(_SPACE, "columns", None)
    if columns is None:
        columns = _SPACE.columns = _Columns()
    return columns


def checksum(data: bytes) -> int:
    """The checksum over the 32-bit words of a copy of the metrics; never 0."""
    state = 0x6A09E667
    for (word,) in struct.iter_unpack("<I", data):
        state = ((((state << 5) | (state >> 27)) & _MASK) ^ word) * 0x9E3779B1 & _MASK
    return state or 1

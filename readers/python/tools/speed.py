#!/usr/bin/env python3
"""Events a second, side by side: reading in bulk with numpy, check words verified, and popping one by one with ctypes
from a mapping, as NIXL's own Python reader does.

    python3 readers/python/tools/speed.py FILE [ROUNDS]

FILE is a telemetry file of Telering; it is copied, and the copy is read. Its lock is held meanwhile, so that it is read as
the file of a living producer. Prints the best round of each and their ratio.
"""

import ctypes
import mmap
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "src"))
from telering_reader import Reader  # noqa: E402

POPS = 100_000


class Header(ctypes.LittleEndianStructure):
    _fields_ = [
        ("write_pos", ctypes.c_uint64),
        ("read_pos", ctypes.c_uint64),
        ("version", ctypes.c_uint32),
        ("expected_version", ctypes.c_uint32),
        ("capacity", ctypes.c_uint64),
        ("mask", ctypes.c_uint64),
    ]


class Event(ctypes.LittleEndianStructure):
    _fields_ = [
        ("timestamp_us", ctypes.c_uint64),
        ("category", ctypes.c_int32),
        ("event_name", ctypes.c_char * 32),
        ("value", ctypes.c_uint64),
    ]


class Popping:
    """One event at a time out of a mapping."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR)
        self._map = mmap.mmap(self._fd, 0)
        self._header = Header.from_buffer(self._map)
        assert ctypes.sizeof(Header) == 40 and ctypes.sizeof(Event) == 56

    def pop(self):
        header = self._header
        at = header.read_pos
        if at == header.write_pos:
            return None
        event = Event.from_buffer_copy(self._map, 40 + at * 56)
        header.read_pos = (at + 1) & header.mask
        return event

    def fill(self) -> None:
        """Makes all but one event wait."""
        self._header.read_pos = (self._header.write_pos + 1) & self._header.mask


def popping(path: str) -> float:
    """Events a second."""
    ring = Popping(path)
    ring.fill()
    count = 0
    began = time.perf_counter()
    while count < POPS and ring.pop() is not None:
        count += 1
    return count / (time.perf_counter() - began)


def bulk(path: str, numbered: bool) -> float:
    """Events a second."""
    with Reader(path) as reader:
        began = time.perf_counter()
        events = reader.to_numpy(numbered)
        took = time.perf_counter() - began
        assert reader.lost == reader.unverified == 0, reader.counts
    return len(events) / took


def blocks(path: str) -> float:
    """Events a second."""
    with Reader(path) as reader:
        began = time.perf_counter()
        count = sum(len(block) for block in reader.blocks())
        took = time.perf_counter() - began
        assert reader.lost == reader.unverified == 0, reader.counts
    return count / took


def main() -> int:
    rounds = int(sys.argv[2]) if len(sys.argv) > 2 else 7
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "copy")
        shutil.copyfile(sys.argv[1], path)
        if os.name == "posix":
            import fcntl

            lock = os.open(path, os.O_RDONLY)
            fcntl.flock(lock, fcntl.LOCK_EX)
        one = numbered = plain = streamed = 0.0
        for _ in range(rounds):
            one, streamed = max(one, popping(path)), max(streamed, blocks(path))
            plain, numbered = max(plain, bulk(path, False)), max(numbered, bulk(path, True))
    print(f"one by one with ctypes  {one:12,.0f} events/s")
    print(f"in blocks with numpy    {streamed:12,.0f} events/s, {streamed / one:5.1f} times as many")
    print(f"  as one array          {plain:12,.0f} events/s, {plain / one:5.1f} times as many")
    print(f"  and numbered          {numbered:12,.0f} events/s, {numbered / one:5.1f} times as many")
    return 0


if __name__ == "__main__":
    sys.exit(main())

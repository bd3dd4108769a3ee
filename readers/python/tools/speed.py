#!/usr/bin/env python3
"""Events a second, side by side: reading in bulk with numpy, check words verified, and popping one by one with ctypes
from a mapping, as NIXL's own Python reader does.

    python3 readers/python/tools/speed.py FILE [ROUNDS]

FILE is a telemetry file of Telering; it is copied, and the copy is read. Its lock is held meanwhile, so that it is read as
the file of a living producer. Each round measures all of them in turn, in the processor's time: what other programs do on a busy
machine is not counted, though they still take caches and memory from this one. Prints the best round of each and the median of the
rounds' ratios.
"""

import ctypes
import mmap
import os
import shutil
import statistics
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
    """One event at a time out of a mapping, by the steps that NIXL's Python reader takes. What `pop` returns is a view of
    the mapping, so an event has been read only when its fields were taken from it, before the producer comes around."""

    def __init__(self, path: str) -> None:
        self._fd = os.open(path, os.O_RDWR)
        self._map = mmap.mmap(self._fd, 0)
        self.header = Header.from_buffer(self._map)
        assert ctypes.sizeof(Header) == 40 and ctypes.sizeof(Event) == 56
        self.events = (Event * self.header.capacity).from_buffer(self._map, 40)

    def pop(self):
        at = self.header.read_pos
        if at == self.header.write_pos:
            return None
        event = self.events[at]
        self.header.read_pos = (at + 1) & self.header.mask
        return event

    def fill(self) -> None:
        """Makes all but one event wait."""
        self.header.read_pos = (self.header.write_pos + 1) & self.header.mask


def nothing(event):
    """Pops alone: what came out is never looked at."""


def fields(event):
    return event.timestamp_us, event.category, event.event_name, event.value


def as_the_guide(event):
    """What the guide's loop does before it prints."""
    name = event.event_name.decode("utf-8").rstrip("\x00")
    return event.timestamp_us, event.category, name, event.value


def popping(path: str, take) -> float:
    """Events a second."""
    ring = Popping(path)
    ring.fill()
    count = 0
    began = time.process_time()
    while count < POPS:
        event = ring.pop()
        if not event:
            break
        take(event)
        count += 1
    return count / (time.process_time() - began)


def bulk(path: str, numbered: bool) -> float:
    """Events a second."""
    with Reader(path) as reader:
        began = time.process_time()
        events = reader.to_numpy(numbered)
        took = time.process_time() - began
        assert reader.lost == reader.unverified == 0, reader.counts
    return len(events) / took


def blocks(path: str) -> float:
    """Events a second."""
    with Reader(path) as reader:
        began = time.process_time()
        count = sum(len(block) for block in reader.blocks())
        took = time.process_time() - began
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
        singly = {"only popped": nothing, "fields taken": fields, "guide's loop": as_the_guide}
        bulks = {
            "blocks()": blocks,
            "to_numpy(numbered=False)": lambda path: bulk(path, False),
            "to_numpy()": lambda path: bulk(path, True),
        }
        measured = {way: [] for way in (*singly, *bulks)}
        for _ in range(rounds):
            for way, take in singly.items():
                measured[way].append(popping(path, take))
            for way, measure in bulks.items():
                measured[way].append(measure(path))
    print(f"{'':<26}{'events/s':>12}   times as many as ...")
    print(f"{'':<26}{'':>12}" + "".join(f"{way:>14}" for way in singly))
    for way, speeds in measured.items():
        line = f"{way:<26}{max(speeds):>12,.0f}"
        for other in singly if way in bulks else ():
            line += f"{statistics.median(a / b for a, b in zip(speeds, measured[other])):>14.1f}"
        print(line)
    return 0


if __name__ == "__main__":
    sys.exit(main())

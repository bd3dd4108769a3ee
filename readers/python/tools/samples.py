#!/usr/bin/env python3
"""Files for the foreign machines: images, and damaged, swapped and copied ones. `samples.py FOLDER`"""

import os
import struct
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
from producer import NixlRing, Producer  # noqa: E402


def main(folder):
    os.makedirs(folder, exist_ok=True)

    def at(name):
        path = os.path.join(folder, name)
        if os.path.exists(path):
            os.unlink(path)
        return path

    parts = [
        (1, 1, struct.pack("<QQ16sQQ48s128s256s64s32x", 7, 1 << 40, bytes(range(16)), 0, 1, b"w", b"h", b"a", b"3")),
        (2, 1, struct.pack("<8Q", (1 << 40) + 7, (1 << 63) + 1, 1, 2, 3, 4, 5, 0)),
    ]
    for name, count in (("empty", 0), ("some", 5), ("wrapped", 100), ("large", 5000)):
        Producer(at(name), 4096 if name == "large" else 16, parts).push(count)
    Producer(at("extreme"), 16).push(9, lambda p: ((1 << 64) - 1 - p, p - 2, b"\xc3\xa4" * 16, (1 << 63) + p))
    torn = Producer(at("torn"), 16)
    torn.push(40)
    torn.raw(30, bytes(56))
    # An older lap in some slots, as a copy of a live file has it.
    older = Producer(at("older"), 16)
    older.push(16)
    records = os.pread(older.fd, 16 * 56, 40)
    older.push(9)
    os.pwrite(older.fd, records, 40)
    swapped = bytearray(Path(folder, "some").read_bytes())
    swapped[:40] = struct.pack(">QQIIQQ", *struct.unpack("<QQIIQQ", swapped[:40]))
    Path(at("swapped")).write_bytes(swapped)
    for layout in ("L1", "L2a", "L2b", "L3", "L4"):
        ring = NixlRing(at(layout), layout)
        for value in range(6):
            ring.push((1 << 40) + value, 18 + value)
    Path(at("text")).write_text("no telemetry at all, but more than forty bytes of it\n")


if __name__ == "__main__":
    main(sys.argv[1])

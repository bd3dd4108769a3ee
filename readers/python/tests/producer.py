"""A producer for the tests, written from FORMAT.md: it makes images in files, step by step where a test wants that."""

import os
import struct
from math import isqrt

HEAD = struct.Struct("<QHHIQQIIIHHQQ")
MAGIC = 0x474E4952454C4554
PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)
# The first 32 bits of the fractional part of the square root, the lowest bit set.
FACTORS = [isqrt(prime << 64) & 0xFFFFFFFF | 1 for prime in PRIMES]
NAMES = (b"agent_xfer_post_time", b"agent_xfer_time", b"agent_tx_bytes", b"agent_tx_requests_num")
CATEGORIES = (5, 5, 1, 1)


def check_of(position, record):
    words = struct.unpack("<2I", struct.pack("<Q", position)) + struct.unpack("<11I", record[:44])
    words += struct.unpack("<2I", record[48:56])
    return sum((word ^ word >> 16) * factor for word, factor in zip(words, FACTORS)) % (1 << 32) or 1


def record(position, time, category, name, value):
    """The 56 bytes of a record at a position."""
    data = struct.pack("<Qi32sIQ", time, category, name, 0, value)
    return data[:44] + struct.pack("<I", check_of(position, data)) + data[48:]


def event_at(position):
    """What `Producer.push` writes to a position: the value tells the position."""
    kind = position % 4
    value = position * 1000003 + 7
    return 1_700_000_000_000_000 + position // 4, CATEGORIES[kind], NAMES[kind], value


class Producer:
    """Writes one image into a file of its own."""

    def __init__(self, path, capacity=8, parts=(), instance=0x1234, open_file=True):
        self.path, self.capacity, self.position = path, capacity, 0
        self.batch = max(1, min(256, capacity // 16))
        self.extension = (40 + 56 * capacity + 63) // 64 * 64
        rows, bodies, at = b"", b"", self.extension + 128 + 24 * len(parts)
        for kind, version, body in parts:
            start = (at + 63) // 64 * 64
            rows += struct.pack("<IIQQ", kind, version, start, len(body))
            bodies += bytes(start - at) + body
            at = start + len(body)
        length = (at + 63) // 64 * 64
        data = bytearray(length)
        struct.pack_into("<QQIIQQ", data, 0, 0, 0, 1, 1, capacity, capacity - 1)
        HEAD.pack_into(
            data, self.extension, MAGIC, 1, 0, 0x01020304, length, capacity, 56, 1, self.batch, len(parts), 1, instance, 5
        )  # fmt: skip
        struct.pack_into("<I", data, self.extension + 104, 1)
        data[self.extension + 128 : self.extension + 128 + len(rows)] = rows
        data[self.extension + 128 + len(rows) : self.extension + 128 + len(rows) + len(bodies)] = bodies
        with open(path, "wb") as file:
            file.write(data)
        self.fd = os.open(path, os.O_RDWR) if open_file else -1

    def word(self, offset, value):
        os.pwrite(self.fd, struct.pack("<Q", value), offset)

    def steps(self, count, make=event_at):
        """Pushes `count` records as one batch, one aligned word at a time: yields after each store."""
        n, at = self.position, self.extension + 64
        self.word(at, n + count)
        yield
        for position in range(n, n + count):
            data = record(position, *make(position))
            for offset in range(0, 56, 8):
                os.pwrite(self.fd, data[offset : offset + 8], 40 + position % self.capacity * 56 + offset)
                yield
        self.word(at + 8, n + count)
        yield
        self.word(0, (n + count) % self.capacity)
        self.position = n + count

    def push(self, count=1, make=event_at):
        """Pushes records, each batch whole."""
        while count > 0:
            size = min(count, self.batch)
            for _ in self.steps(size, make):
                pass
            count -= size

    def raw(self, position, data):
        """Stores any 56 bytes in the slot of a position."""
        os.pwrite(self.fd, data, 40 + position % self.capacity * 56)

    def close(self):
        """Closes in good order."""
        os.pwrite(self.fd, struct.pack("<I", 2), self.extension + 104)
        os.close(self.fd)


VERSIONS = {"L1": 1, "L2a": 2, "L2b": 2, "L3": 3, "L4": 4}
RECORDS = {
    "L1": lambda kind, value: struct.pack("<Qi32s4sQ", 10**15 + value, 1, b"agent_tx_bytes", b"\xaa" * 4, value),
    "L2a": lambda kind, value: struct.pack("<i32s4sQ", 1, b"agent_tx_bytes", b"\xaa" * 4, value),
    "L2b": lambda kind, value: struct.pack("<iIQ", 1, kind, value),
    "L3": lambda kind, value: struct.pack("<I4sQ", kind, b"\xaa" * 4, value),
    "L4": lambda kind, value: struct.pack("<I4sQ", kind, b"\xaa" * 4, value),
}


class NixlRing:
    """A ring as NIXL itself makes it."""

    def __init__(self, path, layout="L4", capacity=8):
        self.path, self.layout, self.capacity = path, layout, capacity
        self.size = len(RECORDS[layout](0, 0))
        self.fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        self.remake(capacity)

    def remake(self, capacity):
        """What an agent does that starts again under the same name: same inode, records left as they are."""
        self.capacity = capacity
        os.ftruncate(self.fd, 40 + capacity * self.size)
        version = VERSIONS[self.layout]
        os.pwrite(self.fd, struct.pack("<QQIIQQ", 0, 0, version, version, capacity, capacity - 1), 0)

    def positions(self):
        return struct.unpack("<QQ", os.pread(self.fd, 16, 0))

    def push(self, value, kind=0):
        write, read = self.positions()
        if (write + 1) % self.capacity == read:
            return False
        os.pwrite(self.fd, RECORDS[self.layout](kind, value), 40 + write * self.size)
        os.pwrite(self.fd, struct.pack("<Q", (write + 1) % self.capacity), 0)
        return True

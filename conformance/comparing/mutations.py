"""Changes to files by chance. The same seed and number give the same bytes, on any machine."""

import random
import struct

from making.tables import check_word, copy_check

MAGIC = b"TELERING"
WORDS = (0, 1, 2, 3, 7, 8, 15, 16, 31, 32, 39, 40, 48, 56, 63, 64, 65, 127, 128, 255, 256, 4095, 4096, 2**16, 2**24, 2**31, 2**32)
LONGEST = 64 * 1024


class Mutant:
    """One changed file: `data`, and `what` was done to it."""

    def __init__(self, seed, number, files):
        self.random = random.Random(f"{seed}/{number}")
        name = self.random.choice(sorted(files))
        self.files, self.data, self.what = files, bytearray(files[name]), [name]
        for _ in range(self.random.choice((1, 1, 1, 2, 2, 3, 5, 8))):
            change = self.random.choice(CHANGES)
            self.what.append(change(self))
            del self.data[LONGEST:]
        # Without right check words and checksums, nothing behind them would ever be looked at.
        if self.random.random() < 0.3:
            self.what.append(seal_records(self))
        if self.random.random() < 0.3:
            self.what.append(seal_metrics(self))

    def place(self, size):
        """An offset for `size` bytes: more often where the numbers stand that lead a reader."""
        starts = [(0, 40)]
        extension = self.data.find(MAGIC)
        if extension >= 0:
            parts = extension + 128
            starts += [(extension, 64), (extension + 64, 64), (parts, 160), (parts, len(self.data)), (40, extension)]
        at, length = self.random.choice([*starts, (0, len(self.data))])
        at += self.random.randrange(max(length, 1))
        if self.random.random() < 0.8:
            at -= at % size
        return min(at, max(len(self.data) - size, 0))

    def extension(self):
        at = self.data.find(MAGIC)
        return at if at >= 40 + 56 * 2 else None


def flip_bit(mutant):
    if mutant.data:
        at = mutant.place(1)
        mutant.data[at] ^= 1 << mutant.random.randrange(8)
        return f"flip a bit of byte {at}"
    return "nothing"


def set_byte(mutant):
    if mutant.data:
        at = mutant.place(1)
        mutant.data[at] = mutant.random.choice((0, 1, 0x7F, 0x80, 0xFF, mutant.random.randrange(256)))
        return f"set byte {at}"
    return "nothing"


def number(mutant, size):
    top = 1 << 8 * size
    value = mutant.random.choice(WORDS) if mutant.random.random() < 0.8 else mutant.random.randrange(top)
    return (value if mutant.random.random() < 0.7 else top - 1 - value) % top


def set_number(mutant):
    size = mutant.random.choice((2, 4, 8))
    at = mutant.place(size)
    value = number(mutant, size)
    mutant.data[at : at + size] = value.to_bytes(size, "little")
    return f"set {size} bytes at {at} to {value}"


def add(mutant):
    size = mutant.random.choice((4, 8))
    at = mutant.place(size)
    before = int.from_bytes(mutant.data[at : at + size], "little")
    by = mutant.random.choice((-64, -57, -56, -16, -8, -2, -1, 1, 2, 8, 16, 56, 57, 64))
    mutant.data[at : at + size] = ((before + by) % (1 << 8 * size)).to_bytes(size, "little")
    return f"add {by} at {at}"


def reverse(mutant):
    size = mutant.random.choice((2, 4, 8))
    at = mutant.place(size)
    mutant.data[at : at + size] = mutant.data[at : at + size][::-1]
    return f"reverse {size} bytes at {at}"


def copy_number(mutant):
    size = mutant.random.choice((4, 8))
    source, at = mutant.place(size), mutant.place(size)
    mutant.data[at : at + size] = mutant.data[source : source + size]
    return f"copy {size} bytes from {source} to {at}"


def swap(mutant):
    size = mutant.random.choice((8, 24, 56, 64))
    one, two = sorted((mutant.place(size), mutant.place(size)))
    if one + size <= two:
        data = mutant.data
        data[one : one + size], data[two : two + size] = data[two : two + size], data[one : one + size]
    return f"swap {size} bytes at {one} and {two}"


def fill(mutant):
    at, size = mutant.place(8), mutant.random.choice((8, 16, 32, 56, 64, 256))
    end = min(at + size, len(mutant.data))
    mutant.data[at:end] = bytes([mutant.random.choice((0, 0xFF, 0x20))]) * (end - at)
    return f"fill {at} to {end}"


def truncate(mutant):
    at = mutant.random.choice((mutant.random.randrange(len(mutant.data) + 1), max(len(mutant.data) - mutant.random.choice((1, 8, 16, 56, 64)), 0)))
    del mutant.data[at:]
    return f"cut at {at}"


def extend(mutant):
    size = mutant.random.choice((1, 8, 16, 56, 64, 1000))
    mutant.data += bytes([mutant.random.choice((0, 0xFF))]) * size
    return f"{size} bytes more"


def insert(mutant):
    at, size = mutant.place(8), mutant.random.choice((1, 8, 56, 64))
    mutant.data[at:at] = bytes(size)
    return f"insert {size} bytes at {at}"


def splice(mutant):
    other = mutant.random.choice(sorted(mutant.files))
    at = mutant.place(8)
    mutant.data[at:] = mutant.files[other][at:]
    return f"from {at} on as {other}"


def true_length(mutant):
    """The length in the head is the real one, so that all else of it is looked at."""
    at = mutant.extension()
    if at is not None and len(mutant.data) >= at + 24:
        mutant.data[at + 16 : at + 24] = len(mutant.data).to_bytes(8, "little")
    return "set image_len right"


def other_positions(mutant):
    at = mutant.extension()
    if at is not None and len(mutant.data) >= at + 80:
        value = number(mutant, 8)
        intent = (value + mutant.random.choice((0, 0, 0, 1, 2))) % 2**64
        struct.pack_into("<QQ", mutant.data, at + 64, intent, value)
        return f"positions {intent} and {value}"
    return "nothing"


def seal_records(mutant):
    """Gives records the check word of a position that belongs to their slot."""
    at = mutant.extension()
    if at is None or len(mutant.data) < at + 80:
        return "no records to seal"
    capacity, committed = struct.unpack_from("<Q", mutant.data, 24)[0], struct.unpack_from("<Q", mutant.data, at + 72)[0]
    if not 2 <= capacity <= (at - 40) // 56:
        return "no records to seal"
    for slot in range(capacity):
        if mutant.random.random() < 0.5:
            lap = mutant.random.choice((1, 1, 1, 2, 3))
            position = committed - 1 - (committed - 1 - slot) % capacity - (lap - 1) * capacity
            if position >= 0:
                start = 40 + 56 * slot
                word = check_word(position, bytes(mutant.data[start : start + 56]))
                struct.pack_into("<I", mutant.data, start + 44, word)
    return "seal records"


def seal_metrics(mutant):
    """Gives the copies of the metrics the checksum of what stands there."""
    at = mutant.extension()
    if at is None:
        return "no metrics to seal"
    for row in range(4):
        if at + 128 + 24 * row + 24 > len(mutant.data):
            break
        kind, _, start, size = struct.unpack_from("<IIQQ", mutant.data, at + 128 + 24 * row)
        if kind not in (4, 5) or start + 64 > len(mutant.data):
            continue
        copies = start + (320 if kind == 4 else 64)
        length = struct.unpack_from("<Q", mutant.data, start + (16 if kind == 4 else 8))[0]
        if length % 8 or not 24 <= length <= 8192 or copies + 2 * length > min(start + size, len(mutant.data)):
            continue
        for copy in (copies, copies + length):
            used = struct.unpack_from("<Q", mutant.data, copy + 8)[0] if kind == 5 else 0
            covered = length - 8 if kind == 4 else min(16 + 72 * used, length - 8)
            struct.pack_into("<Q", mutant.data, copy + length - 8, copy_check(bytes(mutant.data[copy : copy + covered])))
    return "seal metrics"


CHANGES = (
    flip_bit, flip_bit, set_byte, set_number, set_number, set_number, add, add, reverse, copy_number, swap, fill, truncate,
    extend, insert, splice, true_length, true_length, other_positions, other_positions,
)  # fmt: skip

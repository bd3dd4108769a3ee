"""An image and its producer, as sections 2 to 10 of FORMAT.md say.

The producer here remembers what it wrote, so what a reader must return follows from that and not from reading.
"""

import struct

from making.parts import Parts
from making.tables import FILLER, check_word, id_of, shown

EPOCH = 1736951425000000
MAGIC = 0x474E4952454C4554
HEAD = "<QHHIQQIIIHHQQ"
INSTANCE = 0x0123456789ABCDEF


def record(name, category, value, time):
    """The bytes of a record without its check word."""
    if isinstance(name, str):
        name = name.encode()
    assert len(name) <= 32
    return struct.pack("<Qi32sIQ", time, category, name, 0, value)


def round_up(number, to):
    return -(-number // to) * to


class Image:
    """An image in memory. `data` is what a copy at this moment gives."""

    def __init__(self, capacity, parts=(), *, checks=True, minor=0, time_base=0, created=EPOCH, instance=INSTANCE, room=0):
        self.capacity, self.checks, self.minor, self.instance, self.created = capacity, checks, minor, instance, created
        self.max_batch = min(max(capacity // 16, 1), 256)
        self.extension = round_up(40 + 56 * capacity, 64)
        self.table = self.extension + 128
        # `room`: rows that the table has room for, where a case changes `rows` afterwards and formats again.
        self.parts = Parts(parts, round_up(self.table + 24 * max(len(parts), room), 64))
        self.rows = list(self.parts.rows)
        self.data = bytearray(self.parts.end)
        self.committed = self.intent = self.write_pos = self.read_pos = 0
        self.control = {"metrics_generation": 0, "metrics_time": 0, "heartbeat": 0, "state": 1, "time_base": time_base, "boots": 0}
        if time_base == 0:
            self.control["heartbeat"] = created
        self.written = {}  # position: record, check word included
        self.slots = [None] * capacity  # the position that stands there whole
        self.time = created
        self.format()

    # What stands in the image besides records.

    def format(self):
        struct.pack_into("<IIQQ", self.data, 16, 1, 1, self.capacity, self.capacity - 1)
        struct.pack_into(
            HEAD, self.data, self.extension, MAGIC, 1, self.minor, 0x01020304, len(self.data), self.capacity, 56, 1,
            self.max_batch, len(self.rows), int(self.checks), self.instance, self.created,
        )  # fmt: skip
        for number, row in enumerate(self.rows):
            struct.pack_into("<IIQQ", self.data, self.table + 24 * number, *row)
        self.store()

    def store(self):
        """Puts positions, control words and parts into the bytes."""
        struct.pack_into("<QQ", self.data, 0, self.write_pos, self.read_pos)
        control = self.control
        struct.pack_into(
            "<QQQQQIII", self.data, self.extension + 64, self.intent, self.committed, control["metrics_generation"],
            control["metrics_time"], control["heartbeat"], control["state"], control["time_base"], control["boots"],
        )  # fmt: skip

        self.parts.store(self.data)

    def publish(self, **totals):
        self.control["metrics_generation"] += 1
        self.parts.publish(self.control["metrics_generation"], self.time, **totals)
        self.control["metrics_time"] = self.time
        self.parts.store(self.data)
        self.store()

    # Section 10, one store after the other.

    def announce(self, count):
        mask = self.capacity - 1
        used = self.write_pos - self.read_pos & mask
        if mask - used < count:
            self.read_pos = self.read_pos + min(max(count, self.capacity // 4), used) & mask
        self.intent = self.committed + count
        self.store()

    def put(self, position, data, *, only=56, seal=True):
        """Stores a record, or only so many of its bytes: a copy taken just then holds half of it."""
        if seal and self.checks:
            data = data[:44] + struct.pack("<I", check_word(position, data)) + data[48:]
        slot = position % self.capacity
        at = 40 + 56 * slot
        self.data[at : at + only] = data[:only]
        self.slots[slot] = position if only == 56 else None
        self.written[position] = data

    def commit(self):
        self.committed = self.intent
        self.write_pos = self.committed % self.capacity
        self.store()

    def batch(self, records):
        self.announce(len(records))
        for number, data in enumerate(records):
            self.put(self.committed + number, data)
        self.commit()

    def event(self, name, category, value, *, time=None):
        """One record, a batch of its own."""
        self.time += 1
        self.batch([record(name, category, value, self.time if time is None else time)])

    def transfers(self, count, *, first=1):
        """So many finished writes, four records each. Transfer number i moves i bytes."""
        for number in range(first, first + count):
            self.time += 1
            events = self.transfer(number)
            size = min(self.max_batch, len(events))
            for at in range(0, len(events), size):
                self.batch(events[at : at + size])

    def transfer(self, number):
        return [
            record("agent_xfer_post_time", 5, 3, self.time),
            record("agent_xfer_time", 5, 40 + number, self.time),
            record("agent_tx_bytes", 1, number, self.time),
            record("agent_tx_requests_num", 1, 1, self.time),
        ]

    def fill(self, until):
        """Single records up to a position."""
        while self.committed < until:
            self.event("agent_memory_registered", 0, 4096 + self.committed)

    def attach(self):
        """What a producer does that takes the image up after a reset in the middle of a batch."""
        for position in range(self.committed, self.intent):
            self.put(position, record(b"", FILLER, 0, 0))
        self.control["boots"] += 1
        self.commit()

    def close(self):
        self.time += 1
        self.control["heartbeat"] = self.time
        self.control["state"] = 2
        self.store()

    # What a reader must make of it.

    def is_filler(self, position):
        return struct.unpack_from("<i", self.written[position], 8)[0] == FILLER

    def event_of(self, position):
        time, category, name, _, value = struct.unpack("<Qi32sIQ", self.written[position])
        return [position, time, category, id_of(name), shown(name), value]

    def judge(self, positions):
        """Events and fillers among records that are as they were written."""
        positions = list(positions)
        events = [self.event_of(position) for position in positions if not self.is_filler(position)]
        return events, len(positions) - len(events)

    def whole(self):
        """Expected of an image in which every promised record stands whole."""
        start = max(0, self.intent - self.capacity)
        events, interrupted = self.judge(range(start, self.committed))
        return self.answer(start, events, interrupted=interrupted)

    def answer(self, start, events, *, lost=0, unverified=0, interrupted=0, intent=None):
        assert len(events) + lost + unverified + interrupted == self.committed - start
        return {
            "layout": "image", "capacity": self.capacity, "start": start, "events": events, "lost": lost,
            "unverified": unverified, "interrupted": interrupted, "info": self.info(intent),
        }  # fmt: skip

    def info(self, intent=None):
        control = {key: value for key, value in self.control.items() if key != "metrics_generation"}
        return {
            "major": 1, "minor": self.minor, "instance": self.instance, "created": self.created, "checks": self.checks,
            "intent": self.intent if intent is None else intent, "committed": self.committed, **control,
            "liveness": "closed" if control["state"] == 2 else "dead",
            "parts": [list(row) for row in self.rows], **self.parts.answer(),
        }  # fmt: skip

"""NIXL's own files, section 20 of FORMAT.md."""

import struct

from making.tables import NAMES, id_of, shown

VERSIONS = {"L1": 1, "L2a": 2, "L2b": 2, "L3": 3, "L4": 4}
SIZES = {"L1": 56, "L2a": 48, "L2b": 16, "L3": 16, "L4": 16}


def header(write_pos, read_pos, version, capacity, mask=None, *, expected=None, order="<"):
    mask = capacity - 1 if mask is None else mask
    return struct.pack(order + "QQIIQQ", write_pos, read_pos, version, version if expected is None else expected, capacity, mask)


class Ring:
    """A ring and its producer. Events are (time, category, name or id, value); a layout takes of it what it stores."""

    def __init__(self, layout, capacity, *, padding=0, start=0):
        self.layout, self.capacity, self.padding = layout, capacity, padding
        self.write_pos = self.read_pos = start
        self.records = [bytes(SIZES[layout])] * capacity
        self.events = [None] * capacity
        self.expected = None

    def push(self, time, category, kind, value):
        """What NIXL does: an event that finds no room is refused."""
        if (self.write_pos + 1) % self.capacity == self.read_pos:
            return
        name = kind
        if isinstance(kind, int) and self.layout in ("L1", "L2a"):
            name = NAMES[kind][1].encode()
        if self.layout == "L1":
            data = struct.pack("<Qi32sIQ", time, category, name, self.padding, value)
        elif self.layout == "L2a":
            data = struct.pack("<i32sIQ", category, name, self.padding, value)
        elif self.layout == "L2b":
            data = struct.pack("<iIQ", category, kind, value)
        else:
            data = struct.pack("<IIQ", kind, self.padding, value)
        if isinstance(name, bytes):
            number, text = id_of(name), shown(name)
        else:
            number, text = kind, NAMES[kind][0] if kind in NAMES else f"unknown({kind})"
        stored_category = category if self.layout in ("L1", "L2a", "L2b") else None
        self.records[self.write_pos] = data
        self.events[self.write_pos] = [time if self.layout == "L1" else None, stored_category, number, text, value]
        self.write_pos = (self.write_pos + 1) % self.capacity

    def consume(self, count):
        self.read_pos = (self.read_pos + count) % self.capacity

    @property
    def data(self):
        version = VERSIONS[self.layout]
        return header(self.write_pos, self.read_pos, version, self.capacity, expected=self.expected) + b"".join(self.records)

    def answer(self):
        waiting = (self.write_pos - self.read_pos) % self.capacity
        events = [self.events[(self.read_pos + number) % self.capacity] for number in range(waiting)]
        return {
            "layout": self.layout, "capacity": self.capacity, "start": 0,
            "events": [[number, *event] for number, event in enumerate(events)],
            "lost": 0, "unverified": 0, "interrupted": 0,
            "info": {
                "version": VERSIONS[self.layout], "write_pos": self.write_pos, "read_pos": self.read_pos,
                "waiting": waiting, "liveness": "unknown",
            },
        }  # fmt: skip

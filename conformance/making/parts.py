"""The parts of an image, sections 8, 9 and 13 of FORMAT.md."""

import struct

from making.tables import NAMES, copy_check, shown

IDENTITY, LOSSES, NOTICES, METRICS, DYNAMIC, CLOCK = range(1, 7)
ALL = (IDENTITY, LOSSES, NOTICES, METRICS, DYNAMIC, CLOCK)
SIZES = {IDENTITY: 576, LOSSES: 64, NOTICES: 64, METRICS: 3136, DYNAMIC: 9408, CLOCK: 64}
KEYS = {IDENTITY: "identity", LOSSES: "losses", NOTICES: "notices", METRICS: "metrics", DYNAMIC: "dynamic", CLOCK: "clock"}

LOSSES_WORDS = ("recorded", "exported", "staging", "exporter", "interrupted", "backend", "closing")
NOTICES_WORDS = ("names_changed", "dynamic_overflow", "refused", "file_trouble")
CLOCK_WORDS = ("source", "quality", "rate", "anchor_ticks", "anchor_us")
TEXTS = {"writer": (48, 48), "hostname": (96, 128), "agent": (224, 256), "rank": (480, 64)}
BOUNDS = (1, 2, 5, 10, 20, 50, 100, 200, 500, 1000)

ERROR_IDS = range(8, 20)
ENTRY_IDS = [number for number in NAMES if number not in ERROR_IDS]


class Parts:
    """What the parts hold. A kind is a number, or (kind, version, size) for one that is out of the common."""

    def __init__(self, kinds, start):
        self.rows = []
        for kind in kinds:
            kind, version, size = kind if isinstance(kind, tuple) else (kind, 1, SIZES[kind])
            self.rows.append((kind, version, start, size))
            start += -(-size // 64) * 64
        self.end = start
        # Kinds that a reader must take as absent although something of theirs stands in the file.
        self.skipped = set()
        self.identity = {
            "pid": 4711, "process_start": 123456, "boot_id": bytes(range(16)), "agent_instance": 0, "uid": 1000,
            "writer": b"conformance 1.0", "hostname": b"node-1", "agent": b"agent", "rank": b"",
        }  # fmt: skip
        self.losses = dict.fromkeys(LOSSES_WORDS, 0)
        self.notices = dict.fromkeys(NOTICES_WORDS, 0)
        self.clock = {"source": 1, "quality": 2, "rate": 1_000_000_000, "anchor_ticks": 987654321, "anchor_us": 1736951425000000}
        self.bounds, self.metrics_copies, self.dynamic_copies = BOUNDS, [None, None], [None, None]
        self.current = None

    def at(self, kind):
        """Where the first row of a kind leads."""
        return next((row[2] for row in self.rows if row[0] == kind), None)

    def store(self, data):
        for kind, version, at, size in self.rows:
            # What an older reader doesn't know must not matter.
            known = min(SIZES.get(kind, 0), size) if version == 1 else 0
            data[at + known : at + size] = b"\xee" * (size - known)
            if known:
                data[at : at + known] = self.bytes_of(kind)[:known]

    def bytes_of(self, kind):
        data = bytearray(SIZES[kind])
        if kind == IDENTITY:
            who = self.identity
            struct.pack_into("<QQ16sQQ", data, 0, who["pid"], who["process_start"], who["boot_id"], who["agent_instance"], who["uid"])
            for key, (at, room) in TEXTS.items():
                assert len(who[key]) <= room
                data[at : at + len(who[key])] = who[key]
        elif kind == LOSSES:
            struct.pack_into("<7Q", data, 0, *self.losses.values())
        elif kind == NOTICES:
            struct.pack_into("<4Q", data, 0, *self.notices.values())
        elif kind == CLOCK:
            struct.pack_into("<IIQQQ", data, 0, *self.clock.values())
        elif kind == METRICS:
            struct.pack_into("<IIIIQ", data, 0, len(ENTRY_IDS), 2, len(self.bounds), len(ERROR_IDS), 1408)
            struct.pack_into(f"<{len(self.bounds)}Q", data, 32, *self.bounds)
            for half, copy in enumerate(self.metrics_copies):
                data[320 + 1408 * half : 320 + 1408 * (half + 1)] = copy or bytes(1408)
        else:
            struct.pack_into("<IIQ", data, 0, 64, 0, 4672)
            for half, copy in enumerate(self.dynamic_copies):
                data[64 + 4672 * half : 64 + 4672 * (half + 1)] = copy or bytes(4672)
        return data

    def publish(self, generation, time, entries=None, histograms=None, errors=None, dynamic=()):
        """Makes the next copy of both kinds of metrics. Entries by id: (sum, count, last)."""
        entries, histograms, errors = entries or {}, histograms or {}, errors or {}
        rows = [[number, *entries.get(number, (0, 0, 0)), time if number in entries else 0] for number in ENTRY_IDS]
        counts = len(self.bounds) + 1
        spread = [[number, *histograms.get(number, (0, [0] * counts))] for number in (6, 7)]
        failed = [[number, errors.get(number, 0)] for number in ERROR_IDS]
        copy = struct.pack("<Q", generation) + b"".join(struct.pack("<5Q", *row) for row in rows)
        for number, total, buckets in spread:
            copy += struct.pack(f"<QQ{counts}Q", number, total, *buckets) + bytes(8 * (33 - counts))
        copy += b"".join(struct.pack("<QQ", *row) for row in failed)
        copy = copy.ljust(1400, b"\0")
        self.metrics_copies[generation % 2] = copy + struct.pack("<Q", copy_check(copy))

        named = [(name, category, total, count, last, time) for name, category, total, count, last in dynamic]
        copy = struct.pack("<QQ", generation, len(named))
        for name, category, *numbers in named:
            copy += struct.pack("<32siI4Q", name, category, 0, *numbers)
        check = struct.pack("<Q", copy_check(copy))
        self.dynamic_copies[generation % 2] = copy.ljust(4664, b"\0") + check
        self.current = (
            {"generation": generation, "bounds": list(self.bounds), "entries": rows, "histograms": spread, "errors": failed},
            [[shown(name), *rest] for name, *rest in named],
        )

    def answer(self):
        """What a reader says of the parts."""
        who = {key: value.split(b"\0")[0].decode("utf-8", "replace") if key in TEXTS else value for key, value in self.identity.items()}
        who["boot_id"] = self.identity["boot_id"].hex()
        metrics, dynamic = self.current or (None, None)
        values = {
            IDENTITY: who, LOSSES: dict(self.losses), NOTICES: dict(self.notices), METRICS: metrics, DYNAMIC: dynamic,
            CLOCK: dict(self.clock),
        }  # fmt: skip
        there = {row[0] for row in self.rows if row[1] == 1} - self.skipped
        return {key: values[kind] if kind in there else None for kind, key in KEYS.items()}

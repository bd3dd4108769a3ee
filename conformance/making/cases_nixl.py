"""NIXL's own files, right and wrong ones: section 20 of FORMAT.md."""

import json
import struct
from pathlib import Path

from making.image import EPOCH
from making.nixl import SIZES, VERSIONS, Ring, header
from making.tables import NAMES, id_of, pieces_of_transfers

SAMPLES = Path(__file__).resolve().parents[2] / "std-shell" / "tests" / "data" / "nixl"
CATEGORIES = ("MEMORY", "TRANSFER", "CONNECTION", "BACKEND", "ERROR", "PERFORMANCE", "SYSTEM", "CUSTOM")
TOP = 2**64 - 1
DAMAGED = {"error": "damaged"}


def filled(layout, capacity, count, **options):
    ring = Ring(layout, capacity, **options)
    push(ring, count)
    return ring


def push(ring, count):
    known = [number for number in NAMES if number < 20]
    for number in range(count):
        kind = known[number % len(known)]
        ring.push(EPOCH + number, NAMES[kind][2], kind, 1000 + number)


def transfers():
    for number, (about, events) in enumerate(pieces_of_transfers(EPOCH + 1000)):
        ring = Ring("L1", 16)
        for kind, value, time in events:
            ring.push(time, NAMES[kind][2], kind, value)
        yield f"l1_transfers_{number}", ring.data, ring.answer(), f"L1, transfers: {about}"


def progress():
    for layout in SIZES:
        low = layout.lower()
        for name, count, capacity in (("empty", 0, 16), ("some", 5, 16), ("full", 40, 16), ("capacity_2", 9, 2), ("capacity_4", 9, 4)):
            ring = filled(layout, capacity, count)
            yield f"{low}_{name}", ring.data, ring.answer(), f"{layout}, capacity {capacity}, {count} events"
        ring = filled(layout, 16, 10)
        ring.consume(4)
        yield f"{low}_consumed", ring.data, ring.answer(), f"{layout}, four of ten events were consumed"
        ring.consume(6)
        yield f"{low}_consumed_all", ring.data, ring.answer(), f"{layout}, all events were consumed"
        push(ring, 12)
        yield f"{low}_wrapped", ring.data, ring.answer(), f"{layout}, the waiting events go around the end of the ring"
        ring = filled(layout, 64, 63, padding=0xDEADBEEF)
        yield f"{low}_padding", ring.data, ring.answer(), f"{layout}, garbage in the padding"
        ring = filled(layout, 16, 7)
        ring.expected = 77
        yield f"{low}_expected_version", ring.data, ring.answer(), "expected_version is not looked at"
        ring = filled(layout, 16, 15, start=9)
        yield f"{low}_full_from_9", ring.data, ring.answer(), f"{layout}, full, beginning in the middle"
    ring = Ring("L4", 1)
    yield "l4_capacity_1", ring.data, ring.answer(), "one slot, which is always free"


def kinds():
    for layout in ("L2b", "L3", "L4"):
        ring = Ring(layout, 64, padding=0x55555555)
        for kind in (*range(24), 31, 32, 254, 255, 256, 999, 1000, 1005, 1006, 65535, 2**31 - 1, 2**31, 2**32 - 1):
            ring.push(0, 4, kind, kind)
        yield f"{layout.lower()}_types", ring.data, ring.answer(), "event types, known and unknown"
        ring = Ring(layout, 16)
        for value in (0, 2**53, 2**53 + 1, 2**63, TOP - 1, TOP):
            ring.push(0, 1, 0, value)
        yield f"{layout.lower()}_large_numbers", ring.data, ring.answer(), "values that a double can't hold"
    for layout in ("L1", "L2a", "L2b"):
        ring = Ring(layout, 32)
        for category in (-(2**31), -2, -1, *range(10), 2**31 - 1):
            ring.push(TOP, category, 0, 5)
        yield f"{layout.lower()}_categories", ring.data, ring.answer(), "categories, known and unknown; -1 is no filler in NIXL's files"
    names = (
        b"", b"x" * 31, b"y" * 32, "größe".encode(), b"\x1b[2J", b"a\xffb", b"NIXL_ERR_CANCELED", b"agent_err_canceled",
        b"agent_tx_bytes\0rest", "\u0085next".encode(), ("z" * 31 + "é").encode()[:32],
    )  # fmt: skip
    for layout in ("L1", "L2a"):
        ring = Ring(layout, 16)
        for name in names:
            ring.push(EPOCH, 7, name, 1)
        yield f"{layout.lower()}_names", ring.data, ring.answer(), "names of every kind"


def lengths():
    for layout in SIZES:
        data = filled(layout, 16, 5).data
        for change in (-16, -1, 1, 16):
            # 16 records of L2a are three times as long as those of L2b: neither is off by a few bytes.
            changed = data[:change] if change < 0 else data + bytes(change)
            yield f"{layout.lower()}_length_{change:+}", changed, DAMAGED, f"a length that is off by {change}"
        yield f"{layout.lower()}_header_only", data[:40], DAMAGED, "a header that promises records"
    data = filled("L3", 16, 5).data
    # The same length as 16 records of 48 bytes: with version 3 there is no such layout.
    yield "version_3_long_records", data + bytes(16 * 32), DAMAGED, "records of 48 bytes with version 3"
    long = header(5, 0, 2, 16) + bytes(16 * 56)
    yield "version_2_record_size_56", long, DAMAGED, "records of 56 bytes with version 2"
    short = header(0, 0, 1, 64) + bytes(64 * 16)
    yield "version_1_record_size_16", short, DAMAGED, "records of 16 bytes with version 1"


def headers():
    records = bytes(16 * 16)
    for version in (0, 5, 255):
        error = "not_ready" if version == 0 else "unsupported_version"
        yield f"version_{version}", header(0, 0, version, 16) + records, {"error": error}, f"version {version}"
    for version in (256, 65535, 2**31, 2**32 - 1):
        about = "any version is one where mask and capacity belong together"
        yield f"version_{version}", header(0, 0, version, 16) + records, {"error": "unsupported_version"}, about
        about = "a large version in a header that fits nothing: no telemetry"
        yield f"version_{version}_nonsense", header(0, 0, version, 17, 3) + records, {"error": "not_telemetry"}, about
    yield "version_5_nonsense", header(0, 0, 5, 17, 3) + records, {"error": "unsupported_version"}, "a small version is believed"
    yield "version_0_capacity_0", header(0, 0, 0, 0, 0), {"error": "not_ready"}, "nothing written yet"
    yield "version_0_bad_capacity", header(0, 0, 0, 100, 99) + records, DAMAGED, "what NIXL leaves of a capacity that can't be"
    yield "version_0_capacity_0_mask", header(0, 0, 0, 0, TOP), DAMAGED, "what NIXL leaves of capacity 0"
    yield "version_0_nonsense", header(0, 0, 0, 100, 5) + records, {"error": "not_telemetry"}, "version 0 in a header that fits nothing"
    for layout, version in VERSIONS.items():
        size = SIZES[layout] * 16
        wrong = {
            "mask": header(5, 0, version, 16, 14),
            "mask_0": header(5, 0, version, 16, 0),
            "capacity_0": header(0, 0, version, 0, TOP),
            "capacity_15": header(5, 0, version, 15, 14),
            "capacity_2_60": header(5, 0, version, 2**60, 2**60 - 1),
            "capacity_2_63": header(5, 0, version, 2**63, 2**63 - 1),
            "write_pos": header(16, 0, version, 16),
            "read_pos": header(0, 16, version, 16),
            "write_pos_highest": header(TOP, 0, version, 16),
            "read_pos_highest": header(3, TOP, version, 16),
        }
        for name, bad in wrong.items():
            yield f"{layout.lower()}_bad_{name}", bad + bytes(size), DAMAGED, "a header that contradicts itself or the ring"
        swapped = header(5, 0, version, 16, order=">") + bytes(size)
        yield f"{layout.lower()}_big_endian", swapped, {"error": "wrong_byte_order"}, "a ring from a big-endian machine"
    yield "big_endian_version_9", header(0, 0, 9, 16, order=">"), {"error": "wrong_byte_order"}, "a later version from there"
    yield "big_endian_version_0", header(0, 0, 0, 16, order=">"), {"error": "not_telemetry"}, "version 0 reads the same both ways"
    data = bytearray(header(5, 5, 1, 16) + bytes(16 * 56) + bytes(128))
    yield "ring_with_tail", data, {"error": "not_ready"}, "the length of an image, and no magic number in it"
    struct.pack_into("<Q", data, 960, 0x1122334455667788)
    yield "ring_with_strange_tail", data, DAMAGED, "another magic number: no image, and the wrong length for a ring"


def samples():
    """Files that real releases of NIXL wrote."""
    layouts = {"0.10.1": "L1", "1.1.0": "L2a", "1.2.0": "L2b", "1.3.2": "L3", "1.5.1": "L4"}
    for release, layout in layouts.items():
        data = (SAMPLES / release / "initiator").read_bytes()
        events = []
        for number, line in enumerate((SAMPLES / release / "expected.jsonl").read_text().splitlines()):
            event = json.loads(line)
            category = None if event["category"] is None else CATEGORIES.index(event["category"])
            events.append([number, event["timestamp_us"], category, id_of(event["event"].encode()), event["event"], event["value"]])
        write_pos, read_pos = struct.unpack_from("<QQ", data)
        answer = {
            "layout": layout, "capacity": 64, "start": 0, "events": events, "lost": 0, "unverified": 0, "interrupted": 0,
            "info": {
                "version": VERSIONS[layout], "write_pos": write_pos, "read_pos": read_pos, "waiting": len(events),
                "liveness": "unknown",
            },
        }  # fmt: skip
        yield f"nixl_{release.replace('.', '_')}", data, answer, f"written by NIXL {release}"


CASES = (transfers, progress, kinds, lengths, headers, samples)

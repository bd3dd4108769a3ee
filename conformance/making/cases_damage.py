"""Heads, positions and lengths that can't be right: section 11 of FORMAT.md."""

import struct

from making import parts
from making.image import MAGIC, Image

DAMAGED = {"error": "damaged"}
TOP = 2**64 - 1


def image_of(capacity=16):
    image = Image(capacity, [parts.LOSSES])
    image.fill(capacity + 4)
    return image


def changed(at, form, value, capacity=16):
    image = image_of(capacity)
    struct.pack_into(form, image.data, at if at < 40 else image.extension + at - 100, value)
    return image.data


def head():
    """Each field of the head; offsets from 100 on are those of the extension."""
    fields = {
        "byte_order_0": (112, "<I", 0),
        "byte_order_mixed": (112, "<I", 0x02010403),
        "image_len_less": (116, "<Q", image_len() - 1),
        "image_len_more": (116, "<Q", image_len() + 1),
        "image_len_0": (116, "<Q", 0),
        "image_len_highest": (116, "<Q", TOP),
        "capacity_other": (124, "<Q", 32),
        "capacity_0": (124, "<Q", 0),
        "capacity_highest": (124, "<Q", TOP),
        "record_size_48": (132, "<I", 48),
        "record_size_0": (132, "<I", 0),
        "record_size_57": (132, "<I", 57),
        "record_kind_0": (136, "<I", 0),
        "record_kind_2": (136, "<I", 2),
        "max_batch_0": (140, "<I", 0),
        "max_batch_2": (140, "<I", 2),
        "max_batch_highest": (140, "<I", 2**32 - 1),
        "part_count_65": (144, "<H", 65),
        "part_count_highest": (144, "<H", 65535),
        "part_count_behind_end": (144, "<H", 6),
        "instance_0": (148, "<Q", 0),
    }
    for name, field in fields.items():
        yield f"head_{name}", changed(*field), DAMAGED, "a field of the head that can't be right"
    others = {
        "major_0": ((108, "<H", 0), "unsupported_version"),
        "major_2": ((108, "<H", 2), "unsupported_version"),
        "major_highest": ((108, "<H", 65535), "unsupported_version"),
        "magic_0": ((100, "<Q", 0), "not_ready"),
        "magic_reversed": ((100, ">Q", MAGIC), "wrong_byte_order"),
        "magic_other": ((100, "<Q", MAGIC ^ 1), "damaged"),
        "byte_order_reversed": ((112, "<I", 0x04030201), "wrong_byte_order"),
    }
    for name, (field, error) in others.items():
        yield f"head_{name}", changed(*field), {"error": error}, "the head of another image than ours, or of none"
    image = image_of()
    struct.pack_into("<HHIQ", image.data, image.extension + 8, 2, 0, 0x01020304, 17)
    yield "head_major_2_and_damaged", image.data, {"error": "unsupported_version"}, "the major version comes before anything else"
    struct.pack_into("<HHI", image.data, image.extension + 8, 2, 0, 0x04030201)
    yield "head_major_2_reversed", image.data, {"error": "wrong_byte_order"}, "the byte order comes before the version"
    image = image_of()
    struct.pack_into("<QHHIQ", image.data, image.extension, 0, 9, 9, 9, 9)
    yield "head_magic_0_and_damaged", image.data, {"error": "not_ready"}, "the magic number comes before anything else"
    image = image_of()
    image.data[image.extension : image.extension + 64] = bytes(64)
    yield "head_zero", image.data, {"error": "not_ready"}, "a head of zeros: being made"
    data = bytearray(4096)
    struct.pack_into("<QQIIQQ", data, 0, 0, 0, 1, 1, 16, 15)
    yield "being_made", data, {"error": "not_ready"}, "the header stands there and nothing else yet"


def image_len():
    return len(image_of().data)


def header():
    fields = {
        "version_0": ((16, "<I", 0), "not_ready"),
        "version_2": ((16, "<I", 2), "damaged"),
        "version_5": ((16, "<I", 5), "unsupported_version"),
        "capacity_0": ((24, "<Q", 0), "damaged"),
        "capacity_1": ((24, "<Q", 1), "damaged"),
        "capacity_3": ((24, "<Q", 3), "damaged"),
        "capacity_8": ((24, "<Q", 8), "damaged"),
        "capacity_32": ((24, "<Q", 32), "damaged"),
        "capacity_2_24": ((24, "<Q", 2**24), "damaged"),
        "capacity_2_25": ((24, "<Q", 2**25), "damaged"),
        "capacity_2_63": ((24, "<Q", 2**63), "damaged"),
        "capacity_highest": ((24, "<Q", TOP), "damaged"),
    }
    for name, (field, error) in fields.items():
        yield f"header_{name}", changed(*field), {"error": error}, "a header that is no image's"


def positions():
    """intent, committed."""
    pairs = {
        "intent_below": (0, 20),
        "intent_one_below_a_lap": (3, 20),
        "intent_too_far": (22, 20),
        "intent_highest": (TOP, 20),
        "intent_highest_both_near": (TOP, TOP - 2),
        "committed_highest": (20, TOP),
        "half": (2**63, 20),
    }
    for name, (intent, committed) in pairs.items():
        image = image_of()
        struct.pack_into("<QQ", image.data, image.extension + 64, intent, committed)
        yield f"positions_{name}", image.data, DAMAGED, "intent and committed contradict each other"
    image = image_of()
    struct.pack_into("<QQ", image.data, image.extension + 64, 21, 20)
    image.intent = 21
    yield "positions_one_announced", image.data, image.whole(), "one more announced than finished is right"
    image = Image(64)
    image.fill(100)
    struct.pack_into("<Q", image.data, image.extension + 64, 105)
    yield "positions_more_than_a_batch", image.data, DAMAGED, "more announced than a batch can hold"
    # Positions far behind the records: none of them fits.
    for name, ahead in (("three_laps", 48), ("far", 2**40)):
        image = image_of()
        count = 20 + ahead
        image.committed = image.intent = count
        image.store()
        expected = image.answer(count - 16, [], unverified=16)
        yield f"positions_ahead_{name}", image.data, expected, "positions that no record belongs to"
    image = image_of()
    image.committed = image.intent = TOP
    image.store()
    yield "positions_highest", image.data, image.answer(TOP - 16, [], unverified=16), "both at 2^64 - 1"
    image = image_of()
    image.committed = image.intent = 0
    image.store()
    yield "positions_zeroed", image.data, image.answer(0, []), "records stand there and nothing is promised"


def lengths():
    image = image_of()
    whole = bytes(image.data)
    head_at = image.extension
    cuts = {
        0: "not_telemetry", 1: "not_telemetry", 39: "not_telemetry", 40: "damaged", 41: "damaged", 96: "damaged",
        40 + 56 * 16 - 1: "damaged", head_at - 1: "damaged", head_at: "damaged", head_at + 63: "damaged",
        head_at + 64: "damaged", head_at + 128: "damaged", head_at + 152: "damaged", len(whole) - 64: "damaged",
        len(whole) - 8: "damaged", len(whole) - 1: "damaged",
    }  # fmt: skip
    for cut, error in cuts.items():
        yield f"cut_at_{cut}", whole[:cut], {"error": error}, f"{cut} bytes of {len(whole)}"
    for more in (1, 8, 64):
        yield f"longer_by_{more}", whole + bytes(more), DAMAGED, f"{more} bytes more than image_len"


def foreign():
    files = {
        "text": b"This is a text file, and no telemetry. It is longer than forty bytes.\n",
        "zeros_39": bytes(39),
        "ones": b"\xff" * 4096,
        "elf": b"\x7fELF\x02\x01\x01" + bytes(9) + struct.pack("<HHIQQQ", 3, 62, 1, 0x1040, 64, 13976) + bytes(24),
        "json": b'{"layout": "image", "capacity": 2, "start": 1, "events": []}',
        "noise": bytes((number * 197 + 89) % 251 + 3 for number in range(1000)),
    }
    for name, data in files.items():
        yield f"foreign_{name}", data, {"error": "not_telemetry"}, "another kind of file"
    yield "foreign_zeros", bytes(4096), {"error": "not_ready"}, "nothing but zeros: a file of NIXL's that is being made"
    image = image_of()
    swapped = bytearray()
    for at in range(0, len(image.data), 8):
        swapped += image.data[at : at + 8][::-1]
    # Fields of 32 bits keep their places on the machine of the other byte order.
    swapped[16:24] = struct.pack(">II", 1, 1)
    yield "big_endian", swapped, {"error": "wrong_byte_order"}, "an image from a big-endian machine"


def ring_lengths():
    """An image cut to what a ring of NIXL's would have is one of those: it has no extension to tell it."""
    image = image_of()
    image.read_pos = (image.write_pos - 3) % 16
    image.store()
    events = [[number, *image.event_of(17 + number)[1:]] for number in range(3)]
    expected = {
        "layout": "L1", "capacity": 16, "start": 0, "events": events, "lost": 0, "unverified": 0, "interrupted": 0,
        "info": {
            "version": 1, "write_pos": image.write_pos, "read_pos": image.read_pos, "waiting": 3, "liveness": "unknown",
        },
    }  # fmt: skip
    yield "cut_to_the_ring", image.data[: 40 + 56 * 16], expected, "an image cut behind its records is a ring of NIXL's"


CASES = (head, header, positions, lengths, foreign, ring_lengths)

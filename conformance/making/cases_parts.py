"""The table of parts and what stands in the parts: sections 8, 9 and 13 of FORMAT.md."""

import struct

from making.image import Image
from making.parts import ALL, CLOCK, DYNAMIC, IDENTITY, LOSSES, METRICS, NOTICES
from making.tables import copy_check

SMALL = (IDENTITY, LOSSES, NOTICES, CLOCK)
TOP = 2**64 - 1


def image_of(kinds, room=0, capacity=4):
    image = Image(capacity, kinds, room=room)
    image.fill(capacity + 1)
    image.parts.losses.update(recorded=9, exported=8, staging=1)
    image.parts.notices.update(refused=2)
    image.parts.store(image.data)
    return image


def ready(image, about, name, skipped=()):
    image.parts.skipped |= set(skipped)
    image.format()
    return name, image.data, image.whole(), about


def absent_and_unknown():
    for kind, word in ((IDENTITY, "identity"), (LOSSES, "losses"), (NOTICES, "notices"), (CLOCK, "clock")):
        yield ready(image_of([kind]), f"{word} alone", f"only_{word}")
        yield ready(image_of([other for other in SMALL if other != kind]), f"all small parts but {word}", f"no_{word}")
    yield ready(image_of((CLOCK, NOTICES, LOSSES, IDENTITY)), "parts in another order", "parts_backwards")
    yield ready(image_of([(0, 1, 64), LOSSES, (7, 1, 128), (0xFFFFFFFF, 1, 64)]), "kinds that nobody knows", "kinds_unknown")
    yield ready(image_of([(LOSSES, 2, 64), NOTICES]), "a version of a part that nobody knows", "part_version_2")
    yield ready(image_of([(LOSSES, 0, 64), NOTICES]), "version 0 of a part", "part_version_0")
    yield ready(image_of([(LOSSES, 0x10001, 64), NOTICES]), "version 65537 of a part", "part_version_high")
    longer = [(IDENTITY, 1, 640), (LOSSES, 1, 128), (NOTICES, 1, 65), (CLOCK, 1, 72)]
    yield ready(image_of(longer), "parts with new fields at their end", "parts_longer")
    for kind, size, word in ((IDENTITY, 576, "identity"), (LOSSES, 64, "losses"), (NOTICES, 64, "notices"), (CLOCK, 64, "clock")):
        for less in (1, 8, size):
            about = f"{word} shorter than it can be"
            yield ready(image_of([(kind, 1, size - less), (99, 1, 64)]), about, f"{word}_shorter_by_{less}", [kind])
    many = [(1000 + number, 1, 0) for number in range(63)] + [LOSSES]
    yield ready(image_of(many), "64 rows, the most there can be", "rows_64")
    image = image_of([LOSSES], room=2)
    image.rows = []
    yield ready(image, "an empty table of parts", "rows_0", [LOSSES])




def twice():
    image = image_of([LOSSES, NOTICES], room=3)
    image.rows.append((LOSSES, 1, image.parts.at(NOTICES), 64))
    yield ready(image, "a kind that stands there twice: the first row counts", "kind_twice")
    first_rows = {
        "unknown_version": lambda at, end: (LOSSES, 9, at, 64),
        "outside": lambda at, end: (LOSSES, 1, end, 64),
        "too_short": lambda at, end: (LOSSES, 1, at, 8),
        "not_aligned": lambda at, end: (LOSSES, 1, at + 1, 64),
        "before_table": lambda at, end: (LOSSES, 1, 40, 64),
    }
    for name, row in first_rows.items():
        image = image_of([LOSSES, NOTICES], room=3)
        image.rows.insert(0, row(image.parts.at(NOTICES), len(image.data)))
        yield ready(image, "a kind that stands there twice: the first row is skipped, so the second counts", f"kind_twice_{name}")


def rows_that_lie():
    lies = {
        "offset_at_end": lambda at, size, end: (end, 64),
        "offset_behind_end": lambda at, size, end: (end + 64, 64),
        "ends_one_word_behind": lambda at, size, end: (end - 56, 64),
        "ends_one_byte_behind": lambda at, size, end: (end - 64, 65),
        "offset_highest": lambda at, size, end: (TOP - 7, 64),
        "offset_wraps": lambda at, size, end: (TOP - 63, 128),
        "len_highest": lambda at, size, end: (at, TOP),
        "len_wraps_to_inside": lambda at, size, end: (at, 2**64 - at + 8),
        "len_2_63": lambda at, size, end: (at, 2**63),
        "not_aligned_4": lambda at, size, end: (at + 4, 64),
        "not_aligned_1": lambda at, size, end: (at + 1, 64),
        "offset_0": lambda at, size, end: (0, 64),
        "in_records": lambda at, size, end: (40, 64),
        "len_0": lambda at, size, end: (at, 0),
    }
    for name, lie in lies.items():
        image = image_of([NOTICES, LOSSES], room=2)
        offset, size = lie(image.parts.at(LOSSES), 64, len(image.data))
        image.rows[1] = (LOSSES, 1, offset, size)
        yield ready(image, "a row that can't be right is skipped", f"row_{name}", [LOSSES])
    image = image_of([LOSSES, NOTICES])
    image.rows[0] = (LOSSES, 1, image.extension + 120, 64)
    yield ready(image, "a part that starts before the table of parts", "row_in_control_line", [LOSSES])
    image = image_of([LOSSES, NOTICES])
    image.rows[1] = (NOTICES, 1, image.parts.at(LOSSES), 64)
    name, data, expected, about = ready(image, "two kinds at one place", "row_same_place")
    expected["info"]["notices"] = dict(zip(image.parts.notices, (9, 8, 1, 0)))
    yield name, data, expected, about
    image = image_of([LOSSES, (99, 1, 64)], capacity=2)
    image.rows[0] = (LOSSES, 1, image.parts.at(LOSSES) + 8, 64)
    name, data, expected, about = ready(image, "a multiple of 8 that is none of 64", "row_aligned_to_8")
    words = struct.unpack_from("<7Q", image.data, image.rows[0][2])
    expected["info"]["losses"] = dict(zip(image.parts.losses, words))
    yield name, data, expected, about


def texts():
    full = {"writer": b"w" * 48, "hostname": b"h" * 128, "agent": b"a" * 256, "rank": b"r" * 64}
    values = {
        "full": full,
        "empty": dict.fromkeys(full, b""),
        "utf8": {"writer": "schreiber µ".encode(), "hostname": "größe".encode(), "agent": "代理🚀".encode(), "rank": "é".encode()},
        "control": {"writer": b"a\x1b[2Jb", "hostname": b"line\nbreak", "agent": b'q"\\\t', "rank": b"\x7f\xc2\x80"},
        "invalid": {"writer": b"a\xffb", "hostname": b"\xe2\x82", "agent": b"x\xf0\x9f\x9ay\xc0\xafz", "rank": b"\xed\xa0\x80\x80"},
        "after_nul": {"writer": b"a\0b", "hostname": b"\0host", "agent": b"agent\0\xff", "rank": b"0\0"},
    }
    for name, texts_of in values.items():
        image = image_of([IDENTITY], capacity=2)
        image.parts.identity.update(texts_of, pid=TOP, process_start=2**53 + 1, uid=2**32 - 1, agent_instance=2**63)
        yield ready(image, "texts of the identity", f"identity_{name}")


def published(times, kinds=(METRICS, DYNAMIC), bounds=None):
    image = Image(2, kinds)
    if bounds is not None:
        image.parts.bounds = bounds
        image.format()
    image.fill(3)
    for number in range(1, times + 1):
        image.time += 1
        counts = len(image.parts.bounds) + 1
        image.publish(
            entries={0: (100 * number, number, 7), 20: (number, number, 1)},
            histograms={6: (number, [number] * counts)},
            errors={number % 12 + 8: number},
            dynamic=[(b"event_%d" % index, 7, number, index, 1) for index in range(number)],
        )
    return image


def copy_at(image, kind, half):
    return image.parts.at(kind) + (320 + 1408 * half if kind == METRICS else 64 + 4672 * half)


def metrics():
    for times in (0, 1, 2, 5):
        image = published(times, (METRICS, DYNAMIC) if times == 5 else [METRICS])
        yield f"metrics_published_{times}", image.data, image.whole(), f"metrics published {times} times"
    image = published(2, [METRICS])
    yield "metrics_without_dynamic", image.data, image.whole(), "no part for dynamic metrics"
    for kind, word in ((METRICS, "metrics"), (DYNAMIC, "dynamic")):
        image = published(2, [kind])
        both = image.parts.metrics_copies if kind == METRICS else image.parts.dynamic_copies
        older = published(1, [kind]).whole()["info"][word]
        newest = copy_at(image, kind, 0)
        image.data[newest + 12] ^= 1
        expected = image.whole()
        expected["info"][word] = older
        yield f"{word}_torn", image.data, expected, "the newest copy is torn: the other one counts"
        older_at = copy_at(image, kind, 1)
        image.data[older_at + 12] ^= 1
        expected = image.whole()
        expected["info"][word] = None
        yield f"{word}_both_torn", image.data, expected, "both copies are torn: there is none"
        assert all(both)

    # Both parts: those of one moment belong together.
    for name, kind in (("metrics", METRICS), ("dynamic", DYNAMIC)):
        image = published(5)
        older = published(4).whole()["info"]
        image.data[copy_at(image, kind, 1) + 20] ^= 1
        expected = image.whole()
        expected["info"]["dynamic"] = older["dynamic"]
        if kind == METRICS:
            expected["info"]["metrics"] = older["metrics"]
        yield f"newest_{name}_torn_of_both", image.data, expected, f"of the two parts only the newest {name} are torn"

    # A copy of a live file: the parts are newer than the control line.
    for behind in (1, 2, 3):
        image = published(5, [METRICS])
        image.control["metrics_generation"] = 5 - behind
        image.store()
        expected = image.whole()
        if behind == 1:
            expected["info"]["metrics"] = published(4, [METRICS]).whole()["info"]["metrics"]
        yield f"metrics_newer_by_{behind}", image.data, expected, f"the copies are of generations 4 and 5, the control line {behind} behind"
    image = published(4, [METRICS])
    image.control["metrics_generation"] = 5
    image.store()
    yield "metrics_older", image.data, image.whole(), "the control line is newer than both copies: the larger generation counts"
    image = published(2, [METRICS])
    older = copy_at(image, METRICS, 1)
    struct.pack_into("<Q", image.data, older, 2)
    struct.pack_into("<Q", image.data, older + 1400, copy_check(image.data[older : older + 1400]))
    image.control["metrics_generation"] = 7
    image.store()
    yield "metrics_generations_equal", image.data, image.whole(), "no copy is the one wanted, and both are of one generation: the first"
    image = published(3, [METRICS])
    image.control["metrics_generation"] = 0
    image.store()
    expected = image.whole()
    expected["info"]["metrics"] = None
    yield "metrics_generation_0", image.data, expected, "generation 0: none were published"


def metrics_shapes():
    for bounds in ((), (5,), tuple(range(1, 33))):
        image = published(1, [METRICS], bounds)
        yield f"metrics_bounds_{len(bounds)}", image.data, image.whole(), f"{len(bounds)} bounds in use"
    for number in (33, 2**32 - 1):
        image = published(1, [METRICS], tuple(range(1, 33)))
        struct.pack_into("<I", image.data, image.parts.at(METRICS) + 8, number)
        yield f"metrics_bounds_{number}", image.data, image.whole(), "more bounds than there is room for: take 32"
    shapes = {
        "entries_too_many": (0, "<I", 2**32 - 1),
        "entries_one_more_than_fit": (0, "<I", 21),
        "histograms_too_many": (4, "<I", 2**31),
        "statuses_too_many": (12, "<I", 2**28),
        "copy_size_0": (16, "<Q", 0),
        "copy_size_odd": (16, "<Q", 1407),
        "copy_size_too_long": (16, "<Q", 1416),
        "copy_size_highest": (16, "<Q", TOP),
    }
    for name, (at, form, value) in shapes.items():
        image = published(1, [METRICS])
        struct.pack_into(form, image.data, image.parts.at(METRICS) + at, value)
        expected = image.whole()
        expected["info"]["metrics"] = None
        yield f"metrics_{name}", image.data, expected, "numbers that don't fit the part: it counts as absent"
    shapes = {
        "room_too_large": (0, "<I", 65),
        "room_too_small": (0, "<I", 1),
        "copy_size_too_long": (8, "<Q", 4680),
        "copy_size_highest": (8, "<Q", TOP - 7),
        "used_highest": (64 + 4672 + 8, "<Q", TOP),
    }
    for name, (at, form, value) in shapes.items():
        image = published(3, [DYNAMIC])
        # Only the newest copy is there, so that nothing else can be taken.
        older = copy_at(image, DYNAMIC, 0)
        image.data[older : older + 4672] = bytes(4672)
        struct.pack_into(form, image.data, image.parts.at(DYNAMIC) + at, value)
        expected = image.whole()
        expected["info"]["dynamic"] = None
        yield f"dynamic_{name}", image.data, expected, "numbers that don't fit the part: it counts as absent"
    image = published(1, [DYNAMIC])
    image.publish(dynamic=[(name, 3, 1, 1, 1) for name in (b"", b"x" * 32, b"a\x1bb", b"a\xff", "é".encode() * 16)])
    yield "dynamic_names", image.data, image.whole(), "names of dynamic metrics are shown like any name"
    image = published(0, [DYNAMIC])
    image.publish(dynamic=[(b"n%d" % number, 7, number, 1, number) for number in range(64)])
    yield "dynamic_full", image.data, image.whole(), "64 dynamic metrics, all there is room for"
    image = published(1, [(METRICS, 1, 3135), LOSSES])
    image.parts.skipped.add(METRICS)
    yield "metrics_part_too_short", image.data, image.whole(), "one byte too short for both copies"


def metrics_ids():
    """Ids that nobody knows, and ids that would be known ones in 32 bits."""
    for name, high in (("unknown", 0), ("above_32_bits", 1)):
        image = published(1, [METRICS])
        copy = copy_at(image, METRICS, 1)
        answer = image.whole()
        shown = answer["info"]["metrics"]
        for key, at, size in (("entries", 8, 40), ("histograms", 608, 280), ("errors", 1168, 16)):
            number = shown[key][1][0] + (high << 32 or 5000)
            struct.pack_into("<Q", image.data, copy + at + size, number)
            if high:
                del shown[key][1]
            else:
                shown[key][1][0] = number
        struct.pack_into("<Q", image.data, copy + 1400, copy_check(image.data[copy : copy + 1400]))
        about = "an id above 2^32 - 1 is skipped" if high else "metrics of ids that nobody knows"
        yield f"metrics_ids_{name}", image.data, answer, about


def everything():
    image = Image(8, (*ALL, (1234, 1, 64)), minor=3)
    image.transfers(20)
    image.publish(entries={0: (210, 20, 20)}, dynamic=[(b"one", 7, 1, 1, 1)])
    image.close()
    yield "newer_minor_with_parts", image.data, image.whole(), "a later minor version with a part that nobody knows"


CASES = (absent_and_unknown, twice, rows_that_lie, texts, metrics, metrics_shapes, metrics_ids, everything)

"""Images as producers leave them: how far they came, and what their records hold."""

import struct

from making import parts
from making.image import EPOCH, Image, record
from making.tables import NAMES as TYPES, pieces_of_transfers

TOP = 2**64 - 1

GOLDEN = """
0000  01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
0010  01 00 00 00 01 00 00 00 02 00 00 00 00 00 00 00
0020  01 00 00 00 00 00 00 00 43 e2 ad 84 bf 2b 06 00
0030  04 00 00 00 4e 49 58 4c 5f 45 52 52 5f 43 41 4e
0040  43 45 4c 45 44 00 00 00 00 00 00 00 00 00 00 00
0050  00 00 00 00 78 46 e2 74 01 00 00 00 00 00 00 00
0060  42 e2 ad 84 bf 2b 06 00 01 00 00 00 61 67 65 6e
0070  74 5f 74 78 5f 62 79 74 65 73 00 00 00 00 00 00
0080  00 00 00 00 00 00 00 00 00 00 00 00 f1 34 02 99
0090  00 00 10 00 00 00 00 00 00 00 00 00 00 00 00 00
00c0  54 45 4c 45 52 49 4e 47 01 00 00 00 04 03 02 01
00d0  c0 01 00 00 00 00 00 00 02 00 00 00 00 00 00 00
00e0  38 00 00 00 01 00 00 00 01 00 00 00 01 00 01 00
00f0  ef cd ab 89 67 45 23 01 40 e2 ad 84 bf 2b 06 00
0100  03 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00
0120  4a e2 ad 84 bf 2b 06 00 02 00 00 00 00 00 00 00
0140  02 00 00 00 01 00 00 00 80 01 00 00 00 00 00 00
0150  40 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
0180  04 00 00 00 00 00 00 00 03 00 00 00 00 00 00 00
0190  01 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
"""


def golden():
    """The bytes of section 21, made here by the rules and compared with the text."""
    image = Image(2, [parts.LOSSES])
    image.event("agent_memory_registered", 0, 4096)
    image.event("agent_tx_bytes", 1, 1048576)
    image.event("NIXL_ERR_CANCELED", 4, 1)
    image.parts.losses.update(recorded=4, exported=3, staging=1)
    image.parts.store(image.data)
    image.time = EPOCH + 9
    image.close()
    text = bytearray(len(image.data))
    for line in GOLDEN.strip().splitlines():
        at, *digits = line.split()
        text[int(at, 16) : int(at, 16) + 16] = bytes.fromhex("".join(digits))
    assert image.data == text, "these rules don't give the golden bytes"
    yield "golden", image.data, image.whole(), "the golden bytes of section 21"


def transfers():
    for number, (about, events) in enumerate(pieces_of_transfers(EPOCH + 1000)):
        image = Image(16)
        for kind, value, time in events:
            image.event(TYPES[kind][1], TYPES[kind][2], value, time=time)
        yield f"transfers_{number}", image.data, image.whole(), f"transfers: {about}"


def progress():
    image = Image(64, [parts.LOSSES])
    yield "never_written", image.data, image.whole(), "formatted, nothing written yet"
    image.transfers(5)
    yield "first_lap", image.data, image.whole(), "five transfers, all still there"
    image.fill(63)
    yield "one_less_than_full", image.data, image.whole(), "one slot was never written"
    image.fill(64)
    yield "just_full", image.data, image.whole(), "each slot written once"
    image.fill(65)
    yield "first_overwritten", image.data, image.whole(), "the first record was overwritten"
    image = Image(64, parts.ALL)
    image.transfers(40)
    image.publish(
        entries={0: (TOP, 2**53 + 1, 2**53 + 1), 6: (400, 10, 41), 1000: (1, 1, 1)},
        histograms={6: (400, [0] * 4 + [10] + [0] * 6), 7: (TOP, list(range(11)))},
        errors={18: 3, 8: TOP},
        dynamic=[(b"my_event", 7, 10, 2, 5), ("größe_µ".encode(), 3, TOP, 1, TOP)],
    )
    image.parts.losses.update(recorded=160, exported=155, staging=1, exporter=1, interrupted=1, backend=1, closing=1)
    image.parts.notices.update(names_changed=1, dynamic_overflow=2, refused=3, file_trouble=2**53 + 1)
    image.parts.store(image.data)
    yield "dead", image.data, image.whole(), "wrapped, all parts, never closed: killed"
    image.close()
    yield "closed", image.data, image.whole(), "wrapped, all parts, closed in good order"
    for capacity in (2, 4, 16, 32, 128, 256):
        image = Image(capacity)
        image.transfers(3)
        image.fill(capacity + capacity // 2)
        yield f"capacity_{capacity}", image.data, image.whole(), "no parts at all, half a lap around"
    image = Image(8)
    for position in range(1, 41):
        image.event("agent_tx_bytes", 1, position, time=EPOCH - position)
    yield "time_goes_back", image.data, image.whole(), "timestamps that decrease: the order is that of the positions"


def interrupted():
    """A producer that died in the middle of a batch, and one that was taken up again after it."""
    for written in (0, 3):
        image = Image(64)
        image.fill(100)
        image.announce(4)
        for number in range(written):
            image.put(100 + number, record("agent_tx_bytes", 1, number, image.time))
        expected = image.whole()
        yield f"died_in_batch_{written}", image.data, expected, f"4 records announced, {written} of them written: the slots are gone"
        image.attach()
        image.fill(110)
        yield f"attached_after_{written}", image.data, image.whole(), "taken up: fillers at the places announced, then events"
    image = Image(64)
    image.announce(4)
    yield "died_in_first_batch", image.data, image.whole(), "announced and nothing finished, ever"
    image = Image(4)
    for _ in range(6):
        image.announce(1)
        image.attach()
    yield "fillers_only", image.data, image.whole(), "a ring of nothing but fillers"
    image = Image(16, checks=False)
    image.fill(20)
    image.announce(1)
    image.attach()
    image.fill(24)
    yield "fillers_unchecked", image.data, image.whole(), "a filler where records have no check words"


NAMES = {
    "empty": b"",
    "31_bytes": b"x" * 31,
    "32_bytes": b"y" * 32,
    "utf8": "größe_µ_温度".encode(),
    "utf8_31_bytes": ("é" * 15 + "x").encode(),
    "utf8_32_bytes": ("é" * 16).encode(),
    "four_bytes": "rocket_🚀_event".encode(),
    "control": b"\x1b[31mred\n\t\x01\x7f",
    "c1_control": "a\u0080\u009fb\u00a0c".encode(),
    "quotes": b'say "hello" \\ / \b',
    "invalid_first": b"\xff\xfeabc",
    "invalid_later": b"abc\xffdef",
    "cut_letter": "abcé".encode()[:-1],
    "cut_at_end": ("x" * 31 + "é").encode()[:32],
    "surrogate": b"a\xed\xa0\x80b",
    "overlong": b"a\xc0\xafb",
    "overlong_nul": b"a\xc0\x80b",
    "too_high": b"a\xf4\x90\x80\x80b",
    "after_nul": b"abc\0def",
    "known_after_nul": b"agent_tx_bytes\0junk",
    "known_and_invalid": b"agent_tx_bytes\xff",
    "known_prefix": b"agent_tx_byte",
    "known_and_more": b"agent_tx_bytes_",
    "upper_case": b"AGENT_TX_BYTES",
    "base_name_of_error": b"agent_err_canceled",
    "unknown_status": b"NIXL_ERR_SOMETHING_NEW",
    "separators": "a\u2028b\u2029c\u200e\ufeff".encode(),
    "noncharacter": "a\uffff\ufffdb".encode(),
}


def records():
    image = Image(64)
    for name in NAMES.values():
        image.event(name, 7, 1)
    yield "names", image.data, image.whole(), "custom events of every kind of name"
    image = Image(64)
    from making.tables import NAMES as TABLE

    for number, (_, name, category) in TABLE.items():
        image.event(name, category, number)
    yield "built_in_events", image.data, image.whole(), "one event of each row of section 17"
    image = Image(32)
    for value in (0, 1, 2**31, 2**32 - 1, 2**32, 2**40 + 7, 2**53 - 1, 2**53, 2**53 + 1, 2**63 - 1, 2**63, 2**63 + 1, TOP - 1, TOP):
        image.event("agent_tx_bytes", 1, value)
        image.event("agent_tx_bytes", 1, 1, time=value)
    yield "large_numbers", image.data, image.whole(), "values and times up to 2^64 - 1, also those that a double can't hold"
    image = Image(32)
    for category in (*range(-3, 10), 2**31 - 1, -(2**31)):
        if category != -1:
            image.event("odd", category, 1)
    yield "unknown_categories", image.data, image.whole(), "categories that no table knows are events all the same"
    image = Image(16, checks=False)
    image.fill(40)
    for position in range(30, 40):
        struct.pack_into("<I", image.data, 40 + 56 * (position % 16) + 44, position * 0x01010101)
    yield "no_check_words", image.data, image.whole(), "bit 0 of flags not set: the word is padding and not looked at"


def far():
    """Positions far from the beginning."""
    for name, first in (("32_bits", 2**32 - 20), ("63_bits", 2**63 - 20), ("64_bits", 2**64 - 200)):
        image = Image(16)
        image.committed = image.intent = first
        for number in range(45):
            image.event("agent_tx_bytes", 1, number)
        expected = image.whole()
        yield f"far_{name}", image.data, expected, f"positions about {first}"


def heads():
    image = Image(16, [parts.LOSSES], minor=7)
    image.fill(20)
    yield "minor_higher", image.data, image.whole(), "a minor version that nobody knows yet"
    image = Image(16, minor=65535)
    yield "minor_highest", image.data, image.whole(), "the highest minor version"
    image = Image(16)
    image.fill(20)
    flags = image.extension + 46
    struct.pack_into("<H", image.data, flags, 0xFFFF)
    yield "flags_reserved", image.data, image.whole(), "reserved flags are ignored"
    for name, state in (("being_made", 0), ("unknown", 77)):
        image = Image(16)
        image.fill(5)
        image.control["state"] = state
        image.store()
        yield f"state_{name}", image.data, image.whole(), f"state {state}: readable, and nobody lives"
    image = Image(16, time_base=1, created=0)
    for number in range(20):
        image.event("agent_tx_bytes", 1, number, time=1000 * number)
    image.control["boots"] = 3
    image.store()
    yield "time_since_boot", image.data, image.whole(), "a device without a wall clock"
    image = Image(16, time_base=99)
    yield "time_base_unknown", image.data, image.whole(), "a time base that nobody knows"
    image = Image(16)
    image.fill(20)
    struct.pack_into("<QQ", image.data, 0, 2**64 - 1, 12345)
    struct.pack_into("<I", image.data, 20, 99)
    struct.pack_into("<Q", image.data, 32, 0)
    yield "stock_words_wrong", image.data, image.whole(), "write_pos, read_pos, expected_version and mask are not for readers of images"
    image = Image(16, [parts.LOSSES])
    image.fill(20)
    image.data[image.extension + 116 : image.extension + 128] = b"\xaa" * 12
    image.data[40 + 16 * 56 : image.extension] = b"\xbb" * (image.extension - 40 - 16 * 56)
    yield "reserved_not_zero", image.data, image.whole(), "reserved bytes are ignored"


CASES = (golden, transfers, progress, interrupted, records, far, heads)

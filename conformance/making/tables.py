"""Sections 5, 17 and 18 of FORMAT.md: check words, names, status codes. And what a reader shows of a name."""

import struct

PRIMES = (2, 3, 5, 7, 11, 13, 17, 19, 23, 29, 31, 37, 41, 43, 47)
K = (
    0x6A09E667, 0xBB67AE85, 0x3C6EF373, 0xA54FF53B, 0x510E527F, 0x9B05688D, 0x1F83D9AB, 0x5BE0CD19,
    0xCBBB9D5D, 0x629A292B, 0x9159015B, 0x152FECD9, 0x67332667, 0x8EB44A87, 0xDB0C2E0D,
)  # fmt: skip

MEMORY, TRANSFER, CONNECTION, BACKEND, ERROR, PERFORMANCE, SYSTEM, CUSTOM = range(8)
FILLER = -1

ERRORS = (
    "not_posted", "invalid_param", "backend", "not_found", "mismatch", "not_allowed", "repost_active", "unknown",
    "not_supported", "remote_disconnect", "canceled", "no_telemetry",
)  # fmt: skip

# By id: the name, the name in records, the category.
NAMES = {
    0: ("agent_tx_bytes", "agent_tx_bytes", TRANSFER),
    1: ("agent_rx_bytes", "agent_rx_bytes", TRANSFER),
    2: ("agent_tx_requests_num", "agent_tx_requests_num", TRANSFER),
    3: ("agent_rx_requests_num", "agent_rx_requests_num", TRANSFER),
    4: ("agent_memory_registered", "agent_memory_registered", MEMORY),
    5: ("agent_memory_deregistered", "agent_memory_deregistered", MEMORY),
    6: ("agent_xfer_time", "agent_xfer_time", PERFORMANCE),
    7: ("agent_xfer_post_time", "agent_xfer_post_time", PERFORMANCE),
    **{8 + i: (f"agent_err_{name}", f"NIXL_ERR_{name.upper()}", ERROR) for i, name in enumerate(ERRORS)},
    20: ("agent_telemetry_events_dropped", "agent_telemetry_events_dropped", ERROR),
    1000: ("agent_started", "agent_started", SYSTEM),
    1001: ("agent_stopped", "agent_stopped", SYSTEM),
    1002: ("agent_metadata_sent", "agent_metadata_sent", CONNECTION),
    1003: ("agent_metadata_received", "agent_metadata_received", CONNECTION),
    1004: ("agent_connected", "agent_connected", CONNECTION),
    1005: ("agent_disconnected", "agent_disconnected", CONNECTION),
}
IDS = {name.encode(): number for number, names in NAMES.items() for name in names[:2]}


def check_word(position, record):
    """The check word of the 56 bytes of a record at a position."""
    words = list(struct.unpack("<14I", record))
    del words[11]  # the check word itself
    words = [position & 0xFFFFFFFF, position >> 32, *words]
    return sum((word ^ word >> 16) * k for word, k in zip(words, K)) & 0xFFFFFFFF or 1


def copy_check(data):
    """The checksum of a copy of the metrics."""
    total = 0x6A09E667
    for (word,) in struct.iter_unpack("<I", data):
        total = ((total << 5 | total >> 27) & 0xFFFFFFFF ^ word) * 0x9E3779B1 & 0xFFFFFFFF
    return total or 1


def stored_text(name):
    """The bytes of a name that count."""
    return name.split(b"\0", 1)[0]


def shown(name):
    """A stored name as a reader's answer gives it."""
    stored = stored_text(name)
    try:
        text = stored.decode()
    except UnicodeDecodeError as error:
        text = stored[: error.start].decode()
    return "".join("_" if ch < " " or "\x7f" <= ch <= "\x9f" else ch for ch in text) or "_"


def id_of(name):
    """The id that a stored name belongs to, None for none."""
    return IDS.get(stored_text(name))


def pieces_of_transfers(time):
    """(about, events) of transfers that are whole and of some that lack something. An event is (id, value, time)."""
    whole = [(7, 3, time), (6, 40, time), (0, 4096, time), (2, 1, time)]
    read = [(7, 5, time + 9), (6, 60, time + 9), (1, 512, time + 9), (3, 1, time + 9)]
    yield "a write and a read", whole + read
    for missing in range(4):
        yield f"event {missing} of four is missing, then one that is whole", whole[:missing] + whole[missing + 1 :] + read
    yield "the order is another", [whole[1], whole[0], *whole[2:]] + read
    yield "bytes read, a request to write", [*whole[:2], read[2][:2] + (time,), whole[3]] + read
    yield "another event stands between", [*whole[:2], (4, 65536, time), *whole[2:]] + read
    yield "each event has a later time", [(kind, value, time + number) for number, (kind, value, _) in enumerate(whole)] + read
    for early in range(1, 4):
        yield f"event {early} of four has an earlier time", [(*event[:2], time - (number == early)) for number, event in enumerate(whole)] + read
    yield "two post times, then the rest of both", [whole[0], read[0], *whole[1:], *read[1:]]
    yield "an error behind the post time", [whole[0], (18, 1, time), *read]
    yield "the largest numbers", [(7, 2**64 - 1, time), (6, 2**64 - 1, time), (1, 2**64 - 1, time), (3, 1, time)] + read

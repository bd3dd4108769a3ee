"""A second opinion on ring files: which layout NIXL wrote, and the events in it, read here with nothing of telering.

Small on purpose and not a reader for general use: it looks at a file that is no longer written.
"""

import struct
import time

HEADER = struct.Struct("<QQiiQQ")
NAME_BYTES = 32

# (version, record size) -> layout name. Two layouts share version 2; only the size tells them apart.
LAYOUTS = {(1, 56): "L1", (2, 48): "L2a", (2, 16): "L2b", (3, 16): "L3", (4, 16): "L4"}

# Event types of the layouts that carry a number in place of a name, in the order of NIXL's enumeration.
TYPES = [
    "agent_tx_bytes",
    "agent_rx_bytes",
    "agent_tx_requests_num",
    "agent_rx_requests_num",
    "agent_memory_registered",
    "agent_memory_deregistered",
    "agent_xfer_time",
    "agent_xfer_post_time",
    "agent_err_not_posted",
    "agent_err_invalid_param",
    "agent_err_backend",
    "agent_err_not_found",
    "agent_err_mismatch",
    "agent_err_not_allowed",
    "agent_err_repost_active",
    "agent_err_unknown",
    "agent_err_not_supported",
    "agent_err_remote_disconnect",
    "agent_err_canceled",
    "agent_err_no_telemetry",
    "agent_telemetry_events_dropped",
]


def header(path):
    """(write_pos, read_pos, version, record size, capacity) of a ring file, or None while it is not one."""
    try:
        with open(path, "rb") as file:
            start = file.read(HEADER.size)
            length = file.seek(0, 2)
    except FileNotFoundError:
        return None
    if len(start) < HEADER.size:
        return None
    write, read, version, _, capacity, _ = HEADER.unpack(start)
    if version == 0 or capacity == 0 or (length - HEADER.size) % capacity:
        return None
    return write, read, version, (length - HEADER.size) // capacity, capacity


def layout(path):
    """The name of the layout, `new (version N, S-byte records)` for one that is not known yet, or None."""
    found = header(path)
    if found is None:
        return None
    _, _, version, size, _ = found
    return LAYOUTS.get((version, size), f"new (version {version}, {size}-byte records)")


def wait_for_ring(path, seconds):
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        if header(path) is not None:
            return
        time.sleep(0.01)
    raise TimeoutError(f"no telemetry ring appeared at {path} within {seconds:g} s")


def events(path):
    """The unread events of a finished ring of a known layout: (name, value)."""
    write, read, version, size, capacity = header(path)
    name = LAYOUTS.get((version, size))
    if name is None:
        raise ValueError(f"{path}: version {version} with {size}-byte records is no known layout")
    with open(path, "rb") as file:
        data = file.read()
    found = []
    while read != write:
        record = data[HEADER.size + read * size : HEADER.size + (read + 1) * size]
        found.append(one_event(name, record))
        read = (read + 1) % capacity
    return found


def one_event(layout_name, record):
    if layout_name in ("L1", "L2a"):
        at = 12 if layout_name == "L1" else 4
        event = record[at : at + NAME_BYTES].split(b"\0")[0].decode("ascii")
        return event, struct.unpack_from("<Q", record, len(record) - 8)[0]
    number, value = struct.unpack_from("<I", record, 4 if layout_name == "L2b" else 0)[0], struct.unpack_from("<Q", record, 8)[0]
    return TYPES[number] if number < len(TYPES) else f"unknown({number})", value

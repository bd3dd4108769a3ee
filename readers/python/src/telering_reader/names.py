"""The tables of FORMAT.md, sections 4, 17 and 18: categories, event types, status texts."""

from __future__ import annotations

from typing import Dict, NamedTuple, Optional

CATEGORIES = ("MEMORY", "TRANSFER", "CONNECTION", "BACKEND", "ERROR", "PERFORMANCE", "SYSTEM", "CUSTOM")
"""Category names by their number."""

MEMORY, TRANSFER, CONNECTION, BACKEND, ERROR, PERFORMANCE, SYSTEM, CUSTOM = range(8)
FILLER = -1
"""Category of a record that is no event."""


class EventType(NamedTuple):
    """A row of the table: `name`, the name that records carry, and the category."""

    id: int
    name: str
    record_name: str
    category: int
    unit: str


def _table() -> Dict[int, EventType]:
    status = (
        "not_posted invalid_param backend not_found mismatch not_allowed repost_active unknown not_supported "
        "remote_disconnect canceled no_telemetry"
    )
    plain = [
        (0, "agent_tx_bytes", TRANSFER, "bytes"),
        (1, "agent_rx_bytes", TRANSFER, "bytes"),
        (2, "agent_tx_requests_num", TRANSFER, "count"),
        (3, "agent_rx_requests_num", TRANSFER, "count"),
        (4, "agent_memory_registered", MEMORY, "bytes"),
        (5, "agent_memory_deregistered", MEMORY, "bytes"),
        (6, "agent_xfer_time", PERFORMANCE, "us"),
        (7, "agent_xfer_post_time", PERFORMANCE, "us"),
        (20, "agent_telemetry_events_dropped", ERROR, "count"),
        (1000, "agent_started", SYSTEM, "count"),
        (1001, "agent_stopped", SYSTEM, "count"),
        (1002, "agent_metadata_sent", CONNECTION, "bytes"),
        (1003, "agent_metadata_received", CONNECTION, "bytes"),
        (1004, "agent_connected", CONNECTION, "count"),
        (1005, "agent_disconnected", CONNECTION, "count"),
    ]
    rows = {number: EventType(number, name, name, category, unit) for number, name, category, unit in plain}
    for number, label in enumerate(status.split(), 8):
        rows[number] = EventType(number, f"agent_err_{label}", f"NIXL_ERR_{label.upper()}", ERROR, "count")
    return rows


BY_ID: Dict[int, EventType] = _table()
"""Event types by their id."""

BY_NAME: Dict[bytes, EventType] = {
    name.encode(): row for row in BY_ID.values() for name in (row.name, row.record_name)
}
"""Event types by either of their names."""


def category_text(category: Optional[int]) -> Optional[str]:
    """`TRANSFER` for 1, the number for a category that is not known here."""
    if category is None:
        return None
    return CATEGORIES[category] if 0 <= category < len(CATEGORIES) else str(category)


def type_name(number: int) -> str:
    """The name of an event type, `unknown(21)` for one outside the table."""
    row = BY_ID.get(number)
    return row.name if row else f"unknown({number})"


def clean_name(stored: bytes) -> str:
    """A stored name as text: up to the first NUL or the first byte that is no UTF-8, control characters as `_`."""
    end = stored.find(b"\0")
    text = stored if end < 0 else stored[:end]
    try:
        name = text.decode()
    except UnicodeDecodeError as error:
        name = text[: error.start].decode()
    name = "".join("_" if letter < " " or "\x7f" <= letter <= "\x9f" else letter for letter in name)
    return name or "_"

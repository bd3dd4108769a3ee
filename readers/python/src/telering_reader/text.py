"""Items as text: the guide's block for an event, or a line of JSON."""

from __future__ import annotations

import json
import time
from typing import Any, Dict

from .errors import escaped
from .items import Event, Interrupted, Item, Lost, Reset, Unverified


def moment(us: int, since_boot: bool = False) -> str:
    """`2025-01-15 14:30:25.123456` in the zone of this machine, or `+12.345678 s` since boot. What is no date is shown as a number."""
    seconds, rest = divmod(us, 1_000_000)
    if since_boot:
        return f"+{seconds}.{rest:06} s"
    try:
        when = time.localtime(seconds)
        if when.tm_year > 9999:
            raise ValueError
        return f"{time.strftime('%Y-%m-%d %H:%M:%S', when)}.{rest:06}"
    except (OverflowError, ValueError, OSError):
        return f"{us} us after 1970"


def block(item: Item, since_boot: bool = False) -> str:
    """The guide's block for an event; one line for anything else. No control character of a file gets through."""
    if isinstance(item, Event):
        if item.timestamp_us is not None:
            when = f"Timestamp: {moment(item.timestamp_us, since_boot)}"
        else:
            when = f"Observed: {moment(item.observed_us or 0)}"
        return (
            "=== NIXL Telemetry Event ===\n"
            f"{when}\n"
            f"Category: {item.category_name or 'UNKNOWN'}\n"
            f"Event: {escaped(item.name)}\n"
            f"Value: {item.value}\n"
            "==========================="
        )
    if isinstance(item, Lost):
        return f"--- {_counted(item.count, 'event')} lost: overwritten before they were read ---"
    if isinstance(item, Unverified):
        return f"--- {_counted(item.count, 'record')} left out: failing their check (torn by a copy, or damaged) ---"
    if isinstance(item, Interrupted):
        return f"--- {_counted(item.count, 'event')} lost: the agent was interrupted ---"
    return "--- the file started over: a new run of the agent ---"


def _counted(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def line(item: Item, agent: str = "", since_boot: bool = False) -> str:
    """One object of JSON, with the keys of `telering read --format jsonl`. Numbers are exact up to 2^64-1."""
    row: Dict[str, Any] = {}
    if isinstance(item, Event):
        row = {"seq": item.seq, "instance": f"{item.instance:016x}" if item.instance else None}
        if item.timestamp_us is not None:
            row["timestamp_us"] = item.timestamp_us
            if since_boot:
                row["clock"] = "boot"
        if item.observed_us is not None:
            row["observed_us"] = item.observed_us
        row.update(category=item.category_name, event=item.name, value=item.value, agent=agent)
    elif isinstance(item, Reset):
        row = {"reset": True, "instance": f"{item.instance:016x}" if item.instance else None}
    else:
        row = {type(item).__name__.lower(): item.count}
    return json.dumps(row, separators=(",", ":"))

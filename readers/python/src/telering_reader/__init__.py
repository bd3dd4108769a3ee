"""Reads telemetry files of NIXL and Telering, live or after a crash.

>>> from telering_reader import Reader, scan, transfers
>>> with Reader("/dev/shm/telemetry/agent") as reader:                                   # doctest: +SKIP
...     for event in reader:
...         print(event.timestamp_us, event.name, event.value)
>>> slowest = sorted(transfers("/dev/shm/telemetry"), key=lambda t: t.xfer_us)[-20:]     # doctest: +SKIP

Written from FORMAT.md alone. Reading changes nothing and needs read permission only, unless `consume=True` is asked for.
Files are copied in pieces, never mapped: one that is truncated, replaced or unlinked ends in a `TelemetryError`.
"""

from .decode import IMAGE
from .directory import Found, Ignored, Scan, scan, transfers
from .errors import (
    CannotRead,
    Changed,
    Damaged,
    NeedsWrite,
    NothingToConsume,
    NotInLayout,
    NotReady,
    NotTelemetry,
    Resized,
    TelemetryError,
    UnsupportedVersion,
    WrongByteOrder,
)
from .info import FileInfo
from .items import Counts, Event, Interrupted, Item, Lost, Reset, Unverified
from .parts import Clock, DynamicMetric, ErrorCount, Histogram, Identity, Losses, Metric, Metrics, Notices
from .reader import Reader
from .transfers import Transfer, Transfers

__version__ = "0.1.0"

__all__ = [
    "IMAGE",
    "CannotRead",
    "Changed",
    "Clock",
    "Counts",
    "Damaged",
    "DynamicMetric",
    "ErrorCount",
    "Event",
    "FileInfo",
    "Found",
    "Histogram",
    "Identity",
    "Ignored",
    "Interrupted",
    "Item",
    "Losses",
    "Lost",
    "Metric",
    "Metrics",
    "NeedsWrite",
    "NotInLayout",
    "NotReady",
    "NotTelemetry",
    "NothingToConsume",
    "Notices",
    "Reader",
    "Reset",
    "Resized",
    "Scan",
    "TelemetryError",
    "Transfer",
    "Transfers",
    "UnsupportedVersion",
    "Unverified",
    "WrongByteOrder",
    "scan",
    "transfers",
]

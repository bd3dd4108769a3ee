"""The program that conformance/README.md describes: what this reader makes of files, as JSON.

    python -m telering_reader.conformance                 paths on standard input, one line of JSON for each
    python -m telering_reader.conformance FILE...         the same for the files named
    python -m telering_reader.conformance follow FILE     reads a file that is being written until it is closed
"""

from __future__ import annotations

import json
import os
import sys
import time
from typing import Any, Dict, List, Optional

from .errors import Changed, NotInLayout, Resized, TelemetryError
from .info import FileInfo
from .items import Event
from .reader import Reader

Answer = Dict[str, Any]


def answer(path: str) -> Answer:
    """What this reader makes of a file."""
    try:
        with Reader(path) as reader:
            events: List[List[Any]] = []
            while True:
                items = reader.read()
                if not items:
                    break
                for item in items:
                    if isinstance(item, Event):
                        events.append([item.seq, item.timestamp_us, item.category, item.id, item.name, item.value])
            return {
                "layout": reader.layout,
                "capacity": reader.capacity,
                "start": reader.start,
                "events": events,
                "lost": reader.lost,
                "unverified": reader.unverified,
                "interrupted": reader.interrupted,
                "info": info(reader.info()),
                "transfers": transfers(path),
            }
    except Changed as error:
        return {"error": error.became.code, "message": str(error)}
    except Resized as error:
        return {"error": "damaged", "message": str(error)}
    except TelemetryError as error:
        return {"error": error.code, "message": str(error)}


def transfers(path: str) -> Optional[Dict[str, int]]:
    """What the transfers of a file add up to; None where its layout can't tell."""
    with Reader(path) as reader:
        try:
            rows = reader.transfers()
        except NotInLayout:
            return None
    sums = {key: sum(getattr(row, key) for row in rows) & (1 << 64) - 1 for key in ("bytes", "post_us", "xfer_us")}
    return {"count": len(rows), "writes": sum(row.op == "write" for row in rows), **sums}


def info(found: FileInfo) -> Answer:
    """The information of a file in the shape of conformance/README.md."""
    if found.layout != "image":
        return {
            "version": int(found.version),
            "write_pos": found.write_pos,
            "read_pos": found.read_pos,
            "waiting": found.waiting,
            "liveness": found.liveness,
        }
    major, minor = found.version.split(".")
    same = (
        "instance created checks intent committed metrics_time heartbeat state time_base boots liveness parts "
        "dynamic metrics"
    )
    result: Answer = {"major": int(major), "minor": int(minor)}
    result.update((key, getattr(found, key)) for key in same.split())
    for key in ("identity", "losses", "notices", "clock", "metrics"):
        part = getattr(found, key)
        result[key] = None if part is None else part._asdict()
    return result


def follow(path: str, limit: Optional[float] = None) -> Answer:
    """Reads a file while it is written, until it is closed and read to its end."""
    last = -1
    first: Optional[int] = None
    largest = total = wrong = 0
    ends = None if limit is None else time.monotonic() + limit
    with Reader(path) as reader:
        while True:
            # State first, then what is there: closed before the look means that nothing comes behind it.
            closed = reader.info().state == 2
            items = reader.read()
            for item in items:
                if not isinstance(item, Event):
                    continue
                bad = item.seq <= last
                last = item.seq
                first = last if first is None else first
                if item.name == "agent_tx_bytes":
                    bad = bad or item.value <= largest
                    largest = item.value
                    total += item.value
                wrong += bad
            if not items and (closed or (ends is not None and time.monotonic() > ends)):
                break
            if not items:
                time.sleep(0.0005)
        counts = reader.counts
        return {
            "start": reader.start,
            "committed": reader.info().committed,
            **counts._asdict(),
            "first": first,
            "last": last,
            "sum": total % (1 << 64),
            "wrong": wrong,
        }


def main(arguments: List[str]) -> int:
    """The program. Returns its status."""
    if len(arguments) == 2 and arguments[0] == "follow":
        print(json.dumps(follow(arguments[1])), flush=True)
        return 0
    if arguments:
        for path in arguments:
            print(json.dumps(answer(path)), flush=True)
        return 0
    for line in sys.stdin.buffer:
        print(json.dumps(answer(os.fsdecode(line.rstrip(b"\r\n")))), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

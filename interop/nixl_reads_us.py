"""Direction B: the telemetry_reader that a NIXL version ships, on a live file of telering.

Readers of NIXL's version 1 (up to 1.0.1) take our file for one of theirs. Later ones refuse it, and remove its name:
then it has to come back.
"""

import datetime
import json
import shutil
import sys
import time
from pathlib import Path

import exact
import guest
import rings
from processes import Child, Failed, note
from stock_reader import StockReader
from telering_cli import Follow, clean_environment

HERE = Path(__file__).resolve().parent
START_SECONDS, LIMIT_SECONDS = 20, 120
PACED_TRANSFERS, PACED_PER_SECOND = 900, 300
FLAT_OUT_TRANSFERS, FLAT_OUT_PER_SECOND = 200_000, 60_000
# Longer than the wait for the name to come back.
REFUSED_TRANSFERS = 1800
# NIXL's reader sleeps half a second whenever it finds nothing.
STOCK_READER_SECONDS = 2.5
BACK_SECONDS = 4.0


def producer(library, folder, *options):
    """A running producer and the path of its file."""
    arguments = [sys.executable, HERE / "producer.py", "--guest", library, "--dir", folder, *options]
    child = Child(arguments, clean_environment())
    child.wait_for_line('"ready"', START_SECONDS)
    return child, Path(json.loads(child.lines()[0])["path"])


def report(child):
    child.succeed(LIMIT_SECONDS)
    last = json.loads(child.lines()[-1])
    if warnings := guest.told(last):
        raise Failed(f"the producer warned: {warnings}")
    return last


def own_ring(wheel, folder):
    """The reader at home first: on a finished ring of its own NIXL. Without this, silence would prove nothing."""
    ours = folder / "copy"
    # It removes what it doesn't understand, so it never gets the only one.
    shutil.copyfile(folder / "initiator", ours)
    expected = rings.events(ours)
    reader = StockReader(wheel, ours)
    time.sleep(1.0)
    seen = [(name, value) for _, _, name, value in reader.finish()]
    if seen != expected:
        raise Failed(f"NIXL's telemetry_reader printed {len(seen)} events of {len(expected)} in its own ring")
    if reader.repaired:
        note(f"{wheel.version}: the shipped telemetry_reader can't start; a repaired copy of it was used")
    return reader.repaired


def keeping_up(command, library, wheel, folder):
    """A producer that the reader can follow: both readers see every event, the same."""
    options = ["--transfers", PACED_TRANSFERS, "--per-second", PACED_PER_SECOND, "--linger", STOCK_READER_SECONDS]
    child, path = producer(library, folder, *options)
    follow = Follow(command, path)
    stock = StockReader(wheel, path)
    made = report(child)
    time.sleep(STOCK_READER_SECONDS)
    seen = stock.finish()
    reading = follow.finish(lambda lines: any("agent_stopped" in line for line in lines), 10)
    if made["recorded"] != made["exported"] or reading.lost or reading.other:
        raise Failed(f"lost at a leisurely pace: {made}, reader lost {reading.lost}, {reading.other[:3]}")
    ours = [(clock(event["timestamp_us"]), event["category"], event["event"], event["value"]) for event in reading.events]
    theirs = [(at, category.removeprefix("NIXL_TELEMETRY_"), name, value) for at, category, name, value in seen]
    if ours != theirs:
        first = next((pair for pair in zip(ours, theirs) if pair[0] != pair[1]), "the one is longer")
        raise Failed(f"NIXL's reader printed {len(theirs)} events, telering {len(ours)}; first difference: {first}")
    recorded = [(name, value) for _, category, name, value in theirs if category != "SYSTEM"]
    if recorded != [event for number in range(PACED_TRANSFERS) for event in guest.events(number)]:
        raise Failed("what both readers printed is not what was recorded")
    return len(theirs)


def clock(microseconds):
    """As NIXL's reader prints it (in UTC: the environment of both says so)."""
    seconds, rest = divmod(microseconds, 1_000_000)
    return f"{datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc):%Y-%m-%d %H:%M:%S}.{rest:06}"


def overrun(command, library, wheel, folder):
    """A producer far faster than NIXL's reader: nobody crashes, and our reader beside it is exact."""
    options = ["--transfers", FLAT_OUT_TRANSFERS, "--per-second", FLAT_OUT_PER_SECOND]
    child, path = producer(library, folder, *options)
    follow = Follow(command, path)
    stock = StockReader(wheel, path)
    made = report(child)
    reading = follow.finish(lambda lines: any("agent_stopped" in line for line in lines), 60)
    if not stock.child.running:
        raise Failed(f"NIXL's reader ended by itself\n{stock.child.errors()}")
    seen = len(stock.finish())
    exact.check(made, reading, FLAT_OUT_TRANSFERS)
    if seen >= made["recorded"]:
        raise Failed("NIXL's reader kept up: this was no overrun, the check needs a faster producer")
    return made["recorded"], seen, reading.lost


def refusing(library, wheel, folder):
    """A reader of a later version refuses our file and removes its name; the same file is there again soon."""
    options = ["--transfers", REFUSED_TRANSFERS, "--per-second", PACED_PER_SECOND]
    child, path = producer(library, folder, *options)
    inode = path.stat().st_ino
    stock = StockReader(wheel, path)
    time.sleep(1.0)
    if stock.finish():
        raise Failed("NIXL's reader printed events of a version that is not its own")
    end = time.monotonic() + BACK_SECONDS
    while not path.exists() and time.monotonic() < end:
        time.sleep(0.02)
    if not path.exists() or path.stat().st_ino != inode:
        child.stop()
        raise Failed(f"{path} was removed by NIXL's reader and did not come back within {BACK_SECONDS:g} s")
    child.succeed(LIMIT_SECONDS)
    made = json.loads(child.lines()[-1])
    if made["recorded"] != exact.GROUP * REFUSED_TRANSFERS or made["recorded"] != made["exported"] + made["lost"]:
        raise Failed(f"recording suffered: {made}")
    if len(warnings := guest.told(made)) != 1:
        raise Failed(f"one warning was expected: {warnings}")

"""Direction A: telering reads a ring that real NIXL is writing, and one that it has written."""

import hashlib
import json
import time
from pathlib import Path

import rings
from processes import Child, Failed
from telering_cli import Follow, common_name, differences, read

HERE = Path(__file__).resolve().parent
START_SECONDS, LIMIT_SECONDS = 60, 120
LIVE_TRANSFERS, LIVE_SECONDS = 300, 3.0
# Less than half of what the live writer records: without consuming, NIXL's ring is full before the end.
LIVE_SLOTS, FINISHED_SLOTS = 512, 4096
FINISHED_TRANSFERS = 100


def writer(wheel, folder, transfers, seconds=0, slots=FINISHED_SLOTS):
    arguments = [wheel.python, HERE / "nixl_writer.py", "--dir", folder, "--transfers", transfers]
    return Child([*arguments, "--seconds", seconds, "--buffer", slots], wheel.environment())


def account(child):
    """What the writer moved, after its end."""
    child.succeed(LIMIT_SECONDS)
    last = json.loads(next(line for line in reversed(child.lines()) if line.startswith('{"version"')))
    if not last["arrived"]:
        raise Failed("the bytes that NIXL moved did not arrive; the machine, not the telemetry, is at fault")
    return last["moved"]


def live(command, wheel, folder):
    """Consumes the ring of a running writer: all of it, and while it is being written."""
    path = folder / "initiator"
    moving = writer(wheel, folder, LIVE_TRANSFERS, LIVE_SECONDS, LIVE_SLOTS)
    rings.wait_for_ring(path, START_SECONDS)
    follow = Follow(command, path, "--consume")
    moved = account(moving)
    ended = time.monotonic()
    expected = sum(entry["count"] for entry in moved.values())
    reading = follow.finish(lambda lines: len(lines) >= expected, 10)
    if reading.lost or reading.other:
        raise Failed(f"{reading.lost} events lost, and besides: {reading.other[:3]}")
    if wrong := differences(reading.sums(), moved):
        raise Failed("sums differ from what was moved:\n" + "\n".join(wrong))
    early = sum(1 for at, _ in follow.child.out if at < ended)
    # The last tenth may still be on its way when the writer ends; everything before was to be seen as it happened.
    if early < expected * 0.9:
        raise Failed(f"only {early} of {expected} events were printed while the writer was running")
    if problem := wrong_times(rings.layout(path), reading.events):
        raise Failed(problem)
    return expected


def wrong_times(layout, events):
    """Layout L1 carries its own times; all others only have the time at which they were seen."""
    has, lacks = ("timestamp_us", "observed_us") if layout == "L1" else ("observed_us", "timestamp_us")
    now = time.time()
    for event in events:
        if event.get(lacks) is not None:
            return f"layout {layout} has no {lacks}, but printed was {event}"
        if not isinstance(event.get(has), int) or abs(event[has] / 1e6 - now) > 3600:
            return f"{has} is not the time of the last minutes: {event}"
    return None


def finished(command, wheel, folder):
    """Peeks at the ring that a writer left behind: every event, and not one byte of the file changed."""
    path = folder / "initiator"
    moved = account(writer(wheel, folder, FINISHED_TRANSFERS))
    layout = rings.layout(path)
    before = digest(path)
    reading = read(command, path)
    if digest(path) != before:
        raise Failed(f"telering read changed {path}")
    if wrong := differences(reading.sums(), moved):
        raise Failed("a peek at the finished ring differs from what was moved:\n" + "\n".join(wrong))
    printed = [(event["event"], event["value"]) for event in reading.events]
    if layout in rings.LAYOUTS.values() and [(common_name(name), value) for name, value in rings.events(path)] != [
        (common_name(name), value) for name, value in printed
    ]:
        raise Failed("telering and the check's own look at the ring see different events")
    return layout, len(printed)


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def layout_of(wheel, folder):
    """Which layout this version writes."""
    account(writer(wheel, folder, 10))
    layout = rings.layout(folder / "initiator")
    if layout is None:
        raise Failed(f"{folder / 'initiator'} is no ring file: NIXL {wheel.version} writes something new")
    return layout

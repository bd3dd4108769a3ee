"""Direction C: real NIXL and a telering agent in one process, under the same name and in the same directory."""

import json
import time
from pathlib import Path

import exact
import guest
from processes import Child, Failed
from telering_cli import differences, read

HERE = Path(__file__).resolve().parent
LIMIT_SECONDS = 120
BACK_SECONDS = 2.0


def run_twins(library, wheel, folder, first):
    """Runs both in one process; returns what it says, and how long our file was away, seen from outside."""
    arguments = [wheel.python, HERE / "same_process.py", "--guest", library, "--dir", folder, "--first", first]
    child = Child(arguments, wheel.environment())
    away = watch(child, folder / "twin", folder / f"twin@{child.process.pid}")
    status = child.wait(LIMIT_SECONDS)
    if status != 0:
        raise Failed(f"the process with both agents ended with status {status}\n{child.errors()}")
    return json.loads(next(line for line in reversed(child.lines()) if line.startswith('{"moved"'))), away


def watch(child, path, other):
    """Seconds from the moment when `path` got another size to the one when `other` appeared; None if it never did."""
    size = resized = None
    end = time.monotonic() + LIMIT_SECONDS
    while child.running and time.monotonic() < end:
        now = time.monotonic()
        if other.exists():
            # Both may have happened since the last look.
            return now - (resized or now)
        if path.exists():
            size = size or path.stat().st_size
            if path.stat().st_size != size:
                resized = resized or now
        time.sleep(0.001)
    return None


def nixl_first(command, library, wheel, folder):
    """NIXL's ring keeps the name; ours takes NAME@PID and says so once."""
    seen, _ = run_twins(library, wheel, folder, "nixl")
    check_nixl(command, folder, seen)
    check_ours(command, folder, seen)


def telering_first(command, library, wheel, folder):
    """NIXL resizes our file under the live agent: the host lives, our events go on in a new file."""
    seen, away = run_twins(library, wheel, folder, "telering")
    if away is None or away > BACK_SECONDS:
        raise Failed(f"after NIXL took the name, our file was away for {away} s, allowed are {BACK_SECONDS:g}")
    check_nixl(command, folder, seen)
    check_ours(command, folder, seen)
    return away


def check_nixl(command, folder, seen):
    """NIXL's file has the plain name and holds exactly what NIXL moved."""
    if wrong := differences(read(command, folder / "twin").sums(), seen["moved"]):
        raise Failed("NIXL's own ring differs from what it moved:\n" + "\n".join(wrong))


def check_ours(command, folder, seen):
    """Our file stands beside it, its events are ours alone, and one warning said what happened."""
    ours = seen["telering"]
    path = Path(ours["path"])
    if path.parent != folder or not path.name.startswith("twin@"):
        raise Failed(f"telering's file is {path}, expected was {folder}/twin@PID")
    visible = sorted(entry.name for entry in folder.iterdir() if not entry.name.startswith("."))
    if visible != sorted(["twin", "twin-target", path.name]):
        raise Failed(f"files in the directory: {visible}")
    if len(warnings := guest.told(ours)) != 1:
        raise Failed(f"one warning was expected: {warnings}")
    if ours["recorded"] != ours["exported"] + ours["lost"]:
        raise Failed(f"the agent's own account is off: {ours}")
    reading = read(command, path)
    events = [(event["event"], event["value"]) for event in reading.events if not exact.is_notice(event)]
    # After a new file was made, the events before it are with the old one.
    transfers = ours["recorded"] // exact.GROUP
    numbers = exact.transfers_of(events, transfers)
    if not numbers or numbers != list(range(numbers[0], transfers)):
        raise Failed(f"the file holds {len(numbers)} transfers of {transfers}, and not all the last ones")
    # At the ring's oldest edge stands a part of a transfer.
    if len(events) - exact.GROUP * len(numbers) >= exact.GROUP or events[-1] != guest.events(transfers - 1)[-1]:
        raise Failed("the file holds events besides whole transfers")

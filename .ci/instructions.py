"""Instructions of an operation, counted by callgrind, against the limits in benches/instructions.toml.

    python3 .ci/instructions.py PROGRAM           checks
    python3 .ci/instructions.py PROGRAM --write   writes what was counted as the new measure

Unlike times, counts are the same on a busy machine. What starts and ends a run cancels out: the count of an operation
is the difference of a long and a short run, over the difference of their lengths.
"""

import platform
import re
import subprocess
import sys
import tempfile
import tomllib

from dependencies import ROOT, Checks

LIMITS = ROOT / "benches/instructions.toml"
# Events of a transfer, and transfers that the program records before each flush.
EVENTS, FULL = 4, 4095


def count(program, operation, length):
    """All instructions of one run."""
    with tempfile.NamedTemporaryFile() as profile:
        command = ["valgrind", "--tool=callgrind", f"--callgrind-out-file={profile.name}", program, operation, str(length)]
        done = subprocess.run(command, text=True, stderr=subprocess.PIPE, timeout=300, check=False)
    found = re.search(r"Collected : (\d+)", done.stderr)
    if done.returncode != 0 or not found:
        sys.exit(f"failed: {' '.join(command)} ended with status {done.returncode}\n{done.stderr[-2000:]}")
    return int(found[1])


def each(program, operation, short, long):
    return (count(program, operation, long) - count(program, operation, short)) / (long - short)


def measure(program):
    per_event = EVENTS * FULL
    return {
        "push": each(program, "push", 10_000, 110_000),
        "transfer": each(program, "transfer", 10_000, 110_000),
        "record-transfer": each(program, "record-transfer", 10_000, 110_000),
        "flush": (each(program, "fill-flush", 2, 12) - each(program, "fill", 2, 12)) / per_event,
    }


def write(counted, room):
    lines = [
        "# Instructions of an operation, optimised, on x86-64, as .ci/instructions.py counts them; flush is per event.",
        "# A count may grow by the room before the step fails: compilers differ. `--write` takes new counts.",
        f"room_percent = {room}",
        "",
        "[counted]",
        *(f"{operation} = {value:.1f}" for operation, value in counted.items()),
    ]
    LIMITS.write_text("\n".join(lines) + "\n")


def main():
    if len(sys.argv) not in (2, 3) or sys.argv[2:] not in ([], ["--write"]):
        print(__doc__, file=sys.stderr)
        return 2
    if platform.machine() != "x86_64":
        print(f"failed: benches/instructions.toml has counts for x86_64, this is {platform.machine()}")
        return 1
    counted = measure(sys.argv[1])
    limits = tomllib.loads(LIMITS.read_text()) if LIMITS.exists() else {"room_percent": 8, "counted": {}}
    if sys.argv[2:]:
        write(counted, limits["room_percent"])
        return 0
    checks = Checks()
    for operation, value in counted.items():
        before = limits["counted"].get(operation, 0.0)
        limit = before * (1 + limits["room_percent"] / 100)
        print(f"{operation:16} {value:8.1f} instructions, limit {limit:.1f}")
        checks.check(
            f"{operation} takes no more instructions than before",
            value <= limit,
            f"{value:.1f} instead of {before:.1f}; make it shorter, or say in the commit why it must be longer and "
            "take the new count with .ci/instructions.py PROGRAM --write",
        )
        if value < before * (1 - limits["room_percent"] / 100):
            print(f"note: {operation} became shorter than {before:.1f}: take the new count with --write")
    return checks.finish()


if __name__ == "__main__":
    sys.exit(main())

"""The `telering` command and the guest library under test: found or built, and what they print."""

import json
import os
import signal
import subprocess
import time
from pathlib import Path

from processes import Child, Failed, note, run

ROOT = Path(__file__).resolve().parent.parent
BUILD_SECONDS = 900
GUEST = "libtelering_interop_guest.so"


def target_folder():
    """Cargo's target folder of this workspace."""
    if "CARGO_TARGET_DIR" in os.environ:
        return (ROOT / os.environ["CARGO_TARGET_DIR"]).resolve()
    return ROOT / "target"


def built(name):
    """The newest build of a file, of whichever profile."""
    found = [path for profile in ("release", "debug") if (path := target_folder() / profile / name).exists()]
    return max(found, key=lambda path: path.stat().st_mtime, default=None)


def find_command():
    """$TELERING, or the newest build, or a new release build."""
    if given := os.environ.get("TELERING"):
        if not os.access(given, os.X_OK):
            raise Failed(f"TELERING={given} is no program that can be run")
        return Path(given)
    if not built("telering"):
        build("telering-cli")
    return built("telering")


def find_guest():
    """Always through cargo, which does nothing when it is fresh."""
    build("telering-interop-guest")
    return target_folder() / "release" / GUEST


def build(package):
    """A release build, as users have it. In a debug build a batch is many times as long in the writing, and with it
    the moment in which somebody who truncates the file can still hit the writer (README, "Limits")."""
    note(f"building {package}")
    run(["cargo", "build", "--quiet", "--release", "--package", package], BUILD_SECONDS, folder=ROOT)


class Reading:
    """What `telering read --format jsonl` printed."""

    def __init__(self, lines):
        self.events, self.lost, self.other = [], 0, []
        for line in lines:
            try:
                item = json.loads(line)
            except ValueError:
                raise Failed(f"telering printed a line that is no JSON: {line[:200]!r}") from None
            if "event" in item:
                self.events.append(item)
            elif "lost" in item:
                self.lost += item["lost"]
            else:
                self.other.append(item)

    def sums(self):
        """Count and sum per event name; errors under one name, whichever of its two spellings the layout has."""
        sums = {}
        for event in self.events:
            entry = sums.setdefault(common_name(event["event"]), {"count": 0, "sum": 0})
            entry["count"] += 1
            entry["sum"] += event["value"]
        return sums


def common_name(event):
    """NIXL up to 1.1.0 names an error event by its status, later ones agent_err_..."""
    if event.startswith("NIXL_ERR_"):
        return "agent_err_" + event.removeprefix("NIXL_ERR_").lower()
    return event


class Follow:
    """`telering read --follow` beside a live writer."""

    def __init__(self, command, path, *options):
        self.child = Child([command, "read", "--follow", *options, "--format", "jsonl", path], clean_environment())

    def finish(self, enough, seconds):
        """Interrupts it once `enough(lines)` holds for what it printed, or the time is over."""
        end = time.monotonic() + seconds
        while time.monotonic() < end and self.child.running and not enough(self.child.lines()):
            time.sleep(0.05)
        status = self.child.stop(signal.SIGINT)
        # An interrupted program may say so in its status; any other end is a fault.
        if status not in (0, -signal.SIGINT, 128 + signal.SIGINT):
            raise Failed(f"telering read --follow ended with status {status}\n{self.child.errors()}")
        return Reading(self.child.lines())


def read(command, path, *options):
    return Reading(run([command, "read", path, "--format", "jsonl", *options], 60, clean_environment()).lines())


def inspect(command, path):
    return subprocess.run([command, "inspect", path], capture_output=True, text=True, timeout=60, check=False)


def clean_environment():
    """No telemetry variable of the caller's reaches a process under test; times are printed in UTC."""
    clean = {key: value for key, value in os.environ.items() if not key.startswith(("NIXL_", "TELERING_"))}
    return clean | {"TZ": "UTC"}


def differences(read_sums, moved):
    """Where the sums of a reader differ from the account of the writer, one line each."""
    return [
        f"{event}: read {read_sums.get(event)}, moved {moved.get(event)}"
        for event in sorted(read_sums.keys() | moved.keys())
        if read_sums.get(event) != moved.get(event)
    ]

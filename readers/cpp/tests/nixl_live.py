"""Real NIXL as a live producer: what it says it moved must be what the C++ programs print, event by event.

    python3 readers/cpp/tests/nixl_live.py BUILD VERSION...

BUILD is a build folder of readers/cpp. The guide's program peeks and follows; then the guide's loop consumes what is still there.
A second time the guide's loop consumes while NIXL writes.
NIXL's packages go into a folder below the target folder, as for interop/check.
"""

import hashlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "interop"))
sys.dont_write_bytecode = True

from telering_cli import common_name, target_folder  # noqa: E402
import wheels  # noqa: E402


def stop(process):
    process.send_signal(signal.SIGINT)
    try:
        process.wait(timeout=10)
    except subprocess.TimeoutExpired:
        process.kill()


def totals(pairs):
    counts, sums = Counter(), Counter()
    for name, value in pairs:
        counts[name] += 1
        sums[name] += value
    return {name: (counts[name], sums[name]) for name in counts}


def write(wheel, folder):
    """NIXL at work, once its file is there."""
    writer = subprocess.Popen(
        [wheel.python, ROOT / "interop/nixl_writer.py", "--dir", folder, "--transfers", "200", "--seconds", "3"],
        env=wheel.environment(), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    # NIXL prints lines of its own around the writer's.
    assert any(line.startswith('{"ready"') for line in writer.stdout), "the writer came to nothing"
    return writer


def assert_all_seen(said, pairs):
    """The writer counts the events whose values it knows."""
    account = json.loads(next(line for line in said if line.startswith('{"version"')))
    moved = {common_name(name): (event["count"], event["sum"]) for name, event in account["moved"].items()}
    assert moved, "NIXL moved nothing"
    seen = totals((common_name(name), int(value)) for name, value in pairs)
    wrong = {name: (seen.get(name), wanted) for name, wanted in moved.items() if seen.get(name, (0, 0)) != wanted}
    assert not wrong, f"seen and moved differ: {wrong}"


LOOPED = re.compile(r"^\[\d+\] \d+ (.*): (\d+)$", re.MULTILINE)


def check_live_loop(build, version, folder):
    """The guide's loop consumes while NIXL writes; that it was live shows in what it printed before NIXL ended."""
    writer = write(wheels.install(version, target_folder() / "interop"), folder)
    printed = folder / "printed-by-loop"
    with printed.open("w") as out:
        loop = subprocess.Popen([build / "guide_loop", folder / "initiator"], stdout=out)
    try:
        time.sleep(2)
        alive = len(LOOPED.findall(printed.read_text())) if writer.poll() is None else 0
        said = writer.communicate(timeout=120)[0].splitlines()
        # It sleeps half a second when nothing is new.
        time.sleep(1.5)
    finally:
        stop(loop)
        writer.kill()
    assert alive > 50, f"{alive} events were printed while NIXL was at work"
    assert_all_seen(said, LOOPED.findall(printed.read_text()))
    header = (folder / "initiator").read_bytes()[:16]
    assert header[:8] == header[8:], "the read index is not behind what was consumed"
    return alive


def check(build, version, folder):
    wheel = wheels.install(version, target_folder() / "interop")
    path, printed = folder / "initiator", folder / "printed"
    writer = write(wheel, folder)
    with printed.open("w") as out:
        reader = subprocess.Popen([build / "telemetry_reader", path], stdout=out, stderr=subprocess.DEVNULL)
    said = writer.communicate(timeout=120)[0].splitlines()
    time.sleep(0.5)
    stop(reader)
    assert reader.returncode == 0, f"the reader ended with {reader.returncode}"

    blocks = re.findall(r"Event: (.*)\nValue: (\d+)\n", printed.read_text())
    assert_all_seen(said, blocks)

    # Peeking changed nothing, so all is still there for a reader that consumes.
    before = hashlib.sha256(path.read_bytes()).digest()
    subprocess.run([build / "telemetry_reader", "--once", path], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert hashlib.sha256(path.read_bytes()).digest() == before, "peeking changed the file"
    with printed.open("w") as out:
        loop = subprocess.Popen([build / "guide_loop", path], stdout=out)
        time.sleep(1)
        stop(loop)
    lines = LOOPED.findall(printed.read_text())
    assert len(lines) == len(blocks), f"consumed {len(lines)} of {len(blocks)}"
    header = path.read_bytes()[:16]
    assert header[:8] == header[8:], "the read index is not behind what was consumed"
    return len(blocks)


def main():
    build, failed = Path(sys.argv[1]).resolve(), 0
    for version in sys.argv[2:]:
        for run, what in ((check, "peeked at live and then consumed"), (check_live_loop, "consumed by the guide's loop before NIXL ended")):
            with tempfile.TemporaryDirectory() as folder:
                try:
                    print(f"NIXL {version}: {run(build, version, Path(folder))} events {what}")
                except (AssertionError, OSError, subprocess.SubprocessError, wheels.Failed) as error:
                    failed += 1
                    print(f"NIXL {version}: {error}")
    print(f"{2 * len(sys.argv[2:]) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

"""Direction E: `telering serve` consumes the rings of a NIXL that runs, and of one that starts again in the same file.

The sums on its page must equal the writer's own account; the files stay where they are and as long as they are.
"""

import signal
import time
import urllib.request

import rings
from metrics import parse
from processes import Child, Failed
from telering_cli import clean_environment, common_name
from we_read_nixl import LIVE_SECONDS, LIVE_SLOTS, LIVE_TRANSFERS, account, writer

START_SECONDS, LIMIT_SECONDS = 60, 10
RUNS = 2
# Series by the events whose values they add up.
HISTOGRAMS = {"agent_xfer_time": "agent_xfer_time_us", "agent_xfer_post_time": "agent_xfer_post_time_us"}


def scrape(port):
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        return parse(answer.read().decode())[0]


def expected(moved):
    """(series, more labels) -> value, for what the writer says that it moved."""
    series = {}
    for event, entry in moved.items():
        name = common_name(event)
        if name.startswith("agent_err_"):
            series[("agent_errors_total", name.removeprefix("agent_err_"))] = entry["count"]
            continue
        series[(f"{name}_total", None)] = entry["sum"]
        if name in HISTOGRAMS:
            series[(f"{HISTOGRAMS[name]}_count", None)] = entry["count"]
            series[(f"{HISTOGRAMS[name]}_sum", None)] = entry["sum"]
    return series


def differences(page, wanted):
    wrong = []
    for (name, status), value in wanted.items():
        found = [
            int(shown)
            for (series, labels), shown in page.items()
            if series == name
            and ("agent_name", "initiator") in labels
            and (status is None or ("status", status) in labels)
        ]
        if found != [value]:
            wrong.append(f"{name} {status or ''} is {found}, {value} was moved")
    return wrong


def live(command, wheel, folder):
    """Returns how many events went through serve."""
    arguments = [command, "serve", folder, "--listen", "127.0.0.1:0", "--ttl", "1s", "--remove-dead"]
    serve = Child(arguments, clean_environment())
    serve.wait_for_line("serving", START_SECONDS)
    port = serve.lines()[0].rsplit("/", 1)[0].rsplit(":", 1)[1]
    path = folder / "initiator"
    wanted, events = {}, 0
    for _ in range(RUNS):
        moving = writer(wheel, folder, LIVE_TRANSFERS, LIVE_SECONDS, LIVE_SLOTS)
        rings.wait_for_ring(path, START_SECONDS)
        length = path.stat().st_size
        moved = account(moving)
        events += sum(entry["count"] for entry in moved.values())
        for key, value in expected(moved).items():
            wanted[key] = wanted.get(key, 0) + value
        end = time.monotonic() + LIMIT_SECONDS
        while wrong := differences(scrape(port), wanted):
            if time.monotonic() > end:
                raise Failed("the page of serve differs from what was moved:\n" + "\n".join(wrong))
            time.sleep(0.1)
        write, read, *_ = rings.header(path)
        if path.stat().st_size != length or write != read:
            raise Failed(f"{path}: {path.stat().st_size} bytes of {length}, positions {write} and {read}")
        # Longer than the TTL: nothing of NIXL's is removed, and nothing is forgotten.
        time.sleep(1.5)
        if wrong := differences(scrape(port), wanted):
            raise Failed("after the TTL:\n" + "\n".join(wrong))
        if not path.exists():
            raise Failed(f"{path} was removed")
    if (status := serve.stop(signal.SIGTERM)) != 0:
        raise Failed(f"serve ended with status {status}\n{serve.errors()}")
    if serve.err:
        raise Failed(f"serve had something to say: {serve.errors()}")
    return events

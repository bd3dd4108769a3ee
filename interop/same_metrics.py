#!/usr/bin/env python3
"""Real NIXL and telering in one process, both with the exporter prometheus, both recording the same operations.

--case beside: each on a port of its own. nixl-first, telering-first: both want --port, and the one that starts later
finds it taken. processes: the exporter prometheus_mp, both with the folder --folder, each on a port of its own. NIXL moves bytes; what it says of each transfer is recorded by telering too, so that both must show the
same numbers. Prints as its last line {"nixl": page, "nixl_error": text, "endpoint": page, "telering": report, "untimed": count}.
interop/check starts it.
"""

import argparse
import json
import os
import sys
import time
import urllib.error
import urllib.request

FLUSH_MS = 20
TRANSFERS = 100
NOT_FOUND = -4


def scrape(port):
    """The page at a port, and its content type; None where nobody serves it."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
            return {"text": answer.read().decode(), "type": answer.headers["Content-Type"]}
    except urllib.error.URLError:
        return None


def work(pair, guest):
    """Everything that the initiator does, recorded twice. Returns the transfers of which NIXL told no times."""
    from nixl_pair import REGION_BYTES

    untimed = 0
    guest.memory(True, REGION_BYTES)
    for number in range(TRANSFERS):
        writes = number % 3 != 2
        # Sizes over several powers of ten, so that times fall into several buckets.
        size = 10 ** (number % 6) + number
        try:
            stats = pair.move("WRITE" if writes else "READ", size)
            guest.moved(writes, size, stats.postDuration, stats.xferDuration)
        except Exception as error:
            # Where NIXL's exporter found the port taken, its agent moves bytes on and times nothing.
            if "NO_TELEMETRY" not in str(error):
                raise
            untimed += 1
            guest.moved(writes, size, 1, 2)
    pair.fail_once()
    guest.error(NOT_FOUND)
    pair.deregister()
    guest.memory(False, REGION_BYTES)
    return untimed


def main():
    parser = argparse.ArgumentParser(description="Two exporters for Prometheus in one process.")
    parser.add_argument("--guest", required=True, help="the library built from interop/guest")
    parser.add_argument("--port", required=True)
    parser.add_argument("--case", choices=["beside", "nixl-first", "telering-first", "processes"], required=True)
    parser.add_argument("--folder", help="for the case processes")
    arguments = parser.parse_args()
    os.environ["NIXL_TELEMETRY_ENABLE"] = "y"
    os.environ["NIXL_TELEMETRY_EXPORTER"] = "prometheus"
    os.environ["NIXL_TELEMETRY_PROMETHEUS_PORT"] = arguments.port
    os.environ["NIXL_TELEMETRY_PROMETHEUS_LOCAL"] = "y"
    os.environ["NIXL_TELEMETRY_RUN_INTERVAL"] = str(FLUSH_MS)
    if arguments.case in ("beside", "processes"):
        os.environ["TELERING_PROMETHEUS_PORT"] = "0"
    if arguments.case == "processes":
        os.environ["NIXL_TELEMETRY_EXPORTER"] = "prometheus_mp"
        os.environ["NIXL_TELEMETRY_MULTIPROC_DIR"] = arguments.folder
        os.environ["NIXL_TELEMETRY_RANK_ENV"] = "RANK_OF_THE_CHECK"
        os.environ["RANK_OF_THE_CHECK"] = "3"
        # Whatever may be removed would be at the first scrape.
        os.environ["NIXL_TELEMETRY_MP_STALE_TTL"] = "0"
    from guest import Guest
    from nixl_pair import Pair

    pair = error = None
    if arguments.case == "telering-first":
        guest = Guest(arguments.guest, "twin")
        try:
            pair = Pair("twin")
        except Exception as refused:  # What an agent of NIXL throws differs between its versions.
            error = f"{type(refused).__name__}: {refused}"
    else:
        pair = Pair("twin")
        guest = Guest(arguments.guest, "twin")
    untimed = 0
    if pair:
        untimed = work(pair, guest)
        time.sleep(10 * FLUSH_MS / 1000)
    else:
        guest.moved(True, 1000, 1, 2)
    report = guest.report()
    endpoint = scrape(report["address"].rsplit(":", 1)[1]) if report["address"] else None
    nixl = scrape(arguments.port) if arguments.case != "telering-first" else None
    if arguments.case == "processes":
        # Once more, after each has looked at what the other left in the folder.
        nixl, endpoint = scrape(arguments.port), scrape(report["address"].rsplit(":", 1)[1])
    print(json.dumps({"nixl": nixl, "nixl_error": error, "endpoint": endpoint, "telering": report, "untimed": untimed}), flush=True)
    # As in nixl_writer.py: a library of UCX crashes at a normal exit.
    os._exit(0)


if __name__ == "__main__":
    main()

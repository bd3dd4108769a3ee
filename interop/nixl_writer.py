#!/usr/bin/env python3
"""Real NIXL as a live writer: DIR/NAME is its telemetry ring.

Prints {"ready": true} when the ring is there, and as the last line what was moved, per event:
{"version": "1.0.1", "moved": {"agent_tx_bytes": {"count": 40, "sum": 123456}, ...}}.
Runs inside the virtual environment of one NIXL version; interop/check starts it.
"""

import argparse
import importlib.metadata
import json
import os
import random
import sys
import time

FLUSH_MS = 20


def parse():
    parser = argparse.ArgumentParser(description="Move bytes between two real NIXL agents.")
    parser.add_argument("--dir", required=True, help="an existing directory for the telemetry files")
    parser.add_argument("--name", default="initiator", help="name of the initiating agent")
    parser.add_argument("--transfers", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=0.0, help="spread the transfers over this time")
    parser.add_argument("--buffer", type=int, default=4096, help="slots of the ring, a power of two")
    return parser.parse_args()


def say(value):
    print(json.dumps(value), flush=True)


def main():
    arguments = parse()
    # Set before NIXL loads: it reads them when an agent is made.
    os.environ["NIXL_TELEMETRY_ENABLE"] = "y"
    os.environ["NIXL_TELEMETRY_DIR"] = arguments.dir
    os.environ["NIXL_TELEMETRY_RUN_INTERVAL"] = str(FLUSH_MS)
    os.environ["NIXL_TELEMETRY_BUFFER_SIZE"] = str(arguments.buffer)
    from nixl_pair import Pair

    pair = Pair(arguments.name)
    say({"ready": True})
    sizes = random.Random(arguments.transfers)
    pause = arguments.seconds / max(arguments.transfers, 1)
    next_at = time.monotonic()
    for number in range(arguments.transfers):
        # Sizes over the whole range of a region, odd ones too, so that a sum can't come out right by chance.
        size = sizes.randrange(1, 1 << sizes.randrange(1, 21))
        pair.move("READ" if number % 3 == 2 else "WRITE", size)
        next_at += pause
        time.sleep(max(0.0, next_at - time.monotonic()))
    pair.fail_once()
    arrived = pair.bytes_arrived()
    pair.deregister()
    # NIXL has no final flush: what is not flushed by its timer is gone.
    time.sleep(10 * FLUSH_MS / 1000)
    pair.drop()
    say({"version": importlib.metadata.version("nixl-cu12"), "arrived": arrived, "moved": pair.account.events})
    sys.stdout.flush()
    # A library that UCX loads crashes in its destructor at a normal exit, in every version; all is written by now.
    os._exit(0)


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Real NIXL and telering in one process, both agents under one name, both in one directory.

--first nixl: NIXL's ring has the name already when telering's agent starts.
--first telering: NIXL starts later, opens telering's file as its own and resizes it under the live agent.
Prints as its last line {"moved": ..., "telering": report}. interop/check starts it.
"""

import argparse
import json
import os
import sys
import threading
import time

FLUSH_MS = 20
TRANSFERS = 100
BUSY_TRANSFERS, BUSY_PER_SECOND = 3000, 1000


def main():
    parser = argparse.ArgumentParser(description="Two telemetry systems in one process.")
    parser.add_argument("--guest", required=True, help="the library built from interop/guest")
    parser.add_argument("--dir", required=True)
    parser.add_argument("--name", default="twin")
    parser.add_argument("--first", choices=["nixl", "telering"], required=True)
    arguments = parser.parse_args()
    # Both read the same variables, which is the point.
    os.environ["NIXL_TELEMETRY_ENABLE"] = "y"
    os.environ["NIXL_TELEMETRY_DIR"] = arguments.dir
    os.environ["NIXL_TELEMETRY_RUN_INTERVAL"] = str(FLUSH_MS)
    from guest import Guest
    from nixl_pair import Pair

    if arguments.first == "nixl":
        pair = Pair(arguments.name)
        guest = Guest(arguments.guest, arguments.name, arguments.dir)
        busy = None
    else:
        guest = Guest(arguments.guest, arguments.name, arguments.dir)
        # Recording goes on while NIXL takes the file away; this thread holds no lock of Python meanwhile.
        busy = threading.Thread(target=guest.record, args=(BUSY_TRANSFERS, BUSY_PER_SECOND))
        busy.start()
        time.sleep(5 * FLUSH_MS / 1000)
        pair = Pair(arguments.name)
    for number in range(TRANSFERS):
        pair.move("READ" if number % 2 else "WRITE", 1000 + number)
    if busy:
        busy.join()
    guest.record(TRANSFERS)
    pair.fail_once()
    pair.deregister()
    time.sleep(10 * FLUSH_MS / 1000)
    report = guest.stop()
    pair.drop()
    print(json.dumps({"moved": pair.account.events, "telering": report}), flush=True)
    sys.stdout.flush()
    # As in nixl_writer.py: a library of UCX crashes at a normal exit.
    os._exit(0)


if __name__ == "__main__":
    main()

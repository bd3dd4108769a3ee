#!/usr/bin/env python3
"""A telering agent as a live writer for NIXL's own telemetry_reader; interop/check starts it.

Prints {"ready": true, "path": ...} when its file is there, and as the last line what it recorded and lost.
"""

import argparse
import json
import os
import sys
import time


def main():
    parser = argparse.ArgumentParser(description="Record transfers in a telering agent.")
    parser.add_argument("--guest", required=True, help="the library built from interop/guest")
    parser.add_argument("--dir", required=True)
    parser.add_argument("--name", default="producer")
    parser.add_argument("--transfers", type=int, required=True)
    parser.add_argument("--per-second", type=int, default=0, help="transfers per second; 0: as fast as it goes")
    parser.add_argument("--linger", type=float, default=0.0, help="seconds to stay alive afterwards")
    arguments = parser.parse_args()
    os.environ["NIXL_TELEMETRY_ENABLE"] = "y"
    os.environ["NIXL_TELEMETRY_RUN_INTERVAL"] = "20"
    from guest import Guest

    guest = Guest(arguments.guest, arguments.name, arguments.dir)
    print(json.dumps({"ready": True, "path": guest.report()["path"]}), flush=True)
    # The readers beside it need a moment to open the file.
    time.sleep(0.5)
    guest.record(arguments.transfers, arguments.per_second)
    time.sleep(arguments.linger)
    print(json.dumps(guest.stop()), flush=True)
    sys.exit(0)


if __name__ == "__main__":
    main()

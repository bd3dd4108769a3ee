#!/usr/bin/env python3
"""Prints the events of a telemetry file as they come; with --once, those that are there now.

    python3 examples/python/telemetry_reader.py --telemetry_path /tmp/nixl_telemetry/agent_name

Nothing needs to be installed: it runs from the project's folder.
"""

import sys
from pathlib import Path

try:
    from nixl_telemetry_reader.__main__ import main
except ImportError:
    sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "readers" / "python" / "src"))
    from nixl_telemetry_reader.__main__ import main

if __name__ == "__main__":
    sys.exit(main(always_follow=True))

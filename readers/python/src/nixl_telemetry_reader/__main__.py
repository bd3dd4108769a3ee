"""`python -m nixl_telemetry_reader --telemetry_path PATH`: prints the events of a telemetry file."""

from __future__ import annotations

import argparse
import io
import os
import sys
from typing import Iterator, List, Optional

from telering_reader.errors import TelemetryError
from telering_reader.items import Item
from telering_reader.reader import Reader
from telering_reader.text import block, line


def main(arguments: Optional[List[str]] = None, always_follow: bool = False) -> int:
    """The program. `always_follow`: it follows unless --once is given. Returns its status: 0, or 1 after an error."""
    parser = argparse.ArgumentParser(
        prog="telemetry_reader.py" if always_follow else "python -m nixl_telemetry_reader",
        description="Prints the events of a telemetry file of NIXL or Telering. Changes nothing.",
    )
    parser.add_argument("--telemetry_path", required=True, metavar="PATH", help="the file: DIR/AGENT_NAME")
    if always_follow:
        parser.add_argument("--once", action="store_true", help="stop at the end of what is there now")
    else:
        parser.add_argument("--follow", action="store_true", help="wait for more, also when the agent starts again")
    parser.add_argument("--format", choices=["text", "jsonl"], default="text", help="NIXL's block, or JSON lines")
    given = parser.parse_args(arguments)
    follows = not given.once if always_follow else given.follow
    if sys.stdout is None:
        print("standard output is closed: there is nowhere to print to", file=sys.stderr)
        return 1
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name that this terminal has no letters for is no reason to stop.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        with Reader(given.telemetry_path) as reader:
            _print(reader, follows, given.format)
    except TelemetryError as error:
        print(error, file=sys.stderr)
        return 1
    except BrokenPipeError:
        # Whoever reads this output has seen enough.
        _forget_output()
    except OSError as error:
        _forget_output()
        print(f"cannot write the output: {error.strerror or error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _forget_output() -> None:
    """What is still to be written would fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _print(reader: Reader, follows: bool, form: str) -> None:
    items: Iterator[Item] = reader.follow() if follows else reader.items()
    info = reader.info()
    since_boot = info.time_base == 1
    agent = info.agent or os.path.basename(os.fsdecode(reader.path))
    for item in items:
        print(block(item, since_boot) if form == "text" else line(item, agent, since_boot), flush=follows)
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

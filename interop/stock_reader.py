"""NIXL's own telemetry_reader at work on a file: it prints one block per event, and a total when it is interrupted."""

import re
import signal

from processes import Child, Failed

BLOCK = "=== NIXL Telemetry Event ==="


class StockReader:
    def __init__(self, wheel, path):
        self.binary, self.repaired = wheel.telemetry_reader()
        self.child = Child([self.binary, path], wheel.reader_environment())

    def finish(self):
        """Interrupts it and returns its events as (timestamp or None, category or None, name, value)."""
        status = self.child.stop(signal.SIGINT)
        if status < 0 and status != -signal.SIGINT:
            raise Failed(f"NIXL's telemetry_reader was ended by signal {-status}\n{self.child.errors()}")
        return parse(self.child.lines())


def parse(lines):
    events, total, fields = [], None, None
    for line in lines:
        if line == BLOCK:
            fields = {}
        elif fields is not None and line.startswith("===="):
            events.append(
                (fields.get("Timestamp"), fields.get("Category"), fields["Event name"], int(fields["Value"]))
            )
            fields = None
        elif fields is not None and ": " in line:
            key, value = line.split(": ", 1)
            fields[key] = value
        elif match := re.match(r"Total events read: (\d+)", line):
            total = int(match[1])
    if total is not None and total != len(events):
        raise Failed(f"telemetry_reader says it read {total} events, but printed {len(events)}")
    return events

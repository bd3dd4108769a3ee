"""A little engine that moves bytes between two buffers and records it. Held to `mypy --strict`; run it: engine.py [DIR]."""

import sys
from pathlib import Path
from typing import Optional

import telering


class Engine:
    """Copies pieces of one buffer into another."""

    def __init__(self, name: str, directory: Optional[Path] = None) -> None:
        self.source = bytearray(range(256)) * 256
        self.target = bytearray(len(self.source))
        self.agent = telering.Agent(name, capture_telemetry=True, enable=directory is not None, dir=directory)
        self.agent.memory_registered(len(self.source) + len(self.target))
        self.backend: telering.Backend = self.agent.backend()

    def write(self, start: int, size: int) -> Optional[telering.XferTelemetry]:
        """Moves bytes; returns what the transfer did, None while telemetry is off."""
        with self.agent.transfer("write", size) as transfer:
            transfer.posted()
            if start + size > len(self.source):
                self.backend.add_telemetry_event("out_of_bounds", start + size)
                raise IndexError(f"bytes {start} to {start + size} of {len(self.source)}")
            self.target[start : start + size] = self.source[start : start + size]
        return self.agent.get_xfer_telemetry(transfer)

    def close(self) -> telering.Counts:
        """Ends the engine."""
        self.agent.memory_deregistered(len(self.source) + len(self.target))
        return self.agent.close()


def main(directory: Optional[Path]) -> None:
    engine = Engine("engine", directory)
    for start in range(0, len(engine.source), 4096):
        telem = engine.write(start, 4096)
        if telem is not None and start % 16384 == 0:
            print(f"{telem.totalBytes} bytes in {telem.xferDuration} us")
    try:
        engine.write(0, 1 << 20)
    except IndexError as error:
        print(f"failed: {error}")
    totals = engine.agent.totals()
    print(f"{totals['agent_tx_bytes'].sum} bytes in {totals['agent_tx_requests_num'].count} transfers")
    print(engine.close())


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else None)

#!/usr/bin/env python3
"""What do telemetry calls cost from Python: telering's, beside NIXL's own in the same process?

    bench/telemetry_call.py [--rounds N] [--calls N] [--json]

Runs in a Python that has the nixl wheel, with telering on PYTHONPATH; `bench/compare` sees to both. Each round times
every row once, in a new order; a row's cost is the median over the rounds, its ratio the median of the rounds' ratios to
NIXL's `get_xfer_telemetry`. Judged are single calls; the rows of a whole transfer are three, with three readings of the
clock, and stand here to be seen. Two real NIXL agents move bytes over UCX on the CPU; handles are those of finished transfers.
"""

import argparse
import json
import random
import statistics
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[3] / "interop"))
sys.dont_write_bytecode = True

import nixl_pair  # noqa: E402
import telering  # noqa: E402

THEIRS = "NIXL get_xfer_telemetry"
# What is judged: the same call, and the one call that records a transfer.
JUDGED = [
    "telering get_xfer_telemetry",
    "telering get_xfer_telemetry, new handle",
    "telering record_transfer",
]


def nixl_handle(pair):
    """A handle of a finished transfer of real NIXL."""
    local, remote = (
        agent.get_xfer_descs([(region.ctypes.data, 64, 0)], "DRAM")
        for agent, region in zip((pair.initiator, pair.target), pair.regions)
    )
    handle = pair.initiator.initialize_xfer("WRITE", local, remote, pair.remote)
    state = pair.initiator.transfer(handle)
    while state == "PROC":
        state = pair.initiator.check_xfer_state(handle)
    if state != "DONE":
        raise SystemExit(f"NIXL's transfer ended as {state}")
    return handle


def nanoseconds(calls, function):
    """What one call costs, in a loop that is the same for all."""
    times = range(calls)
    began = time.perf_counter_ns()
    for _ in times:
        function()
    return (time.perf_counter_ns() - began) / calls


def each(function, handles):
    """The cost of `function` once with each of the handles."""
    began = time.perf_counter_ns()
    for handle in handles:
        function(handle)
    return (time.perf_counter_ns() - began) / len(handles)


def finished(agent, count):
    transfers = [agent.transfer("write", 64) for _ in range(count)]
    for transfer in transfers:
        transfer.done()
    return transfers


def rows(pair, agent, calls):
    handle, ours = nixl_handle(pair), finished(agent, 1)[0]
    theirs = pair.initiator

    def whole_transfer():
        transfer = agent.transfer("write", 64)
        transfer.posted()
        transfer.done()

    def with_block():
        with agent.transfer("write", 64) as transfer:
            transfer.posted()

    return {
        THEIRS: lambda: nanoseconds(calls, lambda: theirs.get_xfer_telemetry(handle)),
        "telering get_xfer_telemetry": lambda: nanoseconds(calls, lambda: agent.get_xfer_telemetry(ours)),
        "telering get_xfer_telemetry, new handle": lambda: each(agent.get_xfer_telemetry, finished(agent, calls)),
        "telering record_transfer": lambda: nanoseconds(calls, lambda: agent.record_transfer("write", 64, 1, 2, 5)),
        "telering transfer, posted, done": lambda: nanoseconds(calls, whole_transfer),
        "telering with agent.transfer()": lambda: nanoseconds(calls, with_block),
        "telering event": lambda: nanoseconds(calls, lambda: agent.event("cache_hit", 1)),
        "nothing (the loop itself)": lambda: nanoseconds(calls, lambda: None),
    }


def measure(rounds, calls, folder):
    pair = nixl_pair.Pair("telering-bench")
    with telering.Agent("bench", True, enable=True, dir=folder, ignore_environment=True) as agent:
        todo, results, dice = rows(pair, agent, calls), {}, random.Random(6)
        for number in range(rounds + 1):
            order = list(todo)
            dice.shuffle(order)
            for name in order:
                cost = todo[name]()
                # The first round warms up.
                if number:
                    results.setdefault(name, []).append(cost)
        telemetry = pair.initiator.get_xfer_telemetry(nixl_handle(pair))
        # Both must have been at work.
        assert telemetry.totalBytes == 64 and agent.totals()["agent_tx_bytes"].count > rounds * calls
    return {
        name: {
            "ns": statistics.median(costs),
            "ratio": statistics.median(ours / theirs for ours, theirs in zip(costs, results[THEIRS])),
        }
        for name, costs in ((name, results[name]) for name in todo)
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--calls", type=int, default=5000)
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    folder = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(prefix="telering-bench-", dir=folder) as directory:
        result = measure(arguments.rounds, arguments.calls, directory)
    if arguments.json:
        print(json.dumps(result))
    else:
        print("| call | ns | ratio to NIXL's |\n|---|---:|---:|")
        for name, row in result.items():
            print(f"| {name} | {row['ns']:.0f} | {row['ratio']:.2f} |")
    slow = [name for name in JUDGED if result[name]["ratio"] > 1]
    for name in slow:
        print(f"slower than {THEIRS}: {name}", file=sys.stderr)
    return 1 if slow else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Reading in C++ and in Rust, in bulk and one by one, side by side in one run, by turns on the same file.

    python3 readers/cpp/bench/compare.py BUILD EXAMPLES [--most 1.5] [--most-singly 2] [--rounds 20]

BUILD is a build folder of readers/cpp, EXAMPLES the folder of the library's examples `bulk` and `paced`; the latter writes the
files. Each round asks one program, then the other, in changing order. Judged is the ratio of the best rounds: what
else the machine does at times only adds. Exit status 0 if C++ takes at most `--most` times as long as Rust in bulk, and
`--most-singly` times as long one by one, 1 if not.
"""

import argparse
import os
import subprocess
import sys
import tempfile
from pathlib import Path

# Events of the rings: one that stays in the caches, and one that doesn't.
CAPACITIES = (4096, 1 << 18)
# Noise is met with patience: so many times as many rounds, before C++ is called slower.
PATIENCE = 4


class Program:
    """One that reads, and answers each line with nanoseconds per event."""

    def __init__(self, *command):
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True, bufsize=1)
        self.best = None

    def turn(self):
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        times = [float(word) for word in self.process.stdout.readline().split()]
        assert times, f"{self.process.args[0]} gave no time"
        self.best = list(map(min, times, self.best or times))

    def end(self):
        self.process.stdin.close()
        assert self.process.wait(timeout=30) == 0, f"{self.process.args[0]} ended with {self.process.returncode}"


def written(paced, folder, capacity):
    """A file that nobody writes any more, its ring full."""
    environment = os.environ | {"NIXL_TELEMETRY_BUFFER_SIZE": str(capacity)}
    name = f"ring-{capacity}"
    subprocess.run([paced, folder, name, "0", "1"], env=environment, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    return folder / name


def compare(cpp, rust, path, arguments):
    """The best times of both, and their ratios: in bulk and one by one."""
    programs = [Program(cpp, path), Program(rust, path)]
    bulk = singly = None
    for number in range(1, arguments.rounds * PATIENCE + 1):
        for program in programs if number % 2 else reversed(programs):
            program.turn()
        bulk, singly = (programs[0].best[way] / programs[1].best[way] for way in range(2))
        if number >= arguments.rounds and bulk <= arguments.most and singly <= arguments.most_singly:
            break
    for program in programs:
        program.end()
    return programs[0].best, programs[1].best, bulk, singly


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("examples", type=Path)
    parser.add_argument("--most", type=float, default=1.5)
    parser.add_argument("--most-singly", type=float, default=2)
    parser.add_argument("--rounds", type=int, default=20)
    arguments = parser.parse_args()
    build, examples = arguments.build.resolve(), arguments.examples.resolve()
    failed = 0
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None) as folder:
        for capacity in CAPACITIES:
            path = written(examples / "paced", Path(folder), capacity)
            cpp, rust, bulk, singly = compare(build / "bulk", examples / "bulk", path, arguments)
            print(f"ring of {capacity}, nanoseconds per event: in bulk C++ {cpp[0]:.2f}, Rust {rust[0]:.2f}, {bulk:.2f} times as long;")
            print(f"    one by one C++ {cpp[1]:.2f}, Rust {rust[1]:.2f}, {singly:.2f} times as long; the system call alone {cpp[2]:.2f}")
            for how, ratio, most in (("in bulk", bulk, arguments.most), ("one by one", singly, arguments.most_singly)):
                if ratio > most:
                    failed += 1
                    print(f"    {how} more than {most} times as long")
    print(f"{2 * len(CAPACITIES) - failed} passed, {failed} failed")
    return failed != 0


if __name__ == "__main__":
    sys.exit(main())

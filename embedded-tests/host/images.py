"""Dumps, and what our readers in Rust, Python and C++ make of them."""

import json
import sys
from pathlib import Path

from boards import ROOT

sys.path.insert(0, str(ROOT / "conformance"))
from comparing import readers  # noqa: E402
from comparing.compare import differences, parse  # noqa: E402

FILES = ROOT / "conformance" / "files"
NAMES = ("rust", "python", "cpp")
_programs = []


def programs():
    if not _programs:
        _programs.extend(readers.OURS[name]() for name in NAMES)
    return _programs


def answers(paths):
    """For each path the answer that all readers give; they must not differ."""
    paths = [Path(path) for path in paths]
    by_reader = {program.name: [parse(line) for line in program.answers(paths)] for program in programs()}
    for name, said in by_reader.items():
        for path, first, other in zip(paths, by_reader["rust"], said):
            found = differences(first, other) if "error" not in first else first["error"] != other.get("error")
            assert not found, f"{path.name}: rust and {name} differ: {found}"
    return by_reader["rust"]


def expected(name):
    return json.loads((FILES / f"{name}.json").read_text())


def place(program_symbols, name):
    """Where an image of firmware lies: its symbol's bytes are the file."""
    address, size, _ = program_symbols[name]
    return address, size


def round_up(number, to):
    return -(-number // to) * to


def control(address, capacity):
    """Addresses of intent and committed."""
    start = address + round_up(40 + 56 * capacity, 64) + 64
    return start, start + 8

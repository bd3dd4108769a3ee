#!/usr/bin/env python3
"""What recording costs on a small core: bytes of flash and RAM, and instructions.

    embedded-tests/host/costs.py            prints the tables of docs/embedded.md and holds them against limits.toml
    embedded-tests/host/costs.py --write    writes what was measured into limits.toml and docs/embedded.md

Bytes are those of the linked program `record_only`. Instructions are counted by stepping through a push in the emulator.
Both repeat exactly with the same compiler; another one may take the room that limits.toml gives.
"""

import re
import sys
import tomllib

import boards
import images
from debugger import BREAKPOINT, LINK, PROGRAM_COUNTER, Debugger

LIMITS = boards.HERE / "limits.toml"
DOCUMENT = boards.ROOT / "docs" / "embedded.md"
BEGIN, END = "<!-- costs: embedded-tests/host/costs.py --write -->\n", "<!-- end of costs -->\n"
VARIANTS = ("critical-section", "unsafe-assume-single-core")
# What the compiler links for any program that copies or divides.
RUNTIME = re.compile(r"__aeabi_|__udiv|__umod|__muldi3|__ashldi3|__lshrdi3|__clz|mem(cpy|set|move|clr)|compiler_builtins")
# The functions that record: from the call in the program down. The clock is the program's own.
ENTRY = re.compile(r"(Guarded>?::record|Recorder>?::(record|push))")


def calls(program):
    """What each function calls: {function: {function}}, by readable names without their hash."""
    graph, current = {}, None
    for line in boards.tool("objdump", "-d", "--demangle", program).splitlines():
        if found := re.match(r"[0-9a-f]+ <(.*)>:$", line):
            current = graph.setdefault(found[1], set())
        elif current is not None and (found := re.search(r"\tb(?:l|x|lx|\.w|\.n)?\t[0-9a-f]+ <([^+]*)>", line)):
            current.add(found[1])
    return graph


def recording_path(program):
    """Bytes of the functions that a record call runs, without the compiler's runtime and the program's clock."""
    graph, symbols = calls(program), boards.symbols(program)
    todo = [name for name in graph if ENTRY.search(name)]
    assert todo, f"{program} has no function that records"
    path = set()
    while todo:
        name = todo.pop()
        if name in path or RUNTIME.search(name) or name.endswith("::ticks"):
            continue
        path.add(name)
        todo += graph.get(name, ())
    return sum(symbols[name][1] for name in path if name in symbols)


def instructions(board, program, function, runs=3):
    """Instructions from the first of a function to its return, in the last of some runs: all rounds are alike."""
    address = boards.symbols(program)[function][0] & ~1
    with Debugger(board, program) as debugger:
        debugger.connect()
        counts = []
        for _ in range(runs):
            debugger.go_on_to(BREAKPOINT, address, 2)
            back, count = debugger.register(LINK) & ~1, 0
            while debugger.register(PROGRAM_COUNTER) != back:
                debugger.step()
                count += 1
                assert count < 100_000, f"{function} does not return"
            counts.append(count)
    return max(counts)


def measure():
    """{board: {figure: number}}"""
    figures = {}
    for board in boards.BOARDS:
        for variant in VARIANTS:
            folder = boards.build(board, variant)
            program = folder / "record_only"
            cost = {function: instructions(board, folder / "cost", f"cost::measured_{function}") for function in ("record", "checked_push", "push")}
            figures[f"{board.name}.{variant}"] = {
                "recording_path_bytes": recording_path(program),
                "image_64_bytes": images.place(boards.symbols(program), "record_only::TELEMETRY")[1],
                "record_instructions": cost["record"],
                "checked_push_instructions": cost["checked_push"],
                "push_instructions": cost["push"],
            }
    return figures


def tables(figures):
    rows = [
        ("flash of the recording path, bytes, without the compiler's runtime", "recording_path_bytes"),
        ("instructions of `record`: clock to microseconds, check word, push", "record_instructions"),
        ("instructions of a push with the check word", "checked_push_instructions"),
        ("instructions of a push without it", "push_instructions"),
    ]
    names = {"m3": "Cortex-M3", "m0": "Cortex-M0"}
    columns = list(figures)
    head = [f"{names[column.split('.')[0]]}, `{column.split('.')[1]}`" for column in columns]
    lines = ["| | " + " | ".join(head) + " |", "|---|" + "---|" * len(columns)]
    for text, key in rows:
        lines.append(f"| {text} | " + " | ".join(str(figures[column][key]) for column in columns) + " |")
    image = figures[columns[0]]["image_64_bytes"]
    lines += ["", f"RAM: 56 bytes for an event. `StaticImage<64>` has {image} bytes in all, {image - 64 * 56} of them not records.", ""]
    return "\n".join(lines)


def compiler():
    import subprocess

    return subprocess.run(["/usr/bin/rustc", "--version"], check=True, text=True, stdout=subprocess.PIPE).stdout.split()[1]


def write(figures, room):
    lines = [
        "# What recording costs on small cores, as embedded-tests/host/costs.py measures it; --write takes new figures.",
        "# A figure may grow by the room before the test fails: compilers differ.",
        f"room_percent = {room}",
        f'compiler = "{compiler()}"',
        "# Whatever the compiler: the recording path of a Cortex-M3 in bytes.",
        "m3_recording_path_most = 1536",
    ]
    for name, values in figures.items():
        lines += ["", f"[{name}]", *(f"{key} = {value}" for key, value in values.items())]
    LIMITS.write_text("\n".join(lines) + "\n")
    text = DOCUMENT.read_text()
    before, rest = text.split(BEGIN)
    DOCUMENT.write_text(before + BEGIN + tables(figures) + END + rest.split(END)[1])


def main():
    figures = measure()
    print(tables(figures))
    limits = tomllib.loads(LIMITS.read_text()) if LIMITS.exists() else {"room_percent": 10}
    if sys.argv[1:] == ["--write"]:
        write(figures, limits["room_percent"])
        return 0
    return 1 if faults(figures, limits) else 0


def faults(figures, limits):
    """What is over its limit, or printed otherwise in the document."""
    found = []
    for name, values in figures.items():
        board, variant = name.split(".")
        for key, value in values.items():
            most = limits[board][variant][key] * (1 + limits["room_percent"] / 100)
            if value > most:
                found.append(f"{name}: {key} is {value}, at most {most:.0f}")
        if board == "m3" and values["recording_path_bytes"] > limits["m3_recording_path_most"]:
            found.append(f"{name}: the recording path is over {limits['m3_recording_path_most']} bytes")
    if compiler() == limits["compiler"] and tables(figures) not in DOCUMENT.read_text():
        found.append("docs/embedded.md has other figures: embedded-tests/host/costs.py --write")
    for fault in found:
        print(fault)
    return found


if __name__ == "__main__":
    sys.exit(main())

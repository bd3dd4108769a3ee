#!/usr/bin/env python3
"""Makes the files of conformance/files and what a right reader makes of each. The same bytes each time.

    conformance/generate.py              writes them again
    conformance/generate.py --check      says whether what is committed is what would be written
    conformance/generate.py --large DIR  writes the large ones, which are not committed, into DIR

Everything follows from FORMAT.md; no reader takes part.
"""

import argparse
import json
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

from making import cases_copies, cases_damage, cases_devices, cases_nixl, cases_parts, cases_rings, large  # noqa: E402

MODULES = (cases_rings, cases_copies, cases_parts, cases_damage, cases_nixl, cases_devices)
LARGEST = 20_000
MOST = 840_000


def cases(modules):
    """All cases: name, bytes, expected. A name stands for one case."""
    seen = set()
    for module in modules:
        for group in module.CASES:
            for name, data, expected, about in group():
                assert name not in seen, f"two cases named {name}"
                seen.add(name)
                shown = {"about": about, "group": module.__name__.split("_")[-1].split(".")[-1], **expected}
                yield name, bytes(data), shown


def as_text(expected):
    """JSON that a person can read and a diff can show: a line for each key and each event."""
    lines = []
    for key, value in expected.items():
        if key == "events" and value:
            events = ",\n    ".join(json.dumps(event, ensure_ascii=True) for event in value)
            lines.append(f'  "events": [\n    {events}\n  ]')
        elif key == "info" and value:
            fields = ",\n    ".join(f"{json.dumps(name)}: {json.dumps(field)}" for name, field in value.items())
            lines.append(f'  "info": {{\n    {fields}\n  }}')
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def files(modules):
    for name, data, expected in cases(modules):
        yield f"{name}.bin", data
        yield f"{name}.json", as_text(expected).encode()


def write(folder, made):
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in made.items():
        path = folder / name
        if not path.exists() or path.read_bytes() != data:
            path.write_bytes(data)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--large", metavar="DIR", type=Path)
    arguments = parser.parse_args()
    if arguments.large:
        write(arguments.large, dict(files([large])))
        return 0
    made, folder = dict(files(MODULES)), HERE / "files"
    images = [len(data) for name, data in made.items() if name.endswith(".bin")]
    assert max(images) <= LARGEST and sum(images) <= MOST, (max(images), sum(images))
    if arguments.check:
        there = {path.name: path.read_bytes() for path in folder.iterdir()}
        wrong = sorted(name for name in made.keys() | there.keys() if made.get(name) != there.get(name))
        for name in wrong:
            print(f"{name} is not what conformance/generate.py makes")
        return 1 if wrong else 0
    write(folder, made)
    for path in folder.iterdir():
        if path.name not in made:
            path.unlink()
    print(f"{len(images)} files, {sum(images)} bytes, {sum(map(len, made.values()))} with what is expected of them")
    return 0


if __name__ == "__main__":
    sys.exit(main())

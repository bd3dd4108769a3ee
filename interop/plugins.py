"""Direction E: NIXL's own exporter plug-ins, which are C++, under the file names of ours. They are refused with what they are, before
anything of them runs, and the agent goes on.

Run as a program, this is the host: an agent that wants the exporter which the environment names.
"""

import json
import shutil
import sys
from pathlib import Path

from guest import Guest, told
from metrics import REQUESTS, parse
from processes import Child, Failed

LIMIT_SECONDS = 60
TRANSFERS = 100


def refused(library, wheel, folder):
    """The names of the exporters that the wheel brings; all were refused."""
    names = []
    for shipped in sorted((wheel.libraries / "plugins").glob("libtelemetry_exporter_*.so")):
        name = "nixl_" + shipped.stem.removeprefix("libtelemetry_exporter_")
        renamed = folder / f"libtelering_exporter_{name}.so"
        shutil.copyfile(shipped, renamed)
        settings = {"NIXL_TELEMETRY_ENABLE": "y", "NIXL_TELEMETRY_EXPORTER": name, "TELERING_PLUGIN_DIR": str(folder)}
        child = Child([wheel.python, __file__, library, folder], wheel.environment() | settings)
        child.succeed(LIMIT_SECONDS)
        judge(json.loads(child.lines()[-1]), renamed)
        names.append(name.removeprefix("nixl_"))
    if not names:
        raise Failed(f"NIXL {wheel.version} brings no exporter plug-in")
    return names


def judge(seen, renamed):
    """One warning that says what the file is, nothing of it in the process, and all transfers counted."""
    report, said = seen["report"], told(seen["report"])
    if len(said) != 1 or str(renamed) not in said[0] or "is a telemetry exporter of NIXL's" not in said[0]:
        raise Failed(f"one warning that says what {renamed.name} is was expected: {said}")
    if report["mode"] != "Captured" or seen["mapped"]:
        raise Failed(f"no exporter and nothing loaded were expected: {report['mode']}, {seen['mapped']}")
    series = parse(report["metrics"])[0]
    if (requests := sum(int(value) for (name, _), value in series.items() if name in REQUESTS)) != TRANSFERS:
        raise Failed(f"{requests} of {TRANSFERS} transfers were counted")


def host(library, folder):
    guest = Guest(library, "host")
    guest.record(TRANSFERS)
    mapped = [line for line in Path("/proc/self/maps").read_text().splitlines() if folder in line]
    print(json.dumps({"report": guest.report(), "mapped": mapped}))
    guest.stop()


if __name__ == "__main__":
    host(*sys.argv[1:])

"""Direction D: telering's metrics beside those of NIXL's own exporters prometheus and prometheus_mp, in one process.

Both record the same operations. Every series of NIXL's must be among ours: the same name, type, labels and value.
What only one of them has is in the two lists below, and nowhere else; docs/prometheus-nixl.md says why.
"""

import json
import re
import socket
from pathlib import Path

from guest import told
from processes import Child, Failed
from same_metrics import TRANSFERS

HERE = Path(__file__).resolve().parent
LIMIT_SECONDS = 120

REQUESTS = ("agent_tx_requests_num_total", "agent_rx_requests_num_total")

# Metrics of the web server that NIXL's exporter uses.
NIXL_ONLY = re.compile(r"exposer_(transferred_bytes_total|scrapes_total|request_latencies(_count|_sum)?)")
# Events that NIXL doesn't have, and what telering says about itself.
OURS_ONLY = re.compile(r"telering_[a-z_]+|agent_(started|stopped|metadata_sent|metadata_received|connected|disconnected)_total")

# Metrics that NIXL has had since 1.5.
NEWER = re.compile(r"(agent_xfer_(?:post_)?time_us)(?:_bucket|_sum|_count)")

LINE = re.compile(r'([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{((?:[a-z_]+="(?:[^"\\]|\\.)*",?)*)\})? (\S+)')
LABEL = re.compile(r'([a-z_]+)="((?:[^"\\]|\\.)*)"')


def parse(text):
    """({(name, labels): value}, {metric: type}) of a page. A second series of the same name and labels is a fault."""
    series, types = {}, {}
    for line in text.splitlines():
        if line.startswith("# TYPE "):
            name, kind = line.split()[2:]
            types[name] = kind
        elif line and not line.startswith("#"):
            match = LINE.fullmatch(line)
            if not match:
                raise Failed(f"a line that is none: {line!r}")
            name, labels, value = match.groups()
            key = (name, tuple(sorted(LABEL.findall(labels or ""))))
            if key in series:
                raise Failed(f"a series comes twice: {line!r}")
            series[key] = value
    return series, types


def differences(nixl, ours):
    """What of NIXL's page is not in ours, and what of ours is neither in NIXL's nor among what is ours alone."""
    (nixl_series, nixl_types), (our_series, our_types) = parse(nixl), parse(ours)
    wrong = []
    for key, value in nixl_series.items():
        name, labels = key
        if NIXL_ONLY.fullmatch(name) or ("agent_name", "twin-target") in labels:
            continue
        # NIXL writes doubles: 1e+06 is 1000000.
        if key not in our_series:
            wrong.append(f"missing: {name}{dict(labels)}")
        elif float(our_series[key]) != float(value):
            wrong.append(f"{name}{dict(labels)} is {our_series[key]}, NIXL says {value}")
    for name, kind in nixl_types.items():
        if not NIXL_ONLY.fullmatch(name) and our_types.get(name) != kind:
            wrong.append(f"{name} is a {our_types.get(name)}, NIXL says {kind}")
    for key in our_series.keys() - nixl_series.keys():
        newer = NEWER.fullmatch(key[0])
        if not OURS_ONLY.fullmatch(key[0]) and not (newer and newer[1] not in nixl_types):
            wrong.append(f"unexpected: {key[0]}{dict(key[1])}")
    return wrong


def free_port():
    with socket.socket() as any_socket:
        any_socket.bind(("127.0.0.1", 0))
        return any_socket.getsockname()[1]


def run(library, wheel, case, *more):
    arguments = [wheel.python, HERE / "same_metrics.py", "--guest", library, "--port", free_port(), "--case", case, *more]
    child = Child(arguments, wheel.environment())
    status = child.wait(LIMIT_SECONDS)
    if status != 0:
        raise Failed(f"the process with both exporters ended with status {status}\n{child.errors()}")
    return json.loads(next(line for line in reversed(child.lines()) if line.startswith('{"nixl"')))


def compare(nixl, ours, what):
    if wrong := differences(nixl, ours):
        raise Failed(f"{what}:\n" + "\n".join(wrong[:20]))


def beside(library, wheel):
    """Each on its own port; returns how many series are the same."""
    seen = run(library, wheel, "beside")
    ours = seen["telering"]
    if told(ours) or ours["mode"] != "Exported":
        raise Failed(f"no warning was expected: {ours['mode']}, {told(ours)}")
    if seen["endpoint"]["type"] != "text/plain; version=0.0.4; charset=utf-8":
        raise Failed(f"our content type is {seen['endpoint']['type']}")
    compare(seen["nixl"]["text"], seen["endpoint"]["text"], "our page beside NIXL's")
    nixl = parse(seen["nixl"]["text"])[0]
    return sum(("agent_name", "twin") in labels for _, labels in nixl)


def processes(library, wheel, folder):
    """The exporter prometheus_mp of both, in one folder; returns how many series are the same."""
    seen = run(library, wheel, "processes", "--folder", folder)
    ours = seen["telering"]
    if told(ours) or ours["mode"] != "Exported":
        raise Failed(f"no warning was expected: {ours['mode']}, {told(ours)}")
    # Each process counts its agents; the check has two of NIXL's and one of ours.
    nixl, endpoint = (re.sub(r'(agent_instance)="\d+"', r'\1="0"', seen[side]["text"]) for side in ("nixl", "endpoint"))
    nixl = "\n".join(line for line in nixl.splitlines() if 'agent_name="twin-target"' not in line)
    compare(nixl, endpoint, "our page of prometheus_mp beside NIXL's")
    series = parse(nixl)[0]
    same = sum(("agent_name", "twin") in labels for _, labels in series)
    first = next(dict(labels) for _, labels in series if ("agent_name", "twin") in labels)
    if not {"hostname", "agent_name", "pid", "agent_instance", "local_rank"} <= first.keys():
        raise Failed(f"NIXL's labels are {sorted(first)}")
    # The folder is both libraries': neither takes the other's files for its own.
    left = [path.name for path in Path(folder).iterdir()]
    stores = [name for name in left if name.startswith("nixl.") and name.endswith(".mmap")]
    if len(stores) != 2 or "twin" not in left:
        raise Failed(f"two stores of NIXL and our file were expected: {sorted(left)}")
    return same


def nixl_has_the_port(library, wheel):
    """NIXL has it: ours says so once, and keeps the same numbers without an endpoint."""
    seen = run(library, wheel, "nixl-first")
    ours = seen["telering"]
    if ours["mode"] != "Captured" or ours["address"] or len(told(ours)) != 1:
        raise Failed(f"one warning and no endpoint were expected: {ours['mode']}, {ours['address']}, {told(ours)}")
    compare(seen["nixl"]["text"], ours["metrics"], "our numbers without an endpoint")


def telering_has_the_port(library, wheel):
    """Ours has it and serves on, one page for all that was moved. NIXL's agent is without telemetry then, as it says
    itself; its transfers go on."""
    seen = run(library, wheel, "telering-first")
    ours = seen["telering"]
    if told(ours) or ours["mode"] != "Exported" or not seen["endpoint"]:
        raise Failed(f"our endpoint was expected to go on: {ours['mode']}, {told(ours)}")
    if seen["nixl_error"]:
        return "NIXL's agent does not start"
    shown = parse(seen["endpoint"]["text"])[0]
    requests = sum(int(value) for (name, _), value in shown.items() if name in REQUESTS)
    if requests != TRANSFERS:
        raise Failed(f"our endpoint shows {requests} transfers, NIXL moved {TRANSFERS}")
    return "NIXL moves on untimed" if seen["untimed"] else "NIXL moves on"

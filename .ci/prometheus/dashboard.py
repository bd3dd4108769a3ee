"""The dashboard as data: its queries as Prometheus gets them, and what is wrong with its structure."""

import json
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FILE = ROOT / "dashboards/telering.json"
# What Grafana sets by itself, as of a scrape every second and the last minute on the screen.
BUILT_IN = {"__rate_interval": "5s", "__range": "60s", "__interval": "1s"}
# The SDK knows these from Grafana's own description of a dashboard.
SOURCE = "${datasource}"


def load():
    return json.loads(FILE.read_text())


def queries(dashboard):
    """Each query with the panel it stands in: (title, target)."""
    return [(panel["title"], target) for panel in dashboard["panels"] for target in panel.get("targets", [])]


def variables(dashboard):
    return {variable["name"]: variable for variable in dashboard["templating"]["list"]}


def groupings(dashboard):
    """What `by` offers: {text: labels}."""
    return {option["text"]: option["value"] for option in variables(dashboard)["by"]["options"]}


def substituted(expression, values):
    """The query with its variables replaced, as Grafana does it before it asks Prometheus."""
    known = BUILT_IN | values

    def value(match):
        name = match[1] or match[2]
        if name not in known:
            raise ValueError(f"no value for ${name} in: {expression}")
        return known[name]

    return re.sub(r"\$(?:(\w+)|\{(\w+)\})", value, expression)


def all_selected(dashboard):
    """Values of the filters when everything is selected."""
    return {name: variable["allValue"] for name, variable in variables(dashboard).items() if variable.get("includeAll")}


def faults(dashboard):
    """Everything wrong with the structure, one sentence each."""
    found = []
    named = variables(dashboard)
    ids = [panel["id"] for panel in dashboard["panels"]]
    if len(ids) != len(set(ids)):
        found.append("two panels have one id")
    taken = {}
    for panel in dashboard["panels"]:
        title, grid = panel["title"], panel["gridPos"]
        if grid["x"] < 0 or grid["w"] < 1 or grid["x"] + grid["w"] > 24:
            found.append(f"{title}: outside the grid")
        for cell in ((x, y) for x in range(grid["x"], grid["x"] + grid["w"]) for y in range(grid["y"], grid["y"] + grid["h"])):
            if taken.setdefault(cell, title) != title:
                found.append(f"{title}: lies over {taken[cell]}")
                break
        if panel["type"] == "row":
            continue
        for holder in (panel, *panel["targets"]):
            if holder["datasource"] != {"type": "prometheus", "uid": SOURCE}:
                found.append(f"{title}: the data source is not the variable")
        if not panel.get("description"):
            found.append(f"{title}: no description")
        references = [target["refId"] for target in panel["targets"]]
        if not references or len(references) != len(set(references)):
            found.append(f"{title}: no query, or two with one refId")
    for title, target in queries(dashboard):
        expression = target["expr"]
        for match in re.finditer(r"\$\{?(\w+)", expression):
            if match[1] not in named and match[1] not in BUILT_IN:
                found.append(f"{title}: there is no variable {match[1]}")
        if re.search(r"\b(agent_name|pid|agent_instance)\b", expression):
            found.append(f"{title}: names a label that stable label sets do not have")
        # A counter's plain value is of no use, and wrong after a restart.
        for match in re.finditer(r"\b(\w+(?:_total|_bucket|_count|_sum))\b(?!_)", expression):
            before = expression[: match.start()]
            if not re.search(r"(rate|increase)\($", before) and "memory" not in match[1]:
                found.append(f"{title}: {match[1]} without rate()")
    for variable in named.values():
        if variable.get("includeAll") and variable.get("allValue") != ".*":
            found.append(f"{variable['name']}: \"All\" leaves out series without the label")
        if variable["type"] == "query" and variable["datasource"]["uid"] != SOURCE:
            found.append(f"{variable['name']}: the data source is not the variable")
    return found


def lost(before, after, place=""):
    """What `before` has and `after` has not, as paths."""
    if isinstance(before, dict) and isinstance(after, dict):
        for key in before:
            if key in after:
                yield from lost(before[key], after[key], f"{place}.{key}")
            else:
                yield f"{place}.{key}"
    elif isinstance(before, list) and isinstance(after, list) and len(before) == len(after):
        for number, (left, right) in enumerate(zip(before, after, strict=True)):
            yield from lost(left, right, f"{place}[{number}]")
    elif before != after:
        yield place


def unknown_to_grafana(dashboard):
    """Keys that Grafana's own description of a dashboard has not: read with its SDK and written again, they are gone."""
    from grafana_foundation_sdk.cog import encoder, plugins
    from grafana_foundation_sdk.models.dashboard import Dashboard

    plugins.register_default_plugins()
    return list(lost(dashboard, json.loads(json.dumps(Dashboard.from_json(dashboard), cls=encoder.JSONEncoder))))


if __name__ == "__main__":
    board = load()
    for name, labels in groupings(board).items():
        for panel, query in queries(board):
            print(f"{name}: {panel}: {substituted(query['expr'], all_selected(board) | {'by': labels})}")
    sys.exit(bool(faults(board)))

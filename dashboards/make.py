#!/usr/bin/env python3
"""Writes telering.json, the dashboard for Grafana: `python3 dashboards/make.py`.

The panels are listed here, a line or two each, because JSON of two thousand lines can't be read by people. Queries
name no agent and no process: they group by what the variable `by` says, so that they fit both label sets.
"""

import json
from pathlib import Path

HERE = Path(__file__).resolve().parent
SOURCE = {"type": "prometheus", "uid": "${datasource}"}
# Filters that also fit series without the label: "All" stands for any text, none included.
WHERE = 'job=~"$job", instance=~"$instance", hostname=~"$hostname", local_rank=~"$local_rank"'
# Series of an endpoint, not of a rank.
ENDPOINT = 'job=~"$job", instance=~"$instance"'
LEGEND = "{{instance}} {{hostname}} {{local_rank}} {{agent_name}} {{pid}}"
# What `by` offers: its name, and the labels that stay.
GROUPS = {
    "rank": "job, instance, hostname, local_rank",
    "agent": "job, instance, hostname, local_rank, agent_name, pid, agent_instance",
    "host": "hostname",
    "everything": "job",
}


def rate(name, more=""):
    return f"rate({name}{{{WHERE}{more}}}[$__rate_interval])"


def ranks(name):
    return f"sum by ($by) ({rate(name)})"


def quantile(part, name):
    return f"histogram_quantile({part}, sum by (le) ({rate(name + '_bucket')}))"


def mean(name):
    # In this order: a rank without transfers has no mean, rather than a wrong one.
    return f"{ranks(name + '_sum')} / {ranks(name + '_count')}"


class Dashboard:
    """Panels in the order of a reader's eyes, in a grid 24 wide."""

    def __init__(self):
        self.panels = []
        self.x = self.y = self.line = 0

    def place(self, width, height):
        if self.x + width > 24:
            self.x, self.y, self.line = 0, self.y + self.line, 0
        grid = {"x": self.x, "y": self.y, "w": width, "h": height}
        self.x, self.line = self.x + width, max(self.line, height)
        return grid

    def row(self, title):
        self.x, self.y, self.line = 0, self.y + self.line, 0
        self.panels.append(self.numbered({"type": "row", "title": title, "collapsed": False, "gridPos": self.place(24, 1), "panels": []}))
        self.x, self.y, self.line = 0, self.y + 1, 0

    def numbered(self, panel):
        return {"id": len(self.panels) + 1} | panel

    def panel(self, kind, title, text, queries, unit, width, height, options, custom=None, steps=None, **more):
        targets = []
        for letter, (legend, expression) in zip("ABCDEFGH", queries.items(), strict=False):
            target = {"refId": letter, "datasource": SOURCE, "editorMode": "code", "expr": expression, "legendFormat": legend}
            targets.append(target | more.get("target", {"range": True}))
        colours = [{"color": colour, "value": value} for value, colour in steps or [(None, "green")]]
        defaults = {"unit": unit, "min": 0, "thresholds": {"mode": "absolute", "steps": colours}, "custom": custom or {}}
        self.panels.append(
            self.numbered(
                {
                    "type": kind,
                    "title": title,
                    "description": text,
                    "datasource": SOURCE,
                    "gridPos": self.place(width, height),
                    "fieldConfig": {"defaults": defaults | more.get("defaults", {}), "overrides": []},
                    "options": options,
                    "targets": targets,
                }
            )
        )

    def number(self, title, text, expression, unit, steps=None, width=3):
        options = {
            "reduceOptions": {"calcs": ["lastNotNull"], "fields": "", "values": False},
            "colorMode": "value" if steps else "none",
            "graphMode": "area",
            "textMode": "auto",
            "justifyMode": "auto",
            "orientation": "auto",
        }
        self.panel("stat", title, text, {"": expression}, unit, width, 4, options, steps=steps)

    def lines(self, title, text, queries, unit, width=12, stack=False):
        if isinstance(queries, str):
            queries = {LEGEND: queries}
        options = {
            "legend": {"displayMode": "table", "placement": "bottom", "calcs": ["mean", "max"], "showLegend": True},
            "tooltip": {"mode": "multi", "sort": "desc"},
        }
        custom = {
            "drawStyle": "line",
            "lineWidth": 1,
            "fillOpacity": 30 if stack else 10,
            "showPoints": "never",
            "spanNulls": False,
            "stacking": {"mode": "normal" if stack else "none", "group": "A"},
        }
        self.panel("timeseries", title, text, queries, unit, width, 8, options, custom)

    def heat(self, title, text, name, width=12):
        expression = f"sum by (le) (increase({name}_bucket{{{WHERE}}}[$__rate_interval]))"
        options = {
            "calculate": False,
            "cellGap": 1,
            "cellValues": {"unit": "short"},
            "color": {"mode": "scheme", "scheme": "Oranges", "steps": 64, "exponent": 0.5, "fill": "dark-orange", "scale": "exponential", "reverse": False},
            "filterValues": {"le": 1e-9},
            "legend": {"show": True},
            "rowsFrame": {"layout": "auto"},
            "tooltip": {"mode": "single", "yHistogram": True, "showColorScale": True},
            "yAxis": {"axisPlacement": "left", "unit": "µs", "reverse": False},
        }
        custom = {"scaleDistribution": {"type": "linear"}}
        self.panel("heatmap", title, text, {"{{le}}": expression}, "µs", width, 8, options, custom, target={"format": "heatmap", "range": True})

    def table(self, title, text, expression, width=12):
        options = {"showHeader": True, "cellHeight": "sm", "footer": {"show": False, "reducer": ["sum"], "fields": ""}}
        hide = [{"id": "organize", "options": {"excludeByName": {"Time": True, "__name__": True}, "indexByName": {}, "renameByName": {"Value": "series"}}}]
        once = {"format": "table", "instant": True, "range": False}
        self.panel("table", title, text, {"": expression}, "none", width, 8, options, target=once)
        self.panels[-1]["transformations"] = hide


def panels():
    board = Dashboard()
    good_bad = [(None, "green"), (1, "red")]
    board.row("At a glance")
    board.number("Written", "Bytes that all ranks wrote in a second. Reads are beside it: both together would count a transfer between two of your own agents once, by its initiator.", f"sum({rate('agent_tx_bytes_total')})", "Bps")
    board.number("Read", "Bytes that all ranks read in a second.", f"sum({rate('agent_rx_bytes_total')})", "Bps")
    board.number("Requests", "Finished transfers in a second, writes and reads.", f"sum({rate('agent_tx_requests_num_total')}) + sum({rate('agent_rx_requests_num_total')})", "reqps")
    board.number("Slowest percent", "99 of 100 transfers took no longer than this.", quantile(0.99, "agent_xfer_time_us"), "µs")
    board.number("Errors", "Errors in a second, of all kinds.", f"sum({rate('agent_errors_total')})", "ops", [(None, "green"), (1e-9, "red")])
    board.number("Alive", "Processes with a living writer behind the endpoints that serve directories.", f'sum(telering_processes{{{ENDPOINT}, state="alive"}})', "none")
    board.number("Dead or unreadable", "Processes that ended without closing, and files that can't be read.", f'sum(telering_processes{{{ENDPOINT}, state=~"dead|unreadable|not_consumable"}})', "none", good_bad)
    # A Prometheus scrapes much else: `up` alone would count all of it.
    down = f"count(up{{{ENDPOINT}}} == 0 and on (job, instance) group by (job, instance) (last_over_time(agent_tx_last_bytes{{{ENDPOINT}}}[1d]))) or vector(0)"
    board.number("Targets down", "Endpoints that Prometheus can't reach, of those that had agents within a day.", down, "none", good_bad)

    board.row("Throughput")
    board.lines("Written", "Bytes written in a second. Only the initiator of a transfer records it.", ranks("agent_tx_bytes_total"), "Bps")
    board.lines("Read", "Bytes read in a second. Only the initiator of a transfer records it.", ranks("agent_rx_bytes_total"), "Bps")
    total = {"written": f"sum({rate('agent_tx_bytes_total')})", "read": f"sum({rate('agent_rx_bytes_total')})"}
    board.lines("All ranks", "The sum of rates over ranks is the system's throughput. Bytes divided by summed transfer time is not.", total, "Bps", stack=True)
    writes_reads = {"writes " + LEGEND: ranks("agent_tx_requests_num_total"), "reads " + LEGEND: ranks("agent_rx_requests_num_total")}
    board.lines("Requests", "Finished transfers in a second.", writes_reads, "reqps")
    sizes = {"writes " + LEGEND: f"{ranks('agent_tx_bytes_total')} / {ranks('agent_tx_requests_num_total')}", "reads " + LEGEND: f"{ranks('agent_rx_bytes_total')} / {ranks('agent_rx_requests_num_total')}"}
    board.lines("Mean size of a transfer", "Bytes of a finished transfer.", sizes, "bytes")
    last = {"write " + LEGEND: f"max by ($by) (agent_tx_last_bytes{{{WHERE}}})", "read " + LEGEND: f"max by ($by) (agent_rx_last_bytes{{{WHERE}}})"}
    board.lines("Size of the last transfer", "A sample of sizes: one transfer per scrape.", last, "bytes")

    board.row("Latency")
    quantiles = {name: quantile(part, "agent_xfer_time_us") for name, part in {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}.items()}
    board.lines("Time of a transfer", "From the start to completion, as the application noticed it: the delay of its polling is included. Estimated from buckets.", quantiles, "µs")
    board.heat("Times of transfers", "How many transfers fell between two bounds.", "agent_xfer_time_us")
    board.lines("Slowest percent by rank", "99 of 100 transfers of a rank took no longer than this.", f"histogram_quantile(0.99, sum by ($by, le) ({rate('agent_xfer_time_us_bucket')}))", "µs")
    means = {"start to completion " + LEGEND: mean("agent_xfer_time_us"), "start to posted " + LEGEND: mean("agent_xfer_post_time_us")}
    board.lines("Mean time", "Exact: the sum of times by the number of transfers.", means, "µs")
    posts = {name: quantile(part, "agent_xfer_post_time_us") for name, part in {"p50": 0.5, "p90": 0.9, "p99": 0.99, "p99.9": 0.999}.items()}
    board.lines("Time to post", "From the start until the transfer was handed to the backend.", posts, "µs")
    board.heat("Times to post", "How many transfers fell between two bounds.", "agent_xfer_post_time_us")

    board.row("Errors and loss")
    board.lines("Errors by kind", "NIXL never records remote_disconnect: watch for ranks whose requests stop.", {"{{status}}": f"sum by (status) ({rate('agent_errors_total')})"}, "ops", stack=True)
    done = f"{ranks('agent_tx_requests_num_total')} + {ranks('agent_rx_requests_num_total')}"
    board.lines("Errors by rank", "Errors of all that ended, in parts of one.", f"{ranks('agent_errors_total')} / ({ranks('agent_errors_total')} + {done})", "percentunit")
    board.lines("Events dropped", "Events that telemetry itself lost, in NIXL's own counter.", ranks("agent_telemetry_events_dropped_total"), "ops")
    board.lines("Events lost by cause", "Telering's own account: no loss without a cause. Totals stay exact when events are lost.", {"{{cause}}": f"sum by (cause) ({rate('telering_events_lost_total')})"}, "ops", stack=True)

    board.row("Processes and memory")
    board.lines("Processes", "Of the directories that are served, by state.", {"{{state}}": f"sum by (state) (telering_processes{{{ENDPOINT}}})"}, "none")
    kept = f"sum by ($by) (agent_memory_registered_total{{{WHERE}}}) - sum by ($by) (agent_memory_deregistered_total{{{WHERE}}})"
    board.lines("Memory registered", "Registered and not deregistered. After a restart with stable labels: of all runs together.", kept, "bytes")
    churn = {"registered " + LEGEND: ranks("agent_memory_registered_total"), "deregistered " + LEGEND: ranks("agent_memory_deregistered_total")}
    board.lines("Registering", "Bytes registered and deregistered in a second. Steady work reuses its registrations.", churn, "Bps")
    versions = f"count by (job, instance, hostname, writer) (telering_build_info{{{WHERE}}})"
    board.table("Versions", "What runs where, and for how many agents (with stable labels: ranks).", versions)
    return board.panels


def variable(name, label):
    return {
        "name": name,
        "label": label,
        "type": "query",
        "datasource": SOURCE,
        "query": {"query": f"label_values(agent_tx_bytes_total, {name})", "refId": name},
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": ["All"], "value": ["$__all"]},
        "refresh": 2,
        "sort": 3,
        "regex": "",
        "hide": 0,
        "options": [],
        "skipUrlSync": False,
    }


def dashboard():
    first = next(iter(GROUPS))
    listed = ",".join(f"{name} : {labels.replace(',', chr(92) + ',')}" for name, labels in GROUPS.items())
    choose = {
        "name": "by",
        "label": "One line per",
        "type": "custom",
        "query": listed,
        "multi": False,
        "includeAll": False,
        "current": {"selected": True, "text": first, "value": GROUPS[first]},
        "options": [{"selected": name == first, "text": name, "value": labels} for name, labels in GROUPS.items()],
        "hide": 0,
        "skipUrlSync": False,
    }
    source = {
        "name": "datasource",
        "label": "Data source",
        "type": "datasource",
        "query": "prometheus",
        "current": {},
        "options": [],
        "multi": False,
        "includeAll": False,
        "refresh": 1,
        "regex": "",
        "hide": 0,
        "skipUrlSync": False,
    }
    filters = [variable("job", "Job"), variable("instance", "Endpoint"), variable("hostname", "Host"), variable("local_rank", "Rank")]
    return {
        "title": "Telering",
        "description": "Transfers of NIXL and telering agents: throughput, latency, errors, loss, processes.",
        "uid": "telering",
        "tags": ["telering", "nixl"],
        "schemaVersion": 41,
        "version": 1,
        "editable": True,
        "graphTooltip": 1,
        "refresh": "10s",
        "time": {"from": "now-30m", "to": "now"},
        "timepicker": {},
        "timezone": "browser",
        "annotations": {"list": []},
        "links": [],
        "templating": {"list": [source, *filters, choose]},
        "panels": panels(),
    }


def text():
    return json.dumps(dashboard(), indent=2, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    (HERE / "telering.json").write_text(text())

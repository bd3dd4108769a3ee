"""A real Prometheus scrapes `telering demo`, `telering serve` and `prometheus_mp`; what it knows is what was moved.

Run by ./test prometheus, with TELERING, PROMETHEUS and PROMTOOL in the environment.
"""

import collections
import json
import os
import re
import shutil
import subprocess
import tempfile
import time
import unittest
from pathlib import Path

import dashboard
from server import Program, Prometheus, free_port, get, wait_for
from tools import promtool

TELERING = os.environ.get("TELERING", "telering")
# What the demo counts by itself, and the series that must say the same.
COUNTED = {
    "tx_bytes": "agent_tx_bytes_total",
    "rx_bytes": "agent_rx_bytes_total",
    "tx_requests": "agent_tx_requests_num_total",
    "rx_requests": "agent_rx_requests_num_total",
    "errors": "agent_errors_total",
    "memory_registered": "agent_memory_registered_total",
}
MOVING = ["--rate", "300", "--size", "65536", "--json"]
SECONDS = 12
# Prometheus scrapes every second: after this it has the last numbers.
HOLD = 4
RANKS = 3


class Scrapes(unittest.TestCase):
    """All programs run at once, for SECONDS; the questions come when the demos have told what they moved."""

    @classmethod
    def setUpClass(cls):
        cls.folder = Path(tempfile.mkdtemp(prefix="telering-scrapes-"))
        cls.addClassCleanup(shutil.rmtree, cls.folder)
        names = ("process", "full", "stable", "together")
        cls.ports = {name: free_port() for name in names}
        for name in names:
            (cls.folder / name).mkdir(mode=0o700)

        demo = [TELERING, "demo", *MOVING, "--seconds", SECONDS, "--hold", HOLD]
        cls.demos = {"process": [cls.start([*demo, "--environment"], NIXL_TELEMETRY_EXPORTER="prometheus",
            NIXL_TELEMETRY_PROMETHEUS_PORT=cls.ports["process"], NIXL_TELEMETRY_PROMETHEUS_LOCAL="yes")]}  # fmt: skip
        cls.demos["full"] = cls.demos["stable"] = [cls.start([*demo, "--dir", cls.folder / "full"]) for _ in range(2)]
        for labels in ("full", "stable"):
            cls.start([TELERING, "serve", cls.folder / "full", "--labels", labels, "--listen", f"127.0.0.1:{cls.ports[labels]}"])
        cls.demos["together"] = [
            cls.start([*demo, "--environment", "--agents", 1], NIXL_TELEMETRY_EXPORTER="prometheus_mp", LOCAL_RANK=rank,
                NIXL_TELEMETRY_MULTIPROC_DIR=cls.folder / "together", NIXL_TELEMETRY_PROMETHEUS_LOCAL="yes",
                NIXL_TELEMETRY_PROMETHEUS_PORT=cls.ports["together"]) for rank in range(RANKS)
        ]  # fmt: skip
        # Whoever has a Prometheus scrapes other things too, and some are down.
        jobs = cls.ports | {"other": free_port()}
        cls.prometheus = Prometheus({name: f"127.0.0.1:{port}" for name, port in jobs.items()})
        cls.addClassCleanup(cls.prometheus.end)
        up = {name: ("up", "") for name in names}
        wait_for("all targets are up", lambda: cls.ours() == up)

        # While data moves: what a target says, and what the dashboard asks.
        cls.pages = {name: get(f"http://127.0.0.1:{port}/metrics") for name, port in cls.ports.items()}
        time.sleep(SECONDS / 2)
        cls.midway = time.time()
        cls.health = cls.ours()
        ended = {name: [demo.finish() for demo in demos] for name, demos in cls.demos.items()}
        cls.told = {}
        for name, results in ended.items():
            for status, out, err in results:
                # Two demos in one directory have agents of the same names: each is told, and has a file of its own.
                trouble = [line for line in err.splitlines() if "is used by another agent of this name" not in line]
                assert status == 0 and not any(trouble), f"a demo of {name} ended with {status}: {err}"
            cls.told[name] = [json.loads(out) for _, out, _ in results]

    @classmethod
    def ours(cls):
        return {name: health for name, health in cls.prometheus.targets().items() if name in cls.ports}

    @classmethod
    def start(cls, arguments, **environment):
        program = Program(arguments, {name: str(value) for name, value in environment.items()})
        cls.addClassCleanup(program.end)
        return program

    def sums(self, job, series, by):
        """The last value of each series that Prometheus has, summed by labels: {labels: whole number}."""
        query = f'sum by ({by}) (last_over_time({series}{{job="{job}"}}[5m]))'
        return {tuple(sorted(labels.items())): int(float(value)) for labels, value in self.prometheus.query(query)}

    def values(self, expression):
        """What a query gave while data moved."""
        return [value for _, value in self.prometheus.query(expression, time=self.midway)]

    def test_all_targets_are_up(self):
        self.assertEqual(self.health, {name: ("up", "") for name in self.ports})

    def test_prometheus_knows_exactly_what_the_demos_moved(self):
        for job, told in self.told.items():
            for key, series in COUNTED.items():
                with self.subTest(job=job, series=series):
                    moved = sum(one[key] for one in told)
                    self.assertGreater(moved, 0)
                    self.assertEqual(self.sums(job, series, ""), {(): moved})

    def test_each_agent_s_numbers_are_its_own(self):
        for job in ("process", "full", "together"):
            for key, series in COUNTED.items():
                with self.subTest(job=job, series=series):
                    moved = sorted(agent[key] for one in self.told[job] for agent in one["agents"])
                    seen = sorted(self.sums(job, series, "agent_name, pid, agent_instance, local_rank").values())
                    self.assertEqual(seen, moved)

    def test_each_rank_s_numbers_are_its_own(self):
        for key, series in COUNTED.items():
            ranks = {(("local_rank", str(rank)),): told[key] for rank, told in enumerate(self.told["together"])}
            self.assertEqual(self.sums("together", series, "local_rank"), ranks)
            ranks = collections.Counter()
            for told in self.told["stable"]:
                for rank, agent in enumerate(told["agents"]):
                    ranks[("local_rank", str(rank)),] += agent[key]
            self.assertEqual(self.sums("stable", series, "local_rank"), dict(ranks))

    def test_histograms_count_every_finished_transfer(self):
        for job, told in self.told.items():
            finished = sum(one["tx_requests"] + one["rx_requests"] for one in told)
            for name in ("agent_xfer_time_us", "agent_xfer_post_time_us"):
                with self.subTest(job=job, histogram=name):
                    self.assertEqual(self.sums(job, f"{name}_count", ""), {(): finished})
                    buckets = self.sums(job, f"{name}_bucket", "le")
                    self.assertEqual(buckets[("le", "+Inf"),], finished)
                    growing = [buckets[key] for key in sorted(buckets, key=lambda key: float(key[0][1]))]
                    self.assertEqual(growing, sorted(growing))
                    total = name.removesuffix("_us") + "_total"
                    self.assertEqual(self.sums(job, f"{name}_sum", ""), self.sums(job, total, ""))

    def test_nothing_was_lost_and_everything_is_accounted_for(self):
        for job, told in self.told.items():
            lost = self.sums(job, "telering_events_lost_total", "cause")
            self.assertEqual((len(lost), sum(lost.values())), (5, sum(one["lost"] for one in told)), job)
            self.assertEqual(self.sums(job, "telering_events_recorded_total", ""), {(): sum(one["recorded"] for one in told)}, job)
            self.assertEqual(self.sums(job, "agent_telemetry_events_dropped_total", ""), {(): 0}, job)

    def test_stable_labels_have_no_name_that_changes_with_a_restart(self):
        labels = {name for one in self.prometheus.ask("series", **{"match[]": '{job="stable"}'}) for name in one}
        self.assertLessEqual({"hostname", "local_rank"}, labels)
        self.assertEqual(labels & {"agent_name", "pid", "agent_instance"}, set())
        labels = {name for one in self.prometheus.ask("series", **{"match[]": '{job="full"}'}) for name in one}
        self.assertLessEqual({"hostname", "local_rank", "agent_name", "pid", "agent_instance"}, labels)

    def test_promtool_reads_every_page(self):
        for name, page in self.pages.items():
            done = subprocess.run([promtool(), "check", "metrics"], input=page, text=True, capture_output=True)
            said = done.stdout + done.stderr
            # 3 is style: names as NIXL has them. 1 is a page that can't be read.
            self.assertIn(done.returncode, (0, 3), f"{name}: {said}")
            self.assertNotIn("error while linting", said)
            print(f"{name}: style remarks of promtool, on names that are NIXL's:")
            for line in sorted(set(said.splitlines())):
                print(f"  {line}")
                self.assertRegex(line, r"^agent_|^$", f"{name}: a name of our own")

    def test_promtool_refuses_a_page_with_a_fault(self):
        """So that the test before this one can fail."""
        page = self.pages["full"]
        line = next(line for line in page.splitlines() if line.startswith("agent_tx_bytes_total{"))
        for fault in (line + " x", line.replace('="', "="), line.rpartition(" ")[0], "# TYPE agent_tx_bytes_total gauge\n" + line):
            done = subprocess.run([promtool(), "check", "metrics"], input=page.replace(line, fault), text=True, capture_output=True)
            self.assertEqual(done.returncode, 1, f"{fault}: {done.stdout}{done.stderr}")

    def test_every_query_of_the_dashboard_returns_data(self):
        """At a moment while data moved, with either label set, however the lines are grouped."""
        board = dashboard.load()
        for job in self.ports:
            for group, labels in dashboard.groupings(board).items():
                for title, target in dashboard.queries(board):
                    values = dashboard.all_selected(board) | {"by": labels, "job": job}
                    expression = dashboard.substituted(target["expr"], values)
                    with self.subTest(job=job, by=group, panel=title):
                        found = self.values(expression)
                        # The exporter of one process knows no directory.
                        if "telering_processes" in expression and job == "process":
                            self.assertEqual(found, [])
                        else:
                            self.assertTrue(any(value != "NaN" for value in found), f"{expression}: {found}")

    def test_a_query_that_is_wrong_is_noticed(self):
        self.assertEqual(self.values("sum(rate(agent_tx_byte_total[5s]))"), [])
        with self.assertRaisesRegex(AssertionError, "parse error"):
            self.values("sum(rate(agent_tx_bytes_total[5s])")

    def test_the_dashboard_shows_the_true_throughput(self):
        """Each thread makes 300 transfers a second at the most, and no rank is counted twice."""
        board = dashboard.load()
        at_a_glance = next(target["expr"] for title, target in dashboard.queries(board) if title == "Requests")
        for job, told in self.told.items():
            expression = dashboard.substituted(at_a_glance, dashboard.all_selected(board) | {"job": job})
            (_, value), = self.prometheus.query(expression, time=self.midway)
            made = sum(one["tx_requests"] + one["rx_requests"] for one in told) / SECONDS
            self.assertLess(abs(float(value) - made), 0.25 * made, f"{job}: {value} beside {made}")

    def test_only_endpoints_of_agents_count_as_down(self):
        board = dashboard.load()
        panel = next(target["expr"] for title, target in dashboard.queries(board) if title == "Targets down")
        expression = dashboard.substituted(panel, dashboard.all_selected(board))
        self.assertEqual(self.prometheus.number(expression, time=self.midway), 0)
        # By now the demos have ended, and with them the endpoints of their own.
        wait_for("both are down", lambda: self.prometheus.number(expression) == 2)

    def test_no_alert_fires_while_all_is_well(self):
        history = self.prometheus.query('max_over_time(ALERTS{alertstate="firing"}[5m])', time=self.midway)
        self.assertEqual([labels["alertname"] for labels, _ in history], [])

    def test_the_variables_of_the_dashboard_have_values(self):
        for name, job in (("job", ""), ("instance", ""), ("hostname", ""), ("local_rank", 'job="stable"')):
            query = f'count by ({name}) (last_over_time(agent_tx_bytes_total{{{job}}}[5m]))'
            values = [labels.get(name) for labels, _ in self.prometheus.query(query)]
            self.assertTrue(any(values), name)


if __name__ == "__main__":
    unittest.main()

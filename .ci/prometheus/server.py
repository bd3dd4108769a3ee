"""A real Prometheus on loopback, and the programs that it scrapes."""

import json
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

from tools import ROOT, prometheus

PATIENCE_SECONDS = 60


def free_port():
    """A port that nobody has at this moment."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def get(url):
    with urllib.request.urlopen(url, timeout=10) as answer:
        return answer.read().decode()


def wait_for(what, condition):
    """Waits until `condition` gives something true, and returns that."""
    end = time.monotonic() + PATIENCE_SECONDS
    while time.monotonic() < end:
        try:
            if found := condition():
                return found
        except (OSError, urllib.error.HTTPError):
            pass
        time.sleep(0.1)
    raise AssertionError(f"waited {PATIENCE_SECONDS} s in vain: {what}")


class Program:
    """A program that runs beside the test; `out` and `err` are what it printed once it ended."""

    def __init__(self, arguments, environment=None):
        clean = {name: text for name, text in os.environ.items() if not name.startswith(("NIXL_", "TELERING_"))}
        self.files = [tempfile.TemporaryFile("w+") for _ in range(2)]
        self.process = subprocess.Popen(
            [str(argument) for argument in arguments], stdin=subprocess.DEVNULL, stdout=self.files[0], stderr=self.files[1],
            env=clean | (environment or {}),
        )  # fmt: skip

    def finish(self, sent=None):
        """Waits for its end, after a signal if one is given: (exit status, out, err)."""
        if sent is not None and self.process.poll() is None:
            self.process.send_signal(sent)
        try:
            status = self.process.wait(PATIENCE_SECONDS)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
            status = "no end"
        texts = []
        for file in self.files:
            file.seek(0)
            texts.append(file.read())
        return status, *texts

    def end(self):
        """Kills it if it still runs."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        for file in self.files:
            file.close()


class Prometheus:
    """Prometheus with jobs of one target each, which it scrapes every second."""

    def __init__(self, jobs):
        self.folder = Path(tempfile.mkdtemp(prefix="telering-prometheus-"))
        self.address = f"http://127.0.0.1:{(port := free_port())}"
        shutil.copy(ROOT / "dashboards/alerts.yml", self.folder)
        # JSON is YAML as well.
        (self.folder / "prometheus.yml").write_text(
            json.dumps(
                {
                    "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "500ms"},
                    "rule_files": ["alerts.yml"],
                    "scrape_configs": [
                        {"job_name": name, "static_configs": [{"targets": [target]}]} for name, target in jobs.items()
                    ],
                }
            )
        )
        self.program = Program(
            [
                prometheus(),
                f"--config.file={self.folder}/prometheus.yml",
                f"--storage.tsdb.path={self.folder}/data",
                f"--web.listen-address=127.0.0.1:{port}",
                "--log.level=warn",
            ]
        )
        wait_for("Prometheus is ready", lambda: "eady" in get(f"{self.address}/-/ready"))

    def ask(self, path, **values):
        """The data that the HTTP API answers. A query that is wrong is an AssertionError with Prometheus' words."""
        try:
            answer = json.loads(get(f"{self.address}/api/v1/{path}?{urllib.parse.urlencode(values)}"))
        except urllib.error.HTTPError as error:
            raise AssertionError(f"{values}: {error.read().decode()}") from error
        return answer["data"]

    def query(self, expression, **values):
        """The samples of an instant query: [(labels, text of the value)]."""
        return [(one["metric"], one["value"][1]) for one in self.ask("query", query=expression, **values)["result"]]

    def number(self, expression, **values):
        """The one value of a query as a whole number; None if there is no sample."""
        found = self.query(expression, **values)
        assert len(found) < 2, f"{expression} gives {len(found)} samples"
        return int(float(found[0][1])) if found else None

    def targets(self):
        """Health of each job's target."""
        return {one["labels"]["job"]: (one["health"], one["lastError"]) for one in self.ask("targets")["activeTargets"]}

    def firing(self):
        """Names of the alerts that fire, with their labels."""
        return [(one["labels"]["alertname"], one["labels"]) for one in self.ask("alerts")["alerts"] if one["state"] == "firing"]

    def end(self):
        status, _, err = self.program.finish(signal.SIGTERM)
        self.program.end()
        shutil.rmtree(self.folder)
        return status, err

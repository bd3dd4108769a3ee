"""A real Prometheus tells of a process that was killed, and of none that stopped in good order.

Run by ./test prometheus, with TELERING, PROMETHEUS and PROMTOOL in the environment.
"""

import os
import shutil
import signal
import tempfile
import time
import unittest
from pathlib import Path

from server import Program, Prometheus, free_port, wait_for

TELERING = os.environ.get("TELERING", "telering")


class Alerts(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="telering-alerts-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.ports = {labels: free_port() for labels in ("full", "stable")}
        for labels, port in self.ports.items():
            self.start("serve", self.folder, "--labels", labels, "--listen", f"127.0.0.1:{port}")
        self.prometheus = Prometheus({labels: f"127.0.0.1:{port}" for labels, port in self.ports.items()})
        self.addCleanup(self.prometheus.end)

    def start(self, *arguments):
        program = Program([TELERING, *arguments])
        self.addCleanup(program.end)
        return program

    def demo(self):
        demo = self.start("demo", "--dir", self.folder, "--rate", 300, "--size", 4096, "--agents", 1, "--seconds", 600, "--json")
        wait_for("a process is alive", lambda: self.processes("alive") == 2)
        return demo

    def processes(self, state):
        """As both endpoints count them."""
        return self.prometheus.number(f'sum(telering_processes{{state="{state}"}})')

    def told(self):
        return {(name, labels["job"]) for name, labels in self.prometheus.firing()}

    def test_a_killed_process_is_told_and_one_that_stopped_is_not(self):
        status, _, err = self.demo().finish(signal.SIGTERM)
        self.assertEqual((status, err), (0, ""))
        wait_for("it is closed", lambda: self.processes("closed") == 2)
        time.sleep(3)
        self.assertEqual(self.told(), set())

        self.demo().finish(signal.SIGKILL)
        died = {("TeleringProcessDied", labels) for labels in self.ports}
        wait_for("both endpoints tell of it", lambda: self.told() == died)
        self.assertEqual((self.processes("dead"), self.processes("alive")), (2, 0))


if __name__ == "__main__":
    unittest.main()

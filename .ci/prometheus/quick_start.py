"""The commands of docs/prometheus.md and of README.md's section on Prometheus, run as they are printed.

Run by ./test prometheus, with TELERING, PROMETHEUS and PROMTOOL in the environment.
"""

import os
import re
import shutil
import signal
import socket
import subprocess
import time
import unittest
from pathlib import Path

from tools import ROOT, prometheus, promtool

MARK = "<!-- run by ./test prometheus -->\n```sh\n"
# What the commands write and where they listen: the same for every reader, so nothing may be left from before.
LEFT_BEHIND = ["/tmp/telering-metrics", "/tmp/telering-prometheus"]
PORTS = [9464, 9099]


def blocks(file):
    """The marked blocks of commands of a document, in its order."""
    return [part.partition("```")[0] for part in (ROOT / file).read_text().split(MARK)[1:]]


def busy(port):
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


class QuickStart(unittest.TestCase):
    def run_as_printed(self, file):
        """Runs all marked blocks of a document in one shell and returns what they printed."""
        for port in PORTS:
            self.assertFalse(busy(port), f"the commands of {file} need port {port}, and something else has it")
        for path in LEFT_BEHIND:
            shutil.rmtree(path, ignore_errors=True)
            self.addCleanup(shutil.rmtree, path, ignore_errors=True)
        script = "\n".join(blocks(file))
        tools = [Path(tool).parent for tool in (os.environ["TELERING"], shutil.which(prometheus()), shutil.which(promtool()))]
        path = os.pathsep.join([*map(str, tools), os.environ["PATH"]])
        log = open(ROOT / os.environ.get("CARGO_TARGET_DIR", "target") / "prometheus/quick-start.log", "w+")
        self.addCleanup(log.close)
        shell = subprocess.Popen(
            ["bash", "-euo", "pipefail", "-c", script], cwd=ROOT, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            env=os.environ | {"PATH": path}, start_new_session=True,
        )  # fmt: skip
        try:
            status = shell.wait(300)
        finally:
            # The shell leads a group of its own: what it left in the background is in it.
            os.killpg(shell.pid, signal.SIGTERM)
            end = time.monotonic() + 20
            while any(map(busy, PORTS)) and time.monotonic() < end:
                time.sleep(0.1)
        log.seek(0)
        printed = log.read()
        self.assertEqual(status, 0, printed)
        return printed

    def test_the_quick_start_of_the_guide_does_what_it_says(self):
        self.assertEqual(len(blocks("docs/prometheus.md")), 2)
        printed = self.run_as_printed("docs/prometheus.md")
        self.assertRegex(printed, r'(?m)^agent_tx_bytes_total\{.*agent_name="demo-0".*\} \d+$')
        rates = dict(re.findall(r'\{local_rank="(\d)"\} => ([\d.e+]+) @', printed))
        self.assertEqual(set(rates), {"0", "1"}, printed)
        self.assertTrue(all(float(rate) > 0 for rate in rates.values()), printed)

    def test_the_commands_of_the_readme_show_metrics(self):
        self.assertEqual(len(blocks("README.md")), 1)
        self.assertRegex(self.run_as_printed("README.md"), r"(?m)^agent_tx_bytes_total\{.*\} \d+$")


if __name__ == "__main__":
    unittest.main()

"""The C++ programs beside real producers, and the programs of docs/readers-cpp.md built with the installed package.

    python3 readers/cpp/tests/programs.py BUILD PACED

BUILD is a build folder of readers/cpp, PACED the example `paced` of the library.
"""

import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD, PACED = (Path(argument).resolve() for argument in sys.argv[1:3])


def environment(capacity):
    return os.environ | {"NIXL_TELEMETRY_BUFFER_SIZE": str(capacity), "TZ": "UTC"}


def produce(folder, name="agent", seconds=1.0, rate=0, capacity=4096):
    command = [PACED, folder, name, str(rate), str(seconds)]
    return subprocess.Popen(command, env=environment(capacity), stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)


def wait_for(path):
    for _ in range(1000):
        if path.exists():
            return path
        time.sleep(0.01)
    raise AssertionError(f"{path} never came")


def run(*command, status=0):
    done = subprocess.run(command, env=environment(64), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=60, check=False)
    assert done.returncode == status, f"{command}: status {done.returncode}: {done.stderr}"
    return done


class Programs(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.dir = Path(self.folder.name)

    def test_beside_a_producer_at_full_speed_only_recorded_events_come_and_the_equation_holds(self):
        for capacity in (64, 4096, 1 << 20):
            producer = produce(self.dir, f"agent{capacity}", seconds=2, capacity=capacity)
            path = wait_for(self.dir / f"agent{capacity}")
            seen = json.loads(run(BUILD / "conformance", "follow", path).stdout)
            recorded = json.loads(producer.communicate()[0])
            with self.subTest(capacity=capacity, seen=seen):
                total = seen["events"] + seen["lost"] + seen["unverified"] + seen["interrupted"]
                self.assertEqual(total, seen["committed"] - seen["start"])
                self.assertEqual((seen["wrong"], seen["unverified"], seen["interrupted"]), (0, 0, 0))
                # The agent's start and end are two events of its own; some more say what its threads lost.
                self.assertGreaterEqual(seen["committed"], recorded["exported"] + 2)
                self.assertLess(seen["committed"], recorded["exported"] * 1.01 + 100)
                self.assertGreater(seen["events"], 0)
                self.assertLessEqual(seen["sum"], recorded["tx_bytes"])

    def test_every_transfer_of_a_slow_producer_comes(self):
        producer = produce(self.dir, seconds=1, rate=2000)
        seen = json.loads(run(BUILD / "conformance", "follow", wait_for(self.dir / "agent")).stdout)
        recorded = json.loads(producer.communicate()[0])
        self.assertEqual((seen["sum"], seen["lost"]), (recorded["tx_bytes"], 0))

    def test_the_guides_program_prints_the_guides_block(self):
        sample = ROOT / "std-shell/tests/data/nixl/0.10.1/initiator"
        printed = run(BUILD / "telemetry_reader", "--once", sample).stdout
        block = (
            "=== NIXL Telemetry Event ===\nTimestamp: 2026-11-30 11:53:54.276977\nCategory: MEMORY\n"
            "Event: agent_memory_registered\nValue: 65536\n===========================\n"
        )
        self.assertEqual(printed[: len(block)], block)
        self.assertEqual(printed.count("=== NIXL Telemetry Event ==="), 31)
        self.assertIn("not a telemetry file: a directory", run(BUILD / "telemetry_reader", self.dir, status=1).stderr)
        run(BUILD / "telemetry_reader", status=2)

    def test_the_guides_program_follows_into_the_next_run_of_the_agent(self):
        first = produce(self.dir, seconds=0.3, rate=100)
        command = [BUILD / "telemetry_reader", wait_for(self.dir / "agent")]
        reader = subprocess.Popen(command, env=environment(64), stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first.communicate()
        produce(self.dir, seconds=0.3, rate=100, capacity=128).communicate()
        time.sleep(0.5)
        reader.send_signal(signal.SIGINT)
        printed, said = reader.communicate(timeout=10)
        self.assertEqual(reader.returncode, 0, said)
        self.assertEqual(printed.count("Event: agent_started\n"), 2)
        self.assertIn("a new run of the agent", said)

    def test_the_guides_loop_reads_a_live_file_with_its_include_lines_changed(self):
        producer = produce(self.dir, seconds=1.5, rate=1000)
        printed = self.dir / "printed"
        with printed.open("w") as out:
            loop = subprocess.Popen([BUILD / "guide_loop", wait_for(self.dir / "agent")], stdout=out)
        recorded = json.loads(producer.communicate()[0])
        time.sleep(1)
        loop.send_signal(signal.SIGTERM)
        loop.wait(timeout=10)
        lines = printed.read_text().splitlines()
        self.assertEqual(lines[0], "Buffer capacity: 4096 events")
        values = [int(line.rsplit(" ", 1)[1]) for line in lines if " 1 agent_tx_bytes: " in line]
        self.assertEqual(values, list(range(1, recorded["transfers"] + 1)))

    def test_the_documents_programs_build_with_the_installed_package_and_run(self):
        produce(self.dir, seconds=0.2, rate=100).communicate()
        snippets = self.dir / "snippets"
        snippets.mkdir()
        text = (ROOT / "docs/readers-cpp.md").read_text()
        programs = re.findall(r"```cpp\n(.*?)```", text, re.DOTALL)
        for number, program in enumerate(programs):
            (snippets / f"program{number}.cpp").write_text(program)
        run("cmake", "--install", BUILD, "--prefix", self.dir / "prefix")
        build = self.dir / "build"
        flags = [f"-DCMAKE_PREFIX_PATH={self.dir / 'prefix'}", f"-DSNIPPETS={snippets}"]
        run("cmake", "-S", ROOT / "readers/cpp/tests/package", "-B", build, *flags)
        run("cmake", "--build", build, "-j", "2")
        self.assertEqual(len(programs), 4)
        answers = [run(build / f"program{number}", self.dir / "agent").stdout for number in range(len(programs))]
        self.assertIn("lost in all: 0", answers[0])
        self.assertRegex(answers[1], r"^[1-9]\d* bytes written\n$")
        self.assertRegex(answers[2], r"process \d+ is closed\n[1-9]\d* bytes in [1-9]\d* writes\n$")
        self.assertIn("] agent_tx_bytes: 1\n", answers[3])
        self.assertIn("2 us  write", run(BUILD / "slowest", self.dir / "agent").stdout)


if __name__ == "__main__":
    unittest.main(argv=sys.argv[:1], verbosity=2)

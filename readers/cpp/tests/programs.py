"""The C++ programs beside real producers, and the programs of docs/readers.md built with the installed package.

    python3 readers/cpp/tests/programs.py BUILD TARGET

BUILD is a build folder of readers/cpp. TARGET has the command `telering`, and in `examples` the library's example `paced`.
"""

import contextlib
import json
import os
import re
import signal
import struct
import subprocess
import sys
import tempfile
import time
import unittest
from collections import namedtuple
from pathlib import Path

ROOT = Path(__file__).resolve().parents[3]
BUILD, TARGET = (Path(argument).resolve() for argument in sys.argv[1:3])
PACED = TARGET / "examples" / "paced"


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


Numbers = namedtuple("Numbers", "instance committed")


def numbers(file, capacity):
    """What an image says, read without any reader: FORMAT.md, sections 3, 6 and 7. Zeros if its capacity is another one."""
    extension = (40 + 56 * capacity + 63) // 64 * 64
    header, data = os.pread(file.fileno(), 40, 0), os.pread(file.fileno(), 128, extension)
    if len(data) < 128 or struct.unpack_from("<Q", header, 24) != (capacity,):
        return Numbers(0, 0)
    return Numbers(*struct.unpack_from("<48xQ16xQ", data))


def wait_for_instance(path, capacity, known):
    """Until the name leads to a run that is not known yet and has recorded something."""
    for _ in range(1000):
        with contextlib.suppress(FileNotFoundError), path.open("rb") as file:
            found = numbers(file, capacity)
            if found.instance and found.instance not in known and found.committed:
                return found.instance
        time.sleep(0.01)
    raise AssertionError(f"no new run of {path} came")


def end(process, how=signal.SIGKILL):
    process.send_signal(how)
    process.wait(timeout=10)


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

    def test_an_output_that_takes_nothing_is_said_and_a_closed_pipe_is_the_end(self):
        produce(self.dir).communicate(timeout=60)
        program, path = BUILD / "telemetry_reader", self.dir / "agent"
        for out, status, said in ((">/dev/full", 1, "No space left"), (">&-", 1, "cannot write"), ("| head -n 1", 0, "")):
            command = f'"{program}" --once "{path}" {out}'
            ended = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, timeout=60)
            self.assertEqual(ended.returncode, status, ended)
            self.assertIn(said, ended.stderr)

    def test_times_since_boot_are_no_dates(self):
        printed = run(BUILD / "telemetry_reader", "--once", ROOT / "conformance/files/device_small.bin").stdout
        self.assertIn("Timestamp: +0.183105 s\n", printed)
        self.assertNotIn("1970", printed)

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

    def test_both_programs_of_the_guide_read_a_live_demo(self):
        command = [TARGET / "telering", "demo", "--dir", self.dir, "--seconds", "6", "--agents", "1"]
        demo = subprocess.Popen(command, env=environment(4096), stdout=subprocess.DEVNULL)
        self.addCleanup(end, demo)
        path, outputs, readers = wait_for(self.dir / "demo-0"), {}, []
        for program in ("guide_loop", "telemetry_reader"):
            outputs[program] = self.dir / f"printed-by-{program}"
            with outputs[program].open("w") as out:
                readers.append(subprocess.Popen([BUILD / program, path], stdout=out, stderr=subprocess.DEVNULL))
            self.addCleanup(end, readers[-1])
        time.sleep(3)
        self.assertIsNone(demo.poll(), "the demo was not live any more")
        for reader in readers:
            self.assertIsNone(reader.poll(), "it ended before it was told to")
            end(reader, signal.SIGTERM)
        # What was printed last may be half a line.
        lines = outputs["guide_loop"].read_text().splitlines()[:-1]
        blocks = outputs["telemetry_reader"].read_text().split("=== NIXL Telemetry Event ===\n")[1:-1]
        self.assertRegex(lines[0], r"^Buffer capacity: \d+ events$")
        looped = [re.fullmatch(r"\[\d{16}\] \d+ (\w+): (\d+)", line) for line in lines[1:]]
        printed = [re.fullmatch(r"Timestamp: [\d: .-]{26}\nCategory: \w+\nEvent: (\w+)\nValue: (\d+)\n=+\n", block) for block in blocks]
        self.assertTrue(all(looped) and all(printed), (lines, blocks))
        # Both began at the oldest event, so the shorter is where the longer began.
        looped, printed = ([match.groups() for match in matches] for matches in (looped, printed))
        common = min(len(looped), len(printed))
        self.assertGreater(common, 100)
        self.assertEqual(looped[:common], printed[:common])
        self.assertLessEqual({"agent_tx_bytes", "agent_rx_bytes"} & {name for name, _ in looped}, {name for name, _ in printed})

    def test_killed_again_and_again_under_one_name_a_follower_goes_on(self):
        path, runs, committed = self.dir / "agent", 16, {}
        reader = None
        for turn in range(runs):
            # A ring of another size each time; killed at another moment each time.
            capacity = (64, 4096, 128)[turn % 3]
            writer = produce(self.dir, seconds=60, rate=20000, capacity=capacity)
            self.addCleanup(end, writer)
            instance = wait_for_instance(path, capacity, known=committed)
            if reader is None:
                reader = subprocess.Popen([BUILD / "runs", path], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
                self.addCleanup(end, reader)
            with path.open("rb") as file:
                time.sleep(0.1 + 0.013 * turn)
                end(writer)
                committed[instance] = numbers(file, capacity).committed
        # The last one ends in good order, and with it the reader.
        producer = produce(self.dir, seconds=0.3, rate=1000, capacity=8192)
        recorded = json.loads(producer.communicate()[0])
        with path.open("rb") as file:
            last = numbers(file, 8192)
        committed[last.instance] = last.committed
        printed, said = reader.communicate(timeout=60)
        self.assertEqual(reader.returncode, 0, said)
        seen = [json.loads(line) for line in printed.splitlines()]
        self.assertEqual([run["instance"] for run in seen], list(committed))
        for run in seen:
            with self.subTest(run=run, committed=committed[run["instance"]]):
                self.assertEqual((run["wrong"], run["unverified"], run["interrupted"]), (0, 0, 0))
                self.assertEqual(run["events"] + run["lost"], committed[run["instance"]] - run["start"])
                self.assertGreater(run["events"], 0)
        self.assertEqual((seen[-1]["lost"], seen[-1]["sum"]), (0, recorded["tx_bytes"]))

    def test_the_documents_programs_build_with_the_installed_package_and_run(self):
        produce(self.dir, seconds=0.2, rate=100).communicate()
        snippets = self.dir / "snippets"
        snippets.mkdir()
        text = (ROOT / "docs/readers.md").read_text()
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

"""Firmware with RTIC and with Embassy, as docs/embedded.md shows it."""

import re
import tempfile
import textwrap
import unittest
from functools import cache
from pathlib import Path

import boards
import images

FRAMEWORKS = boards.HERE / "frameworks"
SHOWN = re.compile(r"^<!-- part of: (?P<path>\S+) -->\n+```[^\n]*\n(?P<text>.*?)^```$", re.M | re.S)


@cache
def build():
    folder = boards.target() / "frameworks"
    boards.cargo("build", "--quiet", "--bins", "--manifest-path", str(FRAMEWORKS / "Cargo.toml"), "--target-dir", str(folder), board=boards.M3)
    return folder / boards.M3.target / "release"


class Frameworks(unittest.TestCase):
    def events(self, program, dump):
        with tempfile.TemporaryDirectory() as folder:
            status, said = boards.run(boards.M3, build() / program, folder, "-icount", "shift=3")
            self.assertEqual(status, 0, said)
            answer = images.answers([Path(folder) / dump])[0]
            self.assertEqual((answer["lost"], answer["unverified"], answer["interrupted"]), (0, 0, 0))
            return answer

    def test_tasks_of_rtic_with_two_priorities_share_the_recorder(self):
        answer = self.events("rtic_tasks", "rtic.bin")
        played = [
            event for number in range(25)
            for event in (("main_step", number), ("main_step", number), ("agent_tx_bytes", 512), ("interrupt", number))
        ]  # fmt: skip
        self.assertEqual(answer["info"]["committed"], len(played))
        self.assertEqual([(event[4], event[5]) for event in answer["events"]], played[-64:])
        # Its counter has 8 bits: 21 microseconds a turn.
        times = [event[1] for event in answer["events"]]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[-1] - times[0], 5 * 21, "some turns")
        self.assertLess(max(after - before for before, after in zip(times, times[1:])), 21)

    def test_tasks_of_embassy_and_an_interrupt_share_the_recorder_and_its_time_is_the_clock(self):
        answer = self.events("embassy_tasks", "embassy.bin")
        played = []
        for number in range(10):
            at = (10 + 20 * number) * 1000
            played += [(at, "main_step", number), (at, "interrupt", 1), (at + 10_000, "agent_tx_bytes", 1500 + number)]
        self.assertEqual([(event[1], event[4], event[5]) for event in answer["events"]], played)


class Document(unittest.TestCase):
    def test_what_the_document_shows_of_a_program_stands_in_that_program(self):
        shown = list(SHOWN.finditer((boards.ROOT / "docs" / "embedded.md").read_text()))
        self.assertGreaterEqual(len(shown), 2)
        for block in shown:
            text = "".join((boards.ROOT / block["path"]).read_text().split())
            for part in textwrap.dedent(block["text"]).split("// ...\n"):
                self.assertIn("".join(part.split()), text, block["path"])


if __name__ == "__main__":
    unittest.main()

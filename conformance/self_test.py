#!/usr/bin/env python3
"""Does the comparison itself notice readers that are wrong, crash, hang or say nothing?"""

import json
import sys
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
sys.dont_write_bytecode = True

from comparing import readers  # noqa: E402
from comparing.compare import differences, has_answered, parse  # noqa: E402
from comparing.mutations import Mutant  # noqa: E402

FILES = sorted((HERE / "files").glob("*.bin"))[:5]
# A reader that gives what is expected, except for the third file.
ECHO = """
import json, os, sys, time
from pathlib import Path
for number, line in enumerate(sys.stdin):
    answer = json.loads(Path(line.strip()).with_suffix(".json").read_text())
    if number == 2:
        {fault}
    print(json.dumps(answer), flush=True)
"""


def reader(fault="pass"):
    return readers.Reader("echo", [sys.executable, "-c", ECHO.format(fault=fault)])


def expected(path):
    return json.loads(path.with_suffix(".json").read_text())


def found(fault):
    """How many files a reader with a fault is told to have wrong."""
    answers = [parse(line) for line in reader(fault).answers(FILES)]
    assert len(answers) == len(FILES)
    return [bool(differences(expected(path), answer)) for path, answer in zip(FILES, answers)]


class Comparison(unittest.TestCase):
    def test_a_right_reader_is_right(self):
        self.assertEqual(found("pass"), [False] * 5)

    def test_a_wrong_answer_is_seen_and_no_other(self):
        self.assertEqual(found("answer = {'error': 'wrong'}"), [False, False, True, False, False])

    def test_a_crash_counts_for_its_file_and_the_next_are_read_all_the_same(self):
        answers = reader("os.abort() if not os.path.exists('/nonexistent') and len(sys.argv) else None").answers(FILES[:3])
        self.assertTrue(readers.is_answer(answers[1]))
        self.assertIn("-6", answers[2])
        self.assertFalse(has_answered(parse(answers[2])))

    def test_a_reader_that_ends_early_is_started_again_behind_the_file(self):
        self.assertEqual(found("sys.exit(0)"), [False, False, True, False, False])

    def test_a_status_other_than_0_at_the_end_is_seen(self):
        answers = readers.Reader("bad", [sys.executable, "-c", "print('{}')\nraise SystemExit(3)"]).answers(FILES[:1])
        self.assertIn("status 3", answers[0])

    def test_a_reader_that_hangs_is_ended(self):
        patience, readers.PATIENCE = readers.PATIENCE, 1
        try:
            self.assertIn("hung", reader("time.sleep(60)").answers(FILES[:3])[2])
        finally:
            readers.PATIENCE = patience

    def test_words_that_are_no_json_are_no_answer(self):
        self.assertFalse(has_answered(parse("{not json")))
        self.assertFalse(has_answered(parse("thread main panicked")))

    def test_every_part_of_an_answer_counts(self):
        wanted = next(expected(path) for path in sorted((HERE / "files").glob("closed.bin")))
        self.assertEqual(differences(wanted, json.loads(json.dumps(wanted))), [])
        for key in wanted.keys() - {"about", "group"}:
            other = json.loads(json.dumps(wanted))
            del other[key]
            self.assertTrue(differences(wanted, other), key)
        for key, value in wanted["info"].items():
            other = json.loads(json.dumps(wanted))
            other["info"][key] = None if value is not None else 1
            self.assertTrue(differences(wanted, other), key)

    def test_true_is_not_one_and_a_double_is_no_integer(self):
        for wanted, got in ((True, 1), (1, 1.0), (0, None), (2**53 + 1, 2**53)):
            self.assertTrue(differences({"lost": wanted}, {"lost": got}))

    def test_the_same_seed_gives_the_same_file_and_another_one_others(self):
        files = {path.stem: path.read_bytes() for path in FILES}
        once = [bytes(Mutant("1", number, files).data) for number in range(50)]
        self.assertEqual(once, [bytes(Mutant("1", number, files).data) for number in range(50)])
        self.assertNotEqual(once, [bytes(Mutant("2", number, files).data) for number in range(50)])


if __name__ == "__main__":
    unittest.main()

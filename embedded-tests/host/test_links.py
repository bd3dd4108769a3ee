"""What a program that only records links, and what that weighs."""

import re
import tomllib
import unittest

import boards
import costs


def panics(program):
    return [name for name in boards.symbols(program) if re.search(r"panic|unwind|unwrap_failed|expect_failed", name) and "panics::" not in name]


class Links(unittest.TestCase):
    def test_a_program_that_only_records_links_no_panic_no_heap_and_no_floating_point(self):
        for board in boards.BOARDS:
            for variant in costs.VARIANTS:
                with self.subTest(f"{board.name}, {variant}"):
                    program = boards.build(board, variant) / "record_only"
                    self.assertEqual(panics(program), [])
                    names = boards.symbols(program)
                    self.assertGreater(len(names), 20, "a map without names shows nothing")
                    self.assertEqual([name for name in names if re.search(r"alloc|core::fmt", name)], [])
                    self.assertEqual([name for name in names if re.search(r"__aeabi_[fd]|__(add|sub|mul|div)[sd]f|f32|f64", name)], [])
                    # Locks, at which an interrupt would wait for ever.
                    self.assertEqual([name for name in names if re.search(r"LOCK|seq_lock", name)], [])

    def test_a_panic_would_be_seen(self):
        # The bounds of this array are checked when it runs.
        self.assertNotEqual(panics(boards.build(boards.M3) / "panics"), [])

    def test_an_image_in_static_memory_is_zero_at_boot_and_takes_no_flash(self):
        for board in boards.BOARDS:
            _, size, kind = boards.symbols(boards.build(board) / "record_only")["record_only::TELEMETRY"]
            self.assertEqual((size, kind.lower()), (3904, "b"))
            image = boards.symbols(boards.build(board) / "endless")["endless::BLACK_BOX"]
            start, end = (int(boards.tool("nm", boards.build(board) / "endless").split(f" {name}\n")[0].split("\n")[-1].split()[0], 16) for name in ("__sbss", "__ebss"))
            self.assertFalse(start <= image[0] < end, "the start-up code would clear the black box")


class Costs(unittest.TestCase):
    def test_recording_costs_no_more_than_its_limits_and_the_documentation_says_what_it_costs(self):
        figures = costs.measure()
        print(costs.tables(figures))
        self.assertEqual(costs.faults(figures, tomllib.loads(costs.LIMITS.read_text())), [])


if __name__ == "__main__":
    unittest.main()

"""Firmware in C, with the static library and its header."""

import tempfile
import unittest
from pathlib import Path

import boards
import images
from test_links import panics


class C(unittest.TestCase):
    def test_firmware_in_c_goes_on_after_a_reset_and_leaves_the_bytes_that_the_format_gives(self):
        for board in boards.BOARDS:
            with self.subTest(board.name), tempfile.TemporaryDirectory() as folder:
                status, said = boards.run(board, boards.build_c(board), folder)
                self.assertEqual(status, 0, said)
                path = Path(folder) / "c.bin"
                self.assertEqual(path.read_bytes(), (images.FILES / "device_in_c.bin").read_bytes())
                answer = images.answers([path])[0]
                self.assertEqual(images.differences(images.expected("device_in_c"), answer), [])
                # What the program did, in plain numbers.
                self.assertEqual([event[5] for event in answer["events"]], [*range(7, 20), 1 << 32, (1 << 32) + 1, (1 << 32) + 2])

    def test_the_library_for_c_links_no_panic(self):
        for board in boards.BOARDS:
            self.assertEqual(panics(boards.build_c(board)), [])


if __name__ == "__main__":
    unittest.main()

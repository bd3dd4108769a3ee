"""Firmware that records, crashes, goes on and dumps: the bytes, and what each reader makes of them."""

import tempfile
import unittest
from pathlib import Path

import boards
import images
from debugger import Debugger


class BlackBox(unittest.TestCase):
    DUMPS = {"before.bin": "device_before_crash", "after.bin": "device_after_crash", "scratch.bin": "device_small"}

    def test_each_board_leaves_the_bytes_that_the_format_gives(self):
        for board in (*boards.BOARDS, boards.RISCV):
            with self.subTest(board.name), tempfile.TemporaryDirectory() as folder:
                status, said = boards.run(board, boards.build(board) / "black_box", folder)
                self.assertEqual(status, 0, said)
                for dump, name in self.DUMPS.items():
                    made = (images.FILES / f"{name}.bin").read_bytes()
                    self.assertEqual((Path(folder) / dump).read_bytes(), made, f"{dump} is not {name}.bin")

    def test_each_reader_gives_the_exact_events_and_losses_of_each_board(self):
        for board in (*boards.BOARDS, boards.RISCV):
            with self.subTest(board.name), tempfile.TemporaryDirectory() as folder:
                boards.run(board, boards.build(board) / "black_box", folder)
                given = images.answers(Path(folder) / dump for dump in self.DUMPS)
                for name, answer in zip(self.DUMPS.values(), given):
                    self.assertEqual(images.differences(images.expected(name), answer), [], name)
                before, after, _ = given
                # What the firmware did, said once more in plain numbers.
                self.assertEqual((before["start"], len(before["events"]), before["lost"]), (36, 64, 0))
                self.assertEqual([event[5] for event in before["events"]][:4], [36, 37, 38, (1 << 40) + 39])
                self.assertEqual((after["interrupted"], after["info"]["boots"], after["lost"]), (3, 1, 0))
                self.assertEqual([event[5] for event in after["events"]][-5:], [1500, 1501, 1502, 1503, 1504])
                self.assertEqual([event[0] for event in after["events"]][-6:], [99, 103, 104, 105, 106, 107])

    def test_a_core_that_stands_still_in_its_crash_is_read_as_well(self):
        for board in boards.BOARDS:
            program = boards.build(board) / "black_box"
            symbols = boards.symbols(program)
            image, size = images.place(symbols, "black_box::BLACK_BOX")
            with self.subTest(board.name), tempfile.TemporaryDirectory() as folder, Debugger(board, program) as debugger:
                debugger.connect()
                # The reset: a write to the system control block.
                debugger.go_on_to_write(0xE000_ED0C, 4, pass_it=False)
                path = Path(folder) / "crashed.bin"
                path.write_bytes(debugger.memory(image, size))
                self.assertEqual(path.read_bytes(), (images.FILES / "device_crashed.bin").read_bytes())
                self.assertEqual(images.differences(images.expected("device_crashed"), images.answers([path])[0]), [])

    def test_a_reader_and_a_timer_never_wait_for_each_other(self):
        for board in (*boards.BOARDS, boards.RISCV):
            with self.subTest(board.name), tempfile.TemporaryDirectory() as folder:
                program = boards.build(board) / "read_meanwhile"
                status, said = boards.run(board, program, folder, "-icount", "shift=3")
                self.assertEqual(status, 0, said)


if __name__ == "__main__":
    unittest.main()

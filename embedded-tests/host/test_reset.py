"""Stopped and reset between any two words of a record; and a core that runs while its memory is copied."""

import subprocess
import tempfile
import unittest
from pathlib import Path

import boards
import images
from debugger import Debugger

CAPACITY = 16
POSITION = 40  # two laps and a half


def run_until(debugger, committed, position):
    """Runs until so many records are committed."""
    for _ in range(1000):
        if debugger.word(committed) >= position:
            return
        debugger.go_on_to_write(committed, 8)
    raise AssertionError(f"{position} records are not there after 1000 writes of the position")


def events(first, end):
    return [[position, 7, "main_step", position] for position in range(first, end)]


def seen(answer):
    return [[event[0], event[2], event[4], event[5]] for event in answer["events"]]


class Stopped(unittest.TestCase):
    def check(self, board, words):
        program = boards.build(board) / "endless"
        image, size = images.place(boards.symbols(program), "endless::BLACK_BOX")
        intent, committed = images.control(image, CAPACITY)
        record = image + 40 + 56 * (POSITION % CAPACITY)
        cut_short = 0
        for name, address in {**{f"word {word}": record + 8 * word for word in range(7)}, "intent": intent, "committed": committed}.items():
            if name not in words:
                continue
            with self.subTest(f"{board.name}, stopped at {name}"), tempfile.TemporaryDirectory() as folder, Debugger(board, program) as debugger:
                debugger.connect()
                # The start-up code hasn't run yet: the memory holds zeros, so the image is formatted.
                run_until(debugger, committed, POSITION)
                debugger.go_on_to_write(address, 8)
                stopped, resumed = Path(folder) / "stopped.bin", Path(folder) / "resumed.bin"
                stopped.write_bytes(debugger.memory(image, size))
                announced, finished = debugger.word(intent), debugger.word(committed)
                debugger.reset()
                # Up to the first record after the reset: what was interrupted still stands in the ring.
                run_until(debugger, committed, announced + 1)
                resumed.write_bytes(debugger.memory(image, size))
                before, after = images.answers([stopped, resumed])
                self.assertEqual((before["lost"], before["unverified"], before["interrupted"]), (0, 0, 0))
                self.assertEqual(seen(before), events(announced - CAPACITY, finished))
                open_then = announced - finished
                cut_short += open_then
                self.assertIn(open_then, (0, 1))
                self.assertEqual((after["lost"], after["unverified"], after["interrupted"]), (0, 0, open_then))
                self.assertEqual(after["info"]["boots"], 1)
                # Everything but the record that the reset interrupted.
                left = events(after["start"], finished) + events(announced, after["info"]["committed"])
                self.assertEqual(seen(after), left)
        return cut_short

    def test_a_reset_costs_the_record_in_hand_and_no_other(self):
        self.assertGreaterEqual(self.check(boards.M3, [f"word {word}" for word in range(7)] + ["intent", "committed"]), 7)

    def test_a_core_without_compare_and_swap_as_well(self):
        self.assertGreaterEqual(self.check(boards.M0, ["word 0", "word 3", "word 6", "intent", "committed"]), 3)

    def test_a_risc_v_core_as_well(self):
        self.assertGreaterEqual(self.check(boards.RISCV, ["word 0", "word 3", "word 6", "intent", "committed"]), 3)


class Twice(unittest.TestCase):
    """Reset, and reset again before the program is through with what the first reset left behind."""

    def test_a_second_reset_in_the_middle_of_attaching_costs_no_more_than_the_first(self):
        program = boards.build(boards.M3) / "endless"
        image, size = images.place(boards.symbols(program), "endless::BLACK_BOX")
        intent, committed = images.control(image, CAPACITY)
        record = image + 40 + 56 * (POSITION % CAPACITY)
        start = intent - 64
        # In the order in which attaching writes them; the clock's part lies behind the table of parts.
        places = {f"word {word}": record + 8 * word for word in range(7)}
        places |= {"committed": committed, "write_pos": image, "boots": start + 112, "state": start + 104, "rate": image + size - 64 + 8}
        for name, address in places.items():
            with self.subTest(name), tempfile.TemporaryDirectory() as folder, Debugger(boards.M3, program) as debugger:
                debugger.connect()
                run_until(debugger, committed, POSITION)
                debugger.go_on_to_write(record + 24, 8)
                self.assertEqual((debugger.word(intent), debugger.word(committed)), (POSITION + 1, POSITION))
                debugger.reset()
                # The first write there after the reset is that of attaching.
                debugger.go_on_to_write(address, 8)
                self.assertEqual(debugger.word(intent), POSITION + 1, "nothing is recorded yet")
                debugger.reset()
                run_until(debugger, committed, POSITION + 4)
                path = Path(folder) / "twice.bin"
                path.write_bytes(debugger.memory(image, size))
                answer = images.answers([path])[0]
                self.assertEqual((answer["lost"], answer["unverified"], answer["interrupted"]), (0, 0, 1))
                left = events(answer["start"], POSITION) + events(POSITION + 1, answer["info"]["committed"])
                self.assertEqual(seen(answer), left)
                # The first attaching counts once it has written that it happened, in two stores of 32 bits.
                counted = {"boots": (1, 2), "state": (2,), "rate": (2,)}.get(name, (1,))
                self.assertIn(answer["info"]["boots"], counted)

    def test_a_reset_in_the_middle_of_formatting_starts_anew(self):
        program = boards.build(boards.M3) / "endless"
        image, size = images.place(boards.symbols(program), "endless::BLACK_BOX")
        intent, committed = images.control(image, CAPACITY)
        start = intent - 64
        places = {"a record": image + 96, "capacity": image + 24, "version": start + 8, "instance": start + 48, "a part": image + size - 64}
        for name, address in places.items():
            for noise in ("00", "ff", "a5"):
                with self.subTest(f"{name}, over {noise}"), tempfile.TemporaryDirectory() as folder, Debugger(boards.M3, program) as debugger:
                    debugger.connect()
                    for at in range(image, image + size, 64):
                        debugger.put(at, bytes.fromhex(noise) * 64)
                    debugger.go_on_to_write(address, 8)
                    debugger.reset()
                    # The noise may look as if many records were there.
                    while not 3 <= debugger.word(committed) < 1000:
                        debugger.go_on_to_write(committed, 8)
                    path = Path(folder) / "anew.bin"
                    path.write_bytes(debugger.memory(image, size))
                    answer = images.answers([path])[0]
                    self.assertEqual((answer["lost"], answer["unverified"], answer["interrupted"], answer["info"]["boots"]), (0, 0, 0, 0))
                    self.assertEqual(seen(answer), events(0, answer["info"]["committed"]))


class Positions(unittest.TestCase):
    def test_positions_go_on_past_2_to_the_32_on_cores_of_32_bits(self):
        edge = 1 << 32
        for board in (*boards.BOARDS, boards.RISCV):
            program = boards.build(board) / "endless"
            image, size = images.place(boards.symbols(program), "endless::BLACK_BOX")
            intent, committed = images.control(image, CAPACITY)
            with self.subTest(board.name), tempfile.TemporaryDirectory() as folder, Debugger(board, program) as debugger:
                debugger.connect()
                run_until(debugger, committed, POSITION)
                # As if so many had been written; the records that are there fit other positions.
                debugger.put_word(intent, edge - 3)
                debugger.put_word(committed, edge - 3)
                debugger.reset()
                run_until(debugger, committed, edge + 4)
                path = Path(folder) / "past.bin"
                path.write_bytes(debugger.memory(image, size))
                answer = images.answers([path])[0]
                end = answer["info"]["committed"]
                self.assertGreaterEqual(end, edge + 4)
                self.assertEqual(seen(answer), events(edge - 3, end))


class Running(unittest.TestCase):
    def dump(self, debugger, image, size, committed, piece, each):
        """A copy of a core that runs: piece by piece, so many records between two pieces."""
        copy = b""
        while len(copy) < size:
            copy += debugger.memory(image + len(copy), min(piece, size - len(copy)))
            run_until(debugger, committed, debugger.word(committed) + each)
        return copy

    def test_a_dump_of_a_running_core_holds_no_event_that_never_was(self):
        for board in boards.BOARDS:
            program = boards.build(board) / "record_only"
            image, size = images.place(boards.symbols(program), "record_only::TELEMETRY")
            _, committed = images.control(image, 64)
            with tempfile.TemporaryDirectory() as folder, Debugger(board, program) as debugger:
                debugger.connect()
                run_until(debugger, committed, 200)
                paths = []
                for piece, each in ((64, 1), (256, 3), (100, 2), (512, 20), (1024, 70)):
                    path = Path(folder) / f"{piece}_{each}.bin"
                    path.write_bytes(self.dump(debugger, image, size, committed, piece, each))
                    paths.append(path)
                for path, answer in zip(paths, images.answers(paths)):
                    with self.subTest(f"{board.name}, {path.stem}"):
                        # Main loop and interrupt take turns, and each value is the event's number.
                        for position, _, category, number, name, value in answer["events"]:
                            wanted = [7, None, "interrupt" if position % 2 else "main_step", position]
                            self.assertEqual([category, number, name, value], wanted)
                        positions = [event[0] for event in answer["events"]]
                        self.assertEqual(positions, sorted(set(positions)))
                        count = len(positions) + answer["lost"] + answer["unverified"] + answer["interrupted"]
                        self.assertEqual(count, answer["info"]["committed"] - answer["start"])
                        self.assertGreaterEqual(len(positions), 32, "half of the ring at the least")

    def gdb(self, program, stop, commands, folder, debugger):
        """What gdb leaves in the folder after it ran the commands at a place where the program stops."""
        debugger.wait()
        session = [f"target remote {debugger.path}", *stop, "continue", *commands, "kill"]
        arguments = [argument for line in session for argument in ("-ex", line)]
        done = subprocess.run(
            ["gdb-multiarch", "-nx", "-batch", *arguments, str(program)], cwd=folder, text=True, timeout=boards.PATIENCE,
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
        )  # fmt: skip
        paths = [Path(folder) / command.split()[3] for command in commands]
        for path in paths:
            self.assertTrue(path.exists(), done.stdout)
        return images.answers(paths)

    def test_gdb_takes_a_dump_with_the_commands_of_the_documentation(self):
        shown = (
            "dump binary value telemetry.bin record_only::TELEMETRY",
            "dump binary memory again.bin &record_only::TELEMETRY &record_only::TELEMETRY+1",
            "dump binary memory telemetry.bin 0x20000060 0x20000fa0",
        )
        text = (boards.ROOT / "docs" / "embedded.md").read_text()
        for command in shown:
            self.assertIn(f"`{command}`", text, "docs/embedded.md gives other commands")
        program = boards.build(boards.M3) / "record_only"
        image, size = images.place(boards.symbols(program), "record_only::TELEMETRY")
        # With the addresses of this build.
        commands = (*shown[:2], f"dump binary memory by_address.bin {image:#x} {image + size:#x}")
        with tempfile.TemporaryDirectory() as folder, Debugger(boards.M3, program) as debugger:
            # The clock is looked at once for each record.
            stop = ("break telering_embedded_tests::ticks", "ignore 1 100")
            for answer in self.gdb(program, stop, commands, folder, debugger):
                self.assertEqual([event[5] for event in answer["events"]], list(range(36, 100)))

    def test_gdb_takes_a_dump_of_firmware_in_c(self):
        command = "dump binary memory telemetry.bin black_box (char *)black_box+sizeof black_box"
        self.assertIn(f"`{command}`", (boards.ROOT / "docs" / "embedded.md").read_text())
        program = boards.build_c(boards.M3)
        with tempfile.TemporaryDirectory() as folder, Debugger(boards.M3, program) as debugger:
            answer = self.gdb(program, ("break dump",), [command], folder, debugger)[0]
            self.assertEqual(images.differences(images.expected("device_in_c"), answer), [])


if __name__ == "__main__":
    unittest.main()

"""A debugger for the emulator, in the remote protocol that gdb and debug probes speak."""

import os
import socket
import subprocess
import tempfile
import time

from boards import PATIENCE, emulator

PROGRAM_COUNTER, LINK = 15, 14
WRITE_WATCHPOINT = "Z2", "z2"
BREAKPOINT = "Z1", "z1"


class Debugger:
    """A program in the emulator, stopped before its first instruction."""

    def __init__(self, board, program, *options):
        self._folder = tempfile.TemporaryDirectory()
        self.path = os.path.join(self._folder.name, "gdb")
        channel = ("-chardev", f"socket,path={self.path},server=on,wait=off,id=gdb", "-gdb", "chardev:gdb", "-S")
        self._process = subprocess.Popen(
            emulator(board, program, *channel, *options), stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        self._socket = None

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self._socket:
            self._socket.close()
        self._process.kill()
        self._process.wait()
        self._folder.cleanup()

    def wait(self):
        """Until the emulator listens: for a debugger that is not this one."""
        deadline = time.monotonic() + PATIENCE
        while not os.path.exists(self.path) and time.monotonic() < deadline:
            time.sleep(0.01)

    def connect(self):
        deadline = time.monotonic() + PATIENCE
        while True:
            self._socket = socket.socket(socket.AF_UNIX)
            try:
                self._socket.connect(self.path)
                break
            except OSError:
                self._socket.close()
                if time.monotonic() > deadline or self._process.poll() is not None:
                    raise
                time.sleep(0.01)
        self._socket.settimeout(PATIENCE)
        self._input = self._socket.makefile("rb")
        self.ask("qSupported")
        return self

    def ask(self, text):
        """One packet, and the answer's text."""
        data = text.encode()
        self._socket.sendall(b"$" + data + b"#%02x" % (sum(data) % 256))
        return self._answer()

    def _answer(self):
        while (byte := self._input.read(1)) != b"$":
            if byte == b"":
                raise EOFError("the emulator has ended")
        text = bytearray()
        while (byte := self._input.read(1)) != b"#":
            text += byte
        self._input.read(2)
        self._socket.sendall(b"+")
        return text.decode()

    def memory(self, address, length):
        """A copy of the memory, in pieces that fit into a packet."""
        copy = bytearray()
        while len(copy) < length:
            part = min(512, length - len(copy))
            answer = self.ask(f"m{address + len(copy):x},{part:x}")
            copy += bytes.fromhex(answer)
        return bytes(copy)

    def word(self, address):
        return int.from_bytes(self.memory(address, 8), "little")

    def put_word(self, address, value):
        self.put(address, value.to_bytes(8, "little"))

    def put(self, address, data):
        self._right(f"M{address:x},{len(data):x}:{data.hex()}")

    def register(self, number):
        return int.from_bytes(bytes.fromhex(self.ask("g")[8 * number : 8 * number + 8]), "little")

    def go_on_to(self, kind, address, length):
        """Runs up to a breakpoint, or up to the instruction before which a watchpoint stops."""
        put, take_away = kind
        self._right(f"{put},{address:x},{length:x}")
        answer = self.ask("c")
        assert answer.startswith("T05"), answer
        self._right(f"{take_away},{address:x},{length:x}")

    def go_on_to_write(self, address, length, pass_it=True):
        """Runs until something is written there, up to before that instruction or behind it."""
        self.go_on_to(WRITE_WATCHPOINT, address, length)
        if pass_it:
            self.step()

    def _right(self, packet):
        answer = self.ask(packet)
        assert answer == "OK", f"{packet}: {answer}"

    def step(self):
        """One instruction."""
        answer = self.ask("s")
        assert answer.startswith("T05"), answer

    def reset(self):
        """What the reset button does."""
        answer = self.ask("qRcmd," + b"system_reset".hex())
        # The monitor's words come first, if it says any.
        while answer.startswith("O") and answer != "OK":
            answer = self._answer()
        assert answer == "OK", answer

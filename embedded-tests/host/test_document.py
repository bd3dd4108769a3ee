"""The way of docs/embedded.md from an empty folder to events on the desk, as it is printed there."""

import os
import socket
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

import boards

def free_port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return free.getsockname()[1]


def command():
    """The folder of `telering`."""
    subprocess.run(["cargo", "build", "--quiet", "--locked", "-p", "telering-cli"], cwd=boards.ROOT, check=True)
    return boards.target().parent / "debug"


class Document(unittest.TestCase):
    def test_the_way_from_an_empty_folder_to_events_on_the_desk_works_as_printed(self):
        with tempfile.TemporaryDirectory() as folder:
            snippets = [sys.executable, str(boards.ROOT / ".ci" / "snippets.py")]
            subprocess.run([*snippets, str(boards.ROOT / "docs" / "embedded.md"), folder], check=True)
            script = Path(folder) / "commands.sh"
            # Debian's compiler with its sources stands for the target that rustup installs.
            script.write_text("rustup() { :; }\n" + script.read_text().replace("3333", str(free_port())))
            environment = {name: value for name, value in os.environ.items() if name != "CARGO_TARGET_DIR"} | {
                "RUSTC": "/usr/bin/rustc", "RUSTC_BOOTSTRAP": "1", "CARGO_UNSTABLE_BUILD_STD": "core",
                "CARGO_TARGET_THUMBV7M_NONE_EABI_LINKER": boards.linker(),
                "PATH": f"{command()}:{os.environ['PATH']}",
            }  # fmt: skip
            done = subprocess.run(
                ["bash", str(script)], cwd=folder, env=environment, text=True, timeout=600, stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False,
            )  # fmt: skip
            self.assertEqual(done.returncode, 0, done.stdout)
            for bytes_sent in (512, 1024, 1500):
                self.assertRegex(done.stdout, rf"agent_tx_bytes\D+{bytes_sent}", done.stdout)
            self.assertIn("timer_tick", done.stdout)
            self.assertRegex(done.stdout, r"\+0\.\d{6} s")


if __name__ == "__main__":
    unittest.main()

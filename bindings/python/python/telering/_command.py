"""The command `telering`: the one of Rust, with this process as its own."""

import signal
import sys

from ._telering import run_command


def main() -> None:
    """Runs the command with the process' arguments and ends with its status."""
    # Ctrl-C ends the command as it ends the one that cargo builds: without a traceback.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    sys.exit(run_command(sys.argv))

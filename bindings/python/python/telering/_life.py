"""The beginning and the end of a process, seen from Python."""

import atexit
import os
import sys

from . import _telering


def install() -> None:
    """Called once, when the package is imported."""
    _telering.enter_interpreter()
    atexit.register(_telering.at_exit)
    os.register_at_fork(after_in_child=_telering.after_fork)


def first_agent() -> None:
    """Called when a process makes its first agent.

    A child that multiprocessing forked ends without the functions of `atexit`, but not without its finalizers.
    """
    util = sys.modules.get("multiprocessing.util")
    process = sys.modules.get("multiprocessing.process")
    if util is not None and process is not None and process.parent_process() is not None:
        # After all others: they may still record.
        util.Finalize(None, _telering.at_exit, exitpriority=-1000)

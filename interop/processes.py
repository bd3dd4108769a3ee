"""Child processes that always end: each has a time limit, and only those started here are ever signalled."""

import signal
import subprocess
import sys
import threading
import time

GRACE_SECONDS = 5.0
_started = []


class Failed(Exception):
    """A step that did not show what it should; the text says what was seen."""


def note(text):
    print(f"interop: {text}", file=sys.stderr, flush=True)


class Child:
    """A process whose output lines are kept with their time of arrival (time.monotonic())."""

    def __init__(self, arguments, environment=None, folder=None):
        self.arguments = [str(argument) for argument in arguments]
        self.process = subprocess.Popen(
            self.arguments,
            env=environment,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        _started.append(self)
        self.out, self.err = [], []
        self._threads = [
            threading.Thread(target=self._collect, args=(pipe, lines), daemon=True)
            for pipe, lines in ((self.process.stdout, self.out), (self.process.stderr, self.err))
        ]
        for thread in self._threads:
            thread.start()

    @staticmethod
    def _collect(pipe, lines):
        for line in pipe:
            lines.append((time.monotonic(), line.decode("utf-8", "replace").rstrip("\n")))

    @property
    def running(self):
        return self.process.poll() is None

    def lines(self):
        return [text for _, text in self.out]

    def errors(self):
        return "\n".join(text for _, text in self.err[-12:])

    def wait(self, seconds):
        """Waits for the end and all output; returns the exit status (negative: the signal that ended it)."""
        try:
            status = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.stop(signal.SIGKILL)
            raise Failed(f"{self.title()} was still running after {seconds:g} s\n{self.errors()}") from None
        self._join()
        return status

    def succeed(self, seconds):
        status = self.wait(seconds)
        if status != 0:
            raise Failed(f"{self.title()} ended with status {status}\n{self.errors()}")
        return self

    def wait_for_line(self, text, seconds):
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            if any(text in line for line in self.lines()):
                return
            if not self.running:
                break
            time.sleep(0.01)
        raise Failed(f"{self.title()} never printed {text!r}\n{self.errors()}")

    def stop(self, number=signal.SIGINT):
        """Ends the process (by SIGKILL if it takes no hint) and returns its exit status."""
        if self.running:
            self.process.send_signal(number)
            try:
                self.process.wait(GRACE_SECONDS)
            except subprocess.TimeoutExpired:
                self.process.kill()
                self.process.wait(GRACE_SECONDS)
        self._join()
        return self.process.returncode

    def _join(self):
        for thread in self._threads:
            thread.join(GRACE_SECONDS)

    def title(self):
        return " ".join(self.arguments[:2])


def run(arguments, seconds, environment=None, folder=None):
    """Runs to the end within `seconds`, status 0 expected."""
    return Child(arguments, environment, folder).succeed(seconds)


def end_all():
    for child in _started:
        if child.running:
            child.stop(signal.SIGKILL)

"""The reader as it is where the system has less: everything that Windows lacks is taken out of a fresh interpreter's `os` before
the reader is imported. That is a simulation on this machine; docs/readers.md says so."""

import json
import subprocess
import sys
import textwrap

import pytest
from conftest import HERE, ROOT
from producer import NixlRing, Producer

FILES = ROOT / "conformance" / "files"
LESS = """
import os, sys
gone = ("pread preadv pwrite pwritev readv writev O_NONBLOCK O_NOFOLLOW O_CLOEXEC O_DIRECTORY O_SYNC O_NOATIME O_PATH "
        "mkfifo mknod fork getuid geteuid getgid statvfs sched_getaffinity posix_fadvise lockf")
for name in gone.split():
    if hasattr(os, name):
        delattr(os, name)
os.O_BINARY = 0
for name in ("fcntl", "pwd", "grp", "resource", "termios"):
    sys.modules[name] = None
"""


def elsewhere(code, *arguments, given=None, numpy=True):
    """Runs code in an interpreter that lacks all that, and returns what it printed."""
    before = LESS + ("" if numpy else "sys.modules['numpy'] = None\n") + f"sys.path.insert(0, {str(HERE.parent / 'src')!r})\n"
    command = [sys.executable, "-c", before + textwrap.dedent(code), *map(str, arguments)]
    done = subprocess.run(command, input=given, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize("numpy", [True, False])
def test_without_what_windows_lacks_all_conformance_files_are_read_the_same(numpy):
    sys.path.insert(0, str(ROOT / "conformance"))
    from comparing.compare import differences

    paths = sorted(FILES.glob("*.bin"))
    code = "import runpy; runpy.run_module('telering_reader.conformance', run_name='__main__', alter_sys=True)"
    lines = elsewhere(code, given="".join(f"{path}\n" for path in paths), numpy=numpy).splitlines()
    assert len(lines) == len(paths) > 400
    wrong = []
    for path, line in zip(paths, lines):
        wanted, got = json.loads(path.with_suffix(".json").read_text()), json.loads(line)
        # Nobody can be asked for a lock: whether a producer that didn't close its file lives can't be known.
        if wanted.get("info", {}).get("liveness") == "dead":
            wanted["info"]["liveness"] = "unknown"
        got = got if got.get("error") is None else {"error": got["error"]}
        wrong += [(path.name, found) for found in differences(wanted, got)]
    assert not wrong, wrong[:10]


def test_without_what_windows_lacks_everything_else_works_too(path, tmp_path):
    producer = Producer(path, 64)
    producer.push(100)
    printed = elsewhere(
        """
        import os, threading
        from telering_reader import Event, Lost, Reader, Reset, TelemetryError, scan, transfers
        path, folder = sys.argv[1:]
        with Reader(path) as reader:
            assert len(list(reader)) == 64 and reader.lost == 0 and reader.start == 36
            assert reader.info().liveness in ("alive_by_heartbeat", "unknown")
        assert len(Reader(path).to_numpy()) == sum(map(len, Reader(path).blocks())) == 64
        assert len(Reader(path).to_pandas()) == 64
        assert len(list(scan(folder).events())) == 64 and transfers(folder) is not None
        reader = Reader(path)
        for wrong in folder, path + "-absent":
            try:
                Reader(wrong)
            except TelemetryError as error:
                print(error.code)
        # Following into a file that takes the name.
        todo = [lambda: os.replace(sys.argv[1] + "-next", path)]
        open(path + "-next", "wb").write(open(path, "rb").read())
        items = list(reader.follow(interval=0, until=lambda: not todo or todo.pop()()))
        print(sum(isinstance(item, Event) for item in items), sum(isinstance(item, Reset) for item in items))
        os.truncate(path, 100)
        try:
            list(reader.items())
        except TelemetryError as error:
            print(error.code)
        """,
        path,
        tmp_path,
    )
    assert printed.split() == ["not_telemetry", "io", "128", "1", "resized"]


def test_without_what_windows_lacks_the_guides_class_consumes_a_ring_of_nixl(path):
    ring = NixlRing(path, "L1")
    for value in range(5):
        ring.push(value)
    code = """
        from nixl_telemetry_reader import SharedRingBuffer
        buffer = SharedRingBuffer(sys.argv[1], version=1)
        while True:
            event = buffer.pop()
            if not event:
                break
            print(event.event_name.decode("utf-8").rstrip("\\x00"))
        assert buffer.empty() and buffer.size() == 0
        """
    assert len(elsewhere(code, path).split()) == 5
    assert elsewhere(code, path) == "", "they were consumed"

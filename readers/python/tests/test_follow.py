"""Following a name through restarts, truncation, replacement; folders; texts."""

import copy
import errno
import json
import os
import pickle
import shutil
import struct
import subprocess
import sys
import threading
import time

import pytest
from conftest import HERE, ROOT
from producer import NixlRing, Producer

from telering_reader import (
    CannotRead,
    Changed,
    Damaged,
    Event,
    Lost,
    NeedsWrite,
    NothingToConsume,
    NotInLayout,
    NotReady,
    NotTelemetry,
    Reader,
    Reset,
    Resized,
    TelemetryError,
    UnsupportedVersion,
    WrongByteOrder,
    scan,
    text,
    transfers,
)

SOURCE = str(HERE.parent / "src")


def identity(agent, rank=""):
    return (1, 1, struct.pack("<QQ16sQQ48s128s256s64s32x", 1, 2, b"", 0, 0, b"w", b"h", agent.encode(), rank.encode()))


def losses(*numbers):
    return (2, 1, struct.pack("<8Q", *numbers, *[0] * (8 - len(numbers))))


def through(path, *deeds, **options):
    """Follows a path, doing the next thing whenever nothing is new, and returns all items."""
    todo = list(deeds)

    def until():
        if not todo:
            return True
        todo.pop(0)()
        return False

    with Reader(path) as reader:
        return list(reader.follow(interval=0, until=until, **options)), reader.counts


def replaced(path, **options):
    producer = Producer(path + "-new", 8, **options)
    producer.push(2)
    os.replace(path + "-new", path)


@pytest.mark.parametrize("how", ["replaced", "unlinked", "truncated"])
def test_following_reads_the_old_file_to_its_end_and_moves_to_the_new_one(path, anyhow, how):
    old = Producer(path, 8)
    old.push(3)

    def go():
        if how == "replaced":
            old.push(1)
        elif how == "unlinked":
            os.unlink(path)
            old.push(1)
        else:
            os.truncate(path, 100)

    items, counts = through(path, go, lambda: None, lambda: replaced(path, instance=99), lambda: None)
    assert items.count(Reset(99)) == 1
    place = items.index(Reset(99))
    assert [item.seq for item in items[:place]] == list(range(3 if how == "truncated" else 4))
    assert [item.seq for item in items[place + 1 :]] == [0, 1]
    assert counts.events == len(items) - 1


def test_a_file_that_stays_broken_is_an_error_after_a_while(path):
    Producer(path, 8).push(3)
    with pytest.raises(Resized):
        through(path, lambda: os.truncate(path, 7), *[lambda: time.sleep(0.05)] * 9, patience=0.0)


def test_following_moves_from_nixls_own_ring_to_an_image(path):
    NixlRing(path, "L4").push(5)
    items, _ = through(path, lambda: replaced(path, instance=5), lambda: None)
    assert [type(item) for item in items] == [Event, Reset, Event, Event]


def test_a_folder_is_scanned_without_links_fifos_and_hidden_names(tmp_path):
    folder = tmp_path / "t"
    folder.mkdir()
    Producer(str(folder / "b"), 8, [identity("b", "1"), losses(10, 7, 2, 1)]).push(8)
    Producer(str(folder / "a"), 8, [identity("a/x", "0")]).push(8)
    shutil.copy(folder / "a", folder / ".a.1.telering")
    NixlRing(str(folder / "n"), "L4").push(1)
    (folder / "z.txt").write_text("hello")
    (folder / "link").symlink_to(folder / "a")
    os.mkfifo(folder / "fifo")
    (folder / "inner").mkdir()
    found = scan(folder)
    assert [(f.agent, f.rank, f.info.lost) for f in found] == [("a/x", "0", None), ("b", "1", 3), ("n", "", None)]
    assert [os.path.basename(i.path) for i in found.ignored] == ["fifo", "inner", "link", "z.txt"]
    assert [event.seq for file, event in found.events() if file.agent == "b"] == list(range(8))
    rows = transfers(folder)
    assert [(row.agent, row.rank) for row in rows] == [("a/x", "0"), ("b", "1")] * 2
    assert [row.end_us for row in rows] == sorted(row.end_us for row in rows)
    for folder, kind in ((tmp_path / "none", CannotRead), ("a\0b", NotTelemetry)):
        with pytest.raises(kind):
            scan(folder)


def test_a_symbolic_link_or_fifo_under_the_agents_name_never_harms_or_hangs(tmp_path):
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious" * 20)
    (tmp_path / "agent").symlink_to(victim)
    os.mkfifo(tmp_path / "fifo")
    found = scan(tmp_path)
    assert not found and len(found.ignored) == 3
    assert victim.read_bytes() == b"precious" * 20


def test_a_transfer_with_an_event_missing_is_counted_and_not_guessed(path):
    producer = Producer(path, 8)
    producer.push(4)
    producer.push(3)
    reader = Reader(path)
    rows = reader.transfers()
    assert (len(rows), rows.incomplete) == (1, 0)
    producer.push(1)
    assert len(reader.transfers()) == 1, "a transfer that came in two pieces"
    producer.push(10)
    rows = reader.transfers()
    # Ten more: two are overwritten, the first transfer's rest can't stand alone.
    assert (len(rows), rows.incomplete) == (1, 1)


def run(*arguments, **options):
    environment = dict(os.environ, PYTHONPATH=SOURCE, TZ="UTC")
    return subprocess.run(
        [sys.executable, *map(str, arguments)], capture_output=True, text=True, env=environment, timeout=60, **options
    )


def test_the_command_prints_the_guides_block(path):
    producer = Producer(path, 8)
    producer.push(1, lambda position: (1736951425123456, 1, b"agent_tx_bytes", 1048576))
    producer.push(1, lambda position: (1736951425124567, 0, b"\x1b[31mred\n", 4096))
    out = run("-m", "nixl_telemetry_reader", "--telemetry_path", path).stdout
    assert out == (
        "=== NIXL Telemetry Event ===\nTimestamp: 2025-01-15 14:30:25.123456\nCategory: TRANSFER\n"
        "Event: agent_tx_bytes\nValue: 1048576\n===========================\n"
        "=== NIXL Telemetry Event ===\nTimestamp: 2025-01-15 14:30:25.124567\nCategory: MEMORY\n"
        "Event: _[31mred_\nValue: 4096\n===========================\n"
    )
    example = ROOT / "examples" / "python" / "telemetry_reader.py"
    assert run("-E", example, "--telemetry_path", path, "--once").stdout == out
    rows = run("-m", "nixl_telemetry_reader", "--telemetry_path", path, "--format", "jsonl").stdout
    assert json.loads(rows.splitlines()[0])["value"] == 1048576
    producer.push(18)
    assert run("-m", "nixl_telemetry_reader", "--telemetry_path", path).stdout.count("===\nT") == 8
    failed = run("-m", "nixl_telemetry_reader", "--telemetry_path", path + "-no\n")
    assert failed.returncode == 1 and "cannot open it" in failed.stderr and failed.stderr.count("\n") == 1


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize("form", ["text", "jsonl"])
def test_an_output_that_takes_nothing_is_one_line_of_error_and_no_trace(path, form):
    producer = Producer(path, 4096)
    producer.push(4000)
    command = f'"{sys.executable}" -m nixl_telemetry_reader --telemetry_path "{path}" --format {form}'
    for out, status, wanted in ((">/dev/full", 1, "No space left"), (">&-", 1, "closed"), ("| head -1", 0, "")):
        failed = subprocess.run(
            ["bash", "-o", "pipefail", "-c", f"{command} {out}"], capture_output=True, text=True,
            env=dict(os.environ, PYTHONPATH=SOURCE), timeout=60,
        )  # fmt: skip
        assert failed.returncode == status and wanted in failed.stderr, failed
        assert failed.stderr.count("\n") == (1 if wanted else 0), failed.stderr


def test_names_are_printed_where_the_terminal_has_no_letters_for_them(path):
    producer = Producer(path, 8)
    producer.push(1, lambda position: (1, 7, "größer 😀".encode(), 1))
    environment = dict(os.environ, PYTHONPATH=SOURCE, PYTHONIOENCODING="ascii", PYTHONUTF8="0", LC_ALL="C")
    command = [sys.executable, "-m", "nixl_telemetry_reader", "--telemetry_path", path]
    out = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=60)
    assert out.returncode == 0 and "Event: gr\\xf6\\xdfer \\U0001f600\n" in out.stdout, out


def test_the_example_follows_until_it_is_stopped(path):
    producer = Producer(path, 8)
    producer.push(1)
    example = ROOT / "examples" / "python" / "telemetry_reader.py"
    following = subprocess.Popen([sys.executable, example, "--telemetry_path", path], stdout=subprocess.PIPE, text=True)
    lines = []
    thread = threading.Thread(target=lambda: lines.extend(iter(following.stdout.readline, "")))
    thread.start()
    try:
        for count in (1, 2):
            ends = time.monotonic() + 30
            while sum("Event:" in line for line in lines) < count:
                assert time.monotonic() < ends, lines
                time.sleep(0.01)
            producer.push(1)
    finally:
        following.kill()
        thread.join()
        following.wait()


def test_losses_and_dates_that_are_none_have_a_text():
    assert text.block(Lost(1)) == "--- 1 event lost: overwritten before they were read ---"
    assert text.moment((1 << 64) - 1) == "18446744073709551615 us after 1970"
    assert text.moment(1_500_000, since_boot=True) == "+1.500000 s"


def test_a_frame_holds_names_and_categories_as_text(path):
    pytest.importorskip("pandas")
    producer = Producer(path, 8)
    producer.push(4)
    producer.push(1, lambda position: ((1 << 64) - 1, 77, b"\xff\x00junk", (1 << 64) - 1))
    frame = Reader(path).to_pandas()
    assert list(frame["name"])[:2] == ["agent_xfer_post_time", "agent_xfer_time"]
    assert (frame["name"][4], frame["category"][4], int(frame["value"][4])) == ("_", "77", (1 << 64) - 1)


def test_changed_bytes_end_in_a_telemetry_error_and_nothing_else(path, anyhow):
    """A short form of the mutation run: whatever the bytes are, only errors of our own, and soon."""
    import random

    from telering_reader import TelemetryError, conformance

    chance = random.Random(4)
    Producer(path, 16, [identity("a"), losses(1, 1), (4, 1, bytes(3136)), (5, 1, bytes(9408))]).push(40)
    seeds = [open(path, "rb").read()]
    for layout in ("L1", "L2a", "L4"):
        NixlRing(path + layout, layout).push(1)
        seeds.append(open(path + layout, "rb").read())
    opened = 0
    for _ in range(400):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 4)):
            size = chance.choice((1, 4, 8))
            top = len(data) - size
            at = chance.randrange(0, min(top, 40)) if chance.random() < 0.4 else chance.randrange(0, top)
            data[at : at + size] = chance.choice((bytes(size), b"\xff" * size, chance.randbytes(size)))
        if chance.random() < 0.1:
            del data[chance.randrange(len(data)) :]
        with open(path, "wb") as out:
            out.write(data)
        try:
            with Reader(path) as reader:
                list(reader.items()), reader.info()
                opened += 1
        except TelemetryError as error:
            assert str(error)
        json.dumps(conformance.answer(path))
    assert opened > 50


def test_what_is_written_between_the_last_look_and_the_replacement_is_read(path, monkeypatch):
    old = Producer(path, 8)
    old.push(1)
    real = Reader.replaced.fget

    def at_the_last_moment(reader):
        if real(reader) and old.position == 1:
            old.push(1)
        return real(reader)

    monkeypatch.setattr(Reader, "replaced", property(at_the_last_moment))
    items, _ = through(path, lambda: replaced(path, instance=9), lambda: None)
    assert [getattr(item, "seq", item) for item in items] == [0, 1, Reset(9), 0, 1]


WHOLE = ((5, b"agent_xfer_post_time"), (5, b"agent_xfer_time"), (1, b"agent_rx_bytes"), (1, b"agent_rx_requests_num"))


@pytest.mark.parametrize("spoil, incomplete", [(0, 1), (1, 1), (2, 1), (3, 1), ("time", 2), ("write", 1), ("other", 2)])
def test_only_four_events_of_one_moment_and_one_operation_are_a_transfer(path, spoil, incomplete):
    producer = Producer(path, 64)
    for moment in (100, 200):
        for at, (category, name) in enumerate(WHOLE):
            time = moment
            if moment == 100:
                if at == spoil:
                    continue
                if spoil == "time" and at == 2:
                    moment = time = 101
                if spoil == "write" and at == 3:
                    name = b"agent_tx_requests_num"
                if spoil == "other" and at == 2:
                    producer.push(1, lambda p: (100, 4, b"NIXL_ERR_CANCELED", 1))
            producer.push(1, lambda p, time=time, at=at, category=category, name=name: (time, category, name, 10 + at))
    producer.push(1, lambda p: (300, 0, b"agent_memory_registered", 1))
    rows = Reader(path).transfers()
    assert rows == [(189, 200, "read", 12, 10, 11, "", "")] and rows.incomplete == incomplete


def test_every_error_comes_through_to_another_process_as_it_is(path):
    errors = [
        NotTelemetry(path, "it is a folder"),
        UnsupportedVersion(path, "5", "1 to 4"),
        WrongByteOrder(path),
        NotReady(path),
        Damaged(path, "no"),
        NeedsWrite(path, "read-only"),
        NothingToConsume(path),
        Resized(path, 3, 4),
        Changed(Damaged(path, "no")),
        NotInLayout(path, "no times"),
    ]
    with pytest.raises(CannotRead) as found:
        Reader(path + "-none")
    errors.append(found.value)
    assert {type(error) for error in errors} | {TelemetryError} >= set(every_kind(TelemetryError))
    for error in errors:
        for other in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
            assert (type(other), str(other), other.args, other.path) == (type(error), str(error), error.args, error.path)
            assert (other.code, other.advice, other.reason) == (error.code, error.advice, error.reason)
    gone = pickle.loads(pickle.dumps(errors[-1]))
    assert (gone.errno, gone.strerror, gone.filename) == (errno.ENOENT, errors[-1].strerror, path + "-none")
    assert pickle.loads(pickle.dumps(errors[7])).needed == 4


def every_kind(kind):
    for below in kind.__subclasses__():
        yield below
        yield from every_kind(below)

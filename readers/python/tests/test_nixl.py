"""NIXL's own files: every layout, peeking and consuming, and `SharedRingBuffer`."""

import json
import os
import struct

import pytest
from conftest import ROOT, digest
from nixl_telemetry_reader import SharedRingBuffer
from producer import VERSIONS, NixlRing, Producer

from telering_reader import (
    Damaged,
    Event,
    Lost,
    NeedsWrite,
    NotInLayout,
    NotReady,
    NotTelemetry,
    NothingToConsume,
    Reader,
    Reset,
    TelemetryError,
    UnsupportedVersion,
)

SAMPLES = ROOT / "std-shell" / "tests" / "data" / "nixl"
RELEASES = {"0.10.1": "L1", "1.1.0": "L2a", "1.2.0": "L2b", "1.3.2": "L3", "1.5.1": "L4"}


@pytest.mark.parametrize("release", RELEASES)
def test_files_of_real_releases_read_as_recorded(release, anyhow):
    file = SAMPLES / release / "initiator"
    before = digest(file)
    expected = [json.loads(line) for line in (SAMPLES / release / "expected.jsonl").open()]
    with Reader(file) as reader:
        events = list(reader)
        assert reader.layout == RELEASES[release]
        assert reader.info().liveness == "unknown" and reader.metrics() is None
    assert [(e.timestamp_us, e.name, e.value) for e in events] == [
        (row["timestamp_us"], row["event"], row["value"]) for row in expected
    ]
    for event, row in zip(events, expected):
        assert row["category"] in (None, event.category_name)
        assert (event.category is None) == (row["category"] is None)
        assert (event.observed_us is None) == (event.timestamp_us is not None)
    assert digest(file) == before
    if anyhow == "numpy":
        rows = Reader(file).to_numpy()
        assert [(name.decode(), value) for name, value in rows[["name", "value"]].tolist()] == [
            (row["event"], row["value"]) for row in expected
        ]
        assert rows["timestamp_us"].tolist() == [row["timestamp_us"] or 0 for row in expected]
        assert len(Reader(file).to_numpy(numbered=False)) == len(expected)


def test_transfers_come_from_layouts_with_times_and_are_refused_with_the_reason_elsewhere():
    rows = Reader(SAMPLES / "0.10.1" / "initiator").transfers()
    assert [(row.op, row.bytes) for row in rows] == [("write", n * 1024) for n in (1, 2, 3, 4)] + [
        ("read", n * 1024) for n in (1, 2, 3)
    ]
    assert all(row.end_us - row.start_us == row.xfer_us >= row.post_us for row in rows) and rows.incomplete == 0
    for release in ("1.1.0", "1.2.0", "1.3.2", "1.5.1"):
        with pytest.raises(NotInLayout, match="stores no times"):
            Reader(SAMPLES / release / "initiator").transfers()


@pytest.mark.parametrize("layout", VERSIONS)
def test_a_ring_of_two_places_opens_and_a_newer_version_names_both_and_is_left_alone(path, layout):
    ring = NixlRing(path, layout, 2)
    ring.push(5)
    assert [event.value for event in Reader(path)] == [5]
    for version in (5, 99):
        os.pwrite(ring.fd, struct.pack("<I", version), 16)
        before, inode = digest(path), os.stat(path).st_ino
        for opens in (Reader, SharedRingBuffer, lambda name: Reader(name, consume=True)):
            with pytest.raises(UnsupportedVersion, match=rf"unsupported version {version} \(known 1 to 4\)"):
                opens(path)
        assert (digest(path), os.stat(path).st_ino) == (before, inode)
    os.pwrite(ring.fd, struct.pack("<I", 0), 16)
    with pytest.raises(NotReady):
        Reader(path)


@pytest.mark.parametrize("layout", ["L2b", "L3", "L4"])
def test_unknown_event_types_are_shown_by_number_and_reading_goes_on(path, layout):
    ring = NixlRing(path, layout)
    kinds = (0, 21, 255, 0xFFFFFFFF, 7)
    for kind in kinds:
        ring.push(kind + 1, kind)
    events = list(Reader(path))
    assert [event.name for event in events] == [
        "agent_tx_bytes",
        "unknown(21)",
        "unknown(255)",
        "unknown(4294967295)",
        "agent_xfer_post_time",
    ]
    assert [(event.id, event.value) for event in events] == [(kind, kind + 1) for kind in kinds]
    pytest.importorskip("numpy")
    assert Reader(path).to_numpy()["name"].tolist() == [event.name.encode() for event in events]


@pytest.mark.parametrize("where, what", [(24, 1 << 40), (24, 0), (24, 3), (32, 6), (0, 8), (8, 1 << 63), (24, 16)])
def test_a_header_whose_numbers_do_not_agree_is_damaged_before_anything_is_read(path, where, what):
    ring = NixlRing(path)
    os.pwrite(ring.fd, struct.pack("<Q", what), where)
    with pytest.raises(Damaged):
        Reader(path)


def test_what_is_no_telemetry_says_so(path, tmp_path):
    for data in (b"", b"\x7fELF" * 30, b"short"):
        open(path, "wb").write(data)
        with pytest.raises(NotTelemetry):
            Reader(path)
    with pytest.raises(NotTelemetry, match="folder"):
        Reader(tmp_path)
    os.mkfifo(path + "-fifo")
    with pytest.raises(NotTelemetry, match="FIFO"):
        Reader(path + "-fifo")
    with pytest.raises(TelemetryError, match="No such file") as caught:
        Reader(path + "-none")
    assert isinstance(caught.value, OSError) and caught.value.errno == 2
    with pytest.raises(TelemetryError):
        Reader("a\0b")


@pytest.mark.parametrize("layout", VERSIONS)
def test_peeking_takes_nothing_and_consuming_makes_room(path, layout, anyhow):
    ring = NixlRing(path, layout, 8)
    for value in range(1, 8):
        assert ring.push(value)
    assert not ring.push(99)
    before = digest(path)
    assert [event.value for event in Reader(path)] == list(range(1, 8))
    assert digest(path) == before
    with Reader(path, consume=True) as reader:
        assert [event.value for event in reader] == list(range(1, 8))
        for value in range(100, 106):
            assert ring.push(value)
        assert [event.value for event in reader] == list(range(100, 106))
    assert ring.positions()[0] == ring.positions()[1]
    assert list(Reader(path)) == []


def test_events_that_were_not_handed_over_stay_in_a_consumed_ring(path):
    ring = NixlRing(path)
    for value in range(5):
        ring.push(value)
    reader = Reader(path, consume=True)
    assert next(iter(reader)).value == 0
    reader.close()
    assert [event.value for event in Reader(path)] == [0, 1, 2, 3, 4]


def test_a_number_of_records_below_one_is_refused_and_moves_nothing(path):
    ring = NixlRing(path, "L4", 8)
    for value in range(3):
        ring.push(value)
    reader = Reader(path, consume=True)
    assert len(reader.read(1)) == 1
    for most in (0, -1, -5):
        with pytest.raises(ValueError):
            reader.read(most)
    assert [event.value for event in reader] == [1, 2] and reader.lost == 0 and ring.positions()[1] == 3


def test_another_consumer_is_noticed_as_a_loss(path):
    ring = NixlRing(path)
    for value in range(6):
        ring.push(value)
    peeking = Reader(path)
    with Reader(path, consume=True) as other:
        assert len(list(other)) == 6
    ring.push(6)
    items = list(peeking.items())
    assert isinstance(items[0], Lost) and [item.value for item in items[1:]] == [6]


@pytest.mark.parametrize("consume", [False, True])
@pytest.mark.parametrize("capacity", [8, 4, 16])
def test_a_ring_that_was_made_anew_in_the_same_file_is_a_reset_without_old_events(path, capacity, consume):
    ring = NixlRing(path, "L4", 8)
    for value in range(5):
        ring.push(value)
    reader = Reader(path, consume=consume)
    assert len(list(reader)) == 5
    ring.remake(capacity)
    ring.push(1000)
    items = list(reader.items())
    assert items[0] == Reset(None) and [item.value for item in items[1:]] == [1000]


def test_the_class_of_the_guide_consumes_nixls_own_rings_one_by_one(path):
    ring = NixlRing(path, "L1", 8)
    for value in range(1, 8):
        ring.push(value)
    buffer = SharedRingBuffer(path, version=1)
    assert (buffer.get_capacity(), buffer.get_version(), buffer.size()) == (8, 1, 7)
    assert buffer.full() and not buffer.empty()
    event = buffer.pop()
    assert (event.timestamp_us, event.category, event.value) == (10**15 + 1, 1, 1)
    assert event.event_name == b"agent_tx_bytes".ljust(32, b"\0")
    assert ring.positions()[1] == 1 and buffer.size() == 6 and not buffer.full()
    assert [buffer.pop().value for _ in range(6)] == list(range(2, 8))
    assert buffer.pop() is None and buffer.empty()
    with pytest.raises(UnsupportedVersion, match=r"version 1 \(asked for 4\)"):
        SharedRingBuffer(path, version=4)
    for no_number in ("1", b"1", 1.5):
        with pytest.raises(TypeError):
            SharedRingBuffer(path, version=no_number)
    for no_path in (0, None, 1.5, bytearray(b"x")):
        with pytest.raises(TypeError):
            SharedRingBuffer(no_path)


def test_the_class_of_the_guide_has_a_cursor_of_its_own_on_our_files(path):
    producer = Producer(path, 8)
    producer.push(8)
    before = digest(path)
    buffers = [SharedRingBuffer(path, version=1), SharedRingBuffer(path)]
    for buffer in buffers:
        assert (buffer.get_capacity(), buffer.get_version(), buffer.size(), buffer.full()) == (8, 1, 8, True)
        assert buffer.pop().event_name.decode("utf-8").rstrip("\x00") == "agent_xfer_post_time"
        assert buffer.size() == 7
        assert [buffer.pop() is None for _ in range(8)] == [False] * 7 + [True]
        assert buffer.empty()
    assert digest(path) == before
    with pytest.raises(NothingToConsume):
        Reader(path, consume=True)


def test_consuming_without_write_permission_says_what_it_needs(path, monkeypatch):
    NixlRing(path).push(1)
    real = os.open

    def refuse(name, flags, *rest):
        if flags & os.O_RDWR:
            raise PermissionError(13, "Permission denied", name)
        return real(name, flags, *rest)

    monkeypatch.setattr(os, "open", refuse)
    for opens in (SharedRingBuffer, lambda name: Reader(name, consume=True)):
        with pytest.raises(NeedsWrite, match="write permission.*as the producer's user"):
            opens(path)
    assert all(isinstance(event, Event) for event in Reader(path))


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() != 0, reason="needs root, to become somebody else")
def test_another_user_with_read_permission_reads_and_is_told_that_consuming_needs_more(tmp_path):
    import multiprocessing

    Producer(str(tmp_path / "ours"), 8).push(3)
    NixlRing(str(tmp_path / "nixl")).push(1)
    for name in ("ours", "nixl"):
        os.chmod(tmp_path / name, 0o644)
    folder = os.open(tmp_path, os.O_RDONLY)

    def child():
        # The folder above may be closed to others: reach the files through the open one.
        os.fchdir(folder)
        os.setgid(65534)
        os.setuid(65534)
        assert len(list(Reader("ours"))) == 3 and len(list(Reader("nixl"))) == 1
        for opens in (SharedRingBuffer, lambda name: Reader(name, consume=True)):
            with pytest.raises(NeedsWrite):
                opens("nixl")
        with SharedRingBuffer("ours") as buffer:
            assert buffer.size() == 3

    os.chmod(tmp_path, 0o755)
    other = multiprocessing.get_context("fork").Process(target=child)
    other.start()
    other.join(30)
    assert other.exitcode == 0

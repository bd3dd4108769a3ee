"""Reading images: what is lost, torn, interrupted, begun anew."""

import os
import random
import struct

import pytest
from conftest import digest
from producer import Producer, event_at, record

from telering_reader import (
    Changed,
    Damaged,
    Event,
    Interrupted,
    Lost,
    Reader,
    Reset,
    Resized,
    Unverified,
    check,
    file,
)


def is_recorded(event):
    time, category, name, value = event_at(event.seq)
    return (event.timestamp_us, event.category, event.name.encode(), event.value) == (time, category, name, value)


def test_three_events_in_a_large_ring_are_three_events(path, anyhow):
    Producer(path, 4096).push(3)
    with Reader(path) as reader:
        assert [event.seq for event in reader] == [0, 1, 2]
        assert list(reader) == [] and reader.counts == (3, 0, 0, 0)


@pytest.mark.parametrize("extra", [1, 8, 1000])
def test_a_reader_that_was_lapped_says_once_how_many_and_goes_on_at_the_oldest(path, anyhow, extra):
    producer = Producer(path, 8)
    reader = Reader(path)
    producer.push(8 + extra)
    items = list(reader.items())
    assert items[0] == Lost(extra) and sum(isinstance(item, Lost) for item in items) == 1
    assert [event.seq for event in items[1:]] == list(range(extra, 8 + extra))
    assert all(map(is_recorded, items[1:]))
    assert reader.lost == extra and sum(reader.counts) == 8 + extra - reader.start


class Interleaved(file.File):
    """A file whose producer takes some steps, in the middle of a record too, before each read."""

    step = None

    def read(self, *arguments, **options):
        Interleaved.step()
        return super().read(*arguments, **options)

    def read_into(self, *arguments, **options):
        Interleaved.step()
        return super().read_into(*arguments, **options)


@pytest.mark.parametrize("bulk", [False, True])
@pytest.mark.parametrize("capacity", [2, 4, 8, 64])
def test_no_event_is_returned_that_was_not_recorded_whatever_the_producer_does_meanwhile(
    path, monkeypatch, capacity, bulk
):
    if bulk:
        pytest.importorskip("numpy")
    monkeypatch.setattr("telering_reader.reader.File", Interleaved)
    chance = random.Random(capacity)
    producer = Producer(path, capacity)
    running = []

    def step():
        for _ in range(chance.choice((0, 0, 1, 3, 9, 40, 9 * capacity))):
            if not running:
                running.append(producer.steps(chance.randint(1, producer.batch)))
            if next(running[0], "done") == "done":
                running.clear()

    Interleaved.step = step
    # Without check words: the order of the reads alone must keep torn records away.
    reader = Reader(path, verify=False)
    last = reader.start - 1
    for _ in range(500):
        if bulk:
            rows = reader.to_numpy()
            found = [Event(int(r["seq"]), 0, int(r["timestamp_us"]), None, int(r["category"]), None, r["name"].decode(), int(r["value"])) for r in rows]
        else:
            found = [item for item in reader.read() if isinstance(item, Event)]
        for event in found:
            assert event.seq > last and is_recorded(event), event
            last = event.seq
    Interleaved.step = lambda: None
    for _ in running[0] if running else ():
        pass
    list(reader.items())
    assert reader.unverified == 0 and reader.counts.events > 0
    assert sum(reader.counts) == producer.position - reader.start


def test_a_record_of_another_lap_or_torn_is_unverified_and_never_an_event(path, anyhow):
    producer = Producer(path, 8)
    producer.push(8)
    producer.raw(2, record(2 + 800, *event_at(802)))
    data = record(5, *event_at(5))
    producer.raw(5, data[:48] + struct.pack("<Q", 99))
    producer.raw(6, bytes(56))
    items = list(Reader(path).items())
    assert items[2] == Unverified(1) and items[5] == Unverified(2) and len(items) == 7
    assert [item.seq for item in items if isinstance(item, Event)] == [0, 1, 3, 4, 7]


def test_fillers_are_interrupted_and_no_events(path, anyhow):
    producer = Producer(path, 8)
    producer.push(2)
    producer.push(2, lambda position: (0, -1, b"", 0))
    producer.push(1)
    with Reader(path) as reader:
        assert [type(item) for item in reader.items()] == [Event, Event, Interrupted, Event]
        assert reader.counts == (3, 0, 0, 2)


def slow_copy(producer, target, chance):
    """What `cp` makes of a live file: pieces in the order of the bytes, the producer at work between them."""
    size = os.fstat(producer.fd).st_size
    with open(target, "wb") as out:
        for at in range(0, size, 100):
            out.write(os.pread(producer.fd, min(100, size - at), at))
            if chance.random() < 0.5:
                producer.push(chance.randint(0, 2))


@pytest.mark.parametrize("bulk", [False, True])
def test_a_slow_copy_of_a_live_file_gives_recorded_events_in_order_and_the_equation_holds(path, anyhow, bulk):
    chance = random.Random(7)
    earlier = 0
    for _ in range(40):
        producer = Producer(path, 32)
        producer.push(chance.randint(0, 200))
        slow_copy(producer, path + "-copy", chance)
        with Reader(path + "-copy") as reader:
            committed = reader.info().committed
            if bulk and anyhow == "numpy":
                seqs = [int(seq) for seq in reader.to_numpy()["seq"]]
            else:
                events = list(reader)
                assert all(map(is_recorded, events))
                seqs = [event.seq for event in events]
            assert seqs == sorted(set(seqs))
            assert sum(reader.counts) == committed - reader.start
            earlier += any(seq < committed - 32 for seq in seqs)
    assert earlier > 5, "no copy held events of an earlier lap: the test proves nothing"


def test_another_instance_in_the_same_file_is_a_reset_said_once(path, anyhow):
    Producer(path, 8).push(5)
    reader = Reader(path)
    assert len(list(reader)) == 5
    data = bytearray(open(path, "rb").read())
    Producer(path + "2", 8, instance=77).push(3)
    with open(path, "r+b") as out:
        out.write(open(path + "2", "rb").read())
    items = list(reader.items())
    assert items[0] == Reset(77) and [item.seq for item in items[1:]] == [0, 1, 2]
    assert {item.instance for item in items[1:]} == {77} and len(data) == os.path.getsize(path)


def test_positions_that_contradict_each_other_are_damaged(path):
    producer = Producer(path, 8)
    producer.push(3)
    producer.word(producer.extension + 72, 1 << 50)
    with pytest.raises(Damaged, match="announced"):
        list(Reader(path))


@pytest.mark.parametrize("length", [0, 100, 479, 100000])
def test_a_file_that_is_resized_while_it_is_read_is_an_error_and_no_signal(path, anyhow, length):
    producer = Producer(path, 8)
    producer.push(5)
    reader = Reader(path)
    assert len(reader.read()) == 5
    os.truncate(path, length)
    for attempt in (reader.read, reader.info, reader.metrics):
        with pytest.raises((Resized, Changed)) as caught:
            attempt()
        assert "open it again" in str(caught.value).lower()


def test_reading_changes_nothing_and_needs_read_permission_only(path):
    pytest.importorskip("numpy")
    producer = Producer(path, 64)
    producer.push(100)
    os.chmod(path, 0o444)
    before, times = digest(path), os.stat(path)
    with Reader(path) as reader:
        list(reader), reader.info(), reader.metrics()
    with Reader(path) as reader:
        reader.to_numpy()
    with Reader(path) as reader:
        reader.transfers()
    after = os.stat(path)
    assert (digest(path), after.st_ino, after.st_mtime_ns) == (before, times.st_ino, times.st_mtime_ns)


def test_a_position_beyond_thirty_two_bits_is_checked_whole(path, anyhow):
    assert check.check_word(1, record(1, *event_at(1))) != check.check_word(1 + (1 << 32), record(1, *event_at(1)))


def test_iterating_ends_though_the_producer_never_rests(path, monkeypatch):
    producer = Producer(path, 64)
    producer.push(50)
    monkeypatch.setattr("telering_reader.reader.File", Interleaved)
    Interleaved.step = lambda: producer.push(5)
    reader = Reader(path)
    for _ in range(3):
        assert 0 < len(list(reader)) <= 200
        assert reader.transfers() is not None
    if check.numpy is not None:
        assert 0 < len(reader.to_numpy()) <= 200


def test_a_reader_that_was_lapped_gets_all_of_a_large_ring_at_once(path):
    producer = Producer(path, 16384)
    readers = [Reader(path), Reader(path)]
    producer.push(3)
    # Far ahead: the rest of the records are as if they were written.
    for position in range(100_000 - 16384, 100_000):
        producer.raw(position, record(position, *event_at(position)))
    producer.word(producer.extension + 64, 100_000)
    producer.word(producer.extension + 72, 100_000)
    assert len(list(readers[0])) == 16384 and readers[0].lost == 100_000 - 16384
    if check.numpy is not None:
        assert len(readers[1].to_numpy()) == 16384 and readers[1].lost == 100_000 - 16384


def test_bulk_reading_leaves_out_what_one_by_one_leaves_out(path):
    pytest.importorskip("numpy")
    producer = Producer(path, 32)
    producer.push(20)
    producer.push(3, lambda position: (0, -1, b"", 0))
    producer.push(5)
    producer.raw(4, bytes(56))
    producer.raw(21, bytes(56))
    one = Reader(path)
    events = list(one)
    for numbered in (True, False):
        with Reader(path) as reader:
            rows = reader.to_numpy(numbered)
            assert reader.counts == one.counts == (24, 0, 2, 2)
        assert rows["value"].tolist() == [event.value for event in events]
        assert not numbered or rows["seq"].tolist() == [event.seq for event in events]
    with Reader(path) as reader:
        assert [value for block in reader.blocks() for value in block["value"].tolist()] == rows["value"].tolist()
        assert reader.counts == one.counts

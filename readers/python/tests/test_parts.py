"""The parts of an image, and whether its producer lives."""

import fcntl
import os
import struct
import time

import pytest
from producer import Producer

from telering_reader import Reader, file

ENTRY = (0, 500, 2, 300, 77)


def checksum(data):
    h = 0x6A09E667
    for (word,) in struct.iter_unpack("<I", data):
        h = (((h << 5 | h >> 27) & 0xFFFFFFFF) ^ word) * 0x9E3779B1 & 0xFFFFFFFF
    return h or 1


def sealed(body, room):
    return body.ljust(room - 8, b"\0") + struct.pack("<Q", checksum(body))


def metrics(*generations):
    """The part with two copies of one entry, one histogram of two bounds, one error."""
    size = 8 + 40 + 280 + 16 + 8
    head = struct.pack("<4IQ8x", 1, 1, 2, 1, size) + struct.pack("<32Q", 10, 20, *[0] * 30) + bytes(32)
    copies = b""
    for generation in generations:
        body = struct.pack("<Q5Q", generation, *ENTRY) + struct.pack("<35Q", 6, 30, 1, 2, 3, *[0] * 30)
        copies += sealed(body + struct.pack("<2Q", 18, generation), size)
    return (4, 1, head + copies)


def dynamic(*generations, used=1):
    copies = b""
    for generation in generations:
        body = struct.pack("<QQ32si4xQQQQ", generation, used, b"mine\x07", 7, 10, 2, 5, 88)
        copies += sealed(body, 4672)
    return (5, 1, struct.pack("<IIQ48x", 64, 0, 4672) + copies)


def with_generation(path, generation, *parts):
    producer = Producer(path, 8, parts)
    producer.word(producer.extension + 80, generation)
    return Reader(path).info()


def test_metrics_are_those_of_the_published_copy(path):
    info = with_generation(path, 3, metrics(2, 3), dynamic(2, 3))
    found = info.metrics
    assert (found.generation, found.bounds, found.entry(0)) == (3, [10, 20], ENTRY)
    assert found.histograms == [(6, 30, [1, 2, 3])] and found.errors == [(18, 3)]
    assert info.dynamic == [("mine_", 7, 10, 2, 5, 88)]
    assert with_generation(path, 2, metrics(2, 3), dynamic(2, 3)).metrics.generation == 2
    nothing = with_generation(path, 0, metrics(2, 3), dynamic(2, 3))
    assert nothing.metrics is nothing.dynamic is None


def test_in_a_copy_of_a_live_file_the_newest_whole_copy_counts(path):
    # The control line is older than both copies.
    assert with_generation(path, 3, metrics(4, 5)).metrics.generation == 5
    kind, version, body = metrics(4, 5)
    torn = body[:-100] + b"\1" + body[-99:]
    assert with_generation(path, 5, (kind, version, torn)).metrics.generation == 4
    torn = torn[:400] + b"\1" + torn[401:]
    assert with_generation(path, 5, (kind, version, torn)).metrics is None


@pytest.mark.parametrize("at, number", [(0, 0xFFFFFFFF), (4, 9), (12, 1 << 31), (16, 1 << 60), (16, 7), (16, 8)])
def test_counts_of_a_part_that_do_not_fit_give_no_metrics(path, at, number):
    kind, version, body = metrics(2, 3)
    body = bytearray(body)
    struct.pack_into("<Q" if at == 16 else "<I", body, at, number)
    assert with_generation(path, 3, (kind, version, bytes(body))).metrics is None


def test_more_dynamic_metrics_than_there_is_room_for_are_none(path):
    assert with_generation(path, 3, dynamic(2, 3, used=65)).dynamic is None


def test_unknown_parts_versions_and_places_are_skipped(path):
    losses = struct.pack("<8Q", *range(1, 9))
    producer = Producer(path, 8, [(99, 1, bytes(64)), (2, 2, bytes(64)), (2, 1, losses + b"new field"), (1, 1, bytes(8))])
    info = Reader(path).info()
    assert info.losses == (1, 2, 3, 4, 5, 6, 7) and info.identity is None and len(info.parts) == 4
    for offset in (1 << 60, 4, 8, os.path.getsize(path) - 8):
        producer.word(producer.extension + 128 + 48 + 8, offset)
        assert Reader(path).info().losses is None


def test_liveness_is_the_lock_then_the_state_then_the_heartbeat(path, monkeypatch):
    producer = Producer(path, 8)

    def liveness():
        return Reader(path).info().liveness

    assert liveness() == "dead"
    fcntl.flock(producer.fd, fcntl.LOCK_EX)
    assert [liveness(), liveness()] == ["alive", "alive"]
    # A reader asks without taking anything: the lock is the producer's still, and can be had anew.
    fcntl.flock(producer.fd, fcntl.LOCK_UN)
    with Reader(path) as reader:
        assert reader.info().liveness == "dead"
        fcntl.flock(producer.fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        fcntl.flock(producer.fd, fcntl.LOCK_UN)
    monkeypatch.setattr(file, "fcntl", None)
    assert liveness() == "unknown"
    producer.word(producer.extension + 96, time.time_ns() // 1000)
    assert liveness() == "alive_by_heartbeat"
    monkeypatch.undo()
    assert liveness() == "dead"
    producer.close()
    assert liveness() == "closed"
    monkeypatch.setattr(file, "fcntl", None)
    assert liveness() == "closed"


def test_the_totals_of_a_run_are_those_that_its_producer_told(binaries, tmp_path):
    import json
    import subprocess

    run = [binaries / "examples" / "paced", tmp_path, "agent", "20000", "0.5"]
    told = json.loads(subprocess.run(run, capture_output=True, check=True).stdout)
    with Reader(tmp_path / "agent") as reader:
        found, info = reader.metrics(), reader.info()
    assert (found.entry(0).sum, found.entry(0).count) == (told["tx_bytes"], told["transfers"])
    assert [sum(histogram.counts) for histogram in found.histograms] == [told["transfers"]] * 2
    assert (info.losses.recorded, info.losses.exported, info.losses.lost) == (
        told["recorded"],
        told["exported"],
        told["lost"],
    )
    assert info.agent == "agent" and info.identity.writer.startswith("telering ") and len(info.identity.boot_id) == 32

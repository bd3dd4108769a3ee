"""The bytes of FORMAT.md, and what a reader must make of them."""

import json
import re
import struct
import threading

import pytest
from conftest import ROOT
from producer import FACTORS, Producer, check_of, record

from telering_reader import Damaged, NotReady, Reader, TelemetryError, UnsupportedVersion, WrongByteOrder, check, image, names, nixl

TEXT = (ROOT / "FORMAT.md").read_text()


def golden():
    data = bytearray(448)
    for at, row in re.findall(r"^([0-9a-f]{4})  ((?:[0-9a-f]{2} ?){16})$", TEXT, re.M):
        data[int(at, 16) : int(at, 16) + 16] = bytes.fromhex(row)
    return bytes(data)


def test_the_golden_image_reads_as_the_text_says(path, anyhow):
    open(path, "wb").write(golden())
    with Reader(path) as reader:
        events = list(reader)
        info = reader.info()
    assert [(e.seq, e.timestamp_us, e.category_name, e.name, e.value) for e in events] == [
        (1, 1736951425000002, "TRANSFER", "agent_tx_bytes", 1048576),
        (2, 1736951425000003, "ERROR", "NIXL_ERR_CANCELED", 1),
    ]
    assert (reader.start, reader.lost, info.liveness, info.committed) == (1, 0, "closed", 3)
    assert (info.losses.recorded, info.losses.exported, info.losses.staging, info.losses.lost) == (4, 3, 1, 1)
    assert info.identity is info.metrics is info.dynamic is None


def test_check_words_are_those_of_the_text():
    rows = re.findall(r"^\| (\d+) \| (\d+) \| (\d) \| (\S+) \| (\d+) \| 0x([0-9a-f]{8}) \|$", TEXT, re.M)
    assert len(rows) == 3
    for position, time, category, name, value, word in rows:
        stored = b"" if name == "(empty)" else name.encode()
        data = struct.pack("<Qi32sIQ", int(time), int(category), stored, 0, int(value))
        assert check.check_word(int(position), data) == int(word, 16) == check_of(int(position), data)
    factors = re.findall(r"^\| \d+ \| \d+ \| 0x([0-9a-f]{8}) \|$", TEXT, re.M)
    assert [int(factor, 16) for factor in factors] == list(check.FACTORS) == FACTORS


def test_numpy_and_plain_python_agree_on_every_record(monkeypatch):
    pytest.importorskip("numpy")
    for first in (0, 5, (1 << 32) - 700, (1 << 40) + 3):
        data = b"".join(
            record(p, p * 3, p % 9 - 1, b"n%d" % (p % 50), (p * 0x9E3779B97F4A7C15) % (1 << 64))
            for p in range(first, first + 1500)
        )
        spoiled = bytearray(data)
        for at in range(0, 1500, 37):
            spoiled[at * 56 + at % 56] ^= 1 << at % 8
        for records in (data, bytes(spoiled)):
            with monkeypatch.context() as patch:
                fast = check.Checker().fits(first, records)
                patch.setattr(check, "numpy", None)
                slow = check.Checker().fits(first, records)
            assert (fast is None) == (slow is None) == (records == data)
            assert fast is None or list(fast) == list(slow)


@pytest.mark.parametrize("count", [8, 11, 1500, 5000])
@pytest.mark.parametrize("first", [0, 3, (1 << 32) - 700, (1 << 64) - 6000])
def test_records_whose_names_repeat_every_four_are_checked_as_any_others(monkeypatch, count, first):
    pytest.importorskip("numpy")
    words = [b"agent_xfer_post_time", b"agent_xfer_time", b"agent_tx_bytes", b"agent_tx_requests_num"]
    data = b"".join(
        record(p, p * 3 % (1 << 64), 5 if p % 4 < 2 else 1, words[p % 4], p * 0x9E3779B97F4A7C15 % (1 << 64))
        for p in range(first, first + count)
    )

    def changed(*places):
        spoiled = bytearray(data)
        for at in places:
            spoiled[at] ^= 0x10
        return bytes(spoiled)

    cases = [data, data[56:] + data[:56]]
    # Each byte of one record, then the same byte of every fourth record, so that they still repeat.
    cases += [changed(56 * (count // 2) + byte) for byte in range(56)]
    cases += [changed(*(56 * at + byte for at in range(1, count, 4))) for byte in range(8, 44)]
    for records in cases:
        with monkeypatch.context() as patch:
            # A new one: none of them is passed over for what came before.
            patch.setattr(check, "_SPACE", threading.local())
            fast = check.Checker().fits(first, records)
            patch.setattr(check, "numpy", None)
            slow = check.Checker().fits(first, records)
        assert (fast is None) == (slow is None) == (records == data)
        assert fast is None or list(fast) == list(slow)


def test_tables_of_names_and_statuses_are_those_of_the_text():
    rows = re.findall(r"^\| (\d+) \| (\w+) \| (\w+) \| ([A-Z]+) \| (\w+) \|", TEXT, re.M)
    assert len(rows) == len(names.BY_ID) == 27
    for number, name, record_name, category, unit in rows:
        row = names.BY_ID[int(number)]
        assert (row.name, row.record_name, names.CATEGORIES[row.category], row.unit) == (name, record_name, category, unit)
    for number, name in re.findall(r"^\| (-?\d) \| ([A-Z]+) \|$", TEXT, re.M):
        assert names.CATEGORIES[int(number)] == name


def test_offsets_and_sizes_are_those_of_the_text():
    """A field that is narrower than it should be hides in padding: known case 55."""
    fields = {"Header": image.HEADER, "Records": nixl.RECORDS["L1"], "Control line": image.CONTROL}
    assert {name: layout.size for name, layout in fields.items()} == {"Header": 40, "Records": 56, "Control line": 64}
    assert image.HEAD.size == 64
    assert {layout: struct_.size for layout, struct_ in nixl.RECORDS.items()} == nixl.RECORD_SIZES
    # Every struct is explicit about its byte order, so none takes sizes or padding from this machine.
    for layout in (*fields.values(), image.HEAD, *nixl.RECORDS.values()):
        assert layout.format.startswith("<")


def test_large_numbers_come_through_whole(path, anyhow):
    producer = Producer(path)
    values = [(1 << 40) + 7, (1 << 63) + 1, (1 << 64) - 1]
    for value in values:
        producer.push(1, lambda position, value=value: (value, 1, b"agent_tx_bytes", value))
    events = list(Reader(path))
    assert [event.value for event in events] == [event.timestamp_us for event in events] == values
    assert json.loads(json.dumps(events[2]._asdict()))["value"] == values[2]


def swapped(data, capacity=2):
    """The same file as a machine of the other byte order would have written it, header and head."""
    extension = (40 + 56 * capacity + 63) // 64 * 64
    data = bytearray(data)
    data[:40] = struct.pack(">QQIIQQ", *struct.unpack("<QQIIQQ", data[:40]))
    data[extension : extension + 64] = struct.pack(">QHHIQQIIIHHQQ", *image.HEAD.unpack(data[extension : extension + 64]))
    return bytes(data)


def test_a_byte_swapped_file_is_refused_and_told_so(path):
    for data in (swapped(golden()), golden()[:192] + golden()[192:200][::-1] + golden()[200:]):
        open(path, "wb").write(data)
        with pytest.raises(WrongByteOrder, match="wrong byte order"):
            Reader(path)
    for layout, version in (("L1", 1), ("L4", 4)):
        header = struct.pack(">QQIIQQ", 1, 0, version, version, 4, 3)
        open(path, "wb").write(header + bytes(4 * nixl.RECORD_SIZES[layout]))
        with pytest.raises(WrongByteOrder):
            Reader(path)


def test_a_head_with_any_field_wrong_is_damaged_and_another_major_unsupported(path):
    base = golden()
    for at in (12, 16, 24, 32, 36, 40, 48):
        data = bytearray(base)
        data[192 + at : 192 + at + (8 if at == 48 else 1)] = bytes(8) if at == 48 else b"\x77"
        open(path, "wb").write(data)
        with pytest.raises(Damaged):
            Reader(path)
    for minor, major in ((9, 1), (0, 2)):
        data = bytearray(base)
        struct.pack_into("<HH", data, 200, major, minor)
        open(path, "wb").write(data)
        if major == 1:
            assert Reader(path).info().version == "1.9"
        else:
            with pytest.raises(UnsupportedVersion, match=r"2\.0 .*known 1\.x"):
                Reader(path)
    open(path, "wb").write(base[:192] + bytes(8) + base[200:])
    with pytest.raises(NotReady):
        Reader(path)


def test_the_sources_are_python_of_the_oldest_version_that_is_promised():
    import ast

    promised = re.search(r'requires-python = ">=3\.(\d+)"', (ROOT / "readers/python/pyproject.toml").read_text())
    for source in (ROOT / "readers" / "python" / "src").rglob("*.py"):
        ast.parse(source.read_text(), feature_version=(3, int(promised.group(1))))


def test_no_number_in_a_file_decides_how_much_memory_is_taken():
    import tracemalloc

    paths = sorted((ROOT / "conformance" / "files").glob("*.bin"))
    assert len(paths) > 400
    for file in paths:
        tracemalloc.start()
        try:
            with Reader(file) as reader:
                while reader.read():
                    pass
                reader.info()
            if check.numpy is not None:
                Reader(file).to_numpy()
            if reader.layout in ("image", "L1"):
                Reader(file).transfers()
        except TelemetryError:
            pass
        finally:
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
        # The same for all: the checker's space, and 5 MB where a table needs more than it was made for. Beyond that the file's size.
        assert peak < 8_000_000 + 40 * file.stat().st_size, f"{file.name}: {peak} bytes"

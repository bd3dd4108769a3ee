#!/usr/bin/env python3
"""The judges of interop/check, judged: each must see the fault it is there for. Needs neither NIXL nor telering."""

import json
import struct
import sys
import tempfile
import unittest
from pathlib import Path

sys.dont_write_bytecode = True

import exact
import guest
import metrics
import plugins
import rings
import stock_reader
import telering_cli
from processes import Child, Failed


def line(seq, event, value, category="TRANSFER"):
    return {"seq": seq, "event": event, "value": value, "category": category}


class Reading:
    def __init__(self, numbers, lost_before=()):
        self.events, self.lost, self.other = [line(0, "agent_started", 1, "SYSTEM")], 0, []
        seq = 1
        for number in numbers:
            if number in lost_before:
                self.lost += exact.GROUP
                seq += exact.GROUP
            for name, value in guest.events(number):
                self.events.append(line(seq, name, value))
                seq += 1
        self.events.append(line(seq, "agent_stopped", 1, "SYSTEM"))


def made(transfers, lost=0):
    return {"recorded": 4 * transfers, "exported": 4 * transfers - lost, "lost": lost}


class ExactAccounts(unittest.TestCase):
    def test_a_complete_reading_is_exact(self):
        self.assertEqual(exact.check(made(50), Reading(range(50)), 50), 50)

    def test_a_gap_that_was_said_is_exact(self):
        numbers = [*range(10), *range(11, 50)]
        self.assertEqual(exact.check(made(50), Reading(numbers, lost_before=[11]), 50), 49)

    def test_a_loss_that_was_not_said_is_seen(self):
        reading = Reading([*range(10), *range(11, 50)], lost_before=[11])
        reading.lost = 0
        with self.assertRaisesRegex(Failed, "is not 202 written"):
            exact.check(made(50), reading, 50)

    def test_a_torn_event_is_seen(self):
        reading = Reading(range(50))
        reading.events[20]["value"] += 1
        with self.assertRaisesRegex(Failed, "nobody recorded"):
            exact.check(made(50), reading, 50)

    def test_a_transfer_read_twice_is_seen(self):
        with self.assertRaisesRegex(Failed, "twice"):
            exact.check(made(51), Reading([*range(30), *range(29, 50)]), 51)

    def test_an_account_of_the_producer_that_is_off_is_seen(self):
        with self.assertRaisesRegex(Failed, "own account"):
            exact.check({"recorded": 200, "exported": 196, "lost": 0}, Reading(range(50)), 50)


class Output(unittest.TestCase):
    def test_blocks_of_the_stock_reader_become_events(self):
        text = (
            "Buffer capacity: 4096 events\n\n=== NIXL Telemetry Event ===\nTimestamp: 2026-01-02 03:04:05.000006\n"
            "Category: NIXL_TELEMETRY_MEMORY\nEvent name: agent_memory_registered\nValue: 18446744073709551615\n"
            "===========================\n\nTotal events read: 1\n"
        )
        expected = ("2026-01-02 03:04:05.000006", "NIXL_TELEMETRY_MEMORY", "agent_memory_registered", 2**64 - 1)
        self.assertEqual(stock_reader.parse(text.splitlines()), [expected])

    def test_a_total_that_does_not_fit_is_seen(self):
        with self.assertRaisesRegex(Failed, "says it read 3"):
            stock_reader.parse(["Total events read: 3"])

    def test_losses_and_unknown_lines_are_told_apart(self):
        reading = telering_cli.Reading([json.dumps(line(0, "NIXL_ERR_NOT_FOUND", 1)), '{"lost":7}', '{"reset":1}'])
        self.assertEqual((reading.lost, reading.other), (7, [{"reset": 1}]))
        self.assertEqual(reading.sums(), {"agent_err_not_found": {"count": 1, "sum": 1}})

    def test_differences_name_the_event(self):
        self.assertEqual(telering_cli.differences({}, {}), [])
        self.assertIn("agent_tx_bytes", telering_cli.differences({}, {"agent_tx_bytes": {"count": 1, "sum": 5}})[0])

    def test_the_time_of_an_event_is_printed_like_the_stock_reader_does(self):
        import nixl_reads_us

        self.assertEqual(nixl_reads_us.clock(1_700_000_000_000_042), "2023-11-14 22:13:20.000042")


class Rings(unittest.TestCase):
    def test_two_layouts_of_one_version_are_told_apart_by_their_size(self):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "ring")
            for version, size, expected in [
                (2, 48, "L2a"),
                (2, 16, "L2b"),
                (4, 16, "L4"),
                (5, 24, "new (version 5, 24-byte records)"),
            ]:
                path.write_bytes(rings.HEADER.pack(1, 0, version, version, 4, 3) + bytes(4 * size))
                self.assertEqual(rings.layout(path), expected)

    def test_an_event_is_read_from_its_place(self):
        record = struct.pack("<i32s4xQ", 1, b"agent_tx_bytes", 99)
        self.assertEqual(rings.one_event("L2a", record), ("agent_tx_bytes", 99))
        self.assertEqual(rings.one_event("L4", struct.pack("<IIQ", 1, 0xDEAD, 7)), ("agent_rx_bytes", 7))


NIXL_PAGE = """# HELP exposer_scrapes_total x
# TYPE exposer_scrapes_total counter
exposer_scrapes_total 1
# TYPE agent_tx_bytes_total counter
agent_tx_bytes_total{agent_name="twin",hostname="a \\"b\\""} 1e+06
agent_tx_bytes_total{agent_name="twin-target",hostname="a \\"b\\""} 0
"""
OUR_PAGE = """# TYPE agent_tx_bytes_total counter
agent_tx_bytes_total{agent_name="twin",hostname="a \\"b\\""} 1000000
# TYPE agent_started_total counter
agent_started_total{agent_name="twin",hostname="a \\"b\\""} 1
# TYPE telering_build_info gauge
telering_build_info{agent_name="twin",writer="x"} 1
"""


class Metrics(unittest.TestCase):
    def test_the_same_series_and_those_of_one_alone_are_no_difference(self):
        self.assertEqual(metrics.differences(NIXL_PAGE, OUR_PAGE), [])

    def test_each_kind_of_difference_is_seen(self):
        for before, after, expected in [
            ("1000000", "999999", "NIXL says 1e\\+06"),
            ('hostname="a', 'hostname="b', "missing: agent_tx_bytes_total"),
            ("agent_tx_bytes_total counter", "agent_tx_bytes_total gauge", "is a gauge, NIXL says counter"),
            ("agent_started_total", "agent_begun_total", "unexpected: agent_begun_total"),
            ('twin",hostname', 'twin",category="x",hostname', "missing: agent_tx_bytes_total"),
        ]:
            wrong = metrics.differences(NIXL_PAGE, OUR_PAGE.replace(before, after))
            self.assertTrue(wrong, after)
            self.assertRegex("\n".join(wrong), expected)

    def test_a_histogram_is_unexpected_only_where_nixl_has_it(self):
        ours = OUR_PAGE + "# TYPE agent_xfer_time_us histogram\nagent_xfer_time_us_sum 3\n"
        self.assertEqual(metrics.differences(NIXL_PAGE, ours), [])
        nixl = NIXL_PAGE + "# TYPE agent_xfer_time_us histogram\nagent_xfer_time_us_count 3\n"
        self.assertEqual(len(metrics.differences(nixl, ours)), 2)

    def test_a_series_that_comes_twice_is_seen(self):
        with self.assertRaisesRegex(Failed, "comes twice"):
            metrics.parse(OUR_PAGE + "telering_build_info{writer=\"x\",agent_name=\"twin\"} 2\n")


class Plugins(unittest.TestCase):
    def seen(self, warnings=None, mode="Captured", mapped=(), requests=100):
        said = ["exporter: the exporter plug-in /x/a.so is a telemetry exporter of NIXL's, in C++"]
        page = f'agent_tx_requests_num_total{{agent_name="host"}} {requests}\n'
        report = {"warnings": said if warnings is None else warnings, "mode": mode, "metrics": page}
        return {"report": report, "mapped": list(mapped)}

    def test_a_refusal_that_says_what_it_is_passes(self):
        plugins.judge(self.seen(), Path("/x/a.so"))

    def test_each_thing_that_is_not_as_it_should_be_is_seen(self):
        other = "exporter: the exporter plug-in /x/a.so is no exporter plug-in"
        for wrong in (
            {"warnings": []},
            {"warnings": [other]},
            {"warnings": [other, other]},
            {"mode": "Exported"},
            {"mapped": ["7f r-xp /x/a.so"]},
            {"requests": 99},
        ):
            with self.subTest(wrong), self.assertRaises(Failed):
                plugins.judge(self.seen(**wrong), Path("/x/a.so"))
        with self.assertRaises(Failed):
            plugins.judge(self.seen(), Path("/x/b.so"))


class Processes(unittest.TestCase):
    def test_a_process_that_does_not_end_is_ended_and_named(self):
        child = Child([sys.executable, "-c", "import time; time.sleep(60)"])
        with self.assertRaisesRegex(Failed, "still running"):
            child.wait(0.2)
        self.assertFalse(child.running)


if __name__ == "__main__":
    unittest.main()

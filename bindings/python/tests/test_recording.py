"""What is recorded, and that the reader finds the same."""

import time

import pytest
import telering
from conftest import items
from telering_reader import Reader, transfers


def test_a_transfer_tells_what_it_did_and_the_file_says_the_same(agent):
    before = time.monotonic_ns() // 1000
    with agent.transfer("write", 65536, descs=4) as transfer:
        time.sleep(0.002)
        transfer.posted()
        time.sleep(0.003)
    after = time.monotonic_ns() // 1000
    telem = agent.get_xfer_telemetry(transfer)
    assert (telem.totalBytes, telem.descCount) == (65536, 4)
    # NIXL's units: microseconds of the monotonic clock, and of durations.
    assert before <= telem.startTime <= after - 5000
    assert 2000 <= telem.postDuration <= telem.xferDuration - 3000 <= after - before
    assert all(type(getattr(telem, name)) is int for name in dir(telem) if not name.startswith("_"))
    agent.flush()
    assert items(agent.path) == [
        ("agent_xfer_post_time", telem.postDuration),
        ("agent_xfer_time", telem.xferDuration),
        ("agent_tx_bytes", 65536),
        ("agent_tx_requests_num", 1),
    ]
    (read,) = list(transfers(str(agent.path.parent)))
    assert (read.bytes, read.xfer_us) == (65536, telem.xferDuration)


def test_every_kind_of_event_reaches_the_file(agent):
    agent.memory_registered(4096)
    agent.memory_deregistered(1024)
    agent.metadata_sent(10)
    agent.metadata_received(20)
    agent.connected()
    agent.disconnected()
    agent.record_transfer("READ", 7, 2, 30, 40)
    agent.record_transfer("read", bytes=8, descs=1, post_us=90, xfer_us=50)
    agent.error(telering.Status.NOT_FOUND)
    agent.event("cache_hit", 2**64 - 1)
    agent.backend().addTelemetryEvent("rail_switch", 3)
    counts = agent.close()
    assert sorted(items(agent.path)) == sorted(
        [
            ("agent_memory_registered", 4096),
            ("agent_memory_deregistered", 1024),
            ("agent_metadata_sent", 10),
            ("agent_metadata_received", 20),
            ("agent_connected", 1),
            ("agent_disconnected", 1),
            ("agent_xfer_post_time", 30),
            ("agent_xfer_time", 40),
            ("agent_rx_bytes", 7),
            ("agent_rx_requests_num", 1),
            # A transfer takes as long as its post at least.
            ("agent_xfer_post_time", 90),
            ("agent_xfer_time", 90),
            ("agent_rx_bytes", 8),
            ("agent_rx_requests_num", 1),
            ("NIXL_ERR_NOT_FOUND", 1),
            ("cache_hit", 2**64 - 1),
            ("rail_switch", 3),
        ]
    )
    assert (counts.recorded, counts.exported, counts.lost) == (17, 17, 0)
    assert agent.close() == counts == agent.counts()


def test_totals_are_those_of_the_file(agent):
    for size in (100, 200, 300):
        agent.record_transfer("write", size, 1, 1, 2)
    agent.error(-11)
    totals = agent.totals()
    assert (totals["agent_tx_bytes"].sum, totals["agent_tx_bytes"].count, totals["agent_tx_bytes"].last) == (600, 3, 300)
    assert totals["NIXL_ERR_CANCELED"].count == 1 and totals["NIXL_ERR_BACKEND"].count == 0
    agent.close()
    metrics = Reader(str(agent.path)).metrics()
    assert (metrics.entry(0).sum, metrics.entry(0).count) == (600, 3)


def test_a_backend_takes_its_events_back_or_a_flush_exports_them(agent):
    backend = agent.backend()
    assert backend.enabled
    taken = []
    # Between the two calls a flush may take it: then it is in the file.
    for number in range(50):
        backend.add_telemetry_event("rail_switch", number)
        taken += [(event.name, event.value) for event in backend.get_telemetry_events()]
    assert all(name == "rail_switch" for name, _ in taken)
    assert backend.getTelemetryEvents() == []
    agent.close()
    assert sorted(taken + items(agent.path)) == [("rail_switch", number) for number in range(50)]


def test_a_backend_event_has_its_time():
    agent = telering.Agent("agent", True)
    backend = telering.Backend(agent)
    before = time.time_ns() // 1000
    backend.add_telemetry_event("rail_switch", 3)
    (event,) = backend.get_telemetry_events()
    assert before - 1000 <= event.timestamp_us <= time.time_ns() // 1000 + 1000


class nixlNotFoundError(Exception):
    """Named as NIXL's own."""


class PeerIsGone(ConnectionResetError):
    pass


@pytest.mark.parametrize(
    "error, status",
    [
        (nixlNotFoundError, "NIXL_ERR_NOT_FOUND"),
        (PeerIsGone, "NIXL_ERR_REMOTE_DISCONNECT"),
        (OSError, "NIXL_ERR_BACKEND"),
        (KeyboardInterrupt, "NIXL_ERR_CANCELED"),
        (ZeroDivisionError, "NIXL_ERR_UNKNOWN"),
    ],
)
def test_an_exception_inside_a_transfer_fails_it_and_goes_on(agent, error, status):
    with pytest.raises(error):
        with agent.transfer("write", 10) as transfer:
            transfer.posted()
            raise error()
    assert agent.get_xfer_telemetry(transfer) is None and not transfer.finished
    agent.close()
    assert items(agent.path) == [(status, 1)]


def test_a_transfer_that_failed_inside_its_block_is_not_done(agent):
    with agent.transfer("write", 10) as transfer:
        transfer.failed(telering.Status.MISMATCH)
    agent.close()
    assert items(agent.path) == [("NIXL_ERR_MISMATCH", 1)]


def test_a_transfer_thrown_away_is_cancelled_and_keeps_its_agent_until_then(tmp_path):
    agent = telering.Agent("agent", enable=True, dir=tmp_path)
    path, transfer = agent.path, agent.transfer("write", 10)
    del agent
    del transfer
    assert items(path) == [("NIXL_ERR_CANCELED", 1)]
    assert Reader(str(path)).info().liveness == "closed"


def test_only_the_metrics_asked_for_are_recorded(tmp_path):
    with telering.Agent("agent", enable=True, dir=tmp_path, metrics="agent_tx_*") as agent:
        agent.record_transfer("write", 5, 1, 1, 1)
        agent.event("cache_hit", 1)
    assert items(agent.path) == [("agent_tx_bytes", 5), ("agent_tx_requests_num", 1)]


def test_failures_count_where_they_alone_are_wanted(tmp_path):
    with telering.Agent("agent", enable=True, dir=tmp_path, metrics="agent_err_*") as agent:
        with agent.transfer("write", 5) as transfer:
            pass
        assert transfer.finished and transfer.telemetry is None
        agent.transfer("read", 5).failed(telering.Status.MISMATCH)
        agent.transfer("read", 5)
    assert items(agent.path) == [("NIXL_ERR_MISMATCH", 1), ("NIXL_ERR_CANCELED", 1)]


def test_settings_arrive(tmp_path):
    with telering.Agent(
        "prefill/0",
        enable=True,
        dir=str(tmp_path / "made" / "for us"),
        buffer_size=128,
        run_interval=0.01,
        staging_records=256,
        rank=7,
        file_mode=0o600,
        histogram_buckets_us=[1, 10, 100],
        close_patience=5,
    ) as agent:
        agent.record_transfer("write", 5, 1, 1, 50)
    assert agent.path.name == "prefill%2F0" and agent.path.stat().st_mode & 0o777 == 0o600
    with Reader(str(agent.path)) as reader:
        info = reader.info()
        assert info.capacity == 128 and info.identity.rank == "7" and info.identity.agent == "prefill/0"
        assert list(reader.metrics().bounds) == [1, 10, 100]


def test_the_environment_counts_unless_told_otherwise(tmp_path, monkeypatch):
    monkeypatch.setenv("NIXL_TELEMETRY_ENABLE", "y")
    monkeypatch.setenv("NIXL_TELEMETRY_DIR", str(tmp_path))
    with telering.Agent("agent") as agent:
        assert agent.mode == "exported" and agent.path == tmp_path / "agent"
    with telering.Agent("other", ignore_environment=True) as agent:
        assert agent.mode == "off" and agent.path is None

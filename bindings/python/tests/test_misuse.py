"""Misuse ends in a Python exception or in None, as documented; trouble with telemetry in neither."""

import gc
import logging
import os
import sys
import sysconfig
import weakref

import pytest
import telering
from conftest import items, run_program
from telering_reader import Reader


def test_without_telemetry_a_thousand_transfers_succeed_and_their_stats_are_none():
    agent = telering.Agent("agent", ignore_environment=True)
    assert agent.mode == "off"
    for _ in range(1000):
        with agent.transfer("write", 10) as transfer:
            assert agent.get_xfer_telemetry(transfer) is None
            transfer.posted()
        assert agent.get_xfer_telemetry(transfer) is None and transfer.telemetry is None and not transfer.finished
    agent.memory_registered(1)
    agent.error(-1)
    agent.event("x", 1)
    backend = agent.backend()
    backend.addTelemetryEvent("x", 1)
    assert not backend.enabled and backend.getTelemetryEvents() == []
    assert agent.flush() and agent.close().recorded == 0 and agent.path is None


@pytest.mark.parametrize("trouble", ["/proc/no/such/folder", "/dev/null", "nul\0inside", ""])
def test_a_folder_that_cannot_be_is_one_warning_and_stats_go_on(trouble, caplog):
    with telering.Agent("agent", True, enable=True, dir=trouble) as agent:
        for _ in range(1000):
            with agent.transfer("read", 10) as transfer:
                pass
            assert agent.get_xfer_telemetry(transfer).totalBytes == 10
        assert agent.path is None
    assert len(caplog.records) <= 1


def test_stats_are_none_until_the_transfer_is_done_and_stay_what_they_are(agent):
    transfer = agent.transfer("write", 10)
    assert agent.get_xfer_telemetry(transfer) is None
    transfer.posted()
    assert agent.get_xfer_telemetry(transfer) is None
    transfer.done()
    telem = agent.get_xfer_telemetry(transfer)
    transfer.posted()
    transfer.done()
    transfer.failed()
    assert agent.get_xfer_telemetry(transfer) is telem is transfer.telemetry and transfer.finished
    agent.close()
    assert [value for name, value in items(agent.path) if name == "agent_tx_requests_num"] == [1]
    assert agent.get_xfer_telemetry(transfer) == telem
    with pytest.raises(AttributeError):
        telem.totalBytes = 3


def test_the_stats_of_another_agents_transfer_are_none(agent):
    other = telering.Agent("other", True)
    transfer = other.transfer("write", 10)
    transfer.done()
    assert agent.get_xfer_telemetry(transfer) is None and other.get_xfer_telemetry(transfer) is not None


@pytest.mark.parametrize("mode", ["off", "captured", "closed"])
def test_the_stats_of_what_is_no_transfer_are_none(mode):
    agent = telering.Agent("agent", mode != "off", ignore_environment=True)
    if mode == "closed":
        agent.close()
    # Such as the handle of another library, or None where posting failed.
    for foreign in (None, 0, 7, "handle", object(), agent, agent.backend(), telering.Transfer):
        assert agent.get_xfer_telemetry(foreign) is None


def test_an_interpreter_that_could_do_without_its_lock_takes_it():
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        assert "True" in run_program("import sys, telering; print(sys._is_gil_enabled())")


def test_a_closed_agent_refuses_says_so_once_and_raises_nothing(tmp_path, caplog):
    agent = telering.Agent("agent", True, enable=True, dir=tmp_path)
    under_way = agent.transfer("write", 1)
    agent.close()
    with caplog.at_level(logging.WARNING, "telering"):
        for _ in range(100):
            agent.event("late", 1)
            agent.memory_registered(1)
            agent.backend().add_telemetry_event("late", 1)
            with agent.transfer("write", 10) as transfer:
                pass
        under_way.done()
    assert agent.closed and agent.flush() and agent.close().recorded == 0
    assert agent.get_xfer_telemetry(transfer).totalBytes == 10
    late = [record.message for record in caplog.records if "after its agent was closed" in record.message]
    assert 1 <= len(late) <= 2 and items(agent.path) == []


@pytest.mark.parametrize("value", [-1, 2**64, -(2**200), 10**400])
def test_numbers_that_fit_nowhere_raise_overflow(agent, value):
    for call in (
        lambda: agent.transfer("write", value),
        lambda: agent.transfer("write", 1, value),
        lambda: agent.record_transfer("write", 1, 1, value, 1),
        lambda: agent.memory_registered(value),
        lambda: agent.event("x", value),
        lambda: agent.backend().add_telemetry_event("x", value),
        lambda: telering.Agent("x", buffer_size=value),
    ):
        with pytest.raises(OverflowError):
            call()
    agent.close()
    assert items(agent.path) == []


@pytest.mark.parametrize("status", [0, 1, -13, 2**31, -(2**63)])
def test_a_status_that_is_none_raises_value_error(agent, status):
    for call in (lambda: agent.error(status), lambda: agent.transfer("write", 1).failed(status)):
        with pytest.raises(ValueError, match="telering.Status"):
            call()


@pytest.mark.parametrize("wrong", [None, 1.5, b"write", [], object(), "1"])
def test_wrong_types_raise_type_error(agent, wrong):
    for call in (
        lambda: agent.transfer("write", wrong),
        lambda: agent.event("x", wrong),
        lambda: agent.error(wrong),
        lambda: telering.Backend(wrong),
        lambda: telering.Agent("x", run_interval="1"),
    ):
        with pytest.raises(TypeError):
            call()
    if not isinstance(wrong, str):
        for call in (lambda: agent.event(wrong, 1), lambda: telering.Agent(wrong), lambda: agent.transfer(wrong, 1)):
            with pytest.raises(TypeError):
                call()


def test_durations_that_are_none_raise_value_error(agent):
    for seconds in (-1.0, float("nan"), float("inf"), 1e300):
        with pytest.raises(ValueError, match="seconds"):
            agent.flush(seconds)
        with pytest.raises(ValueError, match="seconds"):
            telering.Agent("x", run_interval=seconds)
    with pytest.raises(ValueError, match="sideways"):
        agent.transfer("sideways", 1)


def test_many_descriptors_count_as_the_most_there_are(agent):
    with agent.transfer("write", 2**64 - 1, 2**64 - 1) as transfer:
        pass
    assert (transfer.telemetry.totalBytes, transfer.telemetry.descCount) == (2**64 - 1, 2**32 - 1)


def test_names_of_any_text_are_recorded_under_a_clean_one(agent):
    names = ["", "nul\0inside", "sur\udcff\ud800rogate", "a" * 10000, "é" * 16, "line\nfeed", "\U0001f600"]
    for name in names:
        agent.event(name, 1)
        agent.backend().add_telemetry_event(name, 2)
    agent.close()
    found = [name for name, _ in items(agent.path)]
    assert len(found) == 14 and {"_", "nul_inside", "a" * 31, "é" * 15, "line_feed", "\U0001f600"} <= set(found)
    assert all(0 < len(name.encode()) <= 31 for name in found)


@pytest.mark.parametrize("name", ["nul\0inside", "sur\udcffrogate", "../../escape", "é", ".hidden", "a" * 150])
def test_agents_of_any_name_stay_in_their_folder(tmp_path, name):
    with telering.Agent(name, enable=True, dir=tmp_path) as agent:
        agent.event("x", 1)
    assert agent.path.parent == tmp_path and items(agent.path) == [("x", 1)]


@pytest.mark.parametrize("name", ["", "a" * 10000])
def test_agents_without_a_name_for_a_file_warn_and_go_on(tmp_path, name, caplog):
    with telering.Agent(name, True, enable=True, dir=tmp_path) as agent:
        with agent.transfer("write", 1) as transfer:
            pass
    assert transfer.telemetry is not None and len(caplog.records) == 1


def test_a_strict_agent_raises_what_others_warn_of(tmp_path, caplog):
    with pytest.raises(telering.StartError, match="100 events"):
        telering.Agent("x", enable=True, dir=tmp_path, buffer_size=100, strict=True)
    assert issubclass(telering.StartError, RuntimeError) and not caplog.records
    with telering.Agent("x", enable=True, dir=tmp_path, buffer_size=100):
        pass
    assert [record.name for record in caplog.records] == ["telering"]


def test_a_warning_of_the_flush_thread_is_told_by_the_next_call(tmp_path, caplog):
    with telering.Agent("agent", enable=True, dir=tmp_path, run_interval=0.01) as agent:
        # Somebody makes the file longer: the flush thread makes a new one and has something to say. (Shorter could meet
        # it in the midst of a batch.)
        os.truncate(agent.path, 1 << 24)
        agent.event("x", 1)
        agent.flush()
        agent.event("y", 1)
    assert any("truncated" in record.message or "size" in record.message for record in caplog.records), caplog.text


def test_logging_that_raises_or_calls_back_does_no_harm(agent, monkeypatch):
    unraisable = []
    monkeypatch.setattr(sys, "unraisablehook", unraisable.append)
    calls = []

    class Nasty(logging.Filter):
        def filter(self, record):
            calls.append(record)
            # Comes back into the agent, and into the same transfer.
            agent.event("from the filter", 1)
            transfer.done()
            raise ZeroDivisionError

    logger, nasty = logging.getLogger("telering"), Nasty()
    logger.addFilter(nasty)
    try:
        agent.close()
        transfer = agent.transfer("write", 1)
        transfer.done()
        agent.event("late", 1)
    finally:
        logger.removeFilter(nasty)
    assert calls and all(hook.exc_type is ZeroDivisionError for hook in unraisable) and len(unraisable) == len(calls)


def test_objects_can_be_referred_to_weakly_and_go(tmp_path):
    agent = telering.Agent("agent", enable=True, dir=tmp_path)
    path, weak = agent.path, weakref.ref(agent)
    agent.event("x", 1)
    cycle = [agent]
    cycle.append(cycle)
    del agent, cycle
    gc.collect()
    # The last reference closes: all is in the file.
    assert weak() is None and items(path) == [("x", 1)] and Reader(str(path)).info().liveness == "closed"


def test_an_agent_that_goes_while_an_exception_is_on_its_way_leaves_it_alone(tmp_path):
    # In a process of its own: what the first warning of a process loads would forget a foreign exception.
    out = run_program(
        """
import sys, telering

def with_something_to_say():
    agent = telering.Agent("agent", enable=True, dir=sys.argv[1], run_interval=3600)
    agent.path.write_bytes(b"")
    agent.event("x", 1)
    return agent

try:
    # The list's error is on its way when the argument's last reference goes.
    [].index(with_something_to_say())
except ValueError as error:
    print(error)
""",
        tmp_path,
    )
    assert "not in list" in out


def test_a_second_interpreter_is_refused_with_a_sentence():
    out = run_program(
        """
import telering
try:
    import _xxsubinterpreters as interpreters
except ImportError:
    import _interpreters as interpreters
code = '''
try:
    import telering
except ImportError as error:
    print("refused:", error)
else:
    print("let in")
'''
try:
    interpreters.run_string(interpreters.create(), code)
except Exception as error:
    print("refused:", error)
"""
    )
    assert "refused:" in out and "nterpreter" in out, out

"""Threads: exact totals, and the interpreter's lock given up while an agent waits."""

import queue
import sys
import threading
import time
from collections import Counter

import telering
from conftest import items
from telering_reader import Reader

THREADS, ROUNDS = 8, 4000


def in_threads(count, work):
    """Runs `work(number)` in so many threads; an exception in one is the test's."""
    errors = []

    def guarded(number):
        try:
            work(number)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(number,)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise errors[0]


def test_totals_of_many_threads_are_exact_and_the_file_holds_every_event(tmp_path):
    agent = telering.Agent("agent", True, enable=True, dir=tmp_path, buffer_size=1 << 19, staging_records=1 << 16)
    handed = queue.SimpleQueue()
    backend = agent.backend()

    def work(number):
        for round_ in range(ROUNDS):
            with agent.transfer("write", number * ROUNDS + round_, descs=2) as transfer:
                transfer.posted()
            assert agent.get_xfer_telemetry(transfer).totalBytes == number * ROUNDS + round_
            agent.event("cache_hit", 1)
            if round_ % 8 == 0:
                # Begun here, done by whoever takes it.
                handed.put(agent.transfer("read", 1))
                handed.get().done()
                agent.error(telering.Status.BACKEND)
            if round_ % 64 == 0:
                backend.add_telemetry_event("rail_switch", number)
                agent.flush()

    in_threads(THREADS, work)
    counts, totals = agent.close(), agent.totals()
    writes, reads = THREADS * ROUNDS, THREADS * ROUNDS // 8
    backends = THREADS * -(-ROUNDS // 64)
    assert (totals["agent_tx_bytes"].sum, totals["agent_tx_bytes"].count) == (writes * (writes - 1) // 2, writes)
    assert (totals["agent_rx_bytes"].sum, totals["NIXL_ERR_BACKEND"].count) == (reads, reads)
    assert counts.recorded == 5 * writes + 5 * reads + backends and counts.lost == 0
    found = items(agent.path)
    assert len(found) == counts.exported == counts.recorded
    assert Counter(value for name, value in found if name == "agent_tx_bytes") == Counter(range(writes))
    assert Counter(name for name, _ in found)["rail_switch"] == backends
    metrics = Reader(str(agent.path)).metrics()
    assert metrics.entry(0).sum == totals["agent_tx_bytes"].sum


def test_one_transfer_in_the_hands_of_many_threads_is_recorded_once(agent):
    for _ in range(300):
        transfer = agent.transfer("write", 1)

        def work(_):
            try:
                transfer.posted()
                transfer.done()
                transfer.failed()
            except RuntimeError as error:
                assert "two threads" in str(error)
            agent.get_xfer_telemetry(transfer)

        in_threads(4, work)
    assert agent.totals()["agent_tx_requests_num"].count == 300


def test_recording_goes_on_while_another_thread_closes(tmp_path):
    for number in range(20):
        agent = telering.Agent(f"agent-{number}", True, enable=True, dir=tmp_path, buffer_size=1 << 17)

        def work(thread):
            if thread == 0:
                while agent.totals()["agent_tx_bytes"].count == 0:
                    time.sleep(0.001)
                return agent.close()
            while not agent.closed:
                agent.record_transfer("write", 1, 1, 1, 1)
                agent.flush()

        in_threads(4, work)
        counts = agent.close()
        # What is being recorded at the very moment of the close may be in either half.
        assert counts.exported + counts.lost <= counts.recorded <= 4 * agent.totals()["agent_tx_bytes"].count
        assert len(items(agent.path)) == counts.exported > 0


def other_threads_run_during(wait, prepare, tries=1000):
    """Whether another Python thread runs while `wait(prepare())` does; tries until it has seen that, or so often."""
    ran, stop = [0], threading.Event()

    def tick():
        while not stop.is_set():
            ran[0] += 1
            time.sleep(0)

    thread, interval = threading.Thread(target=tick), sys.getswitchinterval()
    thread.start()
    # Now the lock changes hands only where it is given up.
    sys.setswitchinterval(1000)
    try:
        for _ in range(tries):
            prepared = [prepare()]
            before = ran[0]
            wait(prepared.pop())
            if ran[0] != before:
                return True
        return False
    finally:
        stop.set()
        sys.setswitchinterval(interval)
        thread.join()


def test_flushing_closing_and_dropping_let_other_threads_run(tmp_path):
    def busy():
        agent = telering.Agent("agent", enable=True, dir=tmp_path, run_interval=3600)
        # The wait for a flush of so much is long enough to be seen.
        for _ in range(2000):
            agent.record_transfer("write", 1, 1, 1, 1)
        return agent

    assert other_threads_run_during(lambda agent: agent.flush(), busy)
    assert other_threads_run_during(lambda agent: agent.close(), busy)
    # The last reference goes with the call's.
    assert other_threads_run_during(lambda agent: None, busy)
    # What this test would see if they did not.
    kept = []
    assert not other_threads_run_during(kept.append, busy, tries=20)


def test_starting_lets_other_threads_run_while_the_folder_is_locked(tmp_path):
    import fcntl
    import os

    folder = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(folder, fcntl.LOCK_EX)
    timer = threading.Timer(0.2, lambda: fcntl.flock(folder, fcntl.LOCK_UN))
    timer.start()
    # Without giving the lock up, nobody would unlock the folder, and there would be no file.
    with telering.Agent("agent", enable=True, dir=tmp_path) as agent:
        assert agent.path is not None
    timer.join()
    os.close(folder)

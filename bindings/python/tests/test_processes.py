"""Forks, spawned processes and the end of the interpreter: no hang, nothing lost, nothing twice."""

import os
import signal
import subprocess
import sys

import pytest
from conftest import LIMIT_SECONDS, items, run_program, start_program
from telering_reader import Reader, scan

FORKS = """
import logging, os, sys, threading, time, warnings
import telering

said = []
logging.getLogger("telering").addFilter(lambda record: said.append(record.getMessage()) and False)

# From 3.12 on Python warns of every fork of a process with threads, which is what this is about.
warnings.simplefilter("ignore", DeprecationWarning)
directory, children = sys.argv[1], int(sys.argv[2])
agent = telering.Agent("parent", True, enable=True, dir=directory, buffer_size=1 << 20, run_interval=0.005)
transfer, backend = agent.transfer("write", 7), agent.backend()
stop, recorded = threading.Event(), 0

def record():
    global recorded
    while not stop.is_set():
        agent.event("parent", recorded)
        recorded += 1
        if recorded % 50 == 0:
            time.sleep(0.001)
        # Mostly the thread is in a wait when the process forks.
        if recorded % 2 == 0:
            agent.flush()

thread = threading.Thread(target=record)
thread.start()

def child(number):
    # The parent's agent does nothing here, and nothing of it hangs.
    agent.event("from a child", number)
    backend.add_telemetry_event("from a child", number)
    transfer.done()
    assert agent.flush() and agent.counts().recorded == 0 and agent.path is None
    assert agent.close().recorded == 0
    assert len(said) == 1 and "forked" in said[0], said
    own = telering.Agent(f"child-{number}", True, enable=True, dir=directory)
    with own.transfer("write", number) as mine:
        mine.posted()
    assert own.get_xfer_telemetry(mine).totalBytes == number
    own.event("child", number)
    if number % 4 == 0:
        own.close()
        os._exit(0)
    # The others leave it to the end of the interpreter.
    sys.exit(0)

def await_child(pid, number):
    end = time.monotonic() + 30
    while time.monotonic() < end:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            assert status == 0, f"child {number} ended with {status}"
            return
        time.sleep(0.001)
    os.kill(pid, 9)
    raise SystemExit(f"child {number} hangs")

for number in range(children):
    pid = os.fork()
    if pid == 0:
        child(number)
    await_child(pid, number)
stop.set()
thread.join()
transfer.done()
counts = agent.close()
assert counts.lost == 0 and not said, (counts, said)
print(recorded, counts.recorded)
"""


def test_two_hundred_forks_while_a_thread_records_lose_and_double_nothing(tmp_path):
    out = run_program(FORKS, tmp_path, 200)
    recorded, counted = map(int, out.split())
    found = items(tmp_path / "parent")
    assert len(found) == counted == recorded + 4
    assert [value for name, value in found if name == "parent"] == list(range(recorded))
    assert ("agent_tx_bytes", 7) in found and not any(name == "from a child" for name, _ in found)
    assert recorded > 200
    for number in range(200):
        child = items(tmp_path / f"child-{number}")
        assert child[2:] == [("agent_tx_bytes", number), ("agent_tx_requests_num", 1), ("child", number)]
    # No child kept a hand on a file.
    assert {file.liveness for file in scan(tmp_path)} == {"closed"}


WORKERS = """
import multiprocessing, sys
import telering

KEPT = []

def work(directory, number):
    agent = telering.Agent(f"worker-{number}", True, enable=True, dir=directory, run_interval=3600)
    for value in range(100):
        agent.event("work", value)
    # No close, and no last reference that goes: the process ends.
    KEPT.append(agent)

if __name__ == "__main__":
    directory, method = sys.argv[1:]
    context = multiprocessing.get_context(method)
    with telering.Agent("main", enable=True, dir=directory) as agent:
        workers = [context.Process(target=work, args=(directory, number)) for number in range(4)]
        for worker in workers:
            worker.start()
            agent.event("started", 1)
        for worker in workers:
            worker.join(60)
            assert worker.exitcode == 0, worker.exitcode
"""


@pytest.mark.parametrize("method", ["fork", "spawn", "forkserver"])
def test_workers_of_multiprocessing_leave_all_they_recorded(tmp_path, method):
    program = tmp_path / "program.py"
    program.write_text(WORKERS)
    command = [sys.executable, "-W", "ignore", str(program), str(tmp_path / "files"), method]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT_SECONDS, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert items(tmp_path / "files" / "main") == [("started", 1)] * 4
    for number in range(4):
        path = tmp_path / "files" / f"worker-{number}"
        assert items(path) == [("work", value) for value in range(100)]
        assert Reader(str(path)).info().liveness == "closed"


# What a C extension may do: the reference never goes.
FOR_EVER = "import ctypes; ctypes.pythonapi.Py_IncRef(ctypes.py_object(agent))"


@pytest.mark.parametrize("end", ["pass", "sys.exit(0)", "del agent", "sys.modules['x'] = agent", FOR_EVER])
def test_a_program_that_ends_without_close_leaves_all_it_recorded(tmp_path, end):
    run_program(
        f"""
import sys, telering
agent = telering.Agent("agent", enable=True, dir=sys.argv[1], run_interval=3600)
for value in range(1000):
    agent.event("x", value)
{end}
""",
        tmp_path,
    )
    assert items(tmp_path / "agent") == [("x", value) for value in range(1000)]
    assert Reader(str(tmp_path / "agent")).info().liveness == "closed"


def test_a_program_that_ends_by_an_exception_leaves_all_it_recorded(tmp_path):
    done = start_program(
        """
import sys, telering
agent = telering.Agent("agent", enable=True, dir=sys.argv[1], run_interval=3600)
transfer = agent.transfer("write", 5)
with transfer:
    raise KeyError("mine")
""",
        tmp_path,
    )
    assert done.returncode == 1 and done.stderr.rstrip().endswith("KeyError: 'mine'")
    assert items(tmp_path / "agent") == [("NIXL_ERR_UNKNOWN", 1)]


DAEMONS = """
import sys, threading, time
import telering

agent = telering.Agent("agent", True, enable=True, dir=sys.argv[1], run_interval=0.001)

def record():
    while True:
        with agent.transfer("write", 1):
            pass

def flush():
    while True:
        agent.event("x", 1)
        agent.flush(1000)

def come_and_go():
    while True:
        telering.Agent("other", enable=True, dir=sys.argv[1]).event("x", 1)

for work in (record, record, flush, flush, come_and_go):
    threading.Thread(target=work, daemon=True).start()
time.sleep(float(sys.argv[2]))
"""


def test_daemon_threads_that_still_record_do_not_disturb_the_end(tmp_path):
    for number in range(25):
        folder = tmp_path / str(number)
        done = start_program(DAEMONS, folder, number * 0.003)
        assert (done.returncode, done.stderr) == (0, ""), done.stderr
        with Reader(str(folder / "agent")) as reader:
            assert reader.info().liveness == "closed"


def test_slow_logging_on_a_daemon_thread_does_not_disturb_the_end(tmp_path):
    done = start_program(
        """
import logging, sys, threading, time
import telering

# No handler: the end of `logging` would wait for its lock.
class Slow(logging.Filter):
    def filter(self, record):
        inside.set()
        time.sleep(0.2)
        return False

class SlowToGo:
    # Keeps the interpreter busy with its own end, while it stops every thread that wants its lock.

    def __del__(self, sleep=time.sleep):
        sleep(0.6)

sys.slow_to_go = SlowToGo()
logging.getLogger("telering").addFilter(Slow())
inside = threading.Event()
agent = telering.Agent("agent", enable=True, dir=sys.argv[1])
agent.close()
threading.Thread(target=agent.event, args=("late", 1), daemon=True).start()
inside.wait()
""",
        tmp_path,
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_a_signal_handler_that_raises_leaves_a_wait_and_nothing_else(tmp_path):
    out = run_program(
        """
import signal, sys, telering
agent = telering.Agent("agent", enable=True, dir=sys.argv[1], buffer_size=1 << 20)
done = 0
try:
    signal.setitimer(signal.ITIMER_REAL, 0.05)
    signal.signal(signal.SIGALRM, lambda *_: 1 / 0)
    while True:
        agent.event("x", done)
        done += 1
        if done % 500 == 0:
            agent.flush()
except ZeroDivisionError:
    pass
agent.close()
print(done)
""",
        tmp_path,
    )
    # The handler may run between an event and its being counted.
    assert len(items(tmp_path / "agent")) - int(out) in (0, 1)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_what_was_flushed_before_a_kill_can_be_read(tmp_path, number):
    done = start_program(
        f"""
import os, sys, telering
agent = telering.Agent("agent", enable=True, dir=sys.argv[1])
agent.event("x", 1)
agent.flush()
os.kill(os.getpid(), {int(number)})
""",
        tmp_path,
    )
    assert done.returncode == -number
    assert items(tmp_path / "agent") == [("x", 1)]
    assert Reader(str(tmp_path / "agent")).info().liveness == "dead" and os.path.exists(tmp_path / "agent")

"""Nothing is left of what is gone: memory, descriptors, threads."""

from conftest import run_program

LEAKS = """
import gc, os, sys, time
import telering

def resident():
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def captured(count):
    for _ in range(count):
        agent = telering.Agent("agent", True, ignore_environment=True)
        with agent.transfer("write", 1, 2) as transfer:
            transfer.posted()
        assert agent.get_xfer_telemetry(transfer) is agent.get_xfer_telemetry(transfer)
        agent.backend().add_telemetry_event("x", 1)
        agent.counts(), agent.totals() if _ % 100 == 0 else None

def transfers(agent, count):
    for number in range(count):
        transfer = agent.transfer("read", number)
        if number % 3 == 0:
            transfer.done()
            str(agent.get_xfer_telemetry(transfer))
        elif number % 3 == 1:
            transfer.failed()
        try:
            agent.event("x", -1)
        except OverflowError:
            pass

def exported(count):
    for number in range(count):
        with telering.Agent("agent", enable=True, dir=sys.argv[1]) as agent:
            agent.event("x", number)

def descriptors():
    return len(os.listdir("/proc/self/fd")), len(os.listdir("/proc/self/task"))

agent = telering.Agent("long", enable=True, dir=sys.argv[1])
for work, warm, many in (
    (captured, 5000, 100000), (lambda count: transfers(agent, count), 5000, 100000), (exported, 50, 500)
):
    work(warm)
    time.sleep(0.1)
    before, open_before, objects = resident(), descriptors(), len(gc.get_objects())
    work(many)
    grown = resident() - before
    # A leak of one word for each object would be 0.8 MB, and the smallest object has four.
    assert grown < 1_500_000, f"{grown} bytes more after {many}"
    # A flush thread that has said good-bye is on its way out.
    end = time.monotonic() + 30
    while descriptors() != open_before:
        assert time.monotonic() < end, (descriptors(), open_before)
        time.sleep(0.01)
    assert len(gc.get_objects()) < objects + 100
"""


def test_a_hundred_thousand_agents_and_transfers_leave_nothing_behind(tmp_path):
    run_program(LEAKS, tmp_path)

"""Two real NIXL agents in this process, moving bytes between each other over the CPU.

Runs inside the virtual environment of one NIXL version. The initiator keeps its own account of what it did, event
by event, so that a reader's sums can be compared with something that never went through a telemetry file.
"""

import importlib
import sys
import time
import types

# Up to 1.3.2 the Python module imports torch when it loads, only to know the name of one type.
try:
    import torch  # noqa: F401
except ImportError:
    stub = types.ModuleType("torch")
    stub.Tensor = type("Tensor", (), {})
    sys.modules["torch"] = stub

import numpy  # noqa: E402

api = importlib.import_module("nixl_cu12._api")

REGION_BYTES = 1 << 20
TRANSFER_LIMIT_SECONDS = 20.0


class Account:
    """What was done, per telemetry event: how often, and the sum of the values."""

    def __init__(self):
        self.events = {}

    def add(self, event, value):
        entry = self.events.setdefault(event, {"count": 0, "sum": 0})
        entry["count"] += 1
        entry["sum"] += value


class Pair:
    """An initiator NAME and its target NAME-target, each with one registered region of REGION_BYTES."""

    def __init__(self, name):
        # No listener thread: two agents of one process would both want its port.
        config = api.nixl_agent_config(True, False, 0, backends=["UCX"], capture_telemetry=True)
        self.account = Account()
        self.initiator = api.nixl_agent(name, config)
        self.target = api.nixl_agent(name + "-target", config)
        self.regions = []
        self.registrations = []
        for agent in (self.initiator, self.target):
            region = numpy.zeros(REGION_BYTES, dtype=numpy.uint8)
            self.regions.append(region)
            self.registrations.append(agent.register_memory([(region.ctypes.data, REGION_BYTES, 0, "")], "DRAM"))
        self.account.add("agent_memory_registered", REGION_BYTES)
        self.regions[0][:] = numpy.arange(REGION_BYTES, dtype=numpy.uint32).astype(numpy.uint8)
        self.remote = self.initiator.add_remote_agent(self.target.get_agent_metadata())
        if isinstance(self.remote, bytes):
            self.remote = self.remote.decode()

    def move(self, operation, size):
        """Moves `size` bytes ("WRITE" to the target, "READ" from it) and waits until they have arrived. Returns NIXL's statistics."""
        local, remote = (
            agent.get_xfer_descs([(region.ctypes.data, size, 0)], "DRAM")
            for agent, region in zip((self.initiator, self.target), self.regions)
        )
        handle = self.initiator.initialize_xfer(operation, local, remote, self.remote)
        state = self.initiator.transfer(handle)
        end = time.monotonic() + TRANSFER_LIMIT_SECONDS
        while state == "PROC" and time.monotonic() < end:
            state = self.initiator.check_xfer_state(handle)
        if state != "DONE":
            raise RuntimeError(f"a {operation} of {size} bytes ended as {state}")
        stats = self.initiator.get_xfer_telemetry(handle)
        self.initiator.release_xfer_handle(handle)
        if stats.totalBytes != size:
            raise RuntimeError(f"NIXL says that {stats.totalBytes} bytes were moved, asked were {size}")
        direction = "tx" if operation == "WRITE" else "rx"
        self.account.add("agent_xfer_post_time", stats.postDuration)
        self.account.add("agent_xfer_time", stats.xferDuration)
        self.account.add(f"agent_{direction}_bytes", size)
        self.account.add(f"agent_{direction}_requests_num", 1)
        return stats

    def fail_once(self):
        """Asks for a transfer with an agent nobody knows: NIXL records one error event."""
        descriptors = self.initiator.get_xfer_descs([(self.regions[0].ctypes.data, 64, 0)], "DRAM")
        try:
            self.initiator.initialize_xfer("WRITE", descriptors, descriptors, "nobody-knows-this-agent")
        except Exception:  # Its type differs between versions; that it is refused is what matters.
            self.account.add("agent_err_not_found", 1)
        else:
            raise RuntimeError("NIXL took a transfer to an unknown agent")

    def bytes_arrived(self):
        """Whether the target's region begins with what was written last."""
        return bool((self.regions[0][:4096] == self.regions[1][:4096]).all())

    def deregister(self):
        for agent, registration in zip((self.initiator, self.target), self.registrations):
            agent.deregister_memory(registration)
        self.account.add("agent_memory_deregistered", REGION_BYTES)

    def drop(self):
        """Lets the agents go: their destructors end the flush threads."""
        self.initiator = self.target = None
        self.registrations = []

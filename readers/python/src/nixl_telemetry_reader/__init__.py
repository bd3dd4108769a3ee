"""The reader of NIXL's telemetry guide, for files of NIXL (all versions) and of Telering.

>>> from nixl_telemetry_reader import SharedRingBuffer
>>> buffer = SharedRingBuffer("/tmp/nixl_telemetry/agent_name", version=1)               # doctest: +SKIP
>>> event = buffer.pop()                                                                # doctest: +SKIP

On NIXL's own files `pop` consumes, as NIXL's class does: it needs write permission, and there may be one consumer.
On Telering's it has a cursor of its own, from the oldest event, and changes nothing.
"""

from .buffer import SharedRingBuffer, TelemetryEvent

__all__ = ["SharedRingBuffer", "TelemetryEvent"]

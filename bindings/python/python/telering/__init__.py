"""Telemetry for data-transfer engines: record transfers, keep the newest in a file, read them live or after a crash.

>>> import telering
>>> with telering.Agent("prefill-0", capture_telemetry=True, ignore_environment=True) as agent:
...     with agent.transfer("write", 65536, descs=4) as transfer:
...         transfer.posted()               # the backend has the request
...     telem = agent.get_xfer_telemetry(transfer)
>>> telem.totalBytes, telem.descCount
(65536, 4)

Whatever is wrong with telemetry is one warning of the logger `telering` and less telemetry, never an exception. The
package `telering_reader` reads the files.
"""

from . import _life
from ._status import Status
from ._telering import (
    PROMETHEUS_CONTENT_TYPE,
    Agent,
    Backend,
    BackendEvent,
    Counts,
    StartError,
    Total,
    Transfer,
    XferTelemetry,
    __version__,
    render_prometheus,
)

_life.install()

__all__ = [
    "PROMETHEUS_CONTENT_TYPE",
    "Agent",
    "Backend",
    "BackendEvent",
    "Counts",
    "StartError",
    "Status",
    "Total",
    "Transfer",
    "XferTelemetry",
    "__version__",
    "render_prometheus",
]

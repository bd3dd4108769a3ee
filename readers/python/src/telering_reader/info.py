"""Everything that a file says about itself."""

from __future__ import annotations

from typing import Any, Dict, List, NamedTuple, Optional

from .check import RECORD_SIZE
from .errors import PathLike, Resized
from .file import File
from .image import HEADER_SIZE, ImageRing, liveness, now_us, read_control
from .nixl import RECORD_SIZES, NixlRing, probe
from .parts import Clock, DynamicMetric, Identity, Losses, Metrics, Notices, Parts, Row


class FileInfo(NamedTuple):
    """One look at a file. Texts are as the file holds them: escape them before a terminal sees them.

    None stands where the layout or the file has nothing to say.

    `layout`        `image`, or NIXL's `L1`, `L2a`, `L2b`, `L3`, `L4`
    `version`       `1.0` of an image, `4` of NIXL's
    `length`        bytes of the file; `capacity` records of `record_size` bytes
    `liveness`      `alive`, `alive_by_heartbeat`, `dead` (killed, or a copy), `closed`, `unknown`
    `committed`, `intent`               positions of an image
    `write_pos`, `read_pos`, `waiting`  indices of NIXL's own, and how many events wait between them
    `created`, `heartbeat`              Unix microseconds, 0 where there is no wall clock
    `time_base`     0: times are Unix microseconds; 1: microseconds since boot
    `state`         1 open, 2 closed in good order
    """

    path: PathLike
    layout: str
    version: str
    length: int
    capacity: int
    record_size: int
    liveness: str
    committed: Optional[int] = None
    intent: Optional[int] = None
    write_pos: Optional[int] = None
    read_pos: Optional[int] = None
    waiting: Optional[int] = None
    instance: Optional[int] = None
    created: Optional[int] = None
    heartbeat: Optional[int] = None
    metrics_time: Optional[int] = None
    state: Optional[int] = None
    time_base: int = 0
    boots: Optional[int] = None
    checks: bool = False
    identity: Optional[Identity] = None
    losses: Optional[Losses] = None
    notices: Optional[Notices] = None
    metrics: Optional[Metrics] = None
    dynamic: Optional[List[DynamicMetric]] = None
    clock: Optional[Clock] = None
    parts: List[Row] = []

    @property
    def agent(self) -> str:
        """The agent's name, empty where the file doesn't say."""
        return self.identity.agent if self.identity else ""

    @property
    def rank(self) -> str:
        """The rank, empty where there is none."""
        return self.identity.rank if self.identity else ""

    @property
    def lost(self) -> Optional[int]:
        """Events that the producer lost before they reached the file."""
        return self.losses.lost if self.losses else None

    def as_dict(self) -> Dict[str, Any]:
        """Plain dictionaries, lists and numbers, for JSON."""
        result = plain(self)
        assert isinstance(result, dict)
        return result


def plain(value: Any) -> Any:
    """Named tuples as dictionaries, all the way down."""
    if hasattr(value, "_asdict"):
        return {key: plain(inner) for key, inner in value._asdict().items()}
    if isinstance(value, (list, tuple)):
        return [plain(inner) for inner in value]
    if isinstance(value, (bytes, str)) or value is None or isinstance(value, int):
        return value.decode(errors="replace") if isinstance(value, bytes) else value
    return str(value)


def image_info(path: PathLike, file: File, ring: ImageRing) -> FileInfo:
    """A fresh look at an image."""
    head = ring.head
    length = file.length()
    if length != head.image_len:
        raise Resized(path, length, head.image_len)
    committed, intent = ring.positions()
    control = read_control(file, head)
    parts = Parts(file, head)
    metrics = parts.metrics()
    return FileInfo(
        path=path,
        layout="image",
        version=f"{head.major}.{head.minor}",
        length=length,
        capacity=head.capacity,
        record_size=RECORD_SIZE,
        liveness=liveness(file.lock_state(), control, now_us()),
        committed=committed,
        intent=intent,
        instance=head.instance,
        created=head.created,
        heartbeat=control.heartbeat,
        metrics_time=control.metrics_time,
        state=control.state,
        time_base=control.time_base,
        boots=control.boots,
        checks=head.checks,
        identity=parts.identity(),
        losses=parts.losses(),
        notices=parts.notices(),
        metrics=metrics,
        dynamic=parts.dynamic(metrics),
        clock=parts.clock(),
        parts=parts.rows,
    )


def nixl_info(path: PathLike, file: File, ring: NixlRing) -> FileInfo:
    """A fresh look at one of NIXL's own rings."""
    length = file.length()
    needed = HEADER_SIZE + ring.record_size * ring.seen.capacity
    if length != needed:
        raise Resized(path, length, needed)
    now = probe(file)
    return FileInfo(
        path=path,
        layout=now.layout,
        version=str(now.version),
        length=length,
        capacity=now.capacity,
        record_size=RECORD_SIZES[now.layout],
        liveness="unknown",
        write_pos=now.write_pos,
        read_pos=now.read_pos,
        waiting=now.between(now.read_pos, now.write_pos),
    )

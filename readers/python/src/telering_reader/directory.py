"""All telemetry files of a folder: who writes there, who lost what, and everything merged by time."""

from __future__ import annotations

import heapq
import os
from typing import Iterator, List, NamedTuple, Tuple

from .errors import CannotRead, NotTelemetry, PathLike, TelemetryError
from .info import FileInfo
from .items import Counts, Event
from .reader import Reader
from .transfers import Transfers


class Ignored(NamedTuple):
    """A file that is no telemetry, or can't be read, and why."""

    path: str
    reason: str


class Found:
    """One telemetry file of a folder. `info` is a look at it when the folder was scanned.

    After its events or transfers were read, `counts` says what was read and lost, from position `start` on.
    """

    def __init__(self, path: str, info: FileInfo) -> None:
        self.path = path
        self.info = info
        self.counts = Counts()
        self.start = 0

    @property
    def agent(self) -> str:
        """The agent's name; the file's name where the file doesn't say."""
        return self.info.agent or os.path.basename(self.path)

    @property
    def rank(self) -> str:
        """The rank, empty where there is none."""
        return self.info.rank

    @property
    def liveness(self) -> str:
        """`alive`, `alive_by_heartbeat`, `dead` (killed, or a copy), `closed`, `unknown`."""
        return self.info.liveness

    def open(self) -> Reader:
        """A reader of this file, from its oldest event."""
        return Reader(self.path, links=False)

    def __repr__(self) -> str:
        return f"<{self.path!r}: {self.info.layout}, agent {self.agent!r}, {self.liveness}>"


class Scan(List[Found]):
    """The telemetry files of a folder, by name. `ignored` lists the others, each with the reason."""

    def __init__(self) -> None:
        super().__init__()
        self.ignored: List[Ignored] = []

    def events(self) -> Iterator[Tuple[Found, Event]]:
        """The events of all files that are there now, merged by time, each with the file that it is from.

        Where a layout has no times, the time of the observation counts. Within one file the order stays as it is.
        Afterwards each file's `counts` say how many events were read and lost.
        """
        streams = (self._events_of(found, at) for at, found in enumerate(self))
        for _, _, _, found, event in heapq.merge(*streams, key=lambda row: row[:3]):
            yield found, event

    def _events_of(self, found: Found, at: int) -> Iterator[Tuple[int, int, int, Found, Event]]:
        try:
            with found.open() as reader:
                moment = 0
                for event in reader:
                    time = event.timestamp_us if event.timestamp_us is not None else event.observed_us
                    moment = max(moment, time or 0)
                    yield moment, at, event.seq, found, event
                    found.counts = reader.counts
                found.counts, found.start = reader.counts, reader.start
        except TelemetryError as error:
            self.ignored.append(Ignored(found.path, str(error)))

    def transfers(self) -> Transfers:
        """The finished transfers of all files, by the time they ended.

        A file whose layout has no times, or that went away, is listed in `ignored`. Files that lost events are not
        hidden: see each file's `counts` and `info.losses`.
        """
        result = Transfers()
        for found in self:
            try:
                with found.open() as reader:
                    one = reader.transfers()
                    found.counts, found.start = reader.counts, reader.start
            except TelemetryError as error:
                self.ignored.append(Ignored(found.path, str(error)))
                continue
            result.extend(row if row.agent else row._replace(agent=found.agent) for row in one)
            result.incomplete += one.incomplete
        result.sort(key=lambda row: row.end_us)
        return result


def scan(folder: PathLike) -> Scan:
    """The telemetry files of a folder, not of those inside it. Follows no symbolic link, waits for no FIFO.

    >>> for file in scan("/dev/shm/telemetry"):                                         # doctest: +SKIP
    ...     print(file.agent, file.liveness, file.info.losses)

    Raises `CannotRead` if the folder can't be listed.
    """
    result = Scan()
    name = os.fsdecode(folder)
    try:
        names = sorted(os.listdir(name))
    except OSError as error:
        raise CannotRead(folder, "list it", error) from error
    except ValueError as error:
        raise NotTelemetry(folder, f"no name of a folder ({error})") from error
    for entry in names:
        if entry.startswith("."):
            continue
        path = os.path.join(name, entry)
        try:
            with Reader(path, links=False) as reader:
                result.append(Found(path, reader.info()))
        except TelemetryError as error:
            result.ignored.append(Ignored(path, error.reason))
    return result


def transfers(folder: PathLike) -> Transfers:
    """The finished transfers of all files of a folder, by the time they ended. See `Scan.transfers`."""
    return scan(folder).transfers()

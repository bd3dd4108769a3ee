"""Finished transfers, put together from the four events that each of them leaves: FORMAT.md, section 4."""

from __future__ import annotations

from typing import Dict, List, NamedTuple, Optional, Tuple

from .errors import NotInLayout, PathLike
from .items import Event, Item


class Transfer(NamedTuple):
    """One finished transfer.

    `start_us`, `end_us`  Unix microseconds (microseconds since boot where the file's time base is 1)
    `op`                  `write` or `read`
    `bytes`               bytes moved
    `post_us`             microseconds from the start until the backend had it
    `xfer_us`             microseconds from the start to the end
    `agent`, `rank`       whose it was; empty where the file doesn't say
    """

    start_us: int
    end_us: int
    op: str
    bytes: int
    post_us: int
    xfer_us: int
    agent: str
    rank: str


class Transfers(List[Transfer]):
    """A list of transfers. `incomplete` counts those of which an event is missing."""

    def __init__(self, rows: Tuple[Transfer, ...] = (), agent: str = "", rank: str = "") -> None:
        super().__init__(rows)
        self.agent = agent
        self.rank = rank
        self.incomplete = 0


# Place within a transfer, and the operation where the event says it, by event type.
_PLACES: Dict[int, Tuple[int, str]] = {
    7: (0, ""),
    6: (1, ""),
    0: (2, "write"),
    1: (2, "read"),
    2: (3, "write"),
    3: (3, "read"),
}


def refuse_without_times(path: PathLike, layout: str) -> None:
    """Raises `NotInLayout` where a layout stores no times."""
    if layout not in ("image", "L1"):
        raise NotInLayout(
            path,
            f"the layout of NIXL's version {layout[1:2]} stores no times, so when a transfer started and ended is not "
            "in the file. Read its events, or let the agent write with telering",
        )


class Grouper:
    """Puts the events of one file together.

    A transfer's events follow each other. In an image they carry one timestamp (`one_time`); NIXL takes one for
    each. Groups with a part missing are counted, not guessed.
    """

    def __init__(self, one_time: bool) -> None:
        self._one_time = one_time
        self._open: List[Tuple[int, str, int]] = []
        self._time = 0

    def feed(self, item: Item, into: Transfers) -> None:
        """The next item of the file; appends the transfer that it completes."""
        place: Optional[Tuple[int, str]] = None
        if isinstance(item, Event) and item.id is not None and item.timestamp_us is not None:
            place = _PLACES.get(item.id)
        if place is None or not isinstance(item, Event) or item.timestamp_us is None:
            self._give_up(into)
            return
        moment = item.timestamp_us
        if self._open:
            in_time = moment == self._time if self._one_time else moment >= self._time
            if place[0] <= self._open[-1][0] or not in_time:
                self._give_up(into)
        self._open.append((*place, item.value))
        self._time = moment
        if place[0] == 3:
            self._finish(moment, into)

    def _give_up(self, into: Transfers) -> None:
        if self._open:
            into.incomplete += 1
            self._open.clear()

    def _finish(self, end: int, into: Transfers) -> None:
        group, self._open = self._open, []
        if len(group) == 4 and group[2][1] == group[3][1]:
            (_, _, post), (_, _, xfer), (_, op, moved), _ = group
            into.append(Transfer(max(0, end - xfer), end, op, moved, post, xfer, into.agent, into.rank))
        else:
            into.incomplete += 1

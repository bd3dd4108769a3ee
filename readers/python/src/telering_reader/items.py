"""What a reader returns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple, Optional, Union

from .names import BY_ID, category_text


class Event(NamedTuple):
    """One event, whatever layout it came from.

    `seq`           place within one instance, from 0; in NIXL's own rings a count of what this reader returned
    `instance`      the producer's run, 0 in NIXL's own rings
    `timestamp_us`  when the operation completed, in Unix microseconds (`info().time_base` says if it counts from
                    boot instead); None where the layout has no time
    `observed_us`   where the layout has no time: when this reader saw the event, in Unix microseconds
    `category`      the stored number, None where the layout has none
    `id`            the event type, None for a name outside the table
    `name`          text without control characters; `unknown(21)` for a type outside the table
    `value`         bytes, a count, or microseconds
    """

    seq: int
    instance: int
    timestamp_us: Optional[int]
    observed_us: Optional[int]
    category: Optional[int]
    id: Optional[int]
    name: str
    value: int

    @property
    def category_name(self) -> Optional[str]:
        """`TRANSFER`; of the event type where the layout has no category; the number of an unknown one."""
        if self.category is None and self.id in BY_ID:
            return category_text(BY_ID[self.id].category)
        return category_text(self.category)


@dataclass(frozen=True)
class Lost:
    """So many events were overwritten before this reader came to them."""

    count: int


@dataclass(frozen=True)
class Interrupted:
    """So many places belong to a producer that was reset while it wrote; no event is known."""

    count: int


@dataclass(frozen=True)
class Unverified:
    """So many records failed their check: torn by copying a live file, or overwritten by a stranger."""

    count: int


@dataclass(frozen=True)
class Reset:
    """The file started over: what follows is of another run. `instance` is None in NIXL's own rings."""

    instance: Optional[int]


Item = Union[Event, Lost, Interrupted, Unverified, Reset]


class Counts(NamedTuple):
    """What a reader has returned since it was opened.

    When an image is read to its end, their sum is the number of places between where the reader started and
    where the producer stands, over all resets.
    """

    events: int = 0
    lost: int = 0
    unverified: int = 0
    interrupted: int = 0

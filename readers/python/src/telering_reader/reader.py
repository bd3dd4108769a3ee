"""Reading one file, live or after a crash."""

from __future__ import annotations

import time
from collections import deque
from types import TracebackType
from typing import Any, Callable, Deque, Iterator, List, Optional, Tuple, Type, Union

from . import arrays
from .decode import IMAGE, items_of
from .errors import NothingToConsume, PathLike, TelemetryError
from .file import File
from .image import HEADER_SIZE, MOST_RECORDS, ImageRing
from .image import probe as probe_image
from .info import FileInfo, image_info, nixl_info
from .items import Counts, Event, Interrupted, Item, Lost, Reset, Unverified
from .nixl import NixlRing
from .parts import Metrics
from .transfers import Grouper, Transfers, refuse_without_times

_Ring = Union[ImageRing, NixlRing]


class Reader:
    """Reads the events of one telemetry file from its oldest one. Changes nothing unless `consume=True`.

    >>> with Reader("/dev/shm/telemetry/agent") as reader:                               # doctest: +SKIP
    ...     for event in reader:
    ...         print(event.timestamp_us, event.name, event.value)
    ...     print(reader.lost, "events were overwritten before they could be read")

    Iterating gives the events that are there now and then ends; iterating again gives what came since. `follow`
    waits for more. A reader belongs to one thread. Needs read permission only, unless it consumes.

    `path`     the file
    `consume`  takes events out of one of NIXL's own rings, so that its producer has room for more. One consumer at
               a time. An event counts as taken when the next call asks for more, or when the reader is closed
    `newest`   starts behind the newest event: only what comes from now on

    Raises `TelemetryError`: `NotTelemetry`, `UnsupportedVersion`, `WrongByteOrder`, `NotReady`, `Damaged`,
    `NeedsWrite`, `NothingToConsume`, or `CannotRead` (an `OSError` too).
    """

    def __init__(
        self, path: PathLike, *, consume: bool = False, newest: bool = False, links: bool = True, verify: bool = True
    ) -> None:
        self.path = path
        self._consume = consume
        self._links = links
        self._verify = verify
        self._waiting: Deque[Item] = deque()
        self._counts = Counts()
        self._grouper: Optional[Grouper] = None
        self._file, self._ring = self._open(consume, newest)

    def _open(self, consume: bool, newest: bool = False) -> Tuple[File, _Ring]:
        """What the name leads to now."""
        file = File(self.path, write=consume, links=self._links)
        try:
            length = file.length()
            header = file.read(0, HEADER_SIZE, "read the header")
            head = probe_image(file, header, length) if header is not None else None
            if head is None:
                return file, NixlRing(file, newest, consume)
            if consume:
                raise NothingToConsume(self.path)
            return file, ImageRing(file, head, newest, self._verify)
        except BaseException:
            file.close()
            raise

    def __enter__(self) -> Reader:
        return self

    def __exit__(
        self, kind: Optional[Type[BaseException]], error: Optional[BaseException], trace: Optional[TracebackType]
    ) -> None:
        self.close()

    def close(self) -> None:
        """Closes the file. A consuming reader that handed everything over says so in the ring first."""
        if not self._file.closed:
            try:
                if not self._waiting and isinstance(self._ring, NixlRing):
                    self._ring.save()
            finally:
                self._file.close()

    def __del__(self) -> None:
        try:
            self.close()
        except Exception:
            pass

    @property
    def layout(self) -> str:
        """`image`, or NIXL's `L1`, `L2a`, `L2b`, `L3`, `L4`."""
        return IMAGE if isinstance(self._ring, ImageRing) else self._ring.seen.layout

    @property
    def instance(self) -> int:
        """The producer's run that wrote an image; 0 in NIXL's own rings."""
        return self._ring.head.instance if isinstance(self._ring, ImageRing) else 0

    @property
    def capacity(self) -> int:
        """Places of the ring."""
        return self._ring.head.capacity if isinstance(self._ring, ImageRing) else self._ring.seen.capacity

    @property
    def start(self) -> int:
        """The first position of an image that is counted, since the last reset; 0 in NIXL's own rings."""
        return self._ring.start if isinstance(self._ring, ImageRing) else 0

    @property
    def counts(self) -> Counts:
        """What was read so far, over all files if it followed a name."""
        return self._counts

    @property
    def lost(self) -> int:
        """Events that were overwritten before this reader came to them."""
        return self._counts.lost

    @property
    def unverified(self) -> int:
        """Records that failed their check."""
        return self._counts.unverified

    @property
    def interrupted(self) -> int:
        """Places of a producer that was reset while it wrote."""
        return self._counts.interrupted

    @property
    def replaced(self) -> bool:
        """Whether the file's name now leads to another file, or to none."""
        return not self._file.is_at(self.path)

    def pending(self) -> int:
        """Records between this reader and the newest one, now."""
        return self._ring.waiting() + sum(isinstance(item, Event) for item in self._waiting)

    def read(self, most: int = MOST_RECORDS) -> List[Item]:
        """What is new, from at most `most` records (no more than 4096); empty when nothing is new now.

        Items are `Event`, `Lost`, `Interrupted`, `Unverified` and `Reset`, in the order of the file: a loss stands
        in front of the first event behind it.

        Raises `Resized`, `Damaged`, `Changed` or `CannotRead` when the file went wrong under the reader. What was
        returned before stands.
        """
        if most < 1:
            raise ValueError(f"at most {most} records are none: ask for 1 or more")
        if self._waiting:
            waiting = list(self._waiting)
            self._waiting.clear()
            return waiting
        batch = self._ring.take(most)
        if batch is None:
            return []
        items = items_of(batch, self.layout, self.instance)
        self._count(items)
        return items

    def _count(self, items: List[Item]) -> None:
        events, lost, unverified, interrupted = self._counts
        found = list(map(type, items)).count(Event)
        events += found
        for item in items if found < len(items) else ():
            if isinstance(item, Lost):
                lost += item.count
            elif isinstance(item, Unverified):
                unverified += item.count
            elif isinstance(item, Interrupted):
                interrupted += item.count
        self._counts = Counts(events, lost, unverified, interrupted)

    def items(self) -> Iterator[Item]:
        """All items that are there now, one by one. What comes meanwhile is for the next call."""
        if self._waiting:
            yield from self._handed_over()
        goal = self._ring.goal()
        while True:
            items = self.read()
            if not items:
                return
            if isinstance(items[0], Reset):
                goal = self._ring.goal()
            self._waiting.extend(items)
            yield from self._handed_over()
            if self._ring.reached(goal):
                self.taken()
                return

    def _handed_over(self) -> Iterator[Item]:
        waiting = self._waiting
        following = waiting.popleft
        while waiting:
            yield following()

    def __iter__(self) -> Iterator[Event]:
        return (item for item in self.items() if isinstance(item, Event))

    def follow(
        self,
        interval: float = 0.1,
        *,
        until: Optional[Callable[[], bool]] = None,
        patience: float = 5.0,
    ) -> Iterator[Item]:
        """Items as they come, forever: looks every `interval` seconds. `until` is asked when nothing is new.

        When the name leads to a new file (the producer started again), the old one is read to its end first, then
        a `Reset` says that the new one begins. A file that stays broken for `patience` seconds, with no other under
        its name, is an error, as for `read`.
        """
        broken_since: Optional[float] = None
        while True:
            items: List[Item] = []
            try:
                items = self.read()
                if not items and self.replaced:
                    # The producer may have written between the two looks.
                    items = self.read() or self._move_on()
                broken_since = None
            except TelemetryError:
                items = self._move_on()
                if items:
                    broken_since = None
                else:
                    now = time.monotonic()
                    broken_since = now if broken_since is None else broken_since
                    if now - broken_since >= patience:
                        raise
            if items:
                self._waiting.extend(items)
                yield from self._handed_over()
            elif until is not None and until():
                return
            else:
                time.sleep(interval)

    def _move_on(self) -> List[Item]:
        """Opens what the name leads to now; nothing while that is nothing readable."""
        consume = self._consume
        try:
            try:
                file, ring = self._open(consume)
            except NothingToConsume:
                # A ring that was consumed gave way to an image, which needs none to do so.
                consume = False
                file, ring = self._open(consume)
        except TelemetryError:
            return []
        try:
            # The same broken file, opened again, would be broken again.
            self._info_of(file, ring)
        except TelemetryError:
            file.close()
            return []
        self._file.close()
        self._file, self._ring, self._consume = file, ring, consume
        return [Reset(self.instance or None)]

    def to_numpy(self, numbered: bool = True) -> Any:
        """All events that are there now, as a structured array (see `arrays.EVENTS`). Needs numpy.

        Fields: `seq`, `instance` (neither unless `numbered`; without them it is faster), `timestamp_us` (0 where the layout has no time), `category` (of the event type
        where the layout stores none, -1 unknown), `name` (bytes, as stored) and `value`. Check words are verified;
        what is left out is counted in `lost`, `unverified` and `interrupted`.
        """
        waiting = [item for item in self._waiting if isinstance(item, Event)]
        self._waiting.clear()
        there = self._ring.waiting()
        table = arrays.Table(there + len(waiting) + (0 if numbered else MOST_RECORDS), numbered)
        table.add_events(waiting)
        # As far as there is something now: a producer that never rests must not keep this from ending.
        ring = self._ring
        goal = ring.goal()
        while True:
            batch = ring.take(MOST_RECORDS, table.space()) if isinstance(ring, ImageRing) else ring.take()
            if batch is None:
                break
            counts = table.add(batch, self.layout, self.instance)
            self._counts = Counts(*(a + b for a, b in zip(self._counts, counts)))
            if batch.reset is not None:
                goal = ring.goal()
            if ring.reached(goal):
                break
        return table.done()

    def blocks(self) -> Iterator[Any]:
        """What `to_numpy(numbered=False)` gives, in arrays of at most 4096 events. Needs numpy.

        The fastest way, for whoever adds up as it goes: all arrays share one piece of memory, so each is good until the
        next is asked for. Events that `read` or an iteration left behind are not among them.
        """
        table = arrays.Table(MOST_RECORDS, numbered=False)
        goal = self._ring.goal()
        while True:
            ring = self._ring
            table.clear()
            batch = ring.take(MOST_RECORDS, table.space()) if isinstance(ring, ImageRing) else ring.take()
            if batch is None:
                return
            counts = table.add(batch, self.layout, self.instance)
            self._counts = Counts(*(a + b for a, b in zip(self._counts, counts)))
            if batch.reset is not None:
                goal = ring.goal()
            yield table.done()
            if ring.reached(goal):
                self.taken()
                return

    def to_pandas(self) -> Any:
        """All events that are there now, as a `DataFrame` with names and categories as text. Needs pandas."""
        return arrays.to_pandas(self.to_numpy())

    def transfers(self) -> Transfers:
        """The finished transfers that are there now, one row each, oldest first.

        Those of which an event is missing (at the ring's oldest edge, or left out by the producer) are not guessed
        but counted in `.incomplete`. Raises `NotInLayout` where the layout stores no times (NIXL 1.1 and later).
        """
        refuse_without_times(self.path, self.layout)
        if self._grouper is None:
            self._grouper = Grouper(one_time=self.layout == IMAGE)
        info = self.info()
        result = Transfers(agent=info.agent, rank=info.rank)
        for item in self.items():
            self._grouper.feed(item, result)
        return result

    def taken(self) -> None:
        """Says in a consumed ring that what was returned so far is taken, without waiting for the next call."""
        if isinstance(self._ring, NixlRing):
            self._ring.save()

    def info(self) -> FileInfo:
        """A fresh look at all that the file says about itself."""
        return self._info_of(self._file, self._ring)

    def _info_of(self, file: File, ring: _Ring) -> FileInfo:
        if isinstance(ring, ImageRing):
            return image_info(self.path, file, ring)
        return nixl_info(self.path, file, ring)

    def metrics(self) -> Optional[Metrics]:
        """The producer's running totals, as of its last flush; None where there are none (NIXL's own rings)."""
        return self.info().metrics



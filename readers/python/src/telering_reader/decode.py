"""Records to events."""

from __future__ import annotations

from itertools import repeat
from typing import Any, Dict, Iterator, List, Optional, Tuple, Union

from .image import Batch, Bytes, now_us
from .items import Event, Interrupted, Item, Lost, Unverified
from .names import BY_NAME, FILLER, clean_name, type_name
from .nixl import RECORDS

IMAGE = "image"
"""The layout of images; NIXL's own are `L1` to `L4`."""
# time, category, id, name, value
_Fields = Tuple[Optional[int], Optional[int], Optional[int], str, int]
_names: Dict[bytes, Tuple[str, Optional[int]]] = {}


def name_and_id(stored: bytes) -> Tuple[str, Optional[int]]:
    """A stored name as text, and the event type it stands for. Remembers: a file holds few names."""
    found = _names.get(stored)
    if found is None:
        if len(_names) >= 4096:
            _names.clear()
        row = BY_NAME.get(stored.partition(b"\0")[0])
        found = _names[stored] = (clean_name(stored), row.id if row else None)
    return found


def _fields(layout: str, data: Bytes) -> Iterator[_Fields]:
    """The fields of each record."""
    if layout in (IMAGE, "L1"):
        for time, category, stored, value in RECORDS["L1"].iter_unpack(data):
            name, number = name_and_id(stored)
            yield time, category, number, name, value
    elif layout == "L2a":
        for category, stored, value in RECORDS[layout].iter_unpack(data):
            name, number = name_and_id(stored)
            yield None, category, number, name, value
    elif layout == "L2b":
        for category, number, value in RECORDS[layout].iter_unpack(data):
            yield None, category, number, type_name(number), value
    else:
        for number, value in RECORDS[layout].iter_unpack(data):
            yield None, None, number, type_name(number), value


def _events_of(batch: Batch, layout: str, instance: int) -> Optional[List[Item]]:
    """The items of a batch in which nothing is missing, by columns: no line of Python for each. None if there are fillers."""
    times, categories, stored, values = zip(*RECORDS["L1"].iter_unpack(batch.data))
    if layout == IMAGE and FILLER in categories:
        return None
    known = {name: name_and_id(name) for name in set(stored)}
    names, numbers = zip(*map(known.__getitem__, stored))
    places = range(batch.first, batch.first + len(times))
    rows = zip(places, repeat(instance), times, repeat(None), categories, numbers, names, values)
    return list(map(tuple.__new__, repeat(Event), rows))


def items_of(batch: Batch, layout: str, instance: int) -> List[Item]:
    """The items of a batch, in the order of the file; neighbouring losses of one kind are one item."""
    if layout in (IMAGE, "L1") and batch.data and batch.reset is None and batch.lost == 0 and batch.fits is None:
        whole = _events_of(batch, layout, instance)
        if whole is not None:
            return whole
    items: List[Item] = []
    if batch.reset is not None:
        items.append(batch.reset)
    kind: Any = Lost
    count = batch.lost
    observed = None if layout in (IMAGE, "L1") else now_us()
    fits = batch.fits
    misfit: Any = Lost if batch.earlier else Unverified
    for at, (time, category, number, name, value) in enumerate(_fields(layout, batch.data)):
        other: Union[None, Any] = None
        if fits is not None and not fits[at]:
            other = misfit
        elif category == FILLER and layout == IMAGE:
            other = Interrupted
        if other is None:
            if count:
                items.append(kind(count))
                count = 0
            items.append(Event(batch.first + at, instance, time, observed, category, number, name, value))
        elif other is kind:
            count += 1
        else:
            if count:
                items.append(kind(count))
            kind, count = other, 1
    if count:
        items.append(kind(count))
    return items

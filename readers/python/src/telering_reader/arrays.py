"""Events as numpy arrays and pandas frames. Both are optional: asking for them without says what to install."""

from __future__ import annotations

from typing import Any, List

from .check import RECORD_SIZE, numpy
from .decode import IMAGE
from .image import MOST_RECORDS, Batch
from .items import Counts, Event
from .names import BY_ID, FILLER, category_text, clean_name, type_name
from .nixl import RECORD_SIZES

EVENTS = {
    "names": ["seq", "instance", "timestamp_us", "category", "name", "value"],
    "formats": ["<u8", "<u8", "<u8", "<i4", "S32", "<u8"],
    "offsets": [0, 8, 16, 24, 28, 64],
    "itemsize": 72,
}
"""What `numpy.dtype` makes the type of an event of: the 56 bytes of a record stand together from 16 on."""

RECORDS = {
    "names": ["timestamp_us", "category", "name", "value"],
    "formats": ["<u8", "<i4", "S32", "<u8"],
    "offsets": [0, 8, 12, 48],
    "itemsize": 56,
}
"""The same without `seq` and `instance`: the record as it stands in an image."""


def need_numpy() -> Any:
    """numpy, or what to do about it."""
    if numpy is None:
        raise ImportError("to_numpy and to_pandas need numpy: pip install numpy (or telering-reader[numpy])")
    return numpy


# A numbered row in two pieces: numpy copies them faster than field by field.
_PIECES = {"names": ["numbers", "record"], "formats": ["V16", "V56"], "offsets": [0, 16], "itemsize": 72}


class Table:
    """Gathers the events of many batches. `room` rows are taken at once; more come as they are needed."""

    def __init__(self, room: int, numbered: bool) -> None:
        self._np = need_numpy()
        self._numbered = numbered
        self._type: Any = self._np.dtype(EVENTS if numbered else RECORDS)
        self._full: List[Any] = []
        self._scratch: Any = self._np.empty(MOST_RECORDS * RECORD_SIZE if numbered else 0, "u1")
        self._steps: Any = self._np.arange(MOST_RECORDS, dtype="<u8")
        # seq and instance of the rows of a batch.
        self._numbers: Any = self._np.empty((MOST_RECORDS if numbered else 0, 2), "<u8")
        self._take_rows(room)

    def _take_rows(self, room: int) -> None:
        self._rows: Any = self._np.empty(room, self._type)
        self._bytes = memoryview(self._rows.view("u1"))
        self._pieces: Any = self._rows.view(self._np.dtype(_PIECES)) if self._numbered else None
        self._used = 0

    def space(self) -> memoryview:
        """Where the records of the next batch may be copied to: their place in the table, if they can stay as
        they are."""
        if self._numbered:
            return memoryview(self._scratch)
        self._make_room(MOST_RECORDS)
        return self._bytes[self._used * RECORD_SIZE : (self._used + MOST_RECORDS) * RECORD_SIZE]

    def _make_room(self, count: int) -> None:
        if self._used + count > len(self._rows):
            self._full.append(self._rows[: self._used])
            self._take_rows(max(count, 1 << 16))

    def _next(self, count: int) -> Any:
        self._make_room(count)
        return self._rows[self._used : self._used + count]

    def add_events(self, events: List[Event]) -> None:
        """Events that were decoded already."""
        rows = self._next(len(events))
        for at, event in enumerate(events):
            category = event.category
            if category is None:
                category = BY_ID[event.id].category if event.id in BY_ID else -1
            row = (event.timestamp_us or 0, category, event.name.encode(), event.value)
            rows[at] = (event.seq, event.instance, *row) if self._numbered else row
        self._used += len(events)

    def add(self, batch: Batch, layout: str, instance: int) -> Counts:
        """The events of one batch. Returns what they and the others count."""
        np = self._np
        data = batch.data
        size = RECORD_SIZE if layout == IMAGE else RECORD_SIZES[layout]
        count = len(data) // size
        rows = self._next(count)
        if self._numbered:
            pieces = self._pieces[self._used : self._used + count]
            numbers = self._numbers[:count]
            np.add(self._steps[:count], np.uint64(batch.first), out=numbers[:, 0])
            numbers[:, 1] = instance
            pieces["numbers"] = numbers.view("V16")[:, 0]
        if layout not in (IMAGE, "L1"):
            if count:
                rows["timestamp_us"] = 0
                _spread(np, rows, np.frombuffer(data, np.uint8).reshape(count, size), layout)
        elif self._numbered:
            pieces["record"] = np.frombuffer(data, "V56")
        elif batch.overtaken or not isinstance(data, memoryview):
            # Otherwise they were copied to their place already.
            rows.view("V56")[:] = np.frombuffer(data, "V56")
        lost, unverified, interrupted = batch.lost, 0, 0
        keep = None
        if batch.fits is not None:
            keep = np.asarray(batch.fits, bool)
            misfits = count - int(np.count_nonzero(keep))
            lost, unverified = (lost + misfits, 0) if batch.earlier else (lost, misfits)
        if layout == IMAGE:
            filler = np.frombuffer(data, "<i4")[2::14] == FILLER
            if filler.any():
                filler = filler if keep is None else filler & keep
                interrupted = int(np.count_nonzero(filler))
                keep = ~filler if keep is None else keep & ~filler
        if keep is not None:
            kept = rows[keep]
            count = len(kept)
            rows[:count] = kept
        self._used += count
        return Counts(count, lost, unverified, interrupted)

    def clear(self) -> None:
        """Forgets the rows and uses their place again."""
        self._used = 0

    def done(self) -> Any:
        """All rows as one array."""
        rows = self._rows[: self._used]
        if not self._full:
            return rows
        # As plain words: joining fields one by one is much slower.
        return self._np.concatenate([piece.view("<u8") for piece in (*self._full, rows)]).view(self._type)


def _spread(np: Any, array: Any, raw: Any, layout: str) -> None:
    """Fields of the layouts without times, each from its place in the record."""

    def column(at: int, kind: str) -> Any:
        width = np.dtype(kind).itemsize
        return np.ascontiguousarray(raw[:, at : at + width]).view(kind)[:, 0]

    array["value"] = column(raw.shape[1] - 8, "<u8")
    if layout == "L2a":
        array["category"] = column(0, "<i4")
        array["name"] = column(4, "S32")
        return
    numbers = column(0 if layout != "L2b" else 4, "<u4")
    for number in np.unique(numbers):
        row = BY_ID.get(int(number))
        array["name"][numbers == number] = type_name(int(number)).encode()
        array["category"][numbers == number] = row.category if row else -1
    if layout == "L2b":
        array["category"] = column(0, "<i4")


def to_pandas(array: Any) -> Any:
    """A frame with the columns of the array; `name` and `category` are categoricals of text."""
    try:
        import pandas  # type: ignore[import-untyped,unused-ignore]
    except ImportError as error:
        raise ImportError("to_pandas needs pandas: pip install pandas (or telering-reader[pandas])") from error
    np = need_numpy()
    names, name_codes = np.unique(array["name"], return_inverse=True)
    categories, category_codes = np.unique(array["category"], return_inverse=True)
    frame = {field: array[field].astype("u8") for field in ("seq", "instance", "timestamp_us", "value")}
    frame["category"] = _categorical(pandas, category_codes, [category_text(int(number)) for number in categories])
    frame["name"] = _categorical(pandas, name_codes, [clean_name(bytes(name)) for name in names])
    return pandas.DataFrame(frame)[["seq", "instance", "timestamp_us", "category", "name", "value"]]


def _categorical(pandas: Any, codes: Any, texts: List[Any]) -> Any:
    """Two stored names may read the same once they are cleaned."""
    distinct = list(dict.fromkeys(texts))
    places = {text: at for at, text in enumerate(distinct)}
    codes = numpy.array([places[text] for text in texts], "i8")[codes] if texts else codes
    return pandas.Categorical.from_codes(codes, categories=distinct)

"""Events as numpy arrays and pandas frames. Both are optional: asking for them without says what to install."""

from __future__ import annotations

from typing import Any, List, Tuple

from .check import RECORD_SIZE, numpy
from .decode import IMAGE
from .image import Batch
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


def need_numpy() -> Any:
    """numpy, or what to do about it."""
    if numpy is None:
        raise ImportError("to_numpy and to_pandas need numpy: pip install numpy (or telering-reader[numpy])")
    return numpy


def from_batch(batch: Batch, layout: str, instance: int) -> Tuple[Any, Counts]:
    """The events of one batch, and what they and the others count."""
    np = need_numpy()
    size = RECORD_SIZE if layout == IMAGE else RECORD_SIZES[layout]
    count = len(batch.data) // size
    array = np.zeros(count, EVENTS) if layout not in (IMAGE, "L1") else np.empty(count, EVENTS)
    array["seq"] = np.arange(count, dtype="<u8") + np.uint64(batch.first)
    array["instance"] = instance
    if layout in (IMAGE, "L1"):
        array.view("<u8").reshape(count, 9)[:, 2:] = np.frombuffer(batch.data, "<u8").reshape(count, 7)
    elif count:
        _spread(np, array, np.frombuffer(batch.data, np.uint8).reshape(count, size), layout)
    lost, unverified, interrupted = batch.lost, 0, 0
    keep = None
    if batch.fits is not None:
        keep = np.asarray(batch.fits, bool)
        misfits = count - int(np.count_nonzero(keep))
        lost, unverified = (lost + misfits, 0) if batch.earlier else (lost, misfits)
    if layout == IMAGE:
        filler = array["category"] == FILLER
        if filler.any():
            filler = filler if keep is None else filler & keep
            interrupted = int(np.count_nonzero(filler))
            keep = ~filler if keep is None else keep & ~filler
    if keep is not None:
        array = array[keep]
    return array, Counts(len(array), lost, unverified, interrupted)


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


def from_events(events: List[Event]) -> Any:
    """An array of events that were decoded already."""
    np = need_numpy()
    array = np.zeros(len(events), EVENTS)
    for at, event in enumerate(events):
        category = event.category
        if category is None:
            category = BY_ID[event.id].category if event.id in BY_ID else -1
        name = event.name.encode()
        array[at] = (event.seq, event.instance, event.timestamp_us or 0, category, name, event.value)
    return array


def joined(pieces: List[Any]) -> Any:
    """All pieces as one array."""
    np = need_numpy()
    return pieces[0] if len(pieces) == 1 else np.concatenate([np.empty(0, EVENTS), *pieces])


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

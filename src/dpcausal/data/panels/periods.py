"""Times of a panel: whatever a frame holds, brought to labels that JSON can hold.

A label is a whole number, a float or a text; dates and timestamps become ISO texts, whose order is that of time.
Timestamps with a time zone are instants: their texts are those of UTC, whatever zone a frame or a session shows.
"""

import math
import re
from collections.abc import Callable, Collection, Hashable, Iterable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.coding import scalar
from dpcausal.data.panels.dates import day_of, period_of
from dpcausal.errors import ParameterError, SchemaError, Setting

Label = int | float | str

_WHOLE = re.compile(r"[+-]?[0-9]{1,18}")
_CALENDAR = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}.*")


def period_label(value: Any) -> Label | None:
    """Return the label of a time, or ``None`` for what is none: nulls, booleans, NaN, other objects.

    Total: no object makes it fail.

    >>> period_label(1989.0), period_label("1989"), period_label("1989-01-01"), period_label(float("nan"))
    (1989, 1989, '1989-01-01', None)
    """
    try:
        plain = scalar(value)
        label: Any = scalar(_parsed_label(value if plain is None else plain))
    except BaseException:  # a date that no calendar of Python's holds, a method that raises: one cell must not fail all
        return None
    return None if type(label) is bool else label


def label_in(period: str | None, order: str) -> Callable[[Any], Label | None]:
    """Return what names a time: its own label, or the month, quarter or year of a date, whose texts have an order."""
    if period is None:
        return period_label

    def label(value: Any) -> Label | None:
        day = day_of(value, order)
        return period_label(period_of(day, period)) if day == day else None

    return label


def _parsed_label(value: Any) -> Label | None:
    if isinstance(value, np.datetime64):
        value = None if np.isnat(value) else value.astype("datetime64[us]").item()
    if value is None or isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, (float, Decimal)):
        number = float(value)
        return (int(number) if number.is_integer() else number) if math.isfinite(number) else None
    if isinstance(value, str):
        return _of_text(value.strip())
    if not isinstance(value, date):  # a pandas Period begins somewhere
        value = getattr(value, "start_time", None)
    return _of_date(value)


def _of_text(text: str) -> Label | None:
    if _WHOLE.fullmatch(text):
        return int(text)
    try:  # 2019-W10 is a date to Python and 2019-W2 is none: only full dates are read
        return _of_date(datetime.fromisoformat(text)) if _CALENDAR.fullmatch(text) else text or None
    except ValueError:
        return text


def _of_date(value: Any) -> str | None:
    if not isinstance(value, date) or value != value:  # NaT differs from itself
        return None
    if not isinstance(value, datetime):
        return value.isoformat()
    if value.tzinfo is not None:
        value = value.astimezone(UTC).replace(tzinfo=None)
    plain = datetime(value.year, value.month, value.day, value.hour, value.minute, value.second, value.microsecond)
    return plain.date().isoformat() if plain.time() == time(0) else plain.isoformat()


def unit_name(value: Any) -> str | int | float | None:
    """Return what a unit is called, as a text or a number; ``None`` for a null.  Total. 1, 1.0 and the decimal 1 are
    one unit, the text "1" is another; a boolean is called by its word.  Texts are reported apart by their code points:
    two normal forms of one word are two units."""
    try:
        plain = scalar(value)
        name: Any = scalar(_unit_key(value if plain is None else plain))
    except BaseException:  # an object that has no text
        return None
    return name  # type: ignore[no-any-return]


def unit_in_frame(name: Any, as_text: bool) -> str | int | float | None:
    """Return what a unit of a name is called in a frame, ``as_text`` in one of texts: there 1 and 1.0 are both "1"."""
    own = unit_name(name)
    return str(own) if as_text and own is not None else own


def _unit_key(value: Any) -> str | int | float | None:
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, str):
        return str(value) or None
    if isinstance(value, (float, Decimal)) and value != value:
        return None
    if isinstance(value, (float, Decimal)) and math.isfinite(value) and value == int(value):
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool):
        return value if value.bit_length() <= 4096 else hex(value)  # Python writes so long a number in no other way
    if isinstance(value, float):
        return value
    text = str(value)
    return None if value is None or text in ("<NA>", "NaT") else text


def _known_by(value: object) -> Hashable:
    """Return what values of one name share, to make a name once; ``None`` where Python's equality may not be trusted.
    Two instants of one clock are equal to Python if they read the same, as in the hour that summer time repeats."""
    kind = type(value)
    if kind is int or kind is float or kind is str or kind is date or kind is bool:  # a set would hash the class
        return (kind, value) if value == value else None  # each NaN would be a name of its own
    if isinstance(value, datetime):
        return type(value), value.replace(tzinfo=None), value.utcoffset()
    return None


def coded_labels(
    chunks: Iterable[Sequence[object]], rows: int, name: Callable[[Any], Hashable | None]
) -> tuple[NDArray[np.int64], list[Hashable]]:
    """Return the code of each value and the names in order of first appearance; nulls have the code −1. The name of a
    record's code is the name of its own value, whatever other records hold."""
    codes: dict[Hashable, int] = {}
    seen: dict[Hashable, int] = {}  # texts by themselves: nearly all units are, and one look-up is the dearest step

    def _new(value: object) -> int:
        label = name(value)
        return -1 if label is None else codes.setdefault(label, len(codes))

    def code(value: object) -> int:
        try:
            key = value if type(value) is str else _known_by(value)
        except BaseException:  # a clock that fails
            key = None
        if key is None:
            return _new(value)
        known = seen.get(key)
        if known is None:
            known = seen[key] = _new(value)
        return known

    coded_rows = np.fromiter((code(value) for chunk in chunks for value in chunk), dtype=np.int64, count=rows)
    return coded_rows, list(codes)


_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}(T.*)?")
_DIGITS = re.compile(r"([0-9]+)")


def labels_in_order(labels: Collection[Label], declared: Sequence[Label] = ()) -> tuple[Label, ...]:
    """Return different labels in the order of time; a SchemaError, which names the first, if they have none.

    Numbers by size, dates by the calendar, and texts by a declared order.  Texts without one are ordered if they
    differ in one whole number only, as ``p2`` and ``p10``, or if they begin with the year, as ``2019-W2``.

    >>> labels_in_order({"p10", "p2"}), labels_in_order({"late", "early"}, ["early", "late"])
    (('p2', 'p10'), ('early', 'late'))
    """
    different = set(labels)
    if len({isinstance(label, str) for label in different}) > 1:
        raise SchemaError("the targets' times must be all numbers, or all dates or texts")
    if different <= set(declared):
        return tuple(label for label in declared if label in different)
    texts = [label for label in different if isinstance(label, str)]
    if not texts or all(_DATE.fullmatch(text) for text in texts):
        return tuple(sorted(different))
    keys = _period_numbers(texts)
    if keys is None:
        raise SchemaError(
            f"the order of the times is not known: they are texts, as {min(texts)!r}", argument="times", rule="order",
            hint=("list them in order with ", Setting("times"), ", make the column an ordered categorical, or use "
                  "numbers or dates"),
        )  # fmt: skip
    return tuple(sorted(texts, key=keys.__getitem__))


def declared_times(values: object) -> tuple[Label, ...]:
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise ParameterError("times must list the periods in order")
    labels = [period_label(value) for value in values]
    named = [label for label in labels if label is not None]
    if not named or len(set(named)) < len(labels):
        raise ParameterError("times must list different periods: numbers, dates or texts")
    texts = [label for label in named if isinstance(label, str) and not _DATE.fullmatch(label)]
    try:
        known = labels_in_order(named, texts)
    except SchemaError as error:
        raise ParameterError(str(error)) from None
    if list(known) != labels:
        raise ParameterError("times must increase strictly")
    return known


def _period_numbers(texts: Sequence[str]) -> dict[str, tuple[int, ...]] | None:
    """Return by which whole numbers texts are ordered; ``None`` if that is not plain from the texts. Of ``1/2/2019``
    the month is not known, of ``1.10`` the second number may be a fraction."""
    parts = {text: _DIGITS.split(text) for text in texts}
    if len({tuple(part[::2]) for part in parts.values()}) > 1:
        return None
    between = next(iter(parts.values()))[::2]
    columns = list(zip(*(part[1::2] for part in parts.values()), strict=True))
    varying = [place for place, column in enumerate(columns) if len({int(digits) for digits in column}) > 1]
    fractions = any(place and between[place] in (".", ",") for place in varying)
    by_year = bool(varying) and varying[0] == 0 and all(len(digits) == 4 for digits in columns[0])
    keys = {text: tuple(int(part[1::2][place]) for place in varying) for text, part in parts.items()}
    if fractions or not (len(varying) == 1 or by_year) or len(set(keys.values())) < len(texts):
        return None
    return keys


Place = tuple[str, float | str]
"""The scale of a period and where on it the period lies."""

_PART = re.compile(r"(\d{4})[-/. ]?(?:([mMqQhHwW])[-/. ]?)?(\d{1,2})")
_SCALES = {"m": ("month", 12), "q": ("quarter", 4), "h": ("half year", 2), "w": ("week", 53)}
_DECIMAL = re.compile(r"[+-]?\d{1,18}\.\d{1,18}")
_ISO = re.compile(r"\d{4}-\d\d-\d\d.*")
_DAY_FIRST = re.compile(r"\d{1,4}[-/. ]\d{1,2}[-/. ]\d{1,4}")


def scale_of(label: object) -> Place | None:
    """Return the scale of a period and where on it the period lies; ``None`` for a name, which lies nowhere by itself.

    >>> scale_of(2001) == scale_of("2001"), scale_of("2001Q2"), scale_of("2001-02-01"), scale_of("wave 2")
    (True, ('quarter', 8005.0), ('date', '2001-02-01'), None)
    """
    if isinstance(label, bool):
        return "number", float(label)
    text = label.strip() if isinstance(label, str) else ""
    part = _PART.fullmatch(text)
    if part is not None and not text.isdigit():
        scale, size = _SCALES[(part[2] or "m").lower()]
        if 1 <= int(part[3]) <= size:
            return scale, float(int(part[1]) * size + int(part[3]) - 1)
    if _DECIMAL.fullmatch(text):
        return "number", float(text)
    known = period_label(label)
    if isinstance(known, (int, float)):
        return "number", float(known)
    return ("date", known) if known is not None and _ISO.fullmatch(known) else None


def levels_in_order(name: str, labels: Sequence[object]) -> tuple[tuple[int, ...], str]:
    """Return the places of labels in order of time, and the scale; declared order and no scale where all are names. A
    SchemaError where names or scales are mixed, two are one period, days and months may be swapped, or numbers in names
    do not rise."""
    places = [scale_of(label) for label in labels]
    unplaced = [str(label).strip() for place, label in zip(places, labels, strict=True) if place is None]
    if any(map(_DAY_FIRST.fullmatch, unplaced)):
        raise SchemaError(f"the levels of {name!r} have dates whose order is not certain: write them as 2019-01-31")
    known = [place for place in places if place is not None]
    scales = sorted({scale for scale, _ in known})
    if not known:
        numbers = _period_numbers(unplaced) or {}
        if sorted(numbers, key=numbers.__getitem__) != list(numbers):
            raise SchemaError(
                f"the levels of {name!r} are declared in another order than the numbers in their names: declare them "
                "in order of time, with the year where numbers start again, as in 2019Q4"
            )
        return tuple(range(len(labels))), ""
    if len(scales) > 1 or len(known) < len(places):
        kinds = [*(f"{scale}s" for scale in scales), *(["names"] if len(known) < len(places) else [])]
        raise SchemaError(
            f"the levels of {name!r} are {' and '.join(kinds)}, which have no common order: declare all of them as "
            "numbers or as dates, or all as names in order of time"
        )
    if len(set(known)) < len(known):
        raise SchemaError(f"two levels of {name!r} are the same period: declare each period once")
    return tuple(sorted(range(len(known)), key=known.__getitem__)), scales[0]

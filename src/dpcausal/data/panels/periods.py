"""Times of a panel: whatever a frame holds, brought to labels that JSON can hold.

A label is a whole number, a float or a text; dates and timestamps become ISO texts, whose order is that of time.
Timestamps with a time zone are instants: their texts are those of UTC, whatever zone a frame or a session shows.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Hashable, Iterable, Sequence
from datetime import UTC, date, datetime, time
from decimal import Decimal
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.coding import scalar

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
        label: Any = scalar(_label(value if plain is None else plain))
    except BaseException:  # a date that no calendar of Python's holds, a method that raises: one cell must not fail all
        return None
    return None if type(label) is bool else label


def _label(value: Any) -> Label | None:
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
    """Return what a unit is called, as a text or a number; ``None`` for a null.  Total.

    1, 1.0 and the decimal 1 are one unit, the text "1" is another; a boolean is called by its word.  Texts are reported
    apart by their code points: two normal forms of one word are two units.
    """
    try:
        plain = scalar(value)
        name: Any = scalar(_name(value if plain is None else plain))
    except BaseException:  # an object that has no text
        return None
    return name  # type: ignore[no-any-return]


def called(name: Any, as_text: bool) -> str | int | float | None:
    """Return what a unit of a name is called in a frame, ``as_text`` in one of texts: there 1 and 1.0 are both "1"."""
    own = unit_name(name)
    return str(own) if as_text and own is not None else own


def _name(value: Any) -> str | int | float | None:
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


_PLAIN = {str, int, float, bool, date}


def _known_by(value: object) -> Hashable:
    """Return what values of one name share, to make a name once; ``None`` where Python's equality may not be trusted.

    Two instants of one clock are equal to Python if they read the same, as in the hour that summer time repeats.
    """
    if type(value) in _PLAIN:
        return (type(value), value) if value == value else None  # each NaN would be a name of its own
    if isinstance(value, datetime):
        return type(value), value.replace(tzinfo=None), value.utcoffset()
    return None


def coded(
    chunks: Iterable[Sequence[object]], rows: int, name: Callable[[Any], Hashable | None]
) -> tuple[NDArray[np.int64], list[Hashable]]:
    """Return the code of each value and the names in order of first appearance; nulls have the code −1.

    The name of a record's code is the name of its own value, whatever other records hold.
    """
    codes: dict[Hashable, int] = {}
    seen: dict[Hashable, int] = {}
    texts: dict[Any, int] = {}  # texts by themselves: nearly all units are, and one look-up is the dearest step

    def _new(value: object) -> int:
        label = name(value)
        return -1 if label is None else codes.setdefault(label, len(codes))

    def code(value: object) -> int:
        if type(value) is str:
            known = texts.get(value)
            if known is None:
                known = texts[value] = _new(value)
            return known
        try:
            key = _known_by(value)
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

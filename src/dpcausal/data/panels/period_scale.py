"""The order of periods, by what their labels mean: numbers, dates, months, quarters, half years, weeks; else none.

``2001``, ``"2001"`` and ``2001.0`` are one period, whatever type a column has them in.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from dpcausal.data.panels.periods import period_label
from dpcausal.errors import SchemaError

Place = tuple[str, float | str]
"""The scale of a period and where on it the period lies."""

_PART = re.compile(r"(\d{4})[-/. ]?(?:([mMqQhHwW])[-/. ]?)?(\d{1,2})")
_SCALES = {"m": ("month", 12), "q": ("quarter", 4), "h": ("half year", 2), "w": ("week", 53)}
_NUMBER = re.compile(r"[+-]?\d{1,18}\.\d{1,18}")
_ISO = re.compile(r"\d{4}-\d\d-\d\d.*")
_DAY_FIRST = re.compile(r"\d{1,4}[-/. ]\d{1,2}[-/. ]\d{1,4}")


def place_of(label: object) -> Place | None:
    """Return where a period lies; ``None`` for a name, which lies nowhere by itself.

    Examples
    --------
    >>> place_of(2001) == place_of("2001"), place_of("2001Q2"), place_of("2001-02-01"), place_of("wave 2")
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
    if _NUMBER.fullmatch(text):
        return "number", float(text)
    known = period_label(label)
    if isinstance(known, (int, float)):
        return "number", float(known)
    return ("date", known) if known is not None and _ISO.fullmatch(known) else None


def in_order(name: str, labels: Sequence[object]) -> tuple[tuple[int, ...], str]:
    """Return the places of labels in order of time, and the scale; declared order and no scale where all are names.

    Raises
    ------
    SchemaError
        Some are names and some are not, or of two scales, or two are one period, or days and months may be swapped.
    """
    places = [place_of(label) for label in labels]
    unplaced = [str(label).strip() for place, label in zip(places, labels, strict=True) if place is None]
    if any(map(_DAY_FIRST.fullmatch, unplaced)):
        raise SchemaError(f"the levels of {name!r} have dates whose order is not certain: write them as 2019-01-31")
    known = [place for place in places if place is not None]
    scales = sorted({scale for scale, _ in known})
    if not known:
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

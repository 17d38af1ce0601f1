"""Raw columns to values inside the declared domain: total rules, the same for every record and every back end.

| declared | null, NaN | ±inf | outside | comes out as |
|---|---|---|---|---|
| Bounded | midpoint, and told apart as missing | nearer bound | clipped | float64 in [lower, upper] |

A code of ``missing`` counts as a null.  A column of levels comes out as codes: see ``coding``.
A record is cleaned by itself, so replacing one record changes one cleaned record: the map from tables to arrays
keeps neighbours neighbours under replace-one, and any sensitivity proved on the arrays holds for the table.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from decimal import Decimal
from typing import Any
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.columns import Bounded, Column
from dpcausal.data.source import Declared, Kind
from dpcausal.errors import SchemaError

_FITS_BOUNDED = {Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.EMPTY, Kind.FIELD}
_FITS_LEVELS = {
    "text": {Kind.TEXT, Kind.OBJECT, Kind.EMPTY, Kind.FIELD},
    "integer": {Kind.INTEGER, Kind.FLOAT, Kind.BOOLEAN, Kind.OBJECT, Kind.EMPTY, Kind.FIELD},
    "boolean": {Kind.INTEGER, Kind.FLOAT, Kind.BOOLEAN, Kind.OBJECT, Kind.EMPTY, Kind.FIELD},
}
_NEEDS_LEVELS = {
    "text": "a column of text or categories",
    "integer": "a column of integers, booleans or floats that hold them",
    "boolean": "a column of booleans, or numbers 0 and 1",
}

def check_declared(name: str, column: Column, declared: Declared) -> None:
    """Raise a SchemaError unless the declared type of a column fits its declaration in the schema."""
    if isinstance(column, Bounded):
        fits, needs, kind = _FITS_BOUNDED, "a numeric column", "Bounded"
    else:
        fits, needs = _FITS_LEVELS[column.kind], _NEEDS_LEVELS[column.kind]
        kind = f"Levels of {column.kind} values"
    if declared.kind not in fits:
        texts = isinstance(column, Bounded) and declared.kind in {Kind.OBJECT, Kind.TEXT}
        raise SchemaError(
            f"column {name!r}: {kind} needs {needs}, but its declared type is {declared.dtype} "
            f"({declared.kind.value}){'; convert it, for example with pandas.to_numeric' if texts else ''}"
        )


def is_writable(name: str) -> bool:
    """Return whether a name can be written on one line of UTF-8: no lone surrogates, line breaks or control codes."""
    return not any(category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in name)


def check_name(name: object) -> str:
    """Return the name of a declared column, which answers, ledgers and files are going to hold."""
    if not isinstance(name, str) or not name:
        raise SchemaError("a column's name must be a text that is not empty")
    if not is_writable(name):
        raise SchemaError(
            f"column {name!r}: a name must be UTF-8 text without line breaks or control codes; rename the column, or "
            "read the file in its own encoding"
        )
    return str(name)


def check_texts(names: Sequence[object]) -> tuple[str, ...]:
    """Return the names of a frame's columns; a SchemaError that names the place of one that is no text."""
    texts = tuple(name for name in names if isinstance(name, str))
    if len(texts) < len(names):
        place = next(place for place, name in enumerate(names, 1) if not isinstance(name, str))
        raise SchemaError(f"the columns of a frame are named by texts: that of column {place} is none")
    return texts


def check_named(declared: Iterable[str], found: Sequence[str]) -> None:
    """Raise a SchemaError unless all declared columns are among those found.

    It quotes declared names alone: what was read as a header may be the first record.
    """
    names = tuple(declared)
    absent = next((name for name in names if name not in found), None)
    if absent is None:
        return
    present = ", ".join(repr(name) for name in names if name in found) or "none"
    raise SchemaError(
        f"column {absent!r} of the schema is not among the columns of the frame, {len(found)} in number, of which the "
        f"schema has {present}; names agree in case and blanks, and a CSV file needs a header, commas and UTF-8"
    )


def without_codes(raw: NDArray[np.float64], column: Bounded) -> NDArray[np.float64]:
    """Return raw numbers, NaN where one equals a code of a missing answer, in float64 or as float32 holds it."""
    if not column.missing_numbers:
        return raw
    codes = np.array(column.missing_numbers)
    with np.errstate(all="ignore"):
        alike = np.concatenate([codes, codes.astype(np.float32).astype(np.float64)])
    return np.where(np.isin(raw, alike), np.nan, raw)


def clean_numbers(raw: NDArray[np.float64], column: Bounded) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return a new array of values in [lower, upper], NaN as the midpoint and -0.0 as 0.0, and which were no NaN."""
    with np.errstate(all="ignore"):
        clean = np.clip(without_codes(raw, column), column.lower, column.upper)
        present = ~np.isnan(clean)
        if not present.all():
            clean[~present] = column.midpoint
        clean += 0.0
    return clean, present


_PLAIN = frozenset({str, bool, int, float, Decimal})


def scalar(value: Any) -> str | bool | int | float | Decimal | None:
    """Return a cell as a plain text, boolean, whole number, float or decimal; ``None`` for anything else.

    Total: no method of the cell's own class runs, since it may raise.  A subclass counts as its base holds it, a numpy
    scalar as its number or text; a null, date, duration, list or other object is missing.
    """
    kind = type(value)
    if kind in _PLAIN:
        return value  # type: ignore[no-any-return]
    if issubclass(kind, str):
        return str.__str__(value)
    if issubclass(kind, int):
        return int.__int__(value)
    if issubclass(kind, float):
        return float.__float__(value)
    if issubclass(kind, Decimal):
        return Decimal(value)
    if issubclass(kind, np.longdouble):
        with np.errstate(all="ignore"):
            return float(np.longdouble.__float__(value))
    if issubclass(kind, (np.bool_, np.integer, np.floating)) and not issubclass(kind, np.timedelta64):
        return np.generic.item(value)  # type: ignore[no-any-return]
    return None


def number_of(value: object) -> float:
    """Return a Python integer, decimal or float as the nearest float64, beyond them ±inf; anything else as NaN."""
    plain = scalar(value)
    try:
        return float(plain) if isinstance(plain, (int, float, Decimal)) else np.nan
    except OverflowError:  # a whole number beyond all floats
        return np.inf if plain > 0 else -np.inf  # type: ignore[operator]
    except ValueError:  # a signalling NaN
        return np.nan

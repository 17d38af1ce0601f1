"""Raw columns to values inside the declared domain: total rules, the same for every record and every back end.

| declared | null, NaN | ±inf | outside | comes out as |
|---|---|---|---|---|
| Bounded | midpoint | nearer bound | clipped | float64 in [lower, upper] |
| Levels | ``other``, else first level | the same | the same | int64 code of the level |

A record is cleaned by itself, so replacing one record changes one cleaned record: the map from tables to arrays
keeps neighbours neighbours under replace-one, and any sensitivity proved on the arrays holds for the table.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from decimal import Decimal

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.schema import Bounded, Column, Levels
from dpcausal.data.source import Declared, Kind
from dpcausal.errors import SchemaError

_FITS_BOUNDED = {Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.EMPTY, Kind.FIELD}
_FITS_LEVELS = {
    "text": {Kind.TEXT, Kind.OBJECT, Kind.EMPTY, Kind.FIELD},
    "integer": {Kind.INTEGER, Kind.FLOAT, Kind.OBJECT, Kind.EMPTY, Kind.FIELD},
    "boolean": {Kind.BOOLEAN, Kind.OBJECT, Kind.EMPTY, Kind.FIELD},
}
_NEEDS_LEVELS = {
    "text": "a column of text or categories",
    "integer": "a column of integers (or floats that hold them)",
    "boolean": "a column of booleans",
}
_MOST_QUOTED = 40
"""More names are not listed in an error."""

_INTEGER_FIELD = re.compile(r"[ \t]*([+-]?[0-9]{1,40})(?:\.0*)?[ \t]*")


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


def check_named(declared: Iterable[str], found: Sequence[str]) -> None:
    """Raise a SchemaError unless all declared columns are among those found.

    The names found are quoted only where one of them, or a part between other separators than commas, is a declared
    one: otherwise the line may be no header but the first record.
    """
    names = tuple(declared)
    absent = next((name for name in names if name not in found), None)
    if absent is None:
        return
    parts = {part.strip(" \"'") for name in found for part in re.split("[,;|\t]", name)}
    if parts.isdisjoint(names):
        told = "none of whose names is in the schema"
    else:
        told = f"which has {', '.join(map(repr, found[:_MOST_QUOTED]))}{', ...' * (len(found) > _MOST_QUOTED)}"
    raise SchemaError(
        f"column {absent!r} of the schema is not among the columns of the frame, {told}; a CSV file needs a header, "
        "commas and UTF-8"
    )


def clean_numbers(raw: NDArray[np.float64], column: Bounded) -> NDArray[np.float64]:
    """Return a new array of values in [lower, upper], NaN as the midpoint and -0.0 as 0.0."""
    with np.errstate(all="ignore"):
        clean = np.clip(raw, column.lower, column.upper)
        clean[np.isnan(clean)] = column.midpoint
        clean += 0.0
    return clean


def clean_levels(
    chunks: Iterable[Sequence[object]], column: Levels, rows: int, *, fields: bool
) -> NDArray[np.int64]:
    """Return the codes of ``rows`` values that arrive in chunks; ``fields`` says that they come from a text file."""
    code = (_field_coder if fields else _value_coder)(column)
    values = (code(value) for chunk in chunks for value in chunk)
    return np.fromiter(values, dtype=np.int64, count=rows)


def _value_coder(column: Levels) -> Callable[[object], int]:
    """Return the map from one typed value to its code, total over all Python objects."""
    substitute = column.substitute
    codes = {label: code for code, label in enumerate(column.labels)}

    def text(value: object) -> int:
        return codes.get(value, substitute) if isinstance(value, str) else substitute

    def boolean(value: object) -> int:
        return codes.get(bool(value), substitute) if isinstance(value, (bool, np.bool_)) else substitute

    def integer(value: object) -> int:
        if isinstance(value, (bool, np.bool_)):
            return substitute
        if isinstance(value, (int, np.integer)):
            return codes.get(int(value), substitute)
        if isinstance(value, (float, np.floating)) and float(value).is_integer():
            return codes.get(int(value), substitute)
        return substitute

    return {"text": text, "boolean": boolean, "integer": integer}[column.kind]


def _field_coder(column: Levels) -> Callable[[object], int]:
    """Return the map from the text of a field to its code: read the text as the levels' type, then match."""
    typed = _value_coder(column)

    def boolean(field: object) -> int:
        return typed({"true": True, "false": False}.get(str(field).strip(" \t").lower()))

    def integer(field: object) -> int:
        written = _INTEGER_FIELD.fullmatch(str(field))
        return typed(int(written[1]) if written else None)

    return {"text": typed, "boolean": boolean, "integer": integer}[column.kind]


def number_of(value: object) -> float:
    """Return a Python integer, decimal or float as the nearest float64; anything else as NaN."""
    return float(value) if isinstance(value, (int, float, Decimal)) else np.nan

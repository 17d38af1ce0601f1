"""Where a raw value becomes a code: one rule for each column, byte for byte, whoever reads the records.

| declared | code of a record |
|---|---|
| Bounded | how many cuts lie at or below the value, which is rounded once to float64; a null or NaN: missing |
| Levels | the place of the level that equals the value, text by bytes, booleans by number; ``other``'s or missing |

What is missing is distinguished here and nowhere else; whether it is left out or counts as a substitute is the table's
rule.  A code depends on its own record alone.  So an engine's own equality never decides it: a collation takes YES for
yes, a comparison with a float takes 2^53 + 1 for 2^53.
"""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from functools import partial
from typing import Any
from unicodedata import category

import numpy as np
from numpy.typing import NDArray

from dpcausal.arrays import Mask
from dpcausal.data.columns import Bounded, Column, Levels, has_dates
from dpcausal.data.panels.dates import day_of, period_of
from dpcausal.data.source import Collected, Declared, Kind
from dpcausal.errors import Hint, SchemaError, Setting

_FITS_BOUNDED = {Kind.INTEGER, Kind.FLOAT, Kind.DECIMAL, Kind.EMPTY, Kind.FIELD}
_FITS_DATES = {Kind.DATE, Kind.TEXT, Kind.OBJECT, Kind.EMPTY, Kind.FIELD}
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


_HINTS = dict.fromkeys((Kind.OBJECT, Kind.TEXT), "convert it, for example with pandas.to_numeric")
_FALSE_TRUE = "declare ", Setting(kind="Levels", options={"levels": [False, True]})
_DATES = 'declare dates as bounds, as lower = 2019-01-01, with period = "month" if its months are categories'


def check_declared(name: str, column: Column, declared: Declared) -> None:
    if has_dates(column):
        fits, needs, kind = _FITS_DATES, "a column of dates, or of texts such as 2019-01-31", "a date"
    elif isinstance(column, Bounded):
        fits, needs, kind = _FITS_BOUNDED, "a numeric column", "Bounded"
    else:
        fits, needs = _FITS_LEVELS[column.kind], _NEEDS_LEVELS[column.kind]
        kind = f"Levels of {column.kind} values"
    if declared.kind not in fits:
        hint: Hint = "convert it first"
        if isinstance(column, Bounded):
            hint = _FALSE_TRUE if declared.kind is Kind.BOOLEAN else _HINTS.get(declared.kind, hint)
        raise SchemaError(
            f"column {name!r}: {kind} needs {needs}, but its declared type is {declared.dtype} "
            f"({declared.kind.value})", argument="schema", rule="type", value=declared.dtype,
            hint=_DATES if declared.kind is Kind.DATE else hint,
        )  # fmt: skip


def is_writable(name: str) -> bool:
    return not any(category(letter) in ("Cc", "Cs", "Zl", "Zp") for letter in name)


def check_name(name: object) -> str:
    if not isinstance(name, str) or not name:
        raise SchemaError("a column's name must be a text that is not empty")
    if not is_writable(name):
        raise SchemaError(
            f"column {name!r}: a name must be UTF-8 text without line breaks or control codes; rename the column, or "
            "read the file in its own encoding"
        )
    return str(name)


def check_texts(names: Sequence[object]) -> tuple[str, ...]:
    texts = tuple(name for name in names if isinstance(name, str))
    if len(texts) < len(names):
        place = next(place for place, name in enumerate(names, 1) if not isinstance(name, str))
        text = f"the columns of a frame are named by texts: that of column {place} is none"
        hint = "name it by a text; of a table with a column a year make rows"
        raise SchemaError(text, argument="frame", rule="names", hint=hint)
    return texts


def check_named(declared: Iterable[str], header: Sequence[str]) -> None:
    """Raise a SchemaError unless all declared columns are among those found. It quotes declared names alone: what was
    read as a header may be the first record."""
    names = tuple(declared)
    absent = next((name for name in names if name not in header), None)
    if absent is None:
        return
    present = ", ".join(repr(name) for name in names if name in header) or "none"
    alone = "one column. Is its separator a semicolon or a tab?"
    raise SchemaError(
        f"column {absent!r} of the schema is not in the frame, which has "
        f"{alone if len(header) == 1 else f'{len(header)} columns.'} Of the schema it has: {present}. Check case and "
        "blanks. A text file needs a header; unless it has commas and UTF-8, declare its separator and encoding under "
        "[data] of a study"
    )


def without_codes(raw: NDArray[np.float64], column: Bounded) -> NDArray[np.float64]:
    """Return raw numbers, NaN where one equals a code of a missing answer, in float64 or as float32 holds it."""
    if not column.missing_numbers:
        return raw
    codes = np.array(column.missing_numbers)
    with np.errstate(all="ignore"):
        both_widths = np.concatenate([codes, codes.astype(np.float32).astype(np.float64)])
    return np.where(np.isin(raw, both_widths), np.nan, raw)


def raw_numbers(collected: Collected, name: str, column: Bounded) -> NDArray[np.float64]:
    """Return a column's numbers, of dates their days; what is none is NaN."""
    if not column.dates:
        return collected.numbers(name)
    return _each_cell(collected, name, partial(day_of, order=collected.date_order), np.float64)


def _each_cell(collected: Collected, name: str, code: Callable[[object], Any], dtype: type[Any]) -> NDArray[Any]:
    if (coded := collected.distinct(name)) is not None:
        places, distinct = coded
        return np.array([*map(code, distinct), code(None)], dtype)[places]
    return np.fromiter((code(value) for chunk in collected.objects(name) for value in chunk), dtype, len(collected))


def clean_numbers(raw: NDArray[np.float64], column: Bounded) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    with np.errstate(all="ignore"):
        clean = np.clip(without_codes(raw, column), column.lower, column.upper)
        present = ~np.isnan(clean)
        if not present.all():
            clean[~present] = column.midpoint
        clean += 0.0
    return clean, present


def scalar(value: Any) -> str | bool | int | float | Decimal | None:
    """Return a cell as a plain text, boolean, whole number, float or decimal; ``None`` for anything else. Total: no
    method of the cell's own class runs, since it may raise.  A subclass counts as its base holds it, a numpy scalar as
    its number or text; a null, date, duration, list or other object is missing."""
    kind = type(value)
    if kind is str or kind is int or kind is float or kind is bool or kind is Decimal:  # a set would hash the class
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
    plain = scalar(value)
    try:
        return float(plain) if isinstance(plain, (int, float, Decimal)) else np.nan
    except OverflowError:  # a whole number beyond all floats
        return np.inf if plain > 0 else -np.inf  # type: ignore[operator]
    except ValueError:  # a signalling NaN
        return np.nan


Codes = NDArray[np.int64]

MISSING = -1
"""The code of what is missing."""

_BOOLEAN_FIELDS = {"true": True, "false": False}
_INTEGER_FIELD = re.compile(r"[ \t]*([+-]?[0-9]{1,40})(?:\.0*)?[ \t]*")


def cuts_of(column: Bounded) -> NDArray[np.float64]:
    """Return the public points at which a bounded column is cut: its own, or three that make four equal widths."""
    if column.cuts is not None:
        return np.asarray(column.cuts)
    points = [column.lower + column.width * share for share in (0.25, 0.5, 0.75)]
    return np.unique([point for point in points if column.lower < point < column.upper])


def size_of(column: Column) -> int:
    return len(column) if isinstance(column, Levels) else len(cuts_of(column)) + 1


def bin_codes(values: NDArray[np.float64], column: Bounded) -> Codes:
    return np.searchsorted(cuts_of(column), values, side="right").astype(np.int64)


def column_codes(values: NDArray[Any], column: Column) -> Codes:
    """Return the codes of cleaned values: of their levels, or of the parts that a number is cut into."""
    return bin_codes(values, column) if isinstance(column, Bounded) else values


def level_codes(collected: Collected, name: str, column: Levels, *, fields: bool, rest: int = MISSING) -> Codes:
    integers = collected.integers(name) if column.kind != "text" else None
    if integers is not None:
        return _integer_codes(integers, column, rest)
    if column.period is not None:
        code = _period_coder(column, rest, collected.date_order)
    else:
        code = (_field_coder if fields else _value_coder)(column, rest, collected.labels.get(name, {}))
    return _each_cell(collected, name, code, np.int64)


def cleaned_column(collected: Collected, name: str, column: Column, *, fields: bool) -> tuple[NDArray[Any], Mask]:
    """Return a column's values or codes, substitutes where they are missing, and where they are not."""
    if isinstance(column, Bounded):
        return clean_numbers(raw_numbers(collected, name, column), column)
    rest = MISSING if column.other is None else column.substitute
    codes = level_codes(collected, name, column, fields=fields, rest=rest)
    known = codes != MISSING
    return codes if known.all() else np.where(known, codes, column.substitute), known


def _value_coder(column: Levels, rest: int, labels: Mapping[str, str]) -> Callable[[object], int]:
    codes: dict[object, int] = {label: code for code, label in enumerate(column.labels)}
    names = {**labels, **dict(column.spellings or ())}
    codes = {text: codes[label] for text, label in names.items() if label in codes} | codes

    def text(value: object) -> int:
        plain = scalar(value)
        return codes.get(plain, rest) if type(plain) is str else rest

    def number(value: object) -> int:
        plain = scalar(value)
        if isinstance(plain, int) or (isinstance(plain, float) and plain.is_integer()):
            return codes.get(int(plain), rest)
        return rest

    return text if column.kind == "text" else number


def _period_coder(column: Levels, rest: int, order: str) -> Callable[[object], int]:
    codes, period = {label: code for code, label in enumerate(column.labels)}, column.period or ""

    def code(value: object) -> int:
        day = day_of(value, order)
        return rest if day != day else codes.get(period_of(day, period), rest)

    return code


def _field_coder(column: Levels, rest: int, labels: Mapping[str, str]) -> Callable[[object], int]:
    typed = _value_coder(column, rest, labels)

    def number(field: object) -> int:
        written = _INTEGER_FIELD.fullmatch(str(field))
        return typed(int(written[1]) if written else _BOOLEAN_FIELDS.get(str(field).strip(" \t").lower()))

    return typed if column.kind == "text" else number


def _integer_codes(values: Codes, column: Levels, rest: int) -> Codes:
    labels = list(column.values)
    if labels == list(range(len(labels))):
        inside = (values >= 0) & (values < len(labels))
        return np.where(inside, values, rest)
    known = sorted((int(label), code) for code, label in enumerate(labels) if -(2**63) <= int(label) < 2**63)
    if not known:
        return np.full(len(values), rest)
    ascending, codes = (np.array(side, dtype=np.int64) for side in zip(*known, strict=True))
    place = np.minimum(np.searchsorted(ascending, values), len(known) - 1)
    return np.where(ascending[place] == values, codes[place], rest)

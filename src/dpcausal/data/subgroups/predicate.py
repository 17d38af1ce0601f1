"""Subgroups: public predicates on declared columns, true or false of a record by its own values.

The text of a subgroup, as ``--where`` and a study file have it: read by a grammar of its own, never run.

::

    text       = comparison {"and" comparison}
    comparison = column (">=" | "<=" | "==") value  |  column "in" "[" value {"," value} "]"
    column     = a letter or underscore, then letters, digits, underscores  |  `any text`  |  "any text"
    value      = number  |  date  |  'any text'  |  "any text"  |  true  |  false

A quote inside a text of its kind is doubled.  Nothing else is replaced, and no character is folded into another: a
column is the one that is declared by exactly these code points.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dpcausal.data.coding import bin_codes
from dpcausal.data.columns import exact_number
from dpcausal.data.panels.dates import date_text
from dpcausal.data.schema import Bounded, Column
from dpcausal.errors import ParameterError, Setting


@dataclass(frozen=True)
class Predicate:
    """A range of a bounded column, both ends inside, or some levels of another; what is missing is outside."""

    name: str
    at_least: float | None = None
    at_most: float | None = None
    among: tuple[str | int | bool, ...] | None = None
    codes: tuple[int, ...] = ()
    dates: bool = False

    def holds(self, values: NDArray[Any], present: NDArray[np.bool_]) -> NDArray[np.bool_]:
        inside = np.isin(values, self.codes) & present if self.among is not None else present.copy()
        if self.at_least is not None:
            inside &= values >= self.at_least
        if self.at_most is not None:
            inside &= values <= self.at_most
        return inside

    def __str__(self) -> str:
        if self.among is not None:
            return f"{self.name} in {list(self.among)!r}"
        ends = ((">=", self.at_least), ("<=", self.at_most))
        text = date_text if self.dates else exact_number
        return " and ".join(f"{self.name} {sign} {text(end)}" for sign, end in ends if end is not None)


def predicate(name: str, column: Column, at_least: object, at_most: object, among: object) -> Predicate:
    if isinstance(column, Bounded):
        if among is not None or (at_least is None and at_most is None):
            hint = "give ", Setting("at_least"), " or ", Setting("at_most"), ", or both"
            raise ParameterError(f"column {name!r} has bounds", argument="where", rule="range", value=name, hint=hint)
        ends = _checked_end("at_least", at_least, name, column), _checked_end("at_most", at_most, name, column)
        if None not in ends and not ends[0] <= ends[1]:  # type: ignore[operator]
            raise ParameterError("at_least must not be above at_most: nobody would be in the subgroup")
        return Predicate(name, *ends, dates=column.dates)
    if among is None or at_least is not None or at_most is not None:
        listing = "say ", Setting("among")
        raise ParameterError(f"column {name!r} has levels", argument="where", rule="levels", value=name, hint=listing)
    if isinstance(among, (str, bytes)) or not isinstance(among, Iterable):
        raise ParameterError("among must be a list of levels")
    listed = tuple(among)
    codes = [column.code_of(one) for one in listed]
    if not listed or None in codes:
        levels = ", ".join(map(str, column.labels))
        text = f"a subgroup must list levels that are declared for column {name!r}, at least one: {levels}"
        raise ParameterError(text, argument="among", rule="levels")
    named = tuple(code for code in codes if code is not None)
    return Predicate(name, among=tuple(column.labels[code] for code in named), codes=named)


def check_some(predicates: Iterable[Predicate]) -> None:
    """Refuse predicates of one column that no value meets: nothing would be paid for but noise."""
    by_column: dict[str, list[Predicate]] = {}
    for one in predicates:
        by_column.setdefault(one.name, []).append(one)
    for name, parts in by_column.items():
        codes = [set(one.codes) for one in parts if one.among is not None]
        lows = [one.at_least for one in parts if one.at_least is not None]
        highs = [one.at_most for one in parts if one.at_most is not None]
        if (codes and not set.intersection(*codes)) or (lows and highs and max(lows) > min(highs)):
            raise ParameterError(f"nobody would be in the subgroup: no value of column {name!r} meets all of its parts")


def _checked_end(argument: str, value: Any, name: str, column: Bounded) -> float | None:
    if value is None:
        return None
    number = column.number(value)
    if isinstance(number, (bool, np.bool_)) or not isinstance(number, (int, float, np.integer, np.floating)):
        raise ParameterError(f"{argument} must be a number")
    if not column.lower <= number <= column.upper:
        ends = f"{column.written(column.lower)} to {column.written(column.upper)}"
        raise ParameterError(f"{argument} must lie within the bounds of column {name!r}, {ends}")
    return float(number)


def codes_within(predicates: Iterable[Predicate], name: str, size: int) -> tuple[int, ...]:
    sets = [set(one.codes) for one in predicates if one.name == name and one.among is not None]
    return tuple(code for code in range(size) if all(code in codes for codes in sets))


def codes_left(predicates: Iterable[Predicate], name: str, column: Column) -> tuple[int, ...]:
    """Return the codes that a subgroup leaves of a column of levels, or the parts of one that is cut: public."""
    listed = tuple(predicates)
    if not isinstance(column, Bounded):
        return codes_within(listed, name, len(column))
    first, last = bin_codes(np.array(range_within(listed, name, column)), column)
    return tuple(range(first, last + 1))


def check_varies(predicates: Iterable[Predicate], name: str, column: Column) -> None:
    """Refuse a column of which a subgroup, or the schema, leaves one value: there is nothing to compare."""
    listed = tuple(predicates)
    low, high = range_within(listed, name, column) if isinstance(column, Bounded) else (0.0, 1.0)
    if low == high or (not isinstance(column, Bounded) and len(codes_within(listed, name, len(column))) < 2):
        named = " and ".join(str(one) for one in listed if one.name == name)
        by = f"in the subgroup {named}" if named else "as declared"
        raise ParameterError(f"column {name!r} has one value {by}: there is nothing to compare")


def range_within(predicates: Iterable[Predicate], name: str, column: Bounded) -> tuple[float, float]:
    """Return the least and the largest value of a bounded column that a subgroup leaves: public."""
    ends = [(one.at_least, one.at_most) for one in predicates if one.name == name]
    lows, highs = ([end for end in side if end is not None] for side in zip(*ends, strict=True)) if ends else ([], [])
    return max([column.lower, *lows]), min([column.upper, *highs])


TEXT_RULE = (
    "a subgroup is written as \"age >= 20 and sex == 'f' and site in ['a', 'b']\", with >=, <=, ==, in, and; a name "
    "that is no plain word stands in backticks, as `blood pressure`"
)

_TOKEN = re.compile(
    r"\s*(?:(?P<quoted>`(?:[^`]|``)*`|'(?:[^']|'')*'|\"(?:[^\"]|\"\")*\")"
    r"|(?P<date>[0-9]{4}-[0-9]{2}-[0-9]{2})(?![\w.])"
    r"|(?P<number>[+-]?(?:[0-9]{1,400}(?:\.[0-9]{0,400})?|\.[0-9]{1,400})(?:[eE][+-]?[0-9]{1,3})?)(?![\w.])"
    r"|(?P<word>[^\W\d]\w*)|(?P<sign>>=|<=|==|[\[\](),]))"
)
_DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_CLOSING = {"[": "]", "(": ")"}
_SIGNS = {">=": "at_least", "<=": "at_most", "==": "among"}
_TRUTHS = {"true": True, "True": True, "false": False, "False": False}


def parse_predicates(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the predicates of a text, each a column's name with the arguments of ``Table.where``.

    >>> parse_predicates("age >= 20 and sex == 'f'")
    [('age', {'at_least': 20}), ('sex', {'among': ['f']})]
    >>> parse_predicates("`blood pressure` <= 140 and \\"it's\\" in [0, 1]")
    [('blood pressure', {'at_most': 140}), ("it's", {'among': [0, 1]})]
    """
    reader = _Reader(text)
    clauses = [reader.clause()]
    while reader.token("and"):
        clauses.append(reader.clause())
    if reader.at < len(reader.text):
        raise reader.refusal()
    return clauses


def literal(value: str | int | float) -> str:
    """Return a value as the text of a predicate has it.

    >>> literal("it's"), literal(2.5)
    ("'it''s'", '2.5')
    """
    return "'" + value.replace("'", "''") + "'" if isinstance(value, str) else repr(value)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text, self.at = text.rstrip(), 0

    def refusal(self) -> ParameterError:
        rest = self.text[self.at :].strip()
        where = f"it cannot be read from {rest[:40]!r} on" if rest else "it ends too early"
        return ParameterError(f"{where}: {TEXT_RULE}")

    def token(self, *options: str) -> str | None:
        """Return the next token and go on behind it, if it or its kind is one of these."""
        match = _TOKEN.match(self.text, self.at)
        kind = "" if match is None else match.lastgroup or ""
        if match is None or not {kind, match[kind]} & {*options}:
            return None
        self.at = match.end()
        return match[kind]

    def needed(self, *options: str) -> str:
        if (token := self.token(*options)) is None:
            raise self.refusal()
        return token

    def clause(self) -> tuple[str, dict[str, Any]]:
        name = self.needed("word", "quoted")
        if name[0] == "'":
            raise self.refusal()
        name = _unquoted(name) if name[0] in '`"' else name
        sign = self.needed(*_SIGNS, "in")
        if sign == "in":
            return name, {"among": self.values()}
        value = self.value()
        return name, {_SIGNS[sign]: [value] if sign == "==" else value}

    def values(self) -> list[Any]:
        closing = _CLOSING[self.needed(*_CLOSING)]
        values = [self.value()]
        while self.token(","):
            values.append(self.value())
        self.needed(closing)
        return values

    def value(self) -> Any:
        token = self.needed("quoted", "date", "number", "word")
        if token[0] in "'\"":
            return _unquoted(token)
        if _DATE.fullmatch(token):
            return token
        if token in _TRUTHS:
            return _TRUTHS[token]
        if token[0].isalpha() or token[0] in "_`":
            raise self.refusal()
        return int(token) if re.fullmatch(r"[+-]?\d+", token) else float(token)


def _unquoted(text: str) -> str:
    return text[1:-1].replace(text[0] * 2, text[0])

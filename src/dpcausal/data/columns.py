"""What is declared in public about one column: bounds or levels, never learnt from the data."""

import math
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from dataclasses import dataclass
from datetime import date
from itertools import pairwise
from numbers import Real
from typing import Any, TypeAlias

import numpy as np

from dpcausal.data.panels.dates import PERIODS, date_text, day_of
from dpcausal.errors import SchemaError


def exact_number(number: float) -> str:
    """Return the shortest text that reads back as exactly this number.

    >>> exact_number(1234567.0), exact_number(0.1)
    ('1234567', '0.1')
    """
    return repr(int(number)) if number == int(number) and abs(number) < 1e16 else repr(number)


def _codes_text(codes: tuple[float | str, ...] | None) -> str:
    if codes is None:
        return ""
    return f", missing=[{', '.join(repr(code) if isinstance(code, str) else exact_number(code) for code in codes)}]"


OPTIONAL = ("cuts", "other", "missing", "period", "spellings")

SMALLEST_WIDTH = sys.float_info.min
"""Least upper − lower: below it 1/(upper − lower) would overflow."""


class _RuleError(ValueError):
    """A field breaks a rule, as its text says."""


def _number(value: object) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise _RuleError("must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _RuleError("must be finite in float64")
    return number + 0.0  # -0.0 becomes 0.0


def _day_number(value: object) -> float:
    if math.isnan(day := day_of(value)):
        raise _RuleError("must be a date such as 2019-01-31, as the other bound is")
    return day


def _period(value: object) -> str:
    if value not in PERIODS:
        raise _RuleError(f"must be one of {', '.join(PERIODS)}")
    return str(value)


def _spellings(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, Mapping) or not all(isinstance(text, str) for pair in value.items() for text in pair):
        raise _RuleError('must be a table of texts, as { F = "f" }')
    return tuple(value.items())


def _as_list(value: object) -> list[object]:
    if isinstance(value, (str, bytes, Set, Mapping)) or not isinstance(value, Iterable):
        raise _RuleError("must be a list")
    try:
        return list(value)
    except TypeError:  # a numpy array without dimensions says that it can be iterated over
        raise _RuleError("must be a list") from None


def _level(value: object) -> str | int | bool:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)  # a float column holds the level 1 as 1.0
    if isinstance(value, (int, np.integer)):
        if not -(2**63) <= value < 2**64:
            raise _RuleError("an integer level must fit in 64 bits")
        return int(value)
    if isinstance(value, str):
        text = str(value)
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise _RuleError("a text level must be valid Unicode")
        return text
    raise _RuleError("a level must be text, an integer or a boolean; a number of many values needs bounds")


def _code(value: object) -> float | str:
    if not isinstance(value, str):
        return _number(value)
    try:
        return _number(float(value))
    except ValueError:
        return str(_level(value))


def _missing_codes(value: object) -> tuple[float | str, ...] | None:
    codes = {_code(code) for code in _as_list(value)}
    return tuple(sorted(codes, key=lambda code: (isinstance(code, str), code))) or None


def _each(rule: Callable[[object], Any]) -> Callable[[object], tuple[Any, ...]]:
    return lambda value: tuple(map(rule, _as_list(value)))


def _code_text(code: float | str) -> str:
    return str(int(code)) if isinstance(code, float) and code.is_integer() else str(code)


def _check_rules(rules: Mapping[str, tuple[Callable[[Any], Any], object]]) -> dict[str, Any]:
    fields: dict[str, Any] = {}
    broken: list[str] = []
    for name, (rule, value) in rules.items():
        try:
            fields[name] = None if value is None and name in OPTIONAL else rule(value)
        except _RuleError as error:
            broken.append(f"{name} {error}")
    if broken:
        raise SchemaError("; ".join(dict.fromkeys(broken)))
    return fields


def _set_fields(declared: object, **fields: Any) -> None:
    for name, value in fields.items():
        object.__setattr__(declared, name, value)


def _check(rules: Iterable[tuple[str, bool]]) -> None:
    for text, is_broken in rules:
        if is_broken:
            raise SchemaError(text)


@dataclass(frozen=True, init=False, repr=False)
class Bounded:
    """A number between two public bounds, or a date between two dates: inside, days since 1970-01-01.

    A record's value is x ↦ min(max(x, lower), upper); ±inf counts as the nearer bound.  A null or a NaN is
    missing: see ``missing`` of ``Table``.

    Parameters
    ----------
    lower, upper : number, or date or its text
        Dates as ``date(2019, 1, 31)`` or ``"2019-01-31"``; numbers finite, lower < upper, upper − lower finite and not
        subnormal in float64; in the column's own unit.
        There is no default: a bound taken from the data would be a release.
    cuts : list of numbers or dates, optional
        Points strictly between the bounds, increasing, at which methods for discrete data cut the range: bin k
        holds the values with exactly k cuts at or below them.
    missing : list of numbers, dates or texts, optional
        Codes of a missing answer, as 999, -9 or ".": a value that equals one counts as a null.

    Examples
    --------
    >>> age = Bounded(0, 110)
    >>> age, age.midpoint
    (Bounded(0, 110), 55.0)
    >>> Bounded(0, 110, cuts=[18, 65]).cuts
    (18.0, 65.0)
    >>> Bounded("2019-01-01", "2019-12-31").width
    364.0
    """

    lower: float
    upper: float
    cuts: tuple[float, ...] | None
    missing: tuple[float | str, ...] | None
    dates: bool

    def __init__(
        self, lower: float | date | str, upper: float | date | str, cuts: Iterable[float | date | str] | None = None,
        missing: Iterable[float | date | str] | None = None,
    ) -> None:  # fmt: skip
        dates = any(isinstance(bound, (date, str)) for bound in (lower, upper))
        number, codes = (_day_number, _each(_day_number)) if dates else (_number, _missing_codes)
        fields = _check_rules({
            "lower": (number, lower), "upper": (number, upper), "cuts": (_each(number), cuts),
            "missing": (codes, missing),
        })  # fmt: skip
        _set_fields(self, **fields, dates=dates)
        first, last, points = self.lower, self.upper, self.cuts or ()
        _check((
            (f"lower must be below upper, got {self!r}", not self.width > 0),
            ("upper - lower must be finite in float64", not math.isfinite(self.width)),
            (f"upper - lower must be at least {SMALLEST_WIDTH!r}", self.width < SMALLEST_WIDTH),
            ("cuts must hold at least one number, or be left out", self.cuts == ()),
            ("cuts must increase strictly", any(not left < right for left, right in pairwise(points))),
            ("cuts must lie strictly between lower and upper", any(not first < point < last for point in points)),
        ))  # fmt: skip

    @property
    def missing_numbers(self) -> tuple[float, ...]:
        """The codes of a missing answer that are numbers."""
        return tuple(code for code in self.missing or () if isinstance(code, float))

    @property
    def width(self) -> float:
        """upper − lower, in float64."""
        return self.upper - self.lower

    @property
    def midpoint(self) -> float:
        """What a missing value counts as where it is imputed."""
        return self.lower + self.width / 2  # lower + upper could overflow

    @property
    def ends(self) -> tuple[str, str]:
        """The bounds as short texts."""
        lower, upper = (self.written(end) if self.dates else f"{end:g}" for end in (self.lower, self.upper))
        return lower, upper

    def written(self, number: float) -> str:
        """Return a number of this column as text: of dates the date, else the shortest text that reads back."""
        return date_text(number) if self.dates else exact_number(number)

    def number(self, value: object) -> Any:
        """Return what a public value counts as: of dates the days, else itself."""
        return day_of(value) if self.dates else value

    def to_dict(self) -> dict[str, object]:
        """Return the declaration as the TOML table that would make it."""
        plain: Callable[[Any], Any] = self.written if self.dates else lambda value: value
        values = {name: getattr(self, name) for name in ("lower", "upper", "cuts", "missing")}
        return {name: [*map(plain, value)] if isinstance(value, tuple) else plain(value)
                for name, value in values.items() if value is not None}  # fmt: skip

    def __repr__(self) -> str:
        if self.dates:
            return f"Bounded({', '.join(f'{name}={value!r}' for name, value in self.to_dict().items())})"
        cuts = "" if self.cuts is None else f", cuts=[{', '.join(map(exact_number, self.cuts))}]"
        return f"Bounded({exact_number(self.lower)}, {exact_number(self.upper)}{cuts}{_codes_text(self.missing)})"


@dataclass(frozen=True, init=False, repr=False)
class Levels:
    """One of a public list of levels.

    A record's value becomes the code of its level: its place in ``labels``.  A null or a value outside the list
    counts as ``other`` if one is declared, otherwise it is missing: see ``missing`` of ``Table``.

    Parameters
    ----------
    values : list of text, integers or booleans
        All of one type, all different, at least one; order matters, since codes and the substitute follow it.  The
        floats 0.0 and 1.0 are the integers 0 and 1.
    other : level, optional
        The level that nulls and unseen values count as.  A name that is not among ``values`` is declared as one
        more level, after them; for integer or boolean levels it may be a text that no record can hold.
    missing : list of numbers or texts, optional
        Codes of a missing answer, none of them a level: they count as nulls, and ``Schema.check`` does not remark them.
    period : {"month", "quarter", "year"}, optional
        The column has dates, and the levels are the months, quarters or years that they lie in, as ``"2019-01"``,
        ``"2019-Q1"`` or ``"2019"``.
    spellings : mapping from text to level, optional
        Other texts for levels of text, as ``{"F": "f"}``: a value that equals one counts as its level.

    Notes
    -----
    Text matches by its code points: no trimming, no change of case.  Integers and booleans match by number: the level
    1 or ``True`` is the value 1, 1.0 or ``True``.  The text "1" is not the integer 1.  A CSV file holds only text;
    there an integer or boolean level matches every plain way of writing it: "1", "+1", "1.0", and true or false in any
    case.

    Examples
    --------
    >>> smoker = Levels(["no", "yes"], other="unknown")
    >>> smoker.labels, smoker.substitute
    (('no', 'yes', 'unknown'), 2)
    >>> Levels([0, 1]).substitute
    0
    """

    values: tuple[str | int | bool, ...]
    other: str | int | bool | None
    missing: tuple[float | str, ...] | None
    period: str | None
    spellings: tuple[tuple[str, str], ...] | None
    kind: str  # keeps Levels([0, 1]) apart from Levels([False, True]), which Python calls equal

    def __init__(
        self, values: Iterable[str | int | bool], other: str | int | bool | None = None,
        missing: Iterable[float | str] | None = None, period: str | None = None,
        spellings: Mapping[str, str] | None = None,
    ) -> None:  # fmt: skip
        fields = _check_rules({
            "levels": (_each(_level), values), "other": (_level, other), "missing": (_missing_codes, missing),
            "period": (_period, period), "spellings": (_spellings, spellings),
        })  # fmt: skip
        _set_fields(self, values=fields.pop("levels"), **fields)
        if not self.values:
            raise SchemaError("levels must hold at least one level")
        kind, texts = type(self.values[0]), [str(level) for level in self.values]
        of_another = self.other is not None and type(self.other) is not kind
        _check((
            ("levels must be of one type: all text, all integers or all booleans",
             any(type(level) is not kind for level in self.values)),
            ("levels must differ from each other", len(set(self.values)) < len(self.values)),
            ("missing must name no level: a code of a missing answer is not a level",
             not {_code_text(code) for code in self.missing or ()}.isdisjoint(texts)),
            ("other must be a name, or of the type of the levels", of_another and type(self.other) is not str),
            ("other must not be the text of a level of another type", of_another and self.other in texts),
            ("spellings must lead from texts that are no levels to levels of text",
             any(text in texts or level not in self.labels for text, level in self.spellings or ())),
            ("levels of dates by period must be text, as 2019-01, 2019-Q1 or 2019", bool(period) and kind is not str),
        ))  # fmt: skip
        _set_fields(self, kind={str: "text", bool: "boolean", int: "integer"}[kind])

    @property
    def labels(self) -> tuple[str | int | bool, ...]:
        """Every level a code can mean, in the order of the codes."""
        extra = self.other is not None and self.other not in self.values
        return (*self.values, self.other) if extra and self.other is not None else self.values

    @property
    def substitute(self) -> int:
        """The code of ``other``, or of the first level: what a missing value counts as where it is imputed."""
        return 0 if self.other is None else self.labels.index(self.other)

    def code_of(self, value: object) -> int | None:
        """Return the code of the level that a public value means, by the rule for records; ``None`` if none."""
        if not isinstance(value, (str, Real, np.bool_)):
            return None
        same = (isinstance(label, str) == isinstance(value, str) and label == value for label in self.labels)
        return next((code for code, is_same in enumerate(same) if is_same), None)

    def code_named(self, value: object) -> int | None:
        """Return the code of the level that an argument names, by itself or, as a command does, by its text."""
        texts = [str(label) for label in self.labels]
        code = self.code_of(value)
        return texts.index(value) if code is None and isinstance(value, str) and value in texts else code

    def __len__(self) -> int:
        return len(self.labels)

    def to_dict(self) -> dict[str, object]:
        """Return the declaration as the TOML table that would make it."""
        fields: dict[str, object] = {"levels": list(self.values)}
        fields |= {} if self.other is None else {"other": self.other}
        fields |= {} if self.period is None else {"period": self.period}
        fields |= {} if self.spellings is None else {"spellings": dict(self.spellings)}
        return fields if self.missing is None else {**fields, "missing": list(self.missing)}

    def __repr__(self) -> str:
        other = "" if self.other is None else f", other={self.other!r}"
        period = "" if self.period is None else f", period={self.period!r}"
        spellings = "" if self.spellings is None else f", spellings={dict(self.spellings)!r}"
        return f"Levels({list(self.values)!r}{other}{_codes_text(self.missing)}{period}{spellings})"


Column: TypeAlias = Bounded | Levels


def missing_texts(column: Column) -> list[str]:
    """Return the codes of a missing answer as texts, those of dates as dates."""
    dates = isinstance(column, Bounded) and column.dates
    return [date_text(code) if dates and isinstance(code, float) else _code_text(code) for code in column.missing or ()]


def has_dates(column: Column) -> bool:
    return column.dates if isinstance(column, Bounded) else column.period is not None

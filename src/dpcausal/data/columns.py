"""What is declared in public about one column: bounds or levels, never learnt from the data."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from numbers import Real
from typing import Annotated, Any, TypeAlias, TypeVar

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from dpcausal.errors import SchemaError


def exact_number(number: float) -> str:
    """Return the shortest text that reads back as exactly this number.

    >>> exact_number(1234567.0), exact_number(0.1)
    ('1234567', '0.1')
    """
    return repr(int(number)) if number == int(number) and abs(number) < 1e16 else repr(number)


def _in_order(codes: list[float | str] | None) -> tuple[float | str, ...] | None:
    return tuple(sorted(set(codes), key=lambda code: (isinstance(code, str), code))) if codes else None


def _written(codes: tuple[float | str, ...] | None) -> str:
    if codes is None:
        return ""
    return f", missing=[{', '.join(repr(code) if isinstance(code, str) else exact_number(code) for code in codes)}]"


@dataclass(frozen=True, init=False, repr=False)
class Bounded:
    """A number between two public bounds.

    A record's value is x ↦ min(max(x, lower), upper); ±inf counts as the nearer bound.  A null or a NaN is
    missing: see ``missing`` of ``Table``.

    Parameters
    ----------
    lower, upper : number
        Finite, lower < upper, upper − lower finite and not subnormal in float64; in the column's own unit.
        There is no default: a bound taken from the data would be a release.
    cuts : list of numbers, optional
        Points strictly between the bounds, increasing, at which methods for discrete data cut the range: bin k
        holds the values with exactly k cuts at or below them.
    missing : list of numbers or texts, optional
        Codes of a missing answer, as 999, -9 or ".": a value that equals one counts as a null.

    Examples
    --------
    >>> age = Bounded(0, 110)
    >>> age, age.midpoint
    (Bounded(0, 110), 55.0)
    >>> Bounded(0, 110, cuts=[18, 65]).cuts
    (18.0, 65.0)
    """

    lower: float
    upper: float
    cuts: tuple[float, ...] | None
    missing: tuple[float | str, ...] | None

    def __init__(
        self, lower: float, upper: float, cuts: Iterable[float] | None = None,
        missing: Iterable[float | str] | None = None,
    ) -> None:  # fmt: skip

        shape = checked(BoundedShape, {"lower": lower, "upper": upper, "cuts": cuts, "missing": missing})
        object.__setattr__(self, "lower", shape.lower)
        object.__setattr__(self, "upper", shape.upper)
        object.__setattr__(self, "cuts", None if shape.cuts is None else tuple(shape.cuts))
        object.__setattr__(self, "missing", _in_order(shape.missing))

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

    def to_dict(self) -> dict[str, object]:
        """Return the declaration as the TOML table that would make it."""
        fields: dict[str, object] = {"lower": self.lower, "upper": self.upper}
        fields |= {} if self.cuts is None else {"cuts": list(self.cuts)}
        return fields if self.missing is None else {**fields, "missing": list(self.missing)}

    def __repr__(self) -> str:
        cuts = "" if self.cuts is None else f", cuts=[{', '.join(map(exact_number, self.cuts))}]"
        return f"Bounded({exact_number(self.lower)}, {exact_number(self.upper)}{cuts}{_written(self.missing)})"


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
    kind: str  # keeps Levels([0, 1]) apart from Levels([False, True]), which Python calls equal

    def __init__(
        self, values: Iterable[str | int | bool], other: str | int | bool | None = None,
        missing: Iterable[float | str] | None = None,
    ) -> None:  # fmt: skip

        shape = checked(LevelsShape, {"levels": values, "other": other, "missing": missing})
        object.__setattr__(self, "values", tuple(shape.levels))
        object.__setattr__(self, "other", shape.other)
        object.__setattr__(self, "missing", _in_order(shape.missing))
        names = {str: "text", bool: "boolean", int: "integer"}
        object.__setattr__(self, "kind", names[type(shape.levels[0])])

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
        for code, label in enumerate(self.labels):
            if isinstance(label, str) or isinstance(value, str):
                if label == value:
                    return code
            elif isinstance(value, (Real, np.bool_)) and label == value:
                return code
        return None

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
        return fields if self.missing is None else {**fields, "missing": list(self.missing)}

    def __repr__(self) -> str:
        other = "" if self.other is None else f", other={self.other!r}"
        return f"Levels({list(self.values)!r}{other}{_written(self.missing)})"


Column: TypeAlias = Bounded | Levels


SMALLEST_WIDTH = sys.float_info.min
"""Least upper − lower: below it 1/(upper − lower) would overflow."""

Level = str | int | bool
Shape = TypeVar("Shape", bound=BaseModel)


def _broken(rule: str) -> PydanticCustomError:
    return PydanticCustomError("rule", "{rule}", {"rule": rule})


def _number(value: object) -> float:
    if isinstance(value, (bool, np.bool_)) or not isinstance(value, (int, float, np.integer, np.floating)):
        raise _broken("must be a number")
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        raise _broken("must be finite in float64")
    return number + 0.0  # -0.0 becomes 0.0


def _listed(value: object) -> list[object]:
    if isinstance(value, (str, bytes, Set, Mapping)) or not isinstance(value, Iterable):
        raise _broken("must be a list")
    try:
        return list(value)
    except TypeError:  # a numpy array without dimensions says that it can be iterated over
        raise _broken("must be a list") from None


def _level(value: object) -> Level:
    if isinstance(value, (bool, np.bool_)):
        return bool(value)
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        value = int(value)  # a float column holds the level 1 as 1.0
    if isinstance(value, (int, np.integer)):
        if not -(2**63) <= value < 2**64:
            raise _broken("an integer level must fit in 64 bits")
        return int(value)
    if isinstance(value, str):
        text = str(value)
        if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
            raise _broken("a text level must be valid Unicode")
        return text
    raise _broken("a level must be text, an integer or a boolean; a number of many values is Bounded(lower, upper)")


def _code(value: object) -> float | str:
    if not isinstance(value, str):
        return _number(value)
    try:
        return _number(float(value))
    except (ValueError, PydanticCustomError):
        return str(_level(value))


Codes = Annotated[list[Annotated[Any, BeforeValidator(_code)]], BeforeValidator(_listed)]
"""Codes of a missing answer."""


class BoundedShape(BaseModel):
    """``lower``, ``upper`` and perhaps ``cuts`` and ``missing``."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    lower: Annotated[float, BeforeValidator(_number)]
    upper: Annotated[float, BeforeValidator(_number)]
    cuts: Annotated[list[Annotated[float, BeforeValidator(_number)]], BeforeValidator(_listed)] | None = None
    missing: Codes | None = None

    @model_validator(mode="after")
    def _in_order(self) -> BoundedShape:
        width = self.upper - self.lower
        if not width > 0:
            raise _broken(f"lower must be below upper, got {self.lower!r} and {self.upper!r}")
        if not math.isfinite(width):
            raise _broken("upper - lower must be finite in float64")
        if width < SMALLEST_WIDTH:
            raise _broken(f"upper - lower must be at least {SMALLEST_WIDTH!r}")
        if self.cuts is not None:
            if not self.cuts:
                raise _broken("cuts must hold at least one number, or be left out")
            if any(not left < right for left, right in zip(self.cuts, self.cuts[1:], strict=False)):
                raise _broken("cuts must increase strictly")
            if not (self.lower < self.cuts[0] and self.cuts[-1] < self.upper):
                raise _broken("cuts must lie strictly between lower and upper")
        return self


class LevelsShape(BaseModel):
    """``levels`` and perhaps ``other`` and ``missing``."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True, arbitrary_types_allowed=True)

    levels: Annotated[list[Annotated[Any, BeforeValidator(_level)]], BeforeValidator(_listed)]
    other: Annotated[Any, BeforeValidator(lambda value: None if value is None else _level(value))] = None
    missing: Codes | None = None

    @model_validator(mode="after")
    def _of_one_kind(self) -> LevelsShape:
        if not self.levels:
            raise _broken("levels must hold at least one level")
        kind = type(self.levels[0])
        if any(type(level) is not kind for level in self.levels):
            raise _broken("levels must be of one type: all text, all integers or all booleans")
        if len(set(self.levels)) < len(self.levels):
            raise _broken("levels must differ from each other")
        if {_plain(code) for code in self.missing or ()} & {str(level) for level in self.levels}:
            raise _broken("missing must name no level: a code of a missing answer is not a level")
        if self.other is None or type(self.other) is kind:
            return self
        if type(self.other) is not str:
            raise _broken("other must be a name, or of the type of the levels")
        if self.other in [str(level) for level in self.levels]:
            raise _broken("other must not be the text of a level of another type")
        return self


def _plain(code: float | str) -> str:
    return str(int(code)) if isinstance(code, float) and code.is_integer() else str(code)


def checked(shape: type[Shape], fields: Mapping[str, object]) -> Shape:
    """Return ``fields`` in the given shape, or raise a SchemaError that names every rule broken."""
    rules: list[str] = []
    try:
        return shape.model_validate(dict(fields))
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_input=False):
            where = str(problem["loc"][0]) if problem["loc"] else ""
            known = {"missing": "is missing", "extra_forbidden": "is not a key of this kind of column"}
            rules.append(f"{where} {known.get(problem['type'], problem['msg'])}".strip())
    raise SchemaError("; ".join(dict.fromkeys(rules)))

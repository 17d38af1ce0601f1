"""The two shapes a column's declaration can take, checked by pydantic; its errors come out as ours.

Loaded when the first column is declared: pydantic is the dearest import of this room.  Everything here is
public (bounds and levels are declared, not read from data), so messages may quote what was declared.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Mapping, Set
from typing import Annotated, Any, TypeVar

import numpy as np
from pydantic import BaseModel, BeforeValidator, ConfigDict, ValidationError, model_validator
from pydantic_core import PydanticCustomError

from dpcausal.errors import SchemaError

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
    """Return a code of a missing answer: a text that says a number is that number, as in a text file."""
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
    """Return how a code is written: a whole number without a point."""
    return str(int(code)) if isinstance(code, float) and code.is_integer() else str(code)


def checked(shape: type[Shape], fields: Mapping[str, object]) -> Shape:
    """Return ``fields`` in the given shape, or raise a SchemaError that names every rule broken."""
    rules: list[str] = []
    try:
        return shape.model_validate(dict(fields))
    except ValidationError as error:
        for found in error.errors(include_url=False, include_input=False):
            where = str(found["loc"][0]) if found["loc"] else ""
            known = {"missing": "is missing", "extra_forbidden": "is not a key of this kind of column"}
            rules.append(f"{where} {known.get(found['type'], found['msg'])}".strip())
    raise SchemaError("; ".join(dict.fromkeys(rules)))

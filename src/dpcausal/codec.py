"""Public values and results as JSON types, and back: what a cached answer is made of.

A class is stored under a tag that is declared beside it and does not follow renames.  Only registered classes are
encoded, and only they come back, their fields set as they were.
"""

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np

from dpcausal.errors import Advice, Setting
from dpcausal.privacy.loss import Loss, loss_text, parse_loss
from dpcausal.privacy.sensitivity import Relation, Unit

Class = TypeVar("Class", bound=type)

_CLASSES: dict[str, Any] = {}
_TAGS: dict[type, str] = {}


class NotStorableError(Exception):
    """A value that has no stored form: a function, a model, an object of a class without a tag."""


def storable(tag: str) -> Callable[[Class], Class]:
    """Register a frozen dataclass or an enum under a tag that never changes."""

    def register(cls: Class) -> Class:
        if tag in _CLASSES:
            raise RuntimeError(f"tag {tag!r} is that of {_CLASSES[tag].__name__}")
        _CLASSES[tag], _TAGS[cls] = cls, tag
        return cls

    return register


storable("Relation")(Relation)
storable("Unit")(Unit)
storable("Setting")(Setting)


def encode(value: Any) -> Any:
    """Return a value as JSON types that carry its type; ``NotStorableError`` if that cannot be done faithfully."""
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, Advice):
        return {"advice": [encode(part) for part in value.parts]}
    if value is ...:
        return {"unset": True}
    if isinstance(value, (np.bool_, np.integer)):
        return encode(value.item())
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if np.isfinite(number) else {"float": str(number)}
    if isinstance(value, Loss):
        return {"loss": loss_text(value)}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        numbers = value.tolist()  # plain already, where all are finite: a table may have a million
        return {"array": numbers if np.isfinite(value).all() else encode(numbers), "dtype": str(value.dtype)}
    if isinstance(value, list):
        return [encode(part) for part in value]
    if type(value) is tuple:
        return {"tuple": [encode(part) for part in value]}
    if isinstance(value, frozenset):
        return {"frozenset": sorted((encode(part) for part in value), key=repr)}
    if isinstance(value, Mapping):
        pairs = [[encode(key), encode(part)] for key, part in value.items()]
        # Of keys without an order, Python's hash seed would decide it.
        return {"mapping": sorted(pairs, key=repr) if any(isinstance(key, frozenset) for key in value) else pairs}
    tag = _TAGS.get(type(value))
    if tag is None:
        raise NotStorableError(type(value).__name__)
    if isinstance(value, Enum):
        return {"enum": tag, "value": value.value}
    own = (field.name for field in fields(value) if field.init or field.default_factory is MISSING)
    stored = {name: encode(getattr(value, name)) for name in own}
    return {"kind": tag, "fields": stored}


def decode(stored: Any, **guarantee_fields: Any) -> Any:
    """Return the value that ``encode`` wrote, with the given fields set on every guarantee in it."""

    def of(stored: Any) -> Any:
        if isinstance(stored, list):
            return [of(part) for part in stored]
        if not isinstance(stored, dict):
            return stored
        match stored:
            case {"float": text}:
                return float(text)
            case {"advice": parts}:
                return Advice(*(of(part) for part in parts))
            case {"unset": True}:
                return ...
            case {"loss": text}:
                return parse_loss(text)
            case {"fraction": text}:
                return Fraction(text)
            case {"array": values, "dtype": dtype}:
                array = np.array(of(values), dtype=dtype)
                array.setflags(write=False)
                return array
            case {"tuple": parts}:
                return tuple(of(part) for part in parts)
            case {"frozenset": parts}:
                return frozenset(of(part) for part in parts)
            case {"mapping": pairs}:
                return {of(key): of(part) for key, part in pairs}
            case {"enum": tag, "value": value}:
                return _CLASSES[tag](value)
            case {"kind": tag, "fields": values}:
                values = {name: of(part) for name, part in values.items()}
                return _object_of(_CLASSES[tag], values | (guarantee_fields if tag == "Guarantee" else {}))
        raise ValueError("unknown stored form")

    return of(stored)


def _object_of(cls: Any, values: dict[str, Any]) -> Any:
    if not is_dataclass(cls):
        raise ValueError("unknown stored form")
    new: Any = object.__new__
    made = new(cls)
    for field in fields(cls):
        if field.name in values:
            value = values.pop(field.name)
        elif field.default_factory is not MISSING:
            value = field.default_factory()
        elif (value := field.default) is MISSING:
            raise ValueError("missing stored field")
        object.__setattr__(made, field.name, value)
    if values:
        raise ValueError("unknown stored field")
    return made

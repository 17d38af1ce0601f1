"""Public values and results as JSON's types, and back as they were: what a kept answer is made of.

Results are frozen dataclasses of released and public values.  A class goes by its bare name, so that a kept answer
outlives a file that was moved; only dataclasses and enums of this library come back, their fields set as they were.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from enum import Enum
from fractions import Fraction
from importlib import import_module
from typing import Any

import numpy as np

from dpcausal.privacy.loss import Loss, loss_text, parse_loss


class UnspokenError(Exception):
    """A value that has no such form: a function, a model, a table without a name."""


def spoken(value: Any) -> Any:
    """Return a value as JSON's types, told apart by type; ``UnspokenError`` if that cannot be done faithfully."""
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, (np.bool_, np.integer)):
        return spoken(value.item())
    if isinstance(value, (float, np.floating)):
        number = float(value)
        return number if np.isfinite(number) else {"float": str(number)}
    if isinstance(value, Loss):
        return {"loss": loss_text(value)}
    if isinstance(value, Enum):
        return {"enum": type(value).__name__, "value": value.value}
    if isinstance(value, Fraction):
        return {"fraction": str(value)}
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        return {"array": spoken(value.tolist()), "dtype": str(value.dtype)}
    if isinstance(value, list):
        return [spoken(part) for part in value]
    if type(value) is tuple:
        return {"tuple": [spoken(part) for part in value]}
    if isinstance(value, frozenset):
        return {"frozenset": sorted((spoken(part) for part in value), key=repr)}
    if isinstance(value, Mapping):
        return {"mapping": [[spoken(key), spoken(part)] for key, part in value.items()]}
    if is_dataclass(value) and not isinstance(value, type) and type(value).__module__.startswith("dpcausal."):
        told = {field.name: spoken(getattr(value, field.name)) for field in fields(value) if not _made(field)}
        return {"kind": type(value).__name__, "fields": told}
    raise UnspokenError(type(value).__name__)


def heard(told: Any, **marks: Any) -> Any:
    """Return the value that ``spoken`` told; ``marks`` are set on every guarantee in it."""

    def of(told: Any) -> Any:
        if isinstance(told, list):
            return [of(part) for part in told]
        if not isinstance(told, dict):
            return told
        match told:
            case {"float": text}:
                return float(text)
            case {"loss": text}:
                return parse_loss(text)
            case {"fraction": text}:
                return Fraction(text)
            case {"array": values, "dtype": kind}:
                array = np.array(of(values), dtype=kind)
                array.setflags(write=False)
                return array
            case {"tuple": parts}:
                return tuple(of(part) for part in parts)
            case {"frozenset": parts}:
                return frozenset(of(part) for part in parts)
            case {"mapping": pairs}:
                return {of(key): of(part) for key, part in pairs}
            case {"enum": name, "value": value}:
                return _kind(name, None)(value)
            case {"kind": name, "fields": given}:
                return _made_of(name, {field: of(part) for field, part in given.items()}, marks)
        raise ValueError("unknown form")

    return of(told)


def _made(field: Any) -> bool:
    """Return whether a field is filled by the object itself: a store of what was worked out."""
    return not field.init and field.default_factory is not MISSING


def _made_of(name: str, given: dict[str, Any], marks: Mapping[str, Any]) -> Any:
    kind = _kind(name, set(given))
    made = object.__new__(kind)
    for field in fields(kind):
        value = given[field.name] if field.name in given else _default(field)
        object.__setattr__(made, field.name, value)
    if name == "Guarantee":
        for field_name, value in marks.items():
            object.__setattr__(made, field_name, value)
    return made


def _default(field: Any) -> Any:
    return field.default if field.default_factory is MISSING else field.default_factory()


def _kind(name: str, told: set[str] | None) -> Any:
    """Return the enum, or the frozen dataclass, that has this name in the library and took these fields.

    It may have more by now, each with a default that stands for answers of before; of several classes the one of just
    these fields.
    """
    import_module("dpcausal.library")  # the same classes whatever a program has used so far
    found, grown = set[Any](), set[Any]()
    for module in [one for path, one in list(sys.modules.items()) if path.startswith("dpcausal.")]:
        kind = getattr(module, name, None)
        if not isinstance(kind, type) or kind.__module__ != module.__name__:
            continue
        if told is None and issubclass(kind, Enum):
            found.add(kind)
        elif told is not None and is_dataclass(kind):
            now = {one.name: one for one in fields(kind) if not _made(one)}
            if set(now) == told:
                found.add(kind)
            elif told < set(now) and all(_default(now[later]) is not MISSING for later in set(now) - told):
                grown.add(kind)
    fitting = found or grown
    if len(fitting) == 1:
        return fitting.pop()
    raise LookupError(name)

"""Checks of public arguments, each in one place; none of them looks at a row."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import fields
from inspect import signature
from typing import Any

import numpy as np

from dpcausal.core.method import Method
from dpcausal.data.schema import Bounded, Column
from dpcausal.data.table import Table
from dpcausal.errors import ParameterError, SchemaError, Setting, nearest
from dpcausal.privacy.sensitivity import Unit

LARGEST_BOUND, LEAST_WIDTH = 1e100, 1e-100
"""Bounds beyond these have squares or products that no float holds."""


def is_number(value: object) -> bool:
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> str:
    if not (isinstance(value, str) and value in allowed):
        text = f"{name} must be one of {', '.join(allowed)}{nearest(value, allowed)}"
        raise ParameterError(text, argument=name, rule="choice", value=value)
    return value


def flag(name: str, value: object) -> bool:
    if not isinstance(value, bool):
        raise ParameterError(f"{name} must be true or false", argument=name, rule="flag", value=value)
    return value


def whole(name: str, value: object, least: int, most: int, why: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        text = f"{name} must be a whole number between {least} and {why or most}"
        raise ParameterError(text, argument=name, rule="integer", value=value)
    return int(value)


def number(name: str, value: Any, least: float, most: float, unit: str = "") -> float:
    value = value.item() if isinstance(value, np.generic) else value
    if not is_number(value) or not least <= value <= most:
        text = f"{name} must be between {least:g} and {most:g}{unit}"
        raise ParameterError(text, argument=name, rule="range", value=value)
    return float(value)


def level(alpha: Any) -> float:
    if not is_number(alpha) or not 0 < alpha < 1:
        text = "alpha must be a number above 0 and below 1"
        raise ParameterError(text, argument="alpha", rule="range", value=alpha)
    return float(alpha)


def column(table: Table, name: str, asker: str) -> Column:
    declared = table.schema.column(name)
    if isinstance(declared, Bounded) and (
        max(-declared.lower, declared.upper) > LARGEST_BOUND or declared.width < LEAST_WIDTH
    ):
        raise SchemaError(
            f"column {name!r}: {asker} needs bounds within ±{LARGEST_BOUND:g} and at least {LEAST_WIDTH:g} apart",
            argument=name, rule="bounds", value=declared, hint="declare it in another unit",
        )  # fmt: skip
    return declared


def names(what: str, listed: Any, least: int = 0, known: Iterable[str] | None = None) -> tuple[str, ...]:
    """Return a list of different column names, at least so many, each of those known."""
    if isinstance(listed, str) or not isinstance(listed, Iterable):
        raise ParameterError(f"{what} must be a list of column names", argument=what, rule="names", value=listed)
    chosen, among = tuple(listed), None if known is None else tuple(known)
    if among is not None and (lacking := [name for name in chosen if name not in among]):
        text = f"{what}: {lacking[0]!r} is no column that was released; there are {', '.join(among)}"
        raise ParameterError(text, argument=what, rule="names", value=lacking[0])
    if len(chosen) < least or not all(isinstance(name, str) for name in chosen) or len(set(chosen)) < len(chosen):
        text = f"{what} must be {f'at least {least} ' if least else ''}different column names"
        raise ParameterError(text, argument=what, rule="names")
    return chosen


def check_table(table: object, persons: bool = False, weights: bool = False) -> None:
    if not isinstance(table, Table):
        raise ParameterError("table must be a dpcausal Table", argument="table", rule="type")
    if table.unit is not Unit.ROW and not persons:
        text = "this question has no proof for persons"
        raise ParameterError(text, argument="table", rule="persons", hint="use a table with one row per person")
    if table.weighed and not weights:
        hint = "use a table without ", Setting("weight"), ", or cells, moments, effect or did"
        raise ParameterError("this question takes no survey weights", argument="table", rule="weights", hint=hint)


def choose_method(method: object, kind: type[Any], known: Mapping[str, Callable[[], Method[Any]]]) -> Any:
    if isinstance(method, kind):
        return method
    if isinstance(method, str) and method in known:
        return known[method]()
    if isinstance(method, type) and issubclass(method, kind):
        text = f"method must be an object: {method.__name__}(), not {method.__name__}"
        raise ParameterError(text, argument="method", rule="type", value=method.__name__)
    text = f"method must be one of {', '.join(known)}, or a method with its options{nearest(method, known)}"
    raise ParameterError(text, argument="method", rule="choice", value=method)


def reject_misplaced_options(
    misplaced: Mapping[str, object], method: object, known: Mapping[str, type[Method[Any]]],
    function: Callable[..., Any],
) -> None:  # fmt: skip
    for name, value in misplaced.items():
        chosen = known.get(method) if isinstance(method, str) else type(method)
        kinds = [kind for kind in (chosen, *known.values()) if isinstance(kind, type) and issubclass(kind, Method)]
        taker = next((kind for kind in kinds if name in {field.name for field in fields(kind)}), None)
        if taker is None:
            options = {field.name for kind in kinds for field in fields(kind)}
            meant = nearest(name, [*signature(function).parameters, *sorted(options)])
            text = f"{function.__name__} has no argument {name!r}{meant}"
            raise ParameterError(text, argument=name, rule="unknown-argument", value=value)
        room = "papers" if taker.__module__.startswith("dpcausal.papers") else "methods"
        public = value if value is None or isinstance(value, (bool, int, float, str)) else ...
        short_name = next((short for short, kind in known.items() if kind is taker), taker.name)
        written = Setting("method", short_name, {name: public}, f"dpc.{room}.{taker.__name__}")
        text = f"{name} is an option of the method"
        raise ParameterError(text, argument=name, rule="misplaced-option", value=public, hint=written)

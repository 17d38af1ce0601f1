"""Checks of public arguments, each in one place; none of them looks at a row."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from inspect import signature
from typing import Any

import numpy as np

from dpcausal.core.method import Method
from dpcausal.data.schema import Bounded, Column
from dpcausal.data.table import Table
from dpcausal.errors import ParameterError, SchemaError, nearest
from dpcausal.privacy.sensitivity import Unit

LARGEST_BOUND, LEAST_WIDTH = 1e100, 1e-100
"""Bounds beyond these have squares or products that no float holds."""


def is_number(value: object) -> bool:
    """Return whether a value is a number, and no bool."""
    return isinstance(value, (int, float, np.integer, np.floating)) and not isinstance(value, bool)


def check_choice(name: str, value: object, allowed: tuple[str, ...]) -> str:
    """Return a word that is among those allowed."""
    if not (isinstance(value, str) and value in allowed):
        raise ParameterError(f"{name} must be one of {', '.join(allowed)}{nearest(value, allowed)}")
    return value


def whole(name: str, value: object, least: int, most: int, why: str = "") -> int:
    """Return a whole number of the range; ``why`` says where its end comes from."""
    if isinstance(value, bool) or not isinstance(value, (int, np.integer)) or not least <= value <= most:
        raise ParameterError(f"{name} must be a whole number between {least} and {why or most}")
    return int(value)


def number(name: str, value: Any, least: float, most: float, unit: str = "") -> float:
    """Return a number of the range, ends included."""
    if not is_number(value) or not least <= value <= most:
        raise ParameterError(f"{name} must be between {least:g} and {most:g}{unit}")
    return float(value)


def level(alpha: Any) -> float:
    """Return a level, in (0, 1)."""
    if not is_number(alpha) or not 0 < alpha < 1:
        raise ParameterError("alpha must be a number above 0 and below 1")
    return float(alpha)


def column(table: Table, name: str, asker: str) -> Column:
    """Return a column's declaration, its bounds fit for squares and products; ``asker`` needs them, in words."""
    declared = table.schema.column(name)
    if isinstance(declared, Bounded) and (
        max(-declared.lower, declared.upper) > LARGEST_BOUND or declared.width < LEAST_WIDTH
    ):
        raise SchemaError(
            f"column {name!r}: {asker} needs bounds within ±{LARGEST_BOUND:g} and at least {LEAST_WIDTH:g} apart; "
            "declare it in another unit"
        )
    return declared


def check_table(table: object, persons: bool = False, weights: bool = False) -> None:
    """Refuse what is no table, or one of persons, or with survey weights, where they are not provided for."""
    if not isinstance(table, Table):
        raise ParameterError("table must be a dpcausal Table")
    if table.unit is not Unit.ROW and not persons:
        raise ParameterError("this question has no proof for persons: ask a table whose rows are one a person")
    if table.weighed and not weights:
        raise ParameterError("no weights here: ask a table without weight=, or cells, moments, effect or did")


def chosen(method: object, kind: type[Any], known: Mapping[str, Callable[[], Method[Any]]]) -> Any:
    """Return the method object, of the task's ``kind``, that a short name or an object stands for."""
    if isinstance(method, kind):
        return method
    if isinstance(method, str) and method in known:
        return known[method]()
    if isinstance(method, type) and issubclass(method, kind):
        raise ParameterError(f"method must be an object: {method.__name__}(), not {method.__name__}")
    told = f"method must be one of {', '.join(known)}, or an object of dpcausal.methods"
    raise ParameterError(told + nearest(method, known))


def reject_misplaced_options(
    misplaced: Mapping[str, object], method: object, known: Mapping[str, type[Method[Any]]],
    function: Callable[..., Any],
) -> None:  # fmt: skip
    """Refuse keywords that a public function does not take, and name the object that takes them, or the nearest one."""
    for name, value in misplaced.items():
        asked = known.get(method) if isinstance(method, str) else type(method)
        kinds = [kind for kind in (asked, *known.values()) if isinstance(kind, type) and issubclass(kind, Method)]
        taker = next((kind for kind in kinds if name in {field.name for field in fields(kind)}), None)
        if taker is None:
            options = {field.name for kind in kinds for field in fields(kind)}
            meant = nearest(name, [*signature(function).parameters, *sorted(options)])
            raise ParameterError(f"{function.__name__} has no argument {name!r}{meant}")
        room = "papers" if taker.__module__.startswith("dpcausal.papers") else "methods"
        shown = repr(value) if value is None or isinstance(value, (bool, int, float, str)) else "..."
        raise ParameterError(f"{name}= belongs to the method: method=dpc.{room}.{taker.__name__}({name}={shown})")

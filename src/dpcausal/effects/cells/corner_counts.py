"""Sums of a number by cells, with their squares, as counts: each record is spread over the corners of its cell.

A number u of [0, 1] puts the mass (1 − u)², 2u(1 − u), u² on three corners of its cell.  The masses sum to 1, so a
record weighs in the noise what a record of a plain table weighs, and

    Σ 1 = c₀ + c₁ + c₂,  Σ u = c₁/2 + c₂,  Σ u² = c₂

A column of two levels needs the two ends only, and no number one corner.  Proof: ``corner_counts.md``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from dpcausal.codec import storable
from dpcausal.data.coding import cuts_of
from dpcausal.data.schema import Bounded, Column
from dpcausal.errors import ParameterError
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity
from dpcausal.releases.saved import Form

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

GRID = 2**26
"""The whole mass of a record, in integers."""


@storable("Value")
@dataclass(frozen=True)
class Value:
    """A number whose sums were released: its name, range and degree of its corners; of two levels, the last counted."""

    name: str
    lower: float
    width: float
    degree: int
    levels: tuple[str, ...] = ()

    @property
    def event(self) -> str | None:
        return self.levels[1] if self.levels else None

    @classmethod
    def from_payload(cls, form: Form, least: int) -> Value:
        degree = min(form.whole("degree", least), 2)
        levels = form.texts("levels") if form.has("levels") else ()
        if levels and (degree != 1 or len(set(levels)) != 2 or len(levels) != 2):
            raise form.refuse("levels")
        return cls(form.text("name"), float(form.array("lower")), form.size("width"), degree, levels)


COUNTS_ONLY = Value("records", 0.0, 1.0, 0)
"""In place of the values where only records are counted."""


def levels_of(column: Column) -> tuple[str, ...]:
    """Return the names of a column's levels, or of the parts that it is cut into: public."""
    if not isinstance(column, Bounded):
        return tuple(map(str, column.labels))
    cuts = [cut_text(cut) for cut in cuts_of(column)]
    if not cuts:
        return ("all",)
    return (f"below {cuts[0]}", *(f"{low} to {high}" for low, high in pairwise(cuts)),
            f"{cuts[-1]} or more")  # fmt: skip


def cut_text(cut: float) -> str:
    """Return a cut with 15 digits, so that 0.1 + 0.2 is 0.3 and whole numbers are whole."""
    return f"{cut:.15g}"


def value_of(name: str, column: Column) -> Value:
    """Return how a column's sums are released: numbers at three corners, two levels at two."""
    if isinstance(column, Bounded):
        return Value(name, column.lower, column.width, 2)
    if len(column) == 2:
        first, last = map(str, column.labels)
        return Value(name, 0.0, 1.0, 1, (first, last))
    raise ParameterError(f"{name!r} is neither Bounded nor of two levels: it has no mean")


def level_text(level: object, levels: Sequence[str]) -> str | None:
    """Return the text among those of levels that a level goes by, numbers and booleans by number; ``None`` if none."""
    texts = [str(level)]
    if isinstance(level, (int, float, np.integer, np.floating, np.bool_)) and math.isfinite(level) and level % 1 == 0:
        texts += [str(int(level)), *([str(bool(level))] if level in (0, 1) else [])]
    return next((text for text in texts if text in levels), None)


def arms_of(levels: tuple[str, ...], treatment: str, treated: object, control: object) -> tuple[int, int]:
    """Return the codes of control and treated; of two levels the second is treated by default."""
    chosen = []
    for what, level in (("control", control), ("treated", treated)):
        if level is None and len(levels) != 2:
            some = f"{', '.join(levels[:8])}{', ...' if len(levels) > 8 else ''}"
            two = f"{treatment!r} has {len(levels)} levels: {some}"
            hint = "name two of them as treated and control"
            raise ParameterError(two, argument=what, rule="two-levels", value=level, hint=hint)
        text = level_text(level, levels)
        if level is not None and text is None:
            raise ParameterError(f"{what} must be a level of {treatment!r}: {', '.join(levels)}")
        chosen.append(None if text is None else levels.index(text))
    first = chosen[0] if chosen[0] is not None else 0 if chosen[1] is None else 1 - chosen[1]
    second = chosen[1] if chosen[1] is not None else 1 - first
    if first == second:
        raise ParameterError("treated and control must be different levels")
    return first, second


def corners(unit: Reals, degree: int, mass: Integers | None = None) -> Integers:
    """Return each record's masses, shape (n, degree + 1), whole numbers of at least 0 that sum to ``GRID``.

    ``unit``, shape (n,), is in [0, 1]: what is no number counts as the middle, what lies outside as the nearer end.
    ``degree`` is 2; 1 where values are 0 and 1; 0 to count only.  Masses sum to ``mass`` instead, where a unit has
    several rows or a row a weight: at most ``GRID`` a unit.
    """
    unit = np.clip(np.nan_to_num(unit, nan=0.5), 0.0, 1.0)
    whole = np.full(len(unit), float(GRID)) if mass is None else mass.astype(np.float64)
    top = np.rint(whole * (unit * unit if degree == 2 else unit))
    middle = np.minimum(np.rint(2 * whole * unit * (1 - unit)), whole - top)
    masses = {0: [whole], 1: [whole - top, top], 2: [whole - top - middle, middle, top]}[degree]
    return np.stack(masses, axis=1).astype(np.int64)


def functionals(degree: int) -> Reals:
    """Return what Σ 1, Σ u, Σ u² are of the corners, one a row."""
    tables = {0: [[1], [0], [0]], 1: [[1, 1], [0, 1], [0, 1]], 2: [[1, 1, 1], [0, 0.5, 1], [0, 0, 1]]}
    return np.array(tables[degree], dtype=np.float64)


def corner_counts(cells: Integers, number: int, complete: Mask, values: Sequence[Integers]) -> Integers:
    """Return the masses in each cell of the complete records, shape (number, corners of all values): exact.

    ``values`` has the ``corners`` of each value.

    *Guarantee*: ``corner_counts_sensitivity(number of values)``.
    """
    columns = [column[complete] for masses in values for column in masses.T]
    # Sums of whole numbers below 2⁵³: float64 adds them exactly.
    sums = [np.bincount(cells[complete], weights=column, minlength=number) for column in columns]
    return np.stack(sums, axis=1).astype(np.int64)


def corner_counts_sensitivity(values: int, norm: Norm = Norm.L1) -> Sensitivity:
    """Return the sensitivity of ``corner_counts``: 2·``GRID`` a value in l1, √(2·values)·``GRID`` in l2.

    Examples
    --------
    >>> corner_counts_sensitivity(1).bound / GRID
    2.0
    """
    bound: int | float = 2 * GRID * values
    if norm is Norm.L2:
        bound = math.nextafter(math.sqrt(2 * values) * GRID, math.inf)
    return Sensitivity(bound, norm, Relation.REPLACE_ONE, "corner-counts", symmetric=True)

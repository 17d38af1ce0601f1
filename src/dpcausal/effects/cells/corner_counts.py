"""Sums of a number by cells, with their squares, as counts: each record is spread over the corners of its cell.

A number u of [0, 1] puts the mass (1 − u)², 2u(1 − u), u² on three corners of its cell.  The masses sum to 1, so a
record weighs in the noise what a record of a plain table weighs, and

    Σ 1 = c₀ + c₁ + c₂,  Σ u = c₁/2 + c₂,  Σ u² = c₂

A column of two levels needs the two ends only, and no number one corner.  Proof: ``corner_counts.md``.  ``NoisyCells``
are such sums with noise, of which effects are read off.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, ClassVar, Self

import numpy as np

from dpcausal.arrays import Integers, Mask, Reals
from dpcausal.codec import storable
from dpcausal.data.coding import cuts_of
from dpcausal.data.schema import Bounded, Column
from dpcausal.effects.cells.standardise import Sums
from dpcausal.effects.result import Effect
from dpcausal.effects.values_at_bounds import OutcomeSums
from dpcausal.errors import ParameterError, Setting, with_signature_errors
from dpcausal.privacy.sensitivity import Norm, Relation, Sensitivity
from dpcausal.releases.counts import NoisyTable
from dpcausal.releases.release import Release, estimate_release
from dpcausal.releases.saved import Form

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
    cuts = [column.written(cut) if column.dates else cut_text(cut) for cut in cuts_of(column)]
    if not cuts:
        return ("all",)
    return (f"below {cuts[0]}", *(f"{low} to {high}" for low, high in pairwise(cuts)), f"{cuts[-1]} or more")


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
    text = f"{name!r} has neither bounds nor two levels: it has no mean"
    hint = "declare a scale such as 1 to 5 as ", Setting(kind="Bounded", options={"lower": 1, "upper": 5})
    raise ParameterError(text, argument="outcome", rule="mean", hint=hint)


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
            hint = "name two of them as treated and control; the slope of a number is one of moments"
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
    """Return each record's masses, shape (n, degree + 1), whole numbers of at least 0 that sum to ``GRID``. ``unit``,
    shape (n,), is in [0, 1]: what is no number counts as the middle, what lies outside as the nearer end. ``degree`` is
    2; 1 where values are 0 and 1; 0 to count only.  Masses sum to ``mass`` instead, where a unit has several rows or a
    row a weight: at most ``GRID`` a unit."""
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


@storable("NoisyCells")
@dataclass(frozen=True, eq=False)
class NoisyCells(Release):
    """Noisy counts, sums and sums of squares of numbers, by the cells of some columns.

    Attributes
    ----------
    by : tuple of str
        The columns that make the cells.
    levels : tuple of tuples of str
        Their levels, or the parts that they are cut into.
    values : tuple of Value
        The numbers.
    counts : float array, one axis a column of ``by``, then the corners of the values
        In records.
    variance : float
        Variance of an entry's noise.
    cut : tuple of str
        Columns of the cells that are numbers cut into parts of one width, as nobody said where.
    observed : float array, one axis a column of ``by``, or None
        Records that have these columns, whether or not they have the values: effects are then of their mix of strata.
    observed_variance : float
        Variance of the noise of an entry of ``observed``.
    """

    kind: ClassVar[str] = "cells"

    by: tuple[str, ...]
    levels: tuple[tuple[str, ...], ...]
    values: tuple[Value, ...]
    counts: Reals
    variance: float
    cut: tuple[str, ...] = ()
    observed: Reals | None = None
    observed_variance: float = 0.0

    @with_signature_errors
    def effect(
        self, *, treatment: str, outcome: str, adjust: Sequence[str], groups: str | None = None,
        estimand: str = "ate", treated: object = None, control: object = None, coverage: float = 0.95,
        event: object = None,
    ) -> Effect:  # fmt: skip
        """Return the effect of one column of the cells on one of the values: free, however often.

        The g-formula on noisy sums, by the delta method; the intervals count sampling and noise.

        Parameters
        ----------
        treatment, groups : str
            Columns of the cells.
        outcome : str
            One of the values.
        adjust : list of str
            Confounders among the columns of the cells.
        estimand, treated, control, coverage, event
            As of ``dpcausal.effect``.
        """
        effect: Effect = estimate_release(
            self.counting(outcome, event), treatment=treatment, outcome=outcome, adjust=adjust, groups=groups,
            estimand=estimand, treated=treated, control=control, coverage=coverage,
        )  # fmt: skip
        return replace(effect, release=self)

    def counting(self, name: str, event: object) -> NoisyCells:
        value = self.value(name)
        text = level_text(event, value.levels)
        if event is not None and text is None:
            raise ParameterError(f"event must be a level of {name!r}, an outcome of two levels")
        if text in (None, value.event):
            return self
        place = self.values.index(value)
        first = sum(one.degree + 1 for one in self.values[:place])
        counts = self.counts.copy()
        counts[..., first : first + 2] = self.counts[..., first : first + 2][..., ::-1]
        values = (*self.values[:place], replace(value, levels=value.levels[::-1]), *self.values[place + 1 :])
        return replace(self, counts=counts, values=values)

    @property
    def records_counted(self) -> float:
        return float(self._counts_of_records[0].sum())

    @property
    def count_deviation(self) -> float:
        counts, variance = self._counts_of_records
        return math.sqrt(variance * counts.size)

    @property
    def _counts_of_records(self) -> tuple[Reals, float]:
        if self.observed is not None:
            return self.observed, self.observed_variance
        return self.counts[..., : self.values[0].degree + 1], self.variance

    def value(self, name: str) -> Value:
        match = next((one for one in self.values if one.name == name), None)
        if match is None:
            raise ParameterError(f"{name!r} is none of the released values: {', '.join(v.name for v in self.values)}")
        return match

    def sums(self, value: Value, axes: Sequence[int]) -> tuple[Reals, Reals]:
        """Return N, T and Q of a value over some columns, in their order; and the covariance of the noise of (N, T, Q).
        The unit is the width of the value's range."""
        before = sum(one.degree + 1 for one in self.values[: self.values.index(value)])
        summed, merged = self._margin(self.counts[..., before : before + value.degree + 1], axes)
        read = functionals(value.degree)
        return np.moveaxis(summed @ read.T, -1, 0), self.variance * merged * read @ read.T

    def outcome_sums(self, name: str) -> OutcomeSums | None:
        """Return the sums of a number over all records; ``None`` of an outcome of two levels."""
        value = self.value(name)
        if value.degree < 2:
            return None
        sums, noise = self.sums(value, ())
        return OutcomeSums(sums, noise)

    def arms(self, value: Value, treatment: int, pair: tuple[int, int], strata: Sequence[int]) -> Sums:
        """Return the sums of two arms by strata, control first."""
        sums, noise = self.sums(value, (treatment, *strata))
        N, T, Q = sums[:, list(pair)].reshape(3, 2, -1)
        counts, counts_noise, observed, observed_noise = sums[0], float(noise[0, 0]), None, 0.0
        if self.observed is not None:
            counts, merged = self._margin(self.observed, (treatment, *strata))
            observed, observed_noise = counts[list(pair)].reshape(2, -1), self.observed_variance * merged
            counts_noise = observed_noise
        rest = np.delete(counts, list(pair), axis=0)
        others = rest.sum(axis=0).ravel() if len(rest) else None
        return Sums(N, T, Q, noise[:2, :2], observed, observed_noise, others, counts_noise * len(rest))

    def _margin(self, counts: Reals, axes: Sequence[int]) -> tuple[Reals, int]:
        """Return counts summed over all other columns, in the order of the axes, and how many entries a sum has."""
        others = tuple(axis for axis in range(len(self.by)) if axis not in axes)
        summed = np.moveaxis(counts.sum(axis=others), range(len(axes)), np.argsort(axes).tolist())
        return summed, math.prod(len(self.levels[axis]) for axis in others)

    @classmethod
    def from_payload(cls, form: Form, names: tuple[str, ...], n: int) -> Self:
        by = form.texts("by", different=True)
        levels = form.lists("levels", different=True)
        values = tuple(Value.from_payload(one, 0) for one in form.parts("values"))
        counts = form.array("counts")
        if not values or counts.shape != (*map(len, levels), sum(one.degree + 1 for one in values)):
            raise form.refuse("counts")
        if len(by) != len(levels) or names != (*by, *(one.name for one in values if one.degree)):
            raise form.refuse("names")
        cut = form.texts("cut") if form.has("cut") else ()
        if not set(cut) <= set(by):
            raise form.refuse("cut")
        observed = form.array("observed").astype(np.float64) if form.has("observed") else None
        if observed is not None and observed.shape != tuple(map(len, levels)):
            raise form.refuse("observed")
        noise = form.size("observed_variance") if observed is not None else 0.0
        return cls(names, n, by, levels, values, counts, form.size("variance"), cut, observed, noise)


@estimate_release.register(NoisyTable)
def effect_of_table(table: NoisyTable, *, outcome: str, **options: Any) -> Effect:
    """Return the effect of counts as the sums of one of their columns of two levels; levels go by their codes."""
    if outcome not in table.names:
        raise ParameterError(f"{outcome!r} is no column of the released table: {', '.join(table.names)}")
    place = table.names.index(outcome)
    if table.sizes[place] != 2:
        raise ParameterError(f"{outcome!r} has no two levels: it has no mean")
    by = tuple(name for name in table.names if name != outcome)
    levels = tuple(tuple(map(str, range(table.sizes[table.names.index(name)]))) for name in by)
    counts = np.moveaxis(table.counts, place, -1).astype(np.float64)
    value = Value(outcome, 0.0, 1.0, 1)
    cells = NoisyCells((*by, outcome), table.n, by, levels, (value,), counts, table.variance, guarantee=table.guarantee)
    return cells.effect(outcome=outcome, **options)

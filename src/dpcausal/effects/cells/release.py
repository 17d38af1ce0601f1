"""Noisy counts, sums and sums of squares by cells: effects of any treatment among them, however often, free."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dpcausal.codec import storable
from dpcausal.effects.cells.corner_counts import Value, functionals, level_text
from dpcausal.effects.cells.standardise import Sums
from dpcausal.effects.result import Effect
from dpcausal.errors import ParameterError, with_signature_errors
from dpcausal.privacy.noise import PublicGenerator
from dpcausal.releases.counts import NoisyTable
from dpcausal.releases.release import Release, estimate_release
from dpcausal.releases.saved import Form

Reals = npt.NDArray[np.float64]


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
        self, *, treatment: str, outcome: str, adjust: Sequence[str] = (), groups: str | None = None,
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

    def value(self, name: str) -> Value:
        match = next((one for one in self.values if one.name == name), None)
        if match is None:
            raise ParameterError(f"{name!r} is none of the released values: {', '.join(v.name for v in self.values)}")
        return match

    def sums(self, value: Value, axes: Sequence[int]) -> tuple[Reals, Reals]:
        """Return N, T and Q of a value over some columns, in their order; and the covariance of the noise of (N, T, Q).

        The unit is the width of the value's range.
        """
        before = sum(one.degree + 1 for one in self.values[: self.values.index(value)])
        summed, merged = self._margin(self.counts[..., before : before + value.degree + 1], axes)
        read = functionals(value.degree)
        return np.moveaxis(summed @ read.T, -1, 0), self.variance * merged * read @ read.T

    def arms(self, value: Value, treatment: int, pair: tuple[int, int], strata: Sequence[int]) -> Sums:
        """Return the sums of two arms by strata, control first."""
        sums, noise = self.sums(value, (treatment, *strata))
        N, T, Q = sums[:, list(pair)].reshape(3, 2, -1)
        if self.observed is None:
            return Sums(N, T, Q, noise[:2, :2])
        observed, merged = self._margin(self.observed, (treatment, *strata))
        return Sums(N, T, Q, noise[:2, :2], observed[list(pair)].reshape(2, -1), self.observed_variance * merged)

    def _margin(self, counts: Reals, axes: Sequence[int]) -> tuple[Reals, int]:
        """Return counts summed over all other columns, in the order of the axes, and how many entries a sum has."""
        others = tuple(axis for axis in range(len(self.by)) if axis not in axes)
        summed = np.moveaxis(counts.sum(axis=others), range(len(axes)), np.argsort(axes).tolist())
        return summed, math.prod(len(self.levels[axis]) for axis in others)

    def with_extra_noise(self, generator: PublicGenerator) -> Self:
        fresh = generator.laplace(0, math.sqrt(self.variance / 2), self.counts.shape)
        with_extra_noise = replace(self, counts=self.counts + fresh, variance=2 * self.variance)
        if self.observed is None:
            return with_extra_noise
        again = generator.laplace(0, math.sqrt(self.observed_variance / 2), self.observed.shape)
        return replace(with_extra_noise, observed=self.observed + again, observed_variance=2 * self.observed_variance)

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


def cells_of_table(table: NoisyTable, outcome: str) -> NoisyCells:
    """Return counts as the sums of one of their columns of two levels; levels go by their codes."""
    if outcome not in table.names:
        raise ParameterError(f"{outcome!r} is no column of the released table: {', '.join(table.names)}")
    place = table.names.index(outcome)
    if table.sizes[place] != 2:
        raise ParameterError(f"{outcome!r} has no two levels: it has no mean")
    by = tuple(name for name in table.names if name != outcome)
    levels = tuple(tuple(map(str, range(table.sizes[table.names.index(name)]))) for name in by)
    counts = np.moveaxis(table.counts, place, -1).astype(np.float64)
    value = Value(outcome, 0.0, 1.0, 1)
    return NoisyCells((*by, outcome), table.n, by, levels, (value,), counts, table.variance, guarantee=table.guarantee)


@estimate_release.register(NoisyTable)
def effect_of_table(table: NoisyTable, *, outcome: str, **options: Any) -> Effect:
    return cells_of_table(table, outcome).effect(outcome=outcome, **options)

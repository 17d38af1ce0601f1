"""Columns that are adjusted for, in fine cells and in bins of about equal counts: released."""

from dataclasses import dataclass
from functools import cached_property
from typing import Self

import numpy as np

from dpcausal.arrays import Integers, Reals

FINE, WIDE = (256, 2048), 32
"""Equal cells of a column, of which its bins are made: with few rows for the noise, and with many; wider ones, whose
counts say how many records are in many fine ones together."""
FAR, NEAR, BEYOND = 1 / 64, 1 / 8, 0.5
MANY = 4
"""A table has slopes inside bins if so many are not empty."""
LEAST_OWN = 0.5
"""A factor of pair functions is not used where others of its column leave less of its mean square."""
LINEAR, CONTRACTED = 3.0, 4.0
"""Fine cells are equal up to so many spreads from the middle of a column; all beyond lies in so many more."""


@dataclass(frozen=True)
class Axis:
    """Where the fine cells of a column lie: equal ones near its ``centre``, wider ones in its tails.  ``low`` and
    ``width`` are in its ``spread``, as contracted."""

    centre: float = 0.0
    spread: float = 1.0
    low: float = -1.0
    width: float = 2.0

    @classmethod
    def within(cls, centre: float, spread: float) -> Self:
        """Return the axis of a column on [−1, 1]."""
        low, high = contracted((np.array([-1.0, 1.0]) - centre) / spread).tolist()
        return cls(centre, spread, low, high - low)

    def cells(self, column: Reals, number: int) -> Integers:
        deviations = column - self.centre
        deviations /= self.spread
        places = contracted(deviations)
        places -= self.low
        places *= number / self.width
        return np.clip(places, 0, number - 1, out=places).astype(np.int64)

    def values(self, shares: Reals) -> Reals:
        """Return the column's values at such shares of the axis."""
        places = self.low + shares * self.width
        near = np.clip(places, -LINEAR, LINEAR)
        beyond = places - near
        return np.asarray(self.centre + self.spread * (near + beyond / (1 - np.abs(beyond) / CONTRACTED)))


def contracted(deviations: Reals) -> Reals:
    """Return what is beyond ``LINEAR`` drawn nearer, into ``CONTRACTED``."""
    near = np.clip(deviations, -LINEAR, LINEAR)
    beyond = deviations - near
    size = np.abs(beyond)
    size /= CONTRACTED
    size += 1
    beyond /= size
    near += beyond
    return near


@dataclass(frozen=True)
class Feature:
    """One column that is adjusted for, in bins of about equal counts; ``cells`` is the bin of each fine cell."""

    place: int
    axis: Axis
    cells: Integers
    bins: int
    density: Reals
    """Of the fine cells, as counts."""

    @property
    def counts(self) -> Reals:
        return np.bincount(self.cells, self.density, self.bins).astype(np.float64)

    @property
    def bulk(self) -> tuple[float, float]:
        """Where lines end: beyond ``FAR`` of the counts, by so many times as far as those are from ``NEAR``."""
        places = (np.cumsum(self.density) - self.density / 2) / self.density.sum()
        middles = self.axis.values((np.arange(len(places)) + 0.5) / len(places))
        far, near = (np.interp([share, 1 - share], places, middles) for share in (FAR, NEAR))
        low, high = far + BEYOND * (far - near)
        return float(low), float(high)

    def beyond(self, low: float, high: float) -> Reals:
        """Return how far the middles of fine cells are beyond both ends of a line, shape (2, cells)."""
        middles = self.axis.values((np.arange(len(self.cells)) + 0.5) / len(self.cells))
        return np.stack([np.minimum(middles - low, 0.0), np.maximum(middles - high, 0.0)])

    @property
    def values(self) -> float:
        """How many values there are about as often as others, as far as fine cells show: 2 of levels."""
        return 2.0 if self.bins <= 2 else float(self.density.sum() ** 2 / (self.density**2).sum())

    def fine(self, unit: Reals) -> Integers:
        return self.axis.cells(unit[:, self.place], len(self.cells))

    def wider(self, bins: int) -> Integers:
        """Return the bin of each fine cell, of ``bins`` that are as many times as wide."""
        return self.cells * bins // self.bins

    @cached_property
    def factors(self) -> dict[str, Reals]:
        """The factors of functions of pairs, by fine cells."""
        codes, bins = self.cells, self.bins
        above = np.where(codes >= bins // 2, 1.0, -1.0)
        middle = np.where((codes >= bins // 4) & (codes < bins - bins // 4), 1.0, -1.0)
        ranks = np.clip(2 * (2 * (codes + 0.5) / bins - 1), -1.0, 1.0)
        return {"s": above, "t": middle, "b": above * middle, "r": ranks}

    def own_kinds(self, kinds: str) -> str:
        """Return the kinds of factors without those that are nearly a mix of earlier ones, as of a number with few
        values."""
        own, root = "", np.sqrt(self.density)
        basis = root[:, None]
        for kind in kinds if self.bins > 2 else "s"[: len(kinds)]:
            factor = root * self.factors[kind]
            left = factor - basis @ np.linalg.lstsq(basis, factor)[0]
            if not own or left @ left >= LEAST_OWN * (factor @ factor):
                own, basis = own + kind, np.column_stack([basis, factor])
        return own

    def counts_of(self, bins: int) -> Reals:
        return np.asarray(self.counts.reshape(bins, -1).sum(axis=1))

    def sloped(self, values: Reals) -> Reals:
        """Return the values of fine cells, from those of the bins: with a slope inside a bin towards both neighbours,
        the smaller one where both rise or both fall, else none."""
        cells, size = self.cells * len(values) // self.bins, len(values)
        counts = np.bincount(cells, self.density, size)
        full = np.flatnonzero(counts)
        if len(full) < MANY:
            return values[cells]
        places = np.bincount(cells, self.density * np.arange(len(cells)), size)[full] / counts[full]
        rises = np.diff(values[full]) / np.diff(places)
        left, right = np.append(0.0, rises), np.append(rises, 0.0)
        slopes, centres = np.zeros(size), np.zeros(size)
        least = np.minimum(2 * np.minimum(np.abs(left), np.abs(right)), np.abs(left + right) / 2)
        slopes[full] = np.where(left * right > 0, np.sign(left) * least, 0.0)
        centres[full] = places
        return values[cells] + slopes[cells] * (np.arange(len(cells)) - centres[cells])


def quantile_bins(counts: Reals, bins: int) -> Integers:
    """Return the bin of each fine cell, of bins with about equal counts."""
    middle = (np.cumsum(counts) - counts / 2) / counts.sum()
    return np.asarray(np.minimum((middle * bins).astype(np.int64), bins - 1))

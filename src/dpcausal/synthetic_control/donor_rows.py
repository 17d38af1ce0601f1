"""Control units as rows of integers, so that sums are exact in any order and on any engine."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from dpcausal.data.schema import Bounded

Reals = npt.NDArray[np.float64]
Integers = npt.NDArray[np.int64]

FULL = 4096
"""The weight of a donor that counts in full."""

FINE = 4096
"""Steps in the size of the targets' own changes: a donor's value is rounded to one of them."""

LEAST_STEP = 2.0**-40
"""No step is smaller, on the scale [−1, 1]: whole numbers stay exact as floats, far below any change of interest."""

BLOCK = 8192
"""Donors brought into whole numbers at a time."""


def to_scale(values: Reals, bounds: Bounded) -> Reals:
    """Return values within the bounds on the scale [−1, 1]."""
    half = bounds.width / 2
    return np.clip((values - bounds.midpoint) / half, -1, 1)


def from_scale(values: Reals, bounds: Bounded) -> Reals:
    """Return values of the scale [−1, 1] in the outcome's unit, within the bounds."""
    return np.clip(bounds.midpoint + bounds.width / 2 * values, bounds.lower, bounds.upper)


@dataclass(frozen=True)
class Grid:
    """Public steps on the scale [−1, 1], of the size of the targets' own changes: no donor and no bound decides it.

    A row is whole numbers of steps less its own last value before ``start``, each at most ``most``: 16 T most² < 2⁶²,
    so squared lengths of rows, and of differences of two, do not overflow.
    """

    step: float
    start: int
    most: int

    @classmethod
    def of(cls, sizes: Sequence[float], start: int, periods: int) -> Grid:
        """Return the grid of targets whose own last values erred by ``sizes``: that of the least of them."""
        return cls(max(min(sizes) / FINE, LEAST_STEP), start, math.isqrt((2**62 - 1) // (16 * periods)))

    def rows(self, scaled: Reals) -> Integers:
        """Return rows on the scale [−1, 1] as whole numbers less their last value before the start."""
        whole = np.rint(scaled / self.step).astype(np.int64)
        return np.asarray(np.clip(whole - whole[:, self.start - 1 : self.start], -self.most, self.most))

    def blocks(self, scaled: Reals) -> Iterator[Integers]:
        """Yield the rows, some at a time: all that is made of a row looks at this row alone."""
        for first in range(0, len(scaled), BLOCK):
            yield self.rows(scaled[first : first + BLOCK])


def squared_lengths(rows: Integers) -> Integers:
    """Return Σ_t row_t² for each row, exactly."""
    return np.asarray((rows * rows).sum(axis=1))


def within_radius(rows: Integers, radius: int) -> Integers:
    """Return rows of length at most ``radius``: longer ones are shrunk onto it and cut towards 0, each by itself.

    ‖row‖² ≤ radius² holds exactly: the factor radius/‖row‖ is lowered by 1e-12, which outweighs its rounding, and
    cutting towards 0 shortens.
    """
    squared = squared_lengths(rows)
    return np.where((squared > radius * radius)[:, None], _shrunk(rows, squared, radius), rows)


def at_length(rows: Integers, length: int) -> Integers:
    """Return the directions of rows: each of at most ``length``, and nearly that; a row of zeros stays."""
    return _shrunk(rows, squared_lengths(rows), length)


def _shrunk(rows: Integers, squared: Integers, length: int) -> Integers:
    factor = length * (1 - 1e-12) / np.sqrt(np.maximum(squared, 1).astype(np.float64))
    return np.trunc(rows * factor[:, None]).astype(np.int64)


def summed(columns: Sequence[Reals], factors: Sequence[float] | Reals) -> Reals:
    """Return Σ_t factor_t · column_t by single products and additions in this order.

    IEEE arithmetic rounds each correctly, so an entry is the same bits wherever its row stands and on every machine; a
    matrix product is not, its last bits depend on the rows beside.
    """
    total = np.zeros(len(columns[0])) if len(columns) else np.zeros(0)
    for column, factor in zip(columns, factors, strict=True):
        total += column * float(factor)
    return total
